#include "dialects/tables.h"

#include <catch2/catch.hpp>

#include <cctype>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "dialects/reference.h"
#include "support/support.h"

namespace trainyard::dialects {
namespace {

std::vector<const Dialect*> dialects() {
  return {&accelerate(), &trainer(), &deepspeed(), &torchtitan(), &scripts(), &beside_a_scheduler()};
}

bool is_command(std::string_view ours) {
  return ours == "trainyard plan";
}

bool is_launchers_name(std::string_view ours) {
  return ours.starts_with("--") || std::isupper(static_cast<unsigned char>(ours.front()));
}

TEST_CASE("tables: every row that sets something names a key of the schema, with values that this key takes",
          "[dialects]") {
  for (const Dialect* const dialect : dialects())
    for (const Row& row : dialect->rows) {
      if (row.ours.empty() || is_launchers_name(row.ours) || is_command(row.ours)) continue;
      INFO(dialect->name << " " << row.theirs << " → " << row.ours);
      const config::Key* const key = config::find_key(row.ours);
      REQUIRE(key);
      for (const Word& word : row.words) {
        if (!word.ours.empty()) CHECK_NOTHROW(config::parse_value(key->rule, word.ours, "the table"));
      }
      if (!row.by_default.empty() && !row.compute && !row.derive && row.words.empty())
        CHECK_NOTHROW(config::parse_value(key->rule, row.by_default, "the table"));
    }
}

TEST_CASE("tables: no key has two rows for the same thing", "[dialects]") {
  for (const Dialect* const dialect : dialects()) {
    std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
    for (const Row& row : dialect->rows) {
      INFO(dialect->name << " " << row.theirs);
      CHECK(seen.emplace(row.theirs, row.ours, row.when).second);
    }
  }
}

TEST_CASE("docs/coming-from-pytorch.md is what the tables say: trainyard config docs coming-from-pytorch",
          "[dialects]") {
  CHECK(read_file(test::in_repository("docs/coming-from-pytorch.md")) == documentation());
}

TEST_CASE("README says of other programs' keys what the page of the tables says, and leads there", "[dialects]") {
  const std::string claim = "sets a key of Trainyard's, or changes nothing here, or is refused with the reason";
  CHECK_THAT(documentation(), Catch::Contains("each key " + claim));
  CHECK_THAT(read_file(test::in_repository("README.md")),
             Catch::Contains("[each key](docs/coming-from-pytorch.md) " + claim));
}

TEST_CASE("truth_of: what YAML, TOML and flags write", "[dialects]") {
  for (const char* const text : {"true", "True", "yes", "on", "1"}) CHECK(truth_of(text) == true);
  for (const char* const text : {"false", "No", "off", "0"}) CHECK(truth_of(text) == false);
  for (const char* const text : {"", "2", "truth"}) CHECK_FALSE(truth_of(text));
}

}  // namespace
}  // namespace trainyard::dialects
