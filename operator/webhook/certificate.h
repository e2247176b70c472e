#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

// X.509 certificates as PEM texts in, PEM texts out. Nothing here reads a clock.
namespace trainyard::webhook {

/// A certificate and the private key that belongs to it.
struct KeyPair {
  std::string certificate, key;
  bool operator==(const KeyPair&) const = default;
};

/// What a certificate says of itself.
struct Facts {
  TimePoint not_before, not_after;
  std::vector<std::string> names;  ///< DNS names and addresses it serves
  bool is_authority = false;
  /// When two thirds of its life are over. Before it begins to hold, it is not due.
  [[nodiscard]] TimePoint rotate_at() const { return not_before + (not_after - not_before) / 3 * 2; }
};

/// The facts of the first certificate in `pem`; none where there is none.
[[nodiscard]] std::optional<Facts> facts_of(std::string_view pem);
/// The certificates of a bundle, one by one, each as PEM in one form; what is none is left out.
[[nodiscard]] std::vector<std::string> certificates_in(std::string_view bundle);
/// Whether the key is that of the first certificate.
[[nodiscard]] bool fits(const KeyPair& pair);
/// Whether `authority` signed `certificate`.
[[nodiscard]] bool is_signed_by(std::string_view certificate, std::string_view authority);

/// A new authority, ECDSA P-256, for ten years.
[[nodiscard]] KeyPair make_authority(TimePoint now);
/// A new certificate for servers called `names`, signed by `authority`: for 90 days, or as long as the authority has.
/// Numeric addresses among the names become addresses. Throws std::invalid_argument where the authority is of no use.
[[nodiscard]] KeyPair issue(const KeyPair& authority, const std::vector<std::string>& names, TimePoint now);

}  // namespace trainyard::webhook
