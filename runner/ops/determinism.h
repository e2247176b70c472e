#pragma once

namespace trainyard::ops {

/// While it lives, the ops of the calling thread promise equal bits for equal inputs, or need not where a device is
/// faster without. Scopes nest; outside of any they promise. The CPU's ops promise always.
class DeterminismScope {
 public:
  explicit DeterminismScope(bool is_deterministic);
  ~DeterminismScope();
  DeterminismScope(const DeterminismScope&) = delete;
  DeterminismScope& operator=(const DeterminismScope&) = delete;

 private:
  bool outer_;
};

bool is_deterministic();

}  // namespace trainyard::ops
