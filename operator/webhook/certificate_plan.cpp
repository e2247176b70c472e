#include "webhook/certificate_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::webhook {
namespace {

constexpr size_t kMostAuthorities = 3;

bool is_empty(const Material& material) {
  return material.authorities.empty() && material.authority_key.empty() && material.serving.certificate.empty() &&
         material.serving.key.empty();
}

bool is_foreign(const Material& material) {
  return material.authority_key.empty() && fits(material.serving);
}

/// Why the authority cannot sign any more; "" where it can.
std::string trouble_of_authority(const Material& material, TimePoint now) {
  const auto facts = facts_of(material.authorities);
  if (!facts || !facts->is_authority) return "its ca.crt is no authority's certificate";
  if (!fits(material.authority())) return "its ca.key does not belong to its ca.crt";
  if (facts->not_after <= now) return fmt::format("its authority expired at {}", format_time(facts->not_after));
  return "";
}

bool serves(const Facts& facts, const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [&](const std::string& name) { return std::ranges::count(facts.names, name) > 0; });
}

bool is_trusted(const Material& material) {
  return std::ranges::any_of(certificates_in(material.authorities), [&](const std::string& authority) {
    return is_signed_by(material.serving.certificate, authority);
  });
}

/// Why there must be another serving certificate; "" where there need not.
std::string trouble_of_serving(const Material& material, const std::vector<std::string>& names, TimePoint now) {
  const auto facts = facts_of(material.serving.certificate);
  if (!facts || !fits(material.serving)) return "its tls.crt and tls.key are no pair";
  if (!is_trusted(material)) return "its tls.crt is not signed by its ca.crt";
  if (!serves(*facts, names)) return fmt::format("its certificate is not for {}", fmt::join(names, ", "));
  if (now < facts->not_before) return fmt::format("its certificate holds from {} on", format_time(facts->not_before));
  if (now >= facts->rotate_at()) return fmt::format("its certificate expires at {}", format_time(facts->not_after));
  return "";
}

/// The new authority, then those that are still good for certificates that they signed.
std::string bundle_of(const std::string& newest, const Material& material, TimePoint now) {
  std::string bundle = newest;
  size_t count = 1;
  for (const std::string& old : certificates_in(material.authorities)) {
    if (facts_of(old)->not_after <= now || count == kMostAuthorities) continue;
    bundle += old;
    ++count;
  }
  return bundle;
}

}  // namespace

CertificatePlan plan_certificates(const Material& material, const std::vector<std::string>& names, TimePoint now) {
  if (is_empty(material)) return {Remake::Everything, "it is empty"};
  if (is_foreign(material))
    return {.remake = material.token_key.empty() ? Remake::TokenKey : Remake::Nothing,
            .why = material.token_key.empty() ? "it has no token.key" : "",
            .is_foreign = true};
  if (auto trouble = trouble_of_authority(material, now); !trouble.empty()) return {Remake::Everything, trouble};
  if (auto trouble = trouble_of_serving(material, names, now); !trouble.empty()) return {Remake::Certificate, trouble};
  const Facts authority = *facts_of(material.authorities);
  if (now >= authority.rotate_at())
    return {Remake::Authority, fmt::format("its authority expires at {}", format_time(authority.not_after))};
  if (material.token_key.empty()) return {Remake::TokenKey, "it has no token.key"};
  return {};
}

Material remade(const CertificatePlan& plan, const Material& material, const std::vector<std::string>& names,
                TimePoint now) {
  Material made = material;
  if (made.token_key.empty()) made.token_key = OperatorKey::random().bytes;
  if (plan.remake == Remake::Authority || plan.remake == Remake::Everything) {
    const KeyPair authority = make_authority(now);
    made.authorities =
        plan.remake == Remake::Authority ? bundle_of(authority.certificate, material, now) : authority.certificate;
    made.authority_key = authority.key;
  }
  if (plan.remake == Remake::Certificate || plan.remake == Remake::Everything)
    made.serving = issue(made.authority(), names, now);
  return made;
}

}  // namespace trainyard::webhook
