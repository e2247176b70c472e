#include "data/token_lists.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_depth.h"
#include "data/batch.h"
#include "data/documents.h"

namespace trainyard::data {
namespace {
using nlohmann::ordered_json;

constexpr const char *kLabels = "labels", *kLossMask = "loss_mask", *kAttentionMask = "attention_mask";

/// Whole numbers that stand in a line under one name.
class Numbers {
 public:
  /// None where the line has not the name, or null there.
  Numbers(const ordered_json& line, const std::string& name, const std::string& where) : name_(name), where_(where) {
    const auto found = line.find(name);
    if (found == line.end() || found->is_null()) return;
    if (!found->is_array())
      throw InputError(fmt::format("{}: '{}' must be a list of whole numbers, is {}", where, name, found->type_name()));
    list_ = &*found;
  }

  [[nodiscard]] bool are_there() const { return list_ != nullptr; }
  [[nodiscard]] size_t size() const { return list_ ? list_->size() : 0; }
  [[nodiscard]] int64_t operator[](size_t index) const {
    const ordered_json& number = (*list_)[index];
    if (!number.is_number_integer()) fail(index, number.dump(), "no whole number");
    return number.get<int64_t>();
  }
  /// The same of 0 and 1.
  [[nodiscard]] bool flag(size_t index) const {
    const ordered_json& value = (*list_)[index];
    if (value.is_boolean()) return value.get<bool>();
    const int64_t number = (*this)[index];
    if (number != 0 && number != 1) fail(index, number, "neither 0 nor 1");
    return number == 1;
  }
  template <typename Value>
  [[noreturn]] void fail(size_t index, const Value& value, const std::string& what) const {
    throw InputError(fmt::format("{}: {}[{}] is {}, {}", where_, name_, index, value, what));
  }

 private:
  const std::string &name_, &where_;
  const ordered_json* list_ = nullptr;
};

}  // namespace

RecordColumns TokenLists::columns() const {
  return {.needed = field_, .optional = {kLabels, kLossMask, kAttentionMask}};
}

std::string TokenLists::description() const {
  return fmt::format("lists of ids 1, {} below {}", field_, vocab_size_);
}

std::vector<int32_t> TokenLists::ids(std::string_view line, const std::string& where) const {
  if (!is_shallow_json(line)) throw InputError(fmt::format("{}: the brackets are too deep", where));
  const ordered_json object = parse_json_line(line, where);
  if (!object.is_object())
    throw InputError(
        fmt::format("{}: must be a JSON object with the list '{}', is {}", where, field_, object.type_name()));
  const std::string labels_name = kLabels, loss_name = kLossMask, attention_name = kAttentionMask;
  const Numbers ids(object, field_, where), labels(object, labels_name, where), loss(object, loss_name, where),
      attention(object, attention_name, where);
  if (!ids.are_there()) throw InputError(fmt::format("{}: no list '{}'", where, field_));
  if (labels.are_there() && loss.are_there())
    throw InputError(fmt::format("{}: has both {} and {}, which say the same; keep one", where, kLabels, kLossMask));
  for (const auto& [name, list] : {std::pair(kLabels, &labels), {kLossMask, &loss}, {kAttentionMask, &attention}})
    if (list->are_there() && list->size() != ids.size())
      throw InputError(
          fmt::format("{}: '{}' has {} numbers, and {} has {}", where, field_, ids.size(), name, list->size()));

  std::vector<int32_t> made;
  made.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (attention.are_there() && !attention.flag(i)) continue;
    const int64_t id = ids[i];
    if (id < 0 || id >= vocab_size_)
      ids.fail(i, id, fmt::format("but the model's vocabulary goes from 0 to {}", vocab_size_ - 1));
    bool counts = !loss.are_there() || loss.flag(i);
    if (labels.are_there()) {
      const int64_t label = labels[i];
      if (label != id && label != kIgnored)
        labels.fail(i, label,
                    fmt::format("neither {} nor the id {} at its place; labels are not shifted", kIgnored, id));
      counts = label != kIgnored;
    }
    made.push_back(static_cast<int32_t>(counts ? id : ~id));
  }
  return made;
}

}  // namespace trainyard::data
