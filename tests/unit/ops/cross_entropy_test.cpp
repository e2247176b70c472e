#include "ops/cross_entropy.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops/vocabulary_parts.h"
#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

struct Head {
  int64_t tokens, hidden, vocab;
};

struct Expected {
  double loss = 0;
  std::vector<double> token_loss, dh, dw;
};

/// `dtype` rounds the logits where it is bfloat16, as the op does.
Expected reference(const std::vector<double>& h, const std::vector<double>& w, const std::vector<int32_t>& targets,
                   const Head& size, double grad_scale, DType dtype) {
  Expected result{0, std::vector<double>(targets.size()), std::vector<double>(h.size()), std::vector<double>(w.size())};
  std::vector<double> logits(static_cast<size_t>(size.vocab));
  for (size_t token = 0; token < targets.size(); ++token) {
    if (targets[token] == ops::kIgnoredTarget) continue;
    const int64_t row = static_cast<int64_t>(token) * size.hidden;
    for (int64_t j = 0; j < size.vocab; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < size.hidden; ++i) sum += h[row + i] * w[j * size.hidden + i];
      logits[j] = sum;
    }
    if (dtype != DType::Float32) logits = rounded(logits, dtype);
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    result.token_loss[token] = std::log(total) - logits[targets[token]];
    result.loss += result.token_loss[token];
    for (int64_t j = 0; j < size.vocab; ++j) {
      const double d = grad_scale * (std::exp(logits[j]) / total - (j == targets[token] ? 1 : 0));
      for (int64_t i = 0; i < size.hidden; ++i) {
        result.dh[row + i] += d * w[j * size.hidden + i];
        result.dw[j * size.hidden + i] += d * h[row + i];
      }
    }
  }
  return result;
}

std::vector<int32_t> targets_of(const Head& size, int ignore_every) {
  std::vector<int32_t> targets;
  for (int64_t token = 0; token < size.tokens; ++token)
    targets.push_back(ignore_every > 0 && token % ignore_every == 0 ? ops::kIgnoredTarget
                                                                    : static_cast<int32_t>(token * 7919 % size.vocab));
  return targets;
}

}  // namespace

TEST_CASE("linear_cross_entropy: loss and gradients equal the double-precision loop", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Head size = GENERATE(Head{0, 8, 5}, Head{1, 3, 1}, Head{5, 61, 131}, Head{300, 20, 33}, Head{1100, 4, 50});
  const int ignore_every = GENERATE(0, 1, 2, 3);
  // On the host a device's threads take turns: of many rows one of the ways to ignore some has to do.
  if (device.kind != DeviceKind::Cpu && size.tokens >= 300 && ignore_every != 3) return;
  const Tensor h = random_tensor({size.tokens, size.hidden}, dtype, 1, device),
               w = random_tensor({size.vocab, size.hidden}, dtype, 2, device);
  const std::vector<int32_t> targets = targets_of(size, ignore_every);
  const Expected expected = reference(in_double(h), in_double(w), targets, size, 0.25, dtype);
  const auto compare = [&] {
    Tensor token_loss = Tensor::empty({size.tokens}, DType::Float32, device);
    const ops::LossSums alone = ops::linear_cross_entropy(h, w, int_tensor(targets, device), &token_loss).read();
    CHECK(alone.loss_sum == Approx(expected.loss).epsilon(tolerance(dtype)));
    CHECK(relative_error(token_loss, expected.token_loss) < tolerance(dtype));

    const Tensor dh = random_tensor(h.shape(), dtype, 4, device), dw = Tensor::zeros(w.shape(), DType::Float32, device);
    const ops::LossSums both = ops::linear_cross_entropy_with_gradients(h, w, int_tensor(targets, device),
                                                                        {.grad_scale = 0.25F, .dh = dh, .dw = dw})
                                   .read();
    CHECK(both.loss_sum == alone.loss_sum);
    CHECK(both.valid == alone.valid);
    CHECK(relative_error(dh, expected.dh) < tolerance(dtype));
    CHECK(relative_error(dw, expected.dw) < tolerance(dtype));
  };
  if (device.kind == DeviceKind::Cpu)
    for_thread_counts(compare);
  else
    compare();
}

TEST_CASE("linear_cross_entropy_of_part: parts of a vocabulary give the loss and the gradients of the whole", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Head size = GENERATE(Head{0, 8, 5}, Head{5, 61, 131}, Head{1100, 4, 50});
  const int ignore_every = size.tokens > 1000 ? 3 : GENERATE(0, 2);
  const Tensor h = random_tensor({size.tokens, size.hidden}, dtype, 1, device),
               w = random_tensor({size.vocab, size.hidden}, dtype, 2, device);
  const std::vector<int32_t> targets = targets_of(size, ignore_every);
  const Expected expected = reference(in_double(h), in_double(w), targets, size, 0.25, dtype);
  const int64_t border = size.vocab / 3 + 1;
  const std::vector<ops::VocabularyPart> parts{{0, size.vocab}, {border, size.vocab}};
  const auto rows_of = [&](size_t part) { return part == 0 ? w.rows(0, border) : w.rows(border, size.vocab - border); };
  // What each part tells of each chunk, first; then both hear both.
  std::vector<std::vector<Tensor>> told(2);
  for (size_t part = 0; part < 2; ++part)
    static_cast<void>(ops::linear_cross_entropy_of_part(
        h, rows_of(part), parts[part], int_tensor(targets, device),
        [&](const Tensor& own) {
          told[part].push_back(Tensor::empty(own.shape(), own.dtype(), own.device()));
          copy(own, told[part].back());
          return own;
        },
        nullptr));
  std::vector<double> dh(expected.dh.size()), dw;
  for (size_t part = 0; part < 2; ++part) {
    size_t chunk = 0;
    ops::LossGradients gradients{0.25F, random_tensor(h.shape(), dtype, 4, device),
                                 Tensor::zeros(rows_of(part).shape(), DType::Float32, device)};
    const ops::LossSums sums = ops::linear_cross_entropy_of_part(
                                   h, rows_of(part), parts[part], int_tensor(targets, device),
                                   [&](const Tensor& own) {
                                     Tensor both = Tensor::empty({2 * own.size(0), 3}, own.dtype(), own.device());
                                     for (size_t each = 0; each < 2; ++each) {
                                       Tensor place = both.rows(static_cast<int64_t>(each) * own.size(0), own.size(0));
                                       copy(told[each].at(chunk), place);
                                     }
                                     ++chunk;
                                     return both;
                                   },
                                   &gradients)
                                   .read();
    CHECK(sums.loss_sum == Approx(expected.loss).epsilon(tolerance(dtype)));
    CHECK(sums.valid == std::ranges::count_if(targets, [](int32_t target) { return target >= 0; }));
    const std::vector<double> of_part = in_double(gradients.dh), of_rows = in_double(gradients.dw);
    for (size_t i = 0; i < dh.size(); ++i) dh[i] += of_part[i];
    dw.insert(dw.end(), of_rows.begin(), of_rows.end());
  }
  const auto as_tensor = [](const std::vector<double>& values) {
    return Tensor::from<float>(std::vector<float>(values.begin(), values.end()), {std::ssize(values)});
  };
  CHECK(relative_error(as_tensor(dh), expected.dh) < tolerance(dtype));
  CHECK(relative_error(as_tensor(dw), expected.dw) < tolerance(dtype));
}

TEST_CASE("linear_cross_entropy: adds to dw, of either dtype", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Head size{20, 16, 40};
  const Tensor h = random_tensor({20, 16}, DType::BFloat16, 1, device),
               w = random_tensor({40, 16}, DType::BFloat16, 2, device), dw = random_tensor({40, 16}, dtype, 3, device);
  std::vector<double> expected = in_double(dw);
  const Expected added = reference(in_double(h), in_double(w), targets_of(size, 4), size, 1, DType::BFloat16);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += added.dw[i];
  const Tensor dh = Tensor::empty(h.shape(), DType::BFloat16, device);
  const ops::LossSums sums =
      ops::linear_cross_entropy_with_gradients(h, w, int_tensor(targets_of(size, 4), device), {.dh = dh, .dw = dw})
          .read();
  CHECK(sums.valid == 15);
  CHECK(relative_error(dw, expected) < 1e-2);
}

TEST_CASE("linear_cross_entropy: the reference used here is the derivative of its loss", "[ops]") {
  const Head size{3, 4, 6};
  const std::vector<double> h = in_double(random_tensor({3, 4}, DType::Float32, 1)),
                            w = in_double(random_tensor({6, 4}, DType::Float32, 2));
  const std::vector<int32_t> targets{5, ops::kIgnoredTarget, 0};
  const Expected expected = reference(h, w, targets, size, 1, DType::Float32);
  for (size_t i = 0; i < h.size(); ++i)
    CHECK(expected.dh[i] ==
          Approx(difference_quotient(
                     [&](const auto& at) { return reference(at, w, targets, size, 1, DType::Float32).loss; }, h, i))
              .margin(1e-8));
  for (size_t i = 0; i < w.size(); ++i)
    CHECK(expected.dw[i] ==
          Approx(difference_quotient(
                     [&](const auto& at) { return reference(h, at, targets, size, 1, DType::Float32).loss; }, w, i))
              .margin(1e-8));
}

TEST_CASE("linear_cross_entropy: large logits do not overflow, a NaN shows in the loss", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const int64_t vocab = GENERATE(3, 2048);  // of which a device's threads take one logit at a time, or several
  std::vector<float> weights(static_cast<size_t>(vocab));
  weights[0] = 300, weights[1] = -300;
  const Tensor w = on_device(Tensor::from<float>(weights, {vocab, 1}), device);
  const auto loss = [&](float h, int32_t target) {
    const Tensor one = on_device(Tensor::from<float>(std::vector<float>{h}, {1, 1}), device);
    return ops::linear_cross_entropy(one, w, int_tensor({target}, device)).read().loss_sum;
  };
  CHECK(loss(1, 1) == Approx(600));
  CHECK(loss(1, 0) == Approx(0).margin(1e-6));
  CHECK(std::isnan(loss(std::numeric_limits<float>::quiet_NaN(), 0)));
}

TEST_CASE("linear_cross_entropy: a target outside the vocabulary is named with its place", "[ops]") {
  const Tensor h = Tensor::zeros({2, 4}, DType::Float32), w = Tensor::zeros({9, 4}, DType::Float32);
  CHECK_THROWS_WITH(ops::linear_cross_entropy(h, w, int_tensor({-100, 9})),
                    "linear_cross_entropy: targets[1] is 9, outside 0 to 8");
  CHECK_THROWS_WITH(ops::linear_cross_entropy(h, w, int_tensor({-1, 3})),
                    "linear_cross_entropy: targets[0] is -1, outside 0 to 8");
}

TEST_CASE("cross_entropy: of logits that are there, what linear_cross_entropy says of their product", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Head size = GENERATE(Head{0, 1, 5}, Head{1, 1, 1}, Head{7, 6, 10}, Head{65, 20, 33});
  const int ignore_every = GENERATE(0, 1, 3);
  const Tensor logits = random_tensor({size.tokens, size.vocab}, dtype, 1, device);
  std::vector<double> unit(static_cast<size_t>(size.vocab * size.vocab));  // logits · 1ᵀ
  for (size_t i = 0; i < static_cast<size_t>(size.vocab); ++i) unit[i * static_cast<size_t>(size.vocab) + i] = 1;
  const std::vector<int32_t> targets = targets_of(size, ignore_every);
  const Expected expected =
      reference(in_double(logits), unit, targets, {size.tokens, size.vocab, size.vocab}, 0.25, DType::Float32);
  Tensor dlogits = random_tensor(logits.shape(), dtype, 4, device);
  const ops::LossSums sums = ops::cross_entropy(logits, int_tensor(targets, device), 0.25F, &dlogits).read();
  CHECK(sums.loss_sum == Approx(expected.loss).epsilon(1e-5));
  CHECK(sums.valid == std::ranges::count_if(targets, [](int32_t target) { return target != ops::kIgnoredTarget; }));
  CHECK(relative_error(dlogits, expected.dh) < tolerance(dtype));
  CHECK(ops::cross_entropy(logits, int_tensor(targets, device)).read().loss_sum == sums.loss_sum);
}

TEST_CASE("cross_entropy: counts the targets with the largest logit, the first of equals, and refuses others",
          "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const std::vector<float> values{1, 2, 0, 3, 3, 1, 0, 0, 5, 9, 8, 7};
  const Tensor here = Tensor::from<float>(values, {4, 3}), logits = on_device(here, device);
  CHECK(ops::cross_entropy(logits, int_tensor({1, 0, 2, 0}, device)).read().correct == 4);
  CHECK(ops::cross_entropy(logits, int_tensor({0, 1, 2, ops::kIgnoredTarget}, device)).read().correct == 1);
  CHECK_THROWS_WITH(ops::cross_entropy(here, int_tensor({0, 3, 0, 0})),
                    "cross_entropy: targets[1] is 3, outside 0 to 2");
}

}  // namespace trainyard
