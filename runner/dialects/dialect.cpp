#include "dialects/dialect.h"

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

}  // namespace trainyard::dialects
