#include "webhook/certificate_plan.h"

#include <catch2/catch.hpp>
#include <functional>

#include "times.h"

using namespace trainyard;
using namespace trainyard::webhook;
using test::kDay;
using test::kStart;

namespace {

const std::vector<std::string> kNames = names_of_service("operator", "trainyard");

Material fresh() {
  return remade({Remake::Everything, ""}, {}, kNames, kStart);
}

Material with(Material material, const std::function<void(Material&)>& change) {
  change(material);
  return material;
}

Remake planned(const Material& material, TimePoint now = kStart) {
  return plan_certificates(material, kNames, now).remake;
}

}  // namespace

TEST_CASE("certificate plan: what is made is good, and complete", "[certificates]") {
  const Material material = fresh();
  CHECK(plan_certificates(material, kNames, kStart) == CertificatePlan{});
  CHECK(material.token_key.size() == 32);
  CHECK(is_signed_by(material.serving.certificate, material.authorities));
}

TEST_CASE("certificate plan: by content of the Secret", "[certificates]") {
  const Material good = fresh(), other = fresh();
  struct Row {
    const char* situation;
    Material material;
    Remake expected;
  };
  const std::vector<Row> rows = {
      {"an empty Secret, as manifests bring it", {}, Remake::Everything},
      {"only a token key is left", {.token_key = good.token_key}, Remake::Everything},
      {"no token key", with(good, [](Material& m) { m.token_key.clear(); }), Remake::TokenKey},
      {"the authority's text is damaged", with(good, [](Material& m) { m.authorities = "x"; }), Remake::Everything},
      {"the authority has another's key", with(good, [&](Material& m) { m.authority_key = other.authority_key; }),
       Remake::Everything},
      {"a serving certificate in the authority's place",
       with(good, [](Material& m) { m.authorities = m.serving.certificate, m.authority_key = m.serving.key; }),
       Remake::Everything},
      {"no serving certificate", with(good, [](Material& m) { m.serving = {}; }), Remake::Certificate},
      {"the serving certificate has another's key", with(good, [&](Material& m) { m.serving.key = other.serving.key; }),
       Remake::Certificate},
      {"the serving certificate is of another authority", with(good, [&](Material& m) { m.serving = other.serving; }),
       Remake::Certificate},
      {"the serving certificate is for another service",
       with(good, [](Material& m) { m.serving = issue(m.authority(), {"other.trainyard.svc"}, kStart); }),
       Remake::Certificate},
      {"an authority before ours in the bundle, with a token",
       with(good, [&](Material& m) { m.authorities = good.authorities + other.authorities; }), Remake::Nothing},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(planned(row.material) == row.expected);
    const CertificatePlan plan = plan_certificates(row.material, kNames, kStart);
    if (plan.remake == Remake::Nothing) continue;
    CHECK_FALSE(plan.why.empty());
    CHECK(planned(remade(plan, row.material, kNames, kStart)) == Remake::Nothing);
  }
}

TEST_CASE("certificate plan: by the time", "[certificates]") {
  const Material material = fresh();
  CHECK(planned(material, kStart + 59 * kDay) == Remake::Nothing);
  CHECK(planned(material, kStart + 60 * kDay) == Remake::Certificate);
  CHECK(planned(material, kStart + 400 * kDay) == Remake::Certificate);
  CHECK(planned(material, kStart - 2 * kDay) == Remake::Certificate);  // a clock that was set back
  CHECK(planned(material, kStart + 3700 * kDay) == Remake::Everything);
}

TEST_CASE("certificate plan: a new serving certificate is of the same authority, with the same token key",
          "[certificates]") {
  const Material old = fresh();
  const TimePoint late = kStart + 60 * kDay;
  const Material next = remade(plan_certificates(old, kNames, late), old, kNames, late);
  CHECK(next.authorities == old.authorities);
  CHECK(next.authority_key == old.authority_key);
  CHECK(next.token_key == old.token_key);
  CHECK(next.serving.certificate != old.serving.certificate);
  CHECK(facts_of(next.serving.certificate)->not_after == late + 90 * kDay);
}

TEST_CASE("certificate plan: authorities overlap: who trusts the bundle trusts certificates of both",
          "[certificates]") {
  Material material = fresh();
  const std::string first = material.authorities;
  TimePoint now = kStart + 2440 * kDay;  // two thirds of ten years
  material = remade({Remake::Certificate, ""}, material, kNames, now);
  CHECK(planned(material, now) == Remake::Authority);
  const KeyPair serving = material.serving;
  material = remade(plan_certificates(material, kNames, now), material, kNames, now);
  const auto bundle = certificates_in(material.authorities);
  REQUIRE(bundle.size() == 2);
  CHECK(bundle[1] == first);
  CHECK(material.serving == serving);  // it stays until it is due
  CHECK(planned(material, now) == Remake::Nothing);

  now += 60 * kDay;
  CHECK(planned(material, now) == Remake::Certificate);
  material = remade(plan_certificates(material, kNames, now), material, kNames, now);
  CHECK(is_signed_by(material.serving.certificate, bundle[0]));
  CHECK(certificates_in(material.authorities) == bundle);

  now = kStart + 2440 * kDay + 2440 * kDay;  // the first one has expired: the next rotation leaves it out
  material = remade({Remake::Authority, ""}, material, kNames, now);
  CHECK(certificates_in(material.authorities).size() == 2);
  CHECK(certificates_in(material.authorities)[1] == bundle[0]);
}

TEST_CASE("certificate plan: a Secret without ca.key is somebody else's and stays as it is", "[certificates]") {
  const Material material = with(fresh(), [](Material& m) { m.authority_key.clear(); });
  CHECK(plan_certificates(material, kNames, kStart + 400 * kDay) == CertificatePlan{.is_foreign = true});
  const Material bare = with(material, [](Material& m) { m.token_key.clear(), m.authorities.clear(); });
  const CertificatePlan plan = plan_certificates(bare, kNames, kStart);
  CHECK(plan.remake == Remake::TokenKey);
  const Material next = remade(plan, bare, kNames, kStart);
  CHECK(next.serving == bare.serving);
  CHECK(next.authorities.empty());
  CHECK(next.token_key.size() == 32);
}
