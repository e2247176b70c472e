#include "ops_support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/threads.h"

namespace trainyard::test {

std::vector<Device> devices() {
  return {Device{DeviceKind::Cpu, 0}};
}

std::vector<DType> floating_dtypes() {
  return {DType::Float32, DType::BFloat16};
}

Tensor random_tensor(const Shape& shape, DType dtype, uint32_t seed, Device device) {
  Tensor made = Tensor::empty(shape, dtype, device);
  uint32_t state = seed * 2654435761U + 12345U;
  for (int64_t i = 0; i < made.count(); ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = static_cast<float>(state >> 8U) / 8388608.0F - 1.0F;
    if (dtype == DType::BFloat16)
      made.data<BFloat16>()[i] = BFloat16(value);
    else
      made.data<float>()[i] = value;
  }
  return made;
}

Tensor int_tensor(const std::vector<int32_t>& values) {
  return Tensor::from<int32_t>(values, {static_cast<int64_t>(values.size())});
}

std::vector<double> in_double(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.dtype() == DType::BFloat16 ? static_cast<double>(static_cast<float>(tensor.data<BFloat16>()[i]))
                                                  : static_cast<double>(tensor.data<float>()[i]);
  return values;
}

double relative_error(const Tensor& actual, const std::vector<double>& expected) {
  const std::vector<double> values = in_double(actual);
  if (values.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double most = 1e-30, worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) != std::isnan(expected[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(values[i]) || values[i] == expected[i]) continue;  // equal infinities too
    most = std::max(most, std::abs(expected[i]));
    worst = std::max(worst, std::abs(values[i] - expected[i]));
  }
  for (const double value : expected)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return worst / most;
}

double difference_quotient(const std::function<double(const std::vector<double>&)>& objective, std::vector<double> x,
                           size_t index) {
  constexpr double kStep = 1e-5;
  const double at = x[index];
  x[index] = at + kStep;
  const double above = objective(x);
  x[index] = at - kStep;
  return (above - objective(x)) / (2 * kStep);
}

void for_thread_counts(const std::function<void()>& body) {
  const int before = ops::threads();
  for (const int count : {1, 3}) {
    ops::set_threads(count);
    body();
  }
  ops::set_threads(before);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.count() == b.count() &&
         (a.count() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}  // namespace trainyard::test
