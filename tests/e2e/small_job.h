#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "process.h"

// A training run of a second or two that needs nothing but the program, for tests of what happens around it.
namespace trainyard::test {

/// A folder with a decoder's config.json (26,816 parameters, byte vocabulary), a corpus, and where the run writes.
class SmallJob {
 public:
  SmallJob();

  /// `train` with this many steps of 2 rows a rank, a line a step, and what else is given, which wins.
  [[nodiscard]] Words train(int steps, Words more = {}) const;
  /// The model's config.json.
  [[nodiscard]] nlohmann::json config() const;
  [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }
  /// One object a step.
  [[nodiscard]] std::vector<nlohmann::json> metrics() const;
  [[nodiscard]] std::vector<double> losses() const;

 private:
  TemporaryFolder folder_;
};

std::vector<nlohmann::json> json_lines(const std::filesystem::path& file);
std::vector<double> column(const std::vector<nlohmann::json>& records, const std::string& key);
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace trainyard::test
