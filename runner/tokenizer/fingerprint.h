#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace trainyard::tokenizer {

/// A hash over a sequence of byte strings (XXH3, 128 bits): tells contents apart, is no defence against forgery.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  /// One part: ("ab", "c") and ("a", "bc") differ.
  Fingerprint& add(std::string_view part);
  /// The same of a long one; `between` is called now and then, and may throw.
  Fingerprint& add(std::string_view part, const std::function<void()>& between);
  [[nodiscard]] std::string hex() const;  ///< 32 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::tokenizer
