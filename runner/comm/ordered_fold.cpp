#include "comm/ordered_fold.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

// Kernels are compiled for several instruction sets and chosen when the program is loaded. A sanitizer's runtime is not
// up by then, so those builds define TRAINYARD_NO_MULTIVERSION. clang 16 has no clones of function templates.
#if defined(__x86_64__) && !defined(TRAINYARD_NO_MULTIVERSION) && !defined(__clang__)
#define TRAINYARD_COMM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TRAINYARD_COMM_CLONES
#endif

namespace trainyard::comm {
namespace {

template <typename Kept, typename T>
[[gnu::always_inline]] inline Kept keep(T value) {
  return static_cast<Kept>(value);
}

template <ReduceOp op, typename Kept>
[[gnu::always_inline]] inline Kept reduce(Kept a, Kept b) {
  if constexpr (op == ReduceOp::Sum) {
    if constexpr (std::is_integral_v<Kept>) {
      using Unsigned = std::make_unsigned_t<Kept>;  // wraps around, where signed overflow would be undefined
      return static_cast<Kept>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  } else if constexpr (op == ReduceOp::Max) {
    return b > a ? b : a;
  } else {
    return b < a ? b : a;
  }
}

template <typename T, typename Kept>
TRAINYARD_COMM_CLONES void first(std::byte* scratch, const std::byte* from, size_t count) {
  auto* kept = reinterpret_cast<Kept*>(scratch);
  const auto* values = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) kept[i] = keep<Kept>(values[i]);
}

template <typename T, typename Kept, ReduceOp op>
TRAINYARD_COMM_CLONES void middle(std::byte* scratch, const std::byte* from, size_t count) {
  auto* kept = reinterpret_cast<Kept*>(scratch);
  const auto* values = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) kept[i] = reduce<op>(kept[i], keep<Kept>(values[i]));
}

template <typename T, typename Kept, ReduceOp op>
TRAINYARD_COMM_CLONES void last(std::byte* into, const std::byte* scratch, const std::byte* from, size_t count) {
  auto* result = reinterpret_cast<T*>(into);
  const auto* kept = reinterpret_cast<const Kept*>(scratch);
  const auto* values = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) result[i] = T(reduce<op>(kept[i], keep<Kept>(values[i])));
}

}  // namespace

template <typename T, typename Kept>
void OrderedFold::choose(ReduceOp op) {
  kept_size_ = sizeof(Kept);
  first_ = first<T, Kept>;
  switch (op) {
    case ReduceOp::Sum:
      middle_ = middle<T, Kept, ReduceOp::Sum>, final_ = last<T, Kept, ReduceOp::Sum>;
      break;
    case ReduceOp::Max:
      middle_ = middle<T, Kept, ReduceOp::Max>, final_ = last<T, Kept, ReduceOp::Max>;
      break;
    case ReduceOp::Min:
      middle_ = middle<T, Kept, ReduceOp::Min>, final_ = last<T, Kept, ReduceOp::Min>;
      break;
  }
}

OrderedFold::OrderedFold(DType dtype, ReduceOp op, int contributions) : last_(contributions - 1) {
  switch (dtype) {
    case DType::Float32:
      choose<float, float>(op);
      break;
    case DType::BFloat16:
      choose<BFloat16, float>(op);
      break;
    case DType::Float16:
      choose<Float16, float>(op);
      break;
    case DType::Float64:
      choose<double, double>(op);
      break;
    case DType::Int32:
      choose<int32_t, int32_t>(op);
      break;
    case DType::Int64:
      choose<int64_t, int64_t>(op);
      break;
    case DType::UInt8:
      choose<uint8_t, uint8_t>(op);
      break;
    case DType::Float8E4M3:
    case DType::Float8E5M2:
      throw std::logic_error("fold: numbers of 8 bits");  // refused by check_summed()
  }
  scratch_ = std::make_unique<std::byte[]>(kBlockElements * kept_size_);
}

void OrderedFold::add(int index, size_t begin, size_t count, const std::byte* from, std::byte* into) {
  std::byte* const scratch = scratch_.get() + begin * kept_size_;
  if (index == last_) {
    final_(into, scratch, from, count);
  } else if (index == 0) {
    first_(scratch, from, count);
  } else {
    middle_(scratch, from, count);
  }
}

void fold(DType dtype, ReduceOp op, const std::vector<const std::byte*>& from, std::byte* into, size_t count) {
  OrderedFold blocks(dtype, op, static_cast<int>(from.size()));
  const size_t size = size_of(dtype);
  for (size_t begin = 0; begin < count; begin += OrderedFold::kBlockElements) {
    const size_t elements = std::min(OrderedFold::kBlockElements, count - begin);
    for (size_t index = 0; index < from.size(); ++index)
      blocks.add(static_cast<int>(index), 0, elements, from[index] + begin * size, into + begin * size);
  }
}

}  // namespace trainyard::comm
