#include "dialects/dialect.h"

#include <algorithm>

namespace trainyard::dialects {

Row takes(std::string_view theirs, std::string_view ours, std::string_view by_default) {
  return {.theirs = theirs, .ours = ours, .by_default = by_default};
}

Row maps(std::string_view theirs, std::string_view ours, std::vector<Word> words, std::string_view by_default) {
  return {.theirs = theirs, .ours = ours, .words = std::move(words), .by_default = by_default};
}

Row follows(std::string_view theirs, std::string_view ours, Compute compute, std::string_view remark,
            std::string_view by_default) {
  return {.theirs = theirs, .ours = ours, .compute = compute, .remark = remark, .by_default = by_default};
}

Row derives(std::string_view theirs, std::string_view ours, Derive derive, std::string_view remark,
            std::string_view by_default) {
  return {.theirs = theirs, .ours = ours, .derive = derive, .remark = remark, .by_default = by_default};
}

Row suggests(std::string_view theirs, std::string_view ours, Compute compute, std::string_view remark) {
  Row row = follows(theirs, ours, compute, remark);
  row.is_weak = true;
  return row;
}

Row automatic(Row row, std::string_view otherwise) {
  row.may_be_auto = true;
  row.automatic = otherwise;
  return row;
}

Row tuning(std::string_view theirs) {
  Row row = no_op(theirs, "it tunes speed and memory and changes no result");
  row.is_tuning = true;
  return row;
}

Row because(Row row, Compute reason) {
  row.reason = reason;
  return row;
}

Row no_op(std::string_view theirs, std::string_view why, std::vector<std::string_view> quiet) {
  Row row = only(theirs, std::move(quiet), why);
  row.is_noted = true;
  return row;
}

Row only(std::string_view theirs, std::vector<std::string_view> values, std::string_view why) {
  Row row{.theirs = theirs, .why = why};
  for (const std::string_view value : values) row.words.push_back({value, ""});
  return row;
}

Row refused(std::string_view theirs, std::string_view why) {
  return {.theirs = theirs, .why = why, .is_refused = true};
}

Row brings(std::string_view theirs, std::string_view value, std::string_view ours, std::string_view value_of_ours) {
  return {.theirs = theirs, .ours = ours, .words = {{value, value_of_ours}}, .when = value};
}

Row compile_mode(std::string_view theirs) {
  return maps(theirs, "device.cuda_graphs",
              {{"default", "never"},
               {"reduce-overhead", "auto"},
               {"max-autotune", "auto"},
               {"max-autotune-no-cudagraphs", "never"}});
}

Row alone(Row row, std::string_view bare) {
  row.bare = bare;
  return row;
}

Row truth(std::string_view theirs, std::string_view ours, std::vector<Word> words) {
  return alone(maps(theirs, ours, std::move(words)), "true");
}

namespace {

constexpr std::string_view kAnySection = "*.";

/// "training.steps" → "steps"
std::string_view last_of(std::string_view key) {
  return key.substr(key.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

bool covers(const Row& row, std::string_view key) {
  if (row.theirs.ends_with("*")) return key.starts_with(row.theirs.substr(0, row.theirs.size() - 1));
  if (row.theirs.starts_with(kAnySection)) return key == row.theirs.substr(2) || key.ends_with(row.theirs.substr(1));
  return key == row.theirs;
}

bool is_pattern(const Row& row) {
  return row.theirs.ends_with("*") || row.theirs.starts_with(kAnySection);
}

bool is_same_key(const Dialect& dialect, std::string_view one, std::string_view other) {
  if (one == other) return true;
  if (last_of(one) != last_of(other)) return false;
  return std::ranges::any_of(dialect.rows, [&](const Row& row) {
    return row.theirs.starts_with(kAnySection) && row.theirs.substr(kAnySection.size()) == last_of(one);
  });
}

std::vector<std::string> names_near(const Dialect& dialect, std::string_view key) {
  const std::string section(key.substr(0, key.size() - last_of(key).size()));
  std::vector<std::string> names;
  for (const Row& row : dialect.rows) {
    if (!is_pattern(row)) names.emplace_back(row.theirs);
    if (row.theirs.starts_with(kAnySection)) names.push_back(section + std::string(last_of(row.theirs)));
  }
  return names;
}

}  // namespace trainyard::dialects
