#include "tensor/dtype.h"

namespace trainyard {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "float32";
    case DType::BFloat16:
      return "bfloat16";
    case DType::Float16:
      return "float16";
    case DType::Float8E4M3:
      return "float8_e4m3fn";
    case DType::Float8E5M2:
      return "float8_e5m2";
    case DType::Float64:
      return "float64";
    case DType::Int32:
      return "int32";
    case DType::Int64:
      return "int64";
    case DType::UInt8:
      return "uint8";
  }
  return "unknown";
}

}  // namespace trainyard
