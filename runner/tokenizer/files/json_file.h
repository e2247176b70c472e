#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::tokenizer {

/// No tokenizer file is larger.
inline constexpr size_t kMaxFileBytes = size_t{256} << 20;

/// Parses `content`. Throws InputError: `where`, line and column.
nlohmann::json parse_json(std::string_view content, const std::string& where);

/// A value together with what messages call it ("tokenizer.json: model.vocab"), so that every complaint says where.
class Field {
 public:
  Field(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  /// The member `name`; null where the object has none. Throws InputError where this is no object.
  [[nodiscard]] Field at(const std::string& name) const;
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  // Each throws InputError where the value is of another type.
  [[nodiscard]] const nlohmann::json& object() const;
  [[nodiscard]] const nlohmann::json& array() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag(bool if_absent) const;
  /// A token id: a whole number from 0 to kMaxVocab - 1.
  [[nodiscard]] int32_t token_id() const;
  [[nodiscard]] Field element(size_t index) const;

  [[noreturn]] void fail(std::string_view wanted) const;

 private:
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace trainyard::tokenizer
