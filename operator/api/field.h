#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trainyard::api {

/// A field that is read strictly, and the way to it: where it has another type than it should, a ParseError says which
/// path, what is there and what is allowed. The path is put together only then. What is null counts as absent, as
/// the API server has it. Borrows the JSON and its parent, which therefore has to have a name.
class Field {
 public:
  explicit Field(const Json& root) : value_(&root) {}
  [[nodiscard]] Field operator[](std::string_view key) const&;  ///< throws where this is no object
  [[nodiscard]] Field operator[](size_t index) const& { return {&(*value_)[index], this, {}, index}; }
  Field operator[](std::string_view key) const&& = delete;
  Field operator[](size_t index) const&& = delete;

  [[nodiscard]] bool is_there() const { return value_ && !value_->is_null(); }
  [[nodiscard]] const Json& value() const { return *value_; }  ///< where it is there
  [[nodiscard]] std::string path() const;                      ///< "spec.containers[0].name"

  /// What is there; absent, the empty value of the kind.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::optional<std::string> optional_text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] std::optional<int> whole_number() const;
  [[nodiscard]] std::optional<int64_t> long_whole_number() const;
  [[nodiscard]] const Json& object() const;
  [[nodiscard]] const Json& list() const;
  [[nodiscard]] Json object_or_null() const;  ///< null where it is absent
  [[nodiscard]] Json list_or_null() const;

  /// Throws ParseError: "<path> must be <allowed>, but is <value>".
  [[noreturn]] void refuse(std::string_view allowed) const;

 private:
  Field(const Json* value, const Field* parent, std::string_view key, std::optional<size_t> index)
      : value_(value), parent_(parent), key_(key), index_(index) {}
  [[nodiscard]] std::optional<int64_t> number_between(int64_t low, int64_t high) const;

  const Json* value_;
  const Field* parent_ = nullptr;
  std::string_view key_;
  std::optional<size_t> index_;  ///< of an entry of a list, which has no key
};

/// A value in a message: texts in quotes and cut short, "an object", "a list".
[[nodiscard]] std::string shown(const Json& value);

/// The list at `pointer` of `object`; an empty one where there is none.
[[nodiscard]] const Json& list_or_empty(const Json& object, const std::string& pointer);

/// A whole number, also where it is written 3.0; none where it does not fit.
[[nodiscard]] std::optional<int64_t> whole_number_of(const Json& value);

}  // namespace trainyard::api
