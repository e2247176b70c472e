#include <fmt/format.h>

#include <unordered_set>

#include "base/error.h"
#include "checkpoint/pickle.h"

namespace trainyard::checkpoint {
namespace {

using Found = std::vector<std::pair<std::string, const PickledTensor*>>;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kMaxSeen = 1'000'000;  // values below one root, counted as often as they are reached

class Walk {
 public:
  explicit Walk(const std::string& where) : where_(where) {}

  void below(const PickleValue& mapping, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) throw InputError(fmt::format("{}: dictionaries nest deeper than {}", where_, kMaxDepth));
    for (const auto& [key, value] : mapping.entries) {
      if (++seen_ > kMaxSeen) throw InputError(fmt::format("{}: more than {} values", where_, kMaxSeen));
      if (key->kind != PickleValue::Kind::Text || key->text.size() > kMaxKeyBytes) continue;
      const std::string name = prefix + key->text;
      if (value->kind == PickleValue::Kind::Mapping) below(*value, name + ".", depth + 1);
      if (value->kind != PickleValue::Kind::Tensor) continue;
      if (!names_.insert(name).second) throw InputError(fmt::format("{}: tensor '{}' stands twice", where_, name));
      found_.emplace_back(name, &value->tensor);
    }
  }
  Found take() { return std::move(found_); }

 private:
  const std::string& where_;
  std::unordered_set<std::string> names_;
  size_t seen_ = 0;
  Found found_;
};

bool holds_tensors_itself(const PickleValue& mapping) {
  for (const auto& [key, value] : mapping.entries)
    if (value->kind == PickleValue::Kind::Tensor) return true;
  return false;
}

}  // namespace

const PickleValue* member(const PickleValue& of, std::string_view key) {
  const PickleValue* const mapping = of.kind == PickleValue::Kind::Object ? of.state : &of;
  if (!mapping) return nullptr;
  for (const auto& [name, value] : mapping->entries)
    if (name->kind == PickleValue::Kind::Text && name->text == key) return value;
  return nullptr;
}

Found tensors_below(const PickleValue& root, const std::string& where) {
  if (root.kind == PickleValue::Kind::Tensor) return {{"", &root.tensor}};
  const PickleValue* model = &root;
  if (!holds_tensors_itself(root))
    for (const char* const wrapper : {"model", "state_dict", "model_state_dict", "module"})
      if (const PickleValue* const inner = member(root, wrapper); inner && inner->kind == PickleValue::Kind::Mapping) {
        model = inner;
        break;
      }
  Walk walk(where);
  walk.below(*model, "", 0);
  Found found = walk.take();
  if (found.empty()) throw InputError(fmt::format("{}: no dictionary of tensors", where));
  return found;
}

}  // namespace trainyard::checkpoint
