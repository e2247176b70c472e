#include "ops/rms_norm_rope.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "ops/rms_norm.h"
#include "ops_support.h"
#include "tensor/convert.h"

namespace trainyard {
using namespace test;
namespace {

constexpr double kEps = 1e-5;

struct Size {
  int64_t tokens, heads, head_dim;
};

/// Positions 0, 5, 10, … below 64.
ops::RopePlaces places_of(const Size& size, Device device) {
  std::vector<int32_t> positions;
  for (int64_t token = 0; token < size.tokens; ++token) positions.push_back(static_cast<int32_t>(5 * token % 64));
  std::vector<float> frequencies;
  for (int64_t i = 0; i < size.head_dim / 2; ++i) frequencies.push_back(1.0F / static_cast<float>(1 + i));
  const ops::RopeTables tables = ops::rope_tables(64, frequencies);
  return {int_tensor(positions, device), {on_device(tables.cos, device), on_device(tables.sin, device)}};
}

/// Elements i and i + half of a head.
struct Turn {
  size_t first, second;
  double cos, sin;
};

template <typename Body>
void for_turns(const Size& size, const ops::RopePlaces& places, size_t head, const Body& body) {
  const auto half = static_cast<size_t>(size.head_dim / 2);
  const std::vector<double> cos = in_double(places.tables.cos), sin = in_double(places.tables.sin);
  const Tensor positions = on_device(places.positions, {});
  const auto place = static_cast<size_t>(positions.values<int32_t>()[head / static_cast<size_t>(size.heads)]) * half;
  for (size_t i = 0; i < half; ++i)
    body(Turn{head * 2 * half + i, head * 2 * half + half + i, cos[place + i], sin[place + i]});
}

double inverse_rms(const std::vector<double>& x, size_t begin, size_t head_dim) {
  double squares = 0;
  for (size_t i = 0; i < head_dim; ++i) squares += x[begin + i] * x[begin + i];
  return 1 / std::sqrt(squares / static_cast<double>(head_dim) + kEps);
}

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight, const Size& size,
                              const ops::RopePlaces& places) {
  std::vector<double> out(x.size());
  for (size_t head = 0; head < x.size() / weight.size(); ++head) {
    const size_t begin = head * weight.size();
    const double rstd = inverse_rms(x, begin, weight.size());
    for_turns(size, places, head, [&](const Turn& turn) {
      const double a = weight[turn.first - begin] * x[turn.first] * rstd,
                   b = weight[turn.second - begin] * x[turn.second] * rstd;
      out[turn.first] = a * turn.cos - b * turn.sin;
      out[turn.second] = b * turn.cos + a * turn.sin;
    });
  }
  return out;
}

struct Gradients {
  std::vector<double> dx, dweight;
};

Gradients reference_backward(const std::vector<double>& dout, const std::vector<double>& x,
                             const std::vector<double>& weight, const Size& size, const ops::RopePlaces& places) {
  const size_t head_dim = weight.size();
  Gradients made{std::vector<double>(x.size()), std::vector<double>(head_dim)};
  for (size_t head = 0; head < x.size() / head_dim; ++head) {
    const size_t begin = head * head_dim;
    for_turns(size, places, head,
              [&](const Turn& turn) {  // what is turned by an angle comes back turned by its negative
                made.dx[turn.first] = dout[turn.first] * turn.cos + dout[turn.second] * turn.sin;
                made.dx[turn.second] = dout[turn.second] * turn.cos - dout[turn.first] * turn.sin;
              });
    const double rstd = inverse_rms(x, begin, head_dim);
    double dot = 0;
    for (size_t i = 0; i < head_dim; ++i) dot += made.dx[begin + i] * weight[i] * x[begin + i];
    for (size_t i = 0; i < head_dim; ++i) {
      const double g = made.dx[begin + i], n = x[begin + i] * rstd;
      made.dweight[i] += g * n;
      made.dx[begin + i] = rstd * (g * weight[i] - n * rstd * dot / static_cast<double>(head_dim));
    }
  }
  return made;
}

}  // namespace

TEST_CASE("rms_norm_rope: equals the formula, and backward its derivative", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes())), weight_dtype = GENERATE(from_range(floating_dtypes()));
  const Size size = GENERATE(Size{0, 2, 8}, Size{1, 1, 2}, Size{7, 3, 20}, Size{13, 5, 64}, Size{70, 2, 128},
                             Size{300, 3, 16}, Size{2, 1, 514});
  const ops::RopePlaces places = places_of(size, device);
  const Tensor x = random_tensor({size.tokens, size.heads * size.head_dim}, dtype, 1, device);
  const Tensor weight = random_tensor({size.head_dim}, dtype, 2, device),
               dout = random_tensor(x.shape(), dtype, 3, device);
  const Tensor dweight_before = random_tensor({size.head_dim}, weight_dtype, 4, device);
  Gradients expected = reference_backward(in_double(dout), in_double(x), in_double(weight), size, places);
  for (size_t i = 0; i < expected.dweight.size(); ++i) expected.dweight[i] += in_double(dweight_before)[i];
  for_thread_counts([&] {
    Tensor out = Tensor::empty(x.shape(), dtype, device);
    Tensor rstd = Tensor::empty({size.tokens * size.heads}, DType::Float32, device);
    ops::rms_norm_rope(x, weight, static_cast<float>(kEps), places, out, rstd);
    CHECK(relative_error(out, reference(in_double(x), in_double(weight), size, places)) < tolerance(dtype));
    const Tensor dx = Tensor::empty(x.shape(), dtype, device);
    Tensor dweight = Tensor::empty({size.head_dim}, weight_dtype, device);
    copy(dweight_before, dweight);
    ops::rms_norm_rope_backward(dout, x, weight, rstd, places, {dx, dweight});
    CHECK(relative_error(dx, expected.dx) < tolerance(dtype));
    CHECK(relative_error(dweight, expected.dweight) < std::max(tolerance(dtype), tolerance(weight_dtype)));
  });
}

TEST_CASE("rms_norm_rope: the reference used here is rightly derived", "[ops]") {
  const Size size{3, 2, 4};
  const ops::RopePlaces places = places_of(size, {});
  const std::vector<double> x = in_double(random_tensor({3, 8}, DType::Float32, 1)),
                            weight = in_double(random_tensor({4}, DType::Float32, 2)),
                            dout = in_double(random_tensor({3, 8}, DType::Float32, 3));
  const auto objective = [&](const std::vector<double>& at, const std::vector<double>& with) {
    const std::vector<double> out = reference(at, with, size, places);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += dout[i] * out[i];
    return sum;
  };
  const auto near = [](double value) { return Approx(value).epsilon(1e-6).margin(1e-8); };
  const Gradients made = reference_backward(dout, x, weight, size, places);
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(made.dx[i] == near(difference_quotient([&](const auto& at) { return objective(at, weight); }, x, i)));
  for (size_t i = 0; i < weight.size(); ++i)
    CHECK(made.dweight[i] == near(difference_quotient([&](const auto& at) { return objective(x, at); }, weight, i)));
}

TEST_CASE("rms_norm_rope: rounds where the norm and the rotation round, in place too", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(DType::BFloat16, DType::Float16);
  const Size size{9, 3, 64};
  const ops::RopePlaces places = places_of(size, device);
  // Eighths: their squares add up to the same float in any order.
  Tensor eighths = Tensor::empty({9, 3 * 64}, DType::Float32);
  for (int64_t i = 0; i < eighths.count(); ++i) eighths.data<float>()[i] = static_cast<float>(i * 37 % 17 - 8) / 8;
  Tensor x = on_device(converted(eighths, dtype), device);
  const Tensor weight = random_tensor({64}, dtype, 2, device);
  Tensor normed = Tensor::empty(x.shape(), dtype, device), expected = Tensor::empty(x.shape(), dtype, device),
         expected_rstd = Tensor::empty({27}, DType::Float32, device);
  Tensor heads = normed.reshape({27, 64});
  ops::rms_norm(x.reshape({27, 64}), weight, 1e-6F, heads, expected_rstd);
  ops::rope(normed, places.positions, places.tables, ops::Rotation::Forward, expected);
  Tensor rstd = Tensor::empty({27}, DType::Float32, device);
  ops::rms_norm_rope(x, weight, 1e-6F, places, x, rstd);
  CHECK(same_bits(x, expected));
  CHECK(same_bits(rstd, expected_rstd));
}

TEST_CASE("rms_norm_rope_backward: any number of threads gives the same bits, in place of dout too", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const Size size{700, 4, 64};
  const ops::RopePlaces places = places_of(size, device);
  const Tensor x = random_tensor({700, 256}, DType::Float32, 1, device),
               weight = random_tensor({64}, DType::Float32, 2, device);
  Tensor out = Tensor::empty(x.shape(), DType::Float32, device), rstd = Tensor::empty({2800}, DType::Float32, device);
  ops::rms_norm_rope(x, weight, 1e-6F, places, out, rstd);
  std::vector<ops::RmsNormRopeGradients> seen;
  for_thread_counts([&] {
    const Tensor dout = random_tensor(x.shape(), DType::Float32, 3, device),
                 elsewhere = Tensor::empty(x.shape(), DType::Float32, device);
    for (const Tensor& dx : {elsewhere, dout}) {
      seen.push_back({dx, Tensor::zeros({64}, DType::Float32, device)});
      ops::rms_norm_rope_backward(dout, x, weight, rstd, places, seen.back());
    }
  });
  for (const auto& gradients : seen) {
    CHECK(same_bits(gradients.dx, seen[0].dx));
    CHECK(same_bits(gradients.dweight, seen[0].dweight));
  }
}

TEST_CASE("rms_norm_rope: what does not fit is refused", "[ops]") {
  const Size size{2, 2, 4};
  const ops::RopePlaces places = places_of(size, {});
  Tensor x = Tensor::zeros({2, 8}, DType::Float32), rstd = Tensor::zeros({4}, DType::Float32);
  const Tensor weight = Tensor::zeros({4}, DType::Float32), wide = Tensor::zeros({8}, DType::Float32);
  CHECK_THROWS_WITH(ops::rms_norm_rope(x, wide, 1e-6F, places, x, rstd),
                    "rms_norm_rope: weight is float32 [8], but float32 [4] is needed");
  CHECK_THROWS_WITH(ops::rms_norm_rope(x, weight, 1e-6F, {int_tensor({3, 64}), places.tables}, x, rstd),
                    "rms_norm_rope: positions[1] is 64, outside 0 to 63");
  CHECK_THROWS_WITH(ops::rms_norm_rope_backward(x, x, weight, wide, places, {x, weight}),
                    "rms_norm_rope_backward: rstd is float32 [8], but float32 [4] is needed");
}

}  // namespace trainyard
