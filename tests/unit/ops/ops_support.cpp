#include "ops_support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/threads.h"
#include "tensor/convert.h"

namespace trainyard::test {

std::vector<DType> floating_dtypes() {
  return {DType::Float32, DType::BFloat16, DType::Float16};
}

Tensor random_tensor(const Shape& shape, DType dtype, uint32_t seed, Device device) {
  Tensor made = Tensor::empty(shape, DType::Float32);
  uint32_t state = seed * 2654435761U + 12345U;
  for (float& value : made.values<float>()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8U) / 8388608.0F - 1.0F;
  }
  return on_device(converted(made, dtype), device);
}

Tensor int_tensor(const std::vector<int32_t>& values, Device device) {
  return on_device(Tensor::from<int32_t>(values, {static_cast<int64_t>(values.size())}), device);
}

std::vector<double> in_double(const Tensor& tensor) {
  const Tensor floats = converted(on_device(tensor, {}), DType::Float32);
  return {floats.values<float>().begin(), floats.values<float>().end()};
}

std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  const std::vector<float> floats(values.begin(), values.end());
  return in_double(converted(Tensor::from<float>(floats, {static_cast<int64_t>(floats.size())}), dtype));
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

double dropout_factor(float rate, const DropoutPlace& place) {
  const auto mix = [](uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  };
  const uint64_t stream = mix(mix(place.seed ^ mix(static_cast<uint64_t>(place.sequence))) + place.token);
  uint32_t u =
      (static_cast<uint32_t>(place.column) + static_cast<uint32_t>(stream)) ^ static_cast<uint32_t>(stream >> 32U);
  u = (u ^ (u >> 16U)) * 0x7feb352dU;
  u = (u ^ (u >> 15U)) * 0x846ca68bU;
  u ^= u >> 16U;
  const double kept = 1 - static_cast<double>(rate);
  return static_cast<double>(u) < std::floor(static_cast<double>(rate) * 0x1.0p32) ? 0 : 1 / kept;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor first = on_device(a, {}), second = on_device(b, {});
  return a.dtype() == b.dtype() && a.count() == b.count() &&
         (a.count() == 0 || std::memcmp(first.raw(), second.raw(), a.bytes()) == 0);
}

}  // namespace trainyard::test
