#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "data/columns/taking.h"

namespace trainyard::data::parquet {

/// Reads a struct in Thrift's compact protocol (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
/// Invariant: it stands before one value, which one of the calls takes, and which a visit passes over if it does not.
/// Each call throws Damage where the bytes end inside the value or the value has another type. Its memory does not grow
/// with what it reads. One thread.
class ThriftReader {
 public:
  /// Stands before the struct. What comes after it is left.
  explicit ThriftReader(std::string_view bytes) : rest_(bytes) {}

  /// Visits the fields of a struct by their numbers, in the file's order.
  void fields(const std::function<void(int64_t field)>& visit);
  /// Visits the elements of a list.
  void elements(const std::function<void()>& visit);
  int64_t integer();
  int32_t integer_of_32_bits();
  bool boolean();
  std::string_view bytes();

  /// What has not been read.
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  enum class Type : uint8_t {
    Stop, True, False, Byte, Int16, Int32, Int64, Double, Binary, List, Set, Map, Struct, Uuid,
    BooleanElement,  ///< of a list: a byte, where that of a struct is in its type
    Taken,
  };

  static Type type_of(unsigned bits);
  void expect(bool is_right, const char* what);
  void enter();
  void pass_over();
  void pass_over_map();

  std::string_view rest_;
  Type type_ = Type::Struct;  ///< of the value
  int depth_ = 0;
};

}  // namespace trainyard::data::parquet
