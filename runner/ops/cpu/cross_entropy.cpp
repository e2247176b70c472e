#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/head_chunks.h"

namespace trainyard::ops::cpu {
namespace {

struct SoftmaxSums {
  float most;   ///< the largest logit
  float total;  ///< Σ exp(logit − most)
};

/// Rounds the logits to T and leaves exp(logit − most) in their place.
template <typename T>
TRAINYARD_MULTIVERSION SoftmaxSums exponentials(float* logits, int64_t vocab) {
  float most = -__builtin_inff(), total = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < vocab; ++i) {
    const float logit = rounded_to<T>(logits[i]);
    logits[i] = logit;
    most = logit > most ? logit : most;
  }
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < vocab; ++i) {
    const float e = exp_nonpositive(logits[i] - most);
    logits[i] = e;
    total += e;
  }
  return {most, total};
}

/// The loss of one row; leaves exponentials in place of its logits.
template <typename T>
struct RowLoss {
  double loss;
  SoftmaxSums sums;

  RowLoss(float* logits, int64_t vocab, int32_t target) {
    const float target_logit = rounded_to<T>(logits[target]);
    sums = exponentials<T>(logits, vocab);
    loss = std::log(static_cast<double>(sums.total)) + sums.most - target_logit;
  }
};

/// d(loss) / d(logits) = softmax − onehot(target) with the factor grad_scale / total, but for the target's −1, which
/// the caller sets. `gradient` may be `exponentials`.
template <typename T>
TRAINYARD_MULTIVERSION void softmax_gradient(const float* exponentials, T* gradient, int64_t vocab, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < vocab; ++i) gradient[i] = from_float<T>(exponentials[i] * factor);
}

/// The whole of it. `gradient` may be `exponentials`.
template <typename T>
void row_gradient(const float* exponentials, T* gradient, int64_t vocab, int32_t target, float total, float scale) {
  const float target_gradient = exponentials[target] / total * scale - scale;
  softmax_gradient(exponentials, gradient, vocab, scale / total);
  gradient[target] = from_float<T>(target_gradient);
}

/// The losses of the tokens, which its chunks leave here in whatever order.
struct TokenLosses {
  const int32_t* targets;
  LossGradients* gradients;
  std::vector<double> of_token;

  /// The losses of a chunk's rows, and where wanted their gradients.
  template <typename T>
  void add(const int32_t* ids, Tensor& logits, Tensor* dlogits) {
    const int64_t vocab = logits.size(1);
    T* const gradient = dlogits ? dlogits->data<T>() : nullptr;
    parallel_for(logits.size(0), rows_grain(4 * vocab),
                 [=, this, logit = logits.data<float>()](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     add_row(ids[row], logit + row * vocab, gradient ? gradient + row * vocab : nullptr, vocab);
                 });
  }

 private:
  template <typename T>
  void add_row(int32_t token, float* logits, T* gradient, int64_t vocab) {
    const int32_t target = targets[token];
    const RowLoss<T> row(logits, vocab, target);
    of_token[static_cast<size_t>(token)] = row.loss;
    if (gradient) row_gradient(logits, gradient, vocab, target, row.sums.total, gradients->grad_scale);
  }
};

}  // namespace

Loss linear_cross_entropy(const Tensor& h, const Tensor& w, const Targets& targets, LossGradients* gradients,
                          Tensor* token_loss) {
  TokenLosses losses{targets.values().data<int32_t>(), gradients, std::vector<double>(static_cast<size_t>(h.size(0)))};
  for_head_chunks(h, w, targets, gradients, [&](const Tensor& ids, Tensor& logits, Tensor* dlogits) {
    with_element(h.dtype(), [&]<typename T>(T*) { losses.add<T>(ids.data<int32_t>(), logits, dlogits); });
  });
  if (token_loss)
    std::ranges::transform(losses.of_token, token_loss->data<float>(),
                           [](double value) { return static_cast<float>(value); });
  return Loss({.loss_sum = std::accumulate(losses.of_token.begin(), losses.of_token.end(), 0.0),
               .valid = targets.valid().count()});
}

Loss cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale, Tensor* dlogits) {
  LossSums sums;
  if (dry_run()) return Loss(sums);
  const int64_t classes = logits.size(1);
  std::vector<float> row(static_cast<size_t>(classes));
  with_element(logits.dtype(), [&]<typename T>(T*) {
    for (int64_t i = 0; i < logits.size(0); ++i) {
      const int32_t target = targets.data<int32_t>()[i];
      T* const gradient = dlogits ? dlogits->data<T>() + i * classes : nullptr;
      if (target == kIgnoredTarget) {
        if (gradient) std::fill_n(gradient, classes, from_float<T>(0));
        continue;
      }
      std::transform(logits.data<T>() + i * classes, logits.data<T>() + (i + 1) * classes, row.begin(),
                     [](T value) { return to_float(value); });
      sums.correct += std::ranges::max_element(row) - row.begin() == target;
      const RowLoss<T> loss(row.data(), classes, target);
      sums.loss_sum += loss.loss;
      ++sums.valid;
      if (gradient) row_gradient(row.data(), gradient, classes, target, loss.sums.total, grad_scale);
    }
  });
  return Loss(sums);
}

}  // namespace trainyard::ops::cpu
