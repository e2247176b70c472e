#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "support/support.h"
#include "telemetry/families.h"

using namespace trainyard::telemetry;

namespace {

const char* name_of(Type type) {
  return type == Type::Counter ? "counter" : type == Type::Gauge ? "gauge" : "histogram";
}

/// The cell of a table's row that begins at `from`, without blanks and backquotes; `from` moves on to the next.
std::string next_cell(const std::string& line, size_t& from) {
  const size_t end = line.find('|', from);
  std::string cell = line.substr(from, end - from);
  from = end == std::string::npos ? end : end + 1;
  std::erase(cell, '`');
  const size_t first = cell.find_first_not_of(' ');
  return first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1);
}

/// "type; labels" by metric, of all tables on the page whose first cell is a name in backquotes.
std::map<std::string, std::string> metrics_of_page() {
  std::map<std::string, std::string> found;
  std::ifstream page(trainyard::test::in_repository("docs/metrics.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    size_t at = 1;
    const std::string name = next_cell(line, at), type = next_cell(line, at), labels = next_cell(line, at);
    CHECK_FALSE(found.contains(name));
    found[name] = type + "; " + labels;
  }
  return found;
}

}  // namespace

TEST_CASE("metrics: docs/metrics.md names each with its type and labels, and no other", "[metrics]") {
  std::map<std::string, std::string> expected;
  for (const Family& family : families())
    expected[std::string(family.name)] = std::string(name_of(family.type)) + "; " + std::string(family.labels);
  CHECK(metrics_of_page() == expected);
}
