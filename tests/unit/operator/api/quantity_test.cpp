#include "api/quantity.h"

#include <catch2/catch.hpp>
#include <random>

namespace trainyard::api {
namespace {

std::string canonical(const char* text) {
  const auto parsed = Quantity::parse(text);
  return parsed ? parsed->text() : "none";
}

Quantity of(const std::string& text) {
  return Quantity::parse(text).value();
}

}  // namespace

TEST_CASE("Quantity: the canonical form is that of Kubernetes", "[api]") {
  const std::pair<const char*, const char*> rows[] = {
      {"0", "0"},
      {"0Gi", "0"},
      {"1", "1"},
      {"+1", "1"},
      {"0.5", "500m"},
      {"500m", "500m"},
      {"1000m", "1"},
      {"1800m", "1800m"},
      {"1.", "1"},
      {".5", "500m"},
      {"1000", "1k"},
      {"1234", "1234"},
      {"100000", "100k"},
      {"1Gi", "1Gi"},
      {"1024Mi", "1Gi"},
      {"1536Mi", "1536Mi"},
      {"1.5Gi", "1536Mi"},
      {"0.5Ki", "512"},
      {"1.5Ki", "1536"},
      {"1023Ki", "1023Ki"},
      {"1e3", "1e3"},
      {"12E6", "12e6"},
      {"1e2", "100"},
      {"1e-3", "1e-3"},
      {"1E", "1E"},
      {"1n", "1n"},
      {"0.1n", "1n"},
      {"1.0000000001", "1000000001n"},
      {"-500m", "-500m"},
      {"-1Gi", "-1Gi"},
      {"5u", "5u"},
      {"007", "7"},
      {"0.001Gi", "1073741824m"},
      {"9Ei", "9223372036854775807"},
      {"1e400", "9223372036854775807"},
  };
  for (const auto& [text, wanted] : rows) {
    INFO(text);
    CHECK(canonical(text) == wanted);
  }
}

TEST_CASE("Quantity: what is none is refused", "[api]") {
  for (const char* const text : {"", "lots", ".", "-", "1i", "1KI", "1ki", "1 ", " 1", "1e", "1e1.5", "1mm", "1Kii",
                                 "--1", "1e--3", "1,5", "0x10", "NaN"}) {
    INFO(text);
    CHECK(canonical(text) == "none");
  }
}

TEST_CASE("Quantity: JSON numbers count as well", "[api]") {
  CHECK(Quantity::parse_json(Json(2))->text() == "2");
  CHECK(Quantity::parse_json(Json(1.5))->text() == "1500m");
  CHECK(Quantity::parse_json(Json("64Gi"))->text() == "64Gi");
  CHECK_FALSE(Quantity::parse_json(Json::array()));
}

TEST_CASE("Quantity: a sum is written like the first that is not zero", "[api]") {
  CHECK((of("500m") + of("100m") + of("500m") + of("100m") + of("600m")).text() == "1800m");
  CHECK((of("0") + of("1Gi") + of("1073741824")).text() == "2Gi");
  CHECK((of("1073741824") + of("1Gi")).text() == "2147483648");
  CHECK((of("1Gi") + of("512Mi")).text() == "1536Mi");
  CHECK((Quantity() + of("1e3")).text() == "1e3");
}

TEST_CASE("Quantity: compared by amount, not by form", "[api]") {
  CHECK(of("1Gi") == of("1024Mi"));
  CHECK(of("1G") < of("1Gi"));
  CHECK(of("1001m") > of("1"));
  CHECK(of("-1") < of("0"));
}

TEST_CASE("Quantity: addition is exact, commutes and associates, and text reads back as the same amount", "[api]") {
  std::mt19937_64 random(7);
  const char* const units[] = {"", "m", "u", "n", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3"};
  const auto any = [&] {
    return of(std::to_string(random() % 5000) + "." + std::to_string(random() % 1000) + units[random() % 12]);
  };
  for (int round = 0; round < 2000; ++round) {
    const Quantity a = any(), b = any(), c = any();
    CHECK(a + b == b + a);
    CHECK((a + b) + c == a + (b + c));
    CHECK((a <=> b) == ((a + c) <=> (b + c)));
    CHECK(of(a.text()) == a);
  }
}

TEST_CASE("Quantity: sums beyond 2^63 stay exact", "[api]") {
  Quantity sum;
  for (int i = 0; i < 5; ++i) sum += of("4Ei");
  CHECK(sum.text() == "20Ei");
}

}  // namespace trainyard::api
