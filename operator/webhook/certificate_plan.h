#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "webhook/material.h"

namespace trainyard::webhook {

/// What is to be made anew.
enum class Remake {
  Nothing,
  TokenKey,     ///< the token's key alone
  Certificate,  ///< a new serving certificate of the authority that is there
  /// A new authority before those that are there. The serving certificate stays until it is due by itself: whoever has
  /// read the bundle by then trusts both.
  Authority,
  Everything,  ///< nothing there is of use
};

struct CertificatePlan {
  Remake remake = Remake::Nothing;
  std::string why;  ///< "the serving certificate expires at …": for the log
  /// The Secret is somebody's who keeps his authority's key to himself (cert-manager, a person): used as it is.
  bool is_foreign = false;
  bool operator==(const CertificatePlan&) const = default;
};

/// Pure: what is to be done with this content of the Secret, for a server with these names, now.
[[nodiscard]] CertificatePlan plan_certificates(const Material& material, const std::vector<std::string>& names,
                                                TimePoint now);

/// Does it: draws keys. What is not remade stays; a missing token key is made with anything else.
[[nodiscard]] Material remade(const CertificatePlan& plan, const Material& material,
                              const std::vector<std::string>& names, TimePoint now);

}  // namespace trainyard::webhook
