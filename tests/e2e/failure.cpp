#include "failure.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace trainyard::test {
namespace fs = std::filesystem;
namespace {

/// A line of the log begins with its time, which may stand after a rank's number.
bool is_log(std::string_view line) {
  if (line.starts_with("[rank ")) line.remove_prefix(line.find("] ") + 2);
  return line.starts_with("[20");
}

}  // namespace

std::vector<std::string> errors_of(const Ended& ended) {
  std::vector<std::string> errors;
  for (const std::string& line : lines_of(ended.err))
    if (!is_log(line)) errors.push_back(line);
  return errors;
}

void check_failure(const Ended& ended, int code, const Words& says) {
  INFO(ended.all());
  CHECK_FALSE(ended.timed_out);
  CHECK(ended.code == code);
  const auto errors = errors_of(ended);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("trainyard: error: "));
  for (const std::string& part : says) CHECK_THAT(errors[0], Catch::Contains(part));
}

std::vector<std::string> saved_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".generation") && name != ".lock") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace trainyard::test
