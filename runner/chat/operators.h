#pragma once

#include <string>
#include <string_view>

#include "chat/value.h"

namespace trainyard::chat {

// What Python does for each, and InputError where Python raises.

/// One of + - * / // % **.
Value calculate(std::string_view op, const Value& a, const Value& b, Rendering& rendering);
/// `value` with its sign turned.
Value negated(const Value& value, Rendering& rendering);
/// a < b.
bool less(const Value& a, const Value& b, Rendering& rendering);
/// One of == != < <= > >= in, and "not in".
bool compare(std::string_view op, const Value& a, const Value& b, Rendering& rendering);
bool contains(const Value& container, const Value& item, Rendering& rendering);

/// The elements that a loop walks over; an iterator has none left afterwards. What is undefined has none.
Values elements_of(const Value& value, Rendering& rendering);
/// len().
int64_t size_of(const Value& value, Rendering& rendering);

/// value[begin:end:step], where what is not given is None.
struct Slice {
  Value begin, end, step;
};
Value sliced(const Value& value, const Slice& slice, Rendering& rendering);

}  // namespace trainyard::chat
