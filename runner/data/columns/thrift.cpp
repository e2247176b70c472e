#include "data/columns/thrift.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "data/columns/damage.h"

namespace trainyard::data::parquet {
namespace {
constexpr int kDeepest = 32;  // Parquet's own structs are 8 deep at most
}

ThriftReader::Type ThriftReader::type_of(unsigned bits) {
  if (bits > static_cast<unsigned>(Type::Uuid)) throw Damage(fmt::format("its metadata has a value of type {}", bits));
  return static_cast<Type>(bits);
}

void ThriftReader::expect(bool is_right, const char* what) {
  if (is_right) return;
  throw Damage(fmt::format("its metadata has a value of type {} in place of {}", static_cast<int>(type_), what));
}

void ThriftReader::enter() {
  if (++depth_ > kDeepest) throw Damage("its metadata is nested too deep");
}

void ThriftReader::fields(const std::function<void(int64_t field)>& visit) {
  expect(type_ == Type::Struct, "a struct");
  enter();
  for (int64_t field = 0;;) {
    const unsigned header = take_byte(rest_);
    type_ = type_of(header & 0xF);
    if (type_ == Type::Stop) break;
    // A step of 0 says that the number itself follows, which has 16 bits.
    field = header >> 4 ? static_cast<int16_t>(field + (header >> 4)) : static_cast<int16_t>(take_zigzag(rest_));
    visit(field);
    pass_over();
  }
  --depth_;
  type_ = Type::Taken;
}

void ThriftReader::elements(const std::function<void()>& visit) {
  expect(type_ == Type::List || type_ == Type::Set, "a list");
  enter();
  const unsigned header = take_byte(rest_);
  const uint64_t count = header >> 4 == 15 ? take_varint(rest_) : header >> 4;
  Type type = type_of(header & 0xF);
  if (type == Type::True || type == Type::False) type = Type::BooleanElement;
  if (count > rest_.size() || (type == Type::Stop && count > 0))
    throw Damage(fmt::format("its metadata has a list of {} values in {} bytes", count, rest_.size()));
  for (uint64_t i = 0; i < count; ++i) {
    type_ = type;
    visit();
    pass_over();
  }
  --depth_;
  type_ = Type::Taken;
}

int64_t ThriftReader::integer() {
  expect(type_ >= Type::Byte && type_ <= Type::Int64, "a number");
  const Type type = std::exchange(type_, Type::Taken);
  return type == Type::Byte ? static_cast<int8_t>(take_byte(rest_)) : take_zigzag(rest_);
}

int32_t ThriftReader::integer_of_32_bits() {
  const int64_t value = integer();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    throw Damage(fmt::format("its metadata has the number {} where 32 bits are meant", value));
  return static_cast<int32_t>(value);
}

bool ThriftReader::boolean() {
  expect(type_ == Type::True || type_ == Type::False || type_ == Type::BooleanElement, "true or false");
  const Type type = std::exchange(type_, Type::Taken);
  return type == Type::BooleanElement ? take_byte(rest_) == 1 : type == Type::True;
}

std::string_view ThriftReader::bytes() {
  expect(type_ == Type::Binary, "a text");
  type_ = Type::Taken;
  return take(rest_, take_varint(rest_));
}

void ThriftReader::pass_over() {
  switch (type_) {
    case Type::Struct: return fields([](int64_t) {});
    case Type::List:
    case Type::Set: return elements([] {});
    case Type::Map: pass_over_map(); break;
    case Type::Binary: bytes(); break;
    case Type::Int16:
    case Type::Int32:
    case Type::Int64: take_varint(rest_); break;
    case Type::Byte:
    case Type::BooleanElement: take(rest_, 1); break;
    case Type::Double: take(rest_, 8); break;
    case Type::Uuid: take(rest_, 16); break;
    case Type::Stop:
    case Type::True:
    case Type::False:
    case Type::Taken: break;
  }
  type_ = Type::Taken;
}

void ThriftReader::pass_over_map() {
  enter();
  const uint64_t count = take_varint(rest_);
  const unsigned types = count > 0 ? take_byte(rest_) : 0;
  if (count > rest_.size())
    throw Damage(fmt::format("its metadata has a map of {} values in {} bytes", count, rest_.size()));
  for (uint64_t i = 0; i < 2 * count; ++i) {
    const Type type = type_of(i % 2 == 0 ? types >> 4 : types & 0xF);
    if (type == Type::Stop) throw Damage("its metadata has a map of no type");
    type_ = type == Type::True || type == Type::False ? Type::BooleanElement : type;
    pass_over();
  }
  --depth_;
}

}  // namespace trainyard::data::parquet
