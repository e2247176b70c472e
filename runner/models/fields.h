#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::models {

/// A JSON object whose fields are read with errors that name file and field. Borrows the object.
/// A flag that is null counts as absent, as does what `has` and `require` look at; a number or a text that is null is
/// refused, because a null there means something else than absence (is_null), or transformers refuses it too.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  [[nodiscard]] bool contains(const char* key) const { return object_.contains(key); }
  [[nodiscard]] bool is_null(const char* key) const { return object_.contains(key) && object_.at(key).is_null(); }

  /// A whole number above 0; without `otherwise` it must be there.
  [[nodiscard]] int64_t size(const char* key) const;
  [[nodiscard]] int64_t size(const char* key, int64_t otherwise) const {
    return contains(key) ? whole(key, 1) : otherwise;
  }
  /// How many layers: as size(), and no more than anybody makes.
  [[nodiscard]] int64_t layers(const char* key) const;
  /// A whole number from 0.
  [[nodiscard]] int64_t count(const char* key, int64_t otherwise) const;
  /// Above 0; without `otherwise` it must be there.
  [[nodiscard]] double number(const char* key) const;
  [[nodiscard]] double number(const char* key, double otherwise) const {
    return contains(key) ? number(key) : otherwise;
  }
  /// A number from 0 to below 1, such as the rate of dropout.
  [[nodiscard]] double rate(const char* key, double otherwise) const;
  /// The number of one of `count` rows; a negative one counts from the end, as in Python. None where absent or null.
  [[nodiscard]] std::optional<int64_t> row(const char* key, int64_t count) const;
  [[nodiscard]] bool flag(const char* key, bool otherwise) const;
  [[nodiscard]] std::string text(const char* key, const std::string& otherwise) const;
  [[nodiscard]] Fields object(const char* key) const;
  /// The value as the file has it; null where it is absent.
  [[nodiscard]] nlohmann::json raw(const char* key) const { return object_.value(key, nlohmann::json()); }

  /// Throws InputError where `key` is anything but absent or `expected`; `why` completes "FILE: key is VALUE; …".
  void require(const char* key, const nlohmann::json& expected, const std::string& why) const;
  [[nodiscard]] const std::string& where() const { return where_; }
  [[noreturn]] void fail(const char* key, const std::string& what) const;

 private:
  [[nodiscard]] int64_t whole(const char* key, int64_t least) const;

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace trainyard::models
