#include "webhook/certificate.h"

#include <catch2/catch.hpp>

#include "times.h"

using namespace trainyard;
using namespace trainyard::webhook;
using test::kDay;
using test::kStart;

namespace {

const std::vector<std::string> kServed = {"operator.trainyard.svc", "localhost", "127.0.0.1", "::1"};

}  // namespace

TEST_CASE("certificate: an authority lasts ten years and a serving certificate 90 days", "[certificates]") {
  const KeyPair authority = make_authority(kStart);
  const Facts root = *facts_of(authority.certificate);
  CHECK(root.is_authority);
  CHECK(root.not_before == kStart - kDay);
  CHECK(root.not_after == kStart - kDay + 3650 * kDay);
  CHECK(fits(authority));

  const KeyPair serving = issue(authority, kServed, kStart);
  const Facts leaf = *facts_of(serving.certificate);
  CHECK_FALSE(leaf.is_authority);
  CHECK(leaf.not_after == kStart + 90 * kDay);
  CHECK(leaf.names == std::vector<std::string>{"operator.trainyard.svc", "localhost", "127.0.0.1", "::1"});
  CHECK(fits(serving));
  CHECK(is_signed_by(serving.certificate, authority.certificate));
}

TEST_CASE("certificate: another authority of the same name did not sign it", "[certificates]") {
  const KeyPair first = make_authority(kStart), second = make_authority(kStart);
  const KeyPair serving = issue(first, kServed, kStart);
  CHECK_FALSE(is_signed_by(serving.certificate, second.certificate));
  CHECK_FALSE(fits({serving.certificate, first.key}));
  CHECK(certificates_in(second.certificate + first.certificate) == std::vector{second.certificate, first.certificate});
}

TEST_CASE("certificate: none outlives its authority", "[certificates]") {
  const KeyPair authority = make_authority(kStart);
  const TimePoint late = kStart + 3640 * kDay;
  CHECK(facts_of(issue(authority, kServed, late).certificate)->not_after == facts_of(authority.certificate)->not_after);
}

TEST_CASE("certificate: texts that are none are taken for none", "[certificates]") {
  const KeyPair authority = make_authority(kStart);
  const std::string torn = authority.certificate.substr(0, authority.certificate.size() / 2);
  CHECK_FALSE(facts_of("").has_value());
  CHECK_FALSE(facts_of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").has_value());
  CHECK_FALSE(facts_of(torn).has_value());
  CHECK(certificates_in("text\n" + authority.certificate + "text\n" + torn).size() == 1);
  CHECK_FALSE(fits({authority.certificate, "no key"}));
  CHECK_FALSE(fits({"", authority.key}));
  CHECK_FALSE(is_signed_by("", ""));
  CHECK_THROWS_AS(issue({"", ""}, kServed, kStart), std::invalid_argument);
  CHECK_THROWS_AS(issue(authority, {}, kStart), std::invalid_argument);
}
