#pragma once

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
  [[nodiscard]] std::string hex() const;  ///< 32 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::tokenizer
