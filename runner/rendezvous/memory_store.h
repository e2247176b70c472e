#pragma once

#include "common/condition_variable.h"
#include "common/mutex.h"
#include "rendezvous/store.h"
#include "rendezvous/table.h"

namespace trainyard::rendezvous {

/// The store of ranks that are threads of one process, and of a world of one: no port, no token, nobody to lose.
class MemoryStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override;
  [[nodiscard]] Waited try_wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t delta) override;
  std::string compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                              const std::string& desired) override;
  bool erase(const std::string& key) override;
  /// Its client lives as long as the process.
  std::string claim(const std::string& key, const std::string& value) override {
    return compare_and_set(key, std::nullopt, value);
  }
  /// Nobody can be waiting for who is gone: there is nothing to give up.
  void close() override {}

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  Table table_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::rendezvous
