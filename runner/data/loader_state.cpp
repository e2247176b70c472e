#include "data/loader_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::data {
using nlohmann::json;
namespace {

/// What versions did whose rules were older than `rules`.
struct OldRules {
  int rules;
  const char* what;
};
constexpr std::array kOldRules{
    OldRules{
        2,
        "passed over linked folders, endings such as .TXT and the ends of empty documents, and read a file as often "
        "as it had names"},
    OldRules{3,
             "took added tokens for text, read some split patterns of tokenizer.json otherwise, put a space before the "
             "text and not before its pieces, did not read eos_token beside a SentencePiece model, and cut long documents "
             "inside words"}};

/// What of `member`, a fingerprint, may differ though the files are the same.
std::string changed_rules(const json& state, const std::string& member) {
  const bool is_of_files = member == "corpus" || member == "pairs";
  if (!is_of_files || !state.is_object()) return "";
  std::string changed;
  for (const OldRules& old : kOldRules)
    if (state.value("reading_rules", 1) < old.rules)
      changed += (changed.empty() ? " by a version that " : "; and ") + std::string(old.what);
  return changed;
}

}  // namespace

void require_same(const json& state, const json& ours, const std::string& data) {
  for (const auto& [name, value] : ours.items()) {
    const json saved = state.is_object() ? state.value(name, json()) : json();
    if (saved == value) continue;
    // A text is a digest, which tells a reader nothing.
    const std::string change =
        value.is_string() ? "is not what it was" : fmt::format("is {} and was {}", value.dump(), saved.dump());
    throw InputError(
        fmt::format("the checkpoint's place in the data does not fit {}: {} {} when it was saved{}; resume with the same "
                    "data and its settings, or keep the model and the optimizer and begin the data anew with "
                    "--checkpoint.exclude data",
                    data, name, change, changed_rules(state, name)));
  }
}

int64_t count_in(const json& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || !found->is_number_integer() || *found < 0)
    throw InputError(fmt::format("the checkpoint's place in the data: {} must be a whole number", name));
  return found->get<int64_t>();
}

int64_t rows_left(Repeat repeat, const Place& place, int64_t batch_size, int64_t all, int64_t seen) {
  if (repeat == Repeat::Forever) return batch_size;
  const int64_t left = all - seen - place.rank;
  return std::clamp((left + place.world - 1) / place.world, int64_t{0}, batch_size);
}

}  // namespace trainyard::data
