#include "tokenizer/files/json_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_depth.h"
#include "tokenizer/bpe/bpe_model.h"

namespace trainyard::tokenizer {
using nlohmann::json;

json parse_json(std::string_view content, const std::string& where) {
  if (!is_shallow_json(content)) throw InputError(where + ": its brackets are too deep");
  try {
    return json::parse(content);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

Field Field::at(const std::string& name) const {
  static const json kNull;
  const auto found = object().find(name);
  const bool is_top = where_.find(": ") == std::string::npos;
  return {found == value_->end() ? kNull : *found, where_ + (is_top ? ": " : ".") + name};
}

Field Field::element(size_t index) const {
  return {array().at(index), fmt::format("{}[{}]", where_, index)};
}

const json& Field::object() const {
  if (!value_->is_object()) fail("an object");
  return *value_;
}

const json& Field::array() const {
  if (!value_->is_array()) fail("an array");
  return *value_;
}

const std::string& Field::text() const {
  if (!value_->is_string()) fail("a string");
  return value_->get_ref<const std::string&>();
}

bool Field::flag(bool if_absent) const {
  if (is_null()) return if_absent;
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

int32_t Field::token_id() const {
  if (!value_->is_number_integer() || *value_ < 0 || *value_ >= kMaxVocab)
    fail(fmt::format("a token id from 0 to {}", kMaxVocab - 1));
  return value_->get<int32_t>();
}

void Field::fail(std::string_view wanted) const {
  constexpr size_t kShown = 60;
  std::string shown =
      value_->is_structured() ? value_->type_name() : value_->dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + "…";
  throw InputError(fmt::format("{}: must be {}, is {}", where_, wanted, is_null() ? "absent" : shown));
}

}  // namespace trainyard::tokenizer
