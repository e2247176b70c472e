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
#include "ops/vocabulary_parts.h"
#include "tensor/dry_run.h"

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
    if (dry_run()) return;
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

// The exponentials stay in place of the logits: the way to the gradient is then a product.
void softmax_sums(Tensor& logits, const VocabularyRows& rows, Tensor& own) {
  const int64_t width = logits.size(1);
  if (dry_run()) return;
  with_element(rows.dtype, [&]<typename T>(T*) {
    parallel_for(logits.size(0), rows_grain(4 * width),
                 [=, logit = logits.data<float>(), sums = own.data<float>(), id = rows.tokens.data<int32_t>(),
                  targets = rows.targets.data<int32_t>(), first = rows.first](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     float* const values = logit + row * width;
                     const int64_t target = targets[id[row]] - first;
                     const float of_target = target >= 0 && target < width ? rounded_to<T>(values[target]) : 0.0F;
                     const SoftmaxSums softmax = exponentials<T>(values, width);
                     sums[3 * row] = softmax.most, sums[3 * row + 1] = softmax.total, sums[3 * row + 2] = of_target;
                   }
                 });
  });
}

void softmax_of_parts(const Tensor& logits, const VocabularyRows& rows, const Tensor& own, const Tensor& gathered,
                      float grad_scale, Tensor& losses, Tensor* dlogits) {
  const int64_t count = logits.size(0), width = logits.size(1), parts = gathered.size(0) / std::max<int64_t>(count, 1);
  if (dry_run()) return;
  with_element(rows.dtype, [&]<typename T>(T*) {
    parallel_for(
        count, rows_grain(2 * width),
        [=, exponential = logits.data<float>(), mine = own.data<float>(), sums = gathered.data<float>(),
         id = rows.tokens.data<int32_t>(), targets = rows.targets.data<int32_t>(), first = rows.first,
         loss = losses.data<float>(), gradient = dlogits ? dlogits->data<T>() : nullptr](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const WholeSoftmax whole = whole_softmax(
                sums + 3 * row, parts, 3 * count, [](float x) { return std::exp(x); },
                [](float x) { return std::log(x); });
            loss[id[row]] = whole.loss;
            if (!gradient) continue;
            const float factor = std::exp(mine[3 * row] - whole.most) / whole.total * grad_scale;
            const int64_t target = targets[id[row]] - first;
            const bool has_target = target >= 0 && target < width;
            const float* const values = exponential + row * width;
            const float of_target =
                has_target ? values[target] * factor - grad_scale : 0.0F;  // before it is written over
            softmax_gradient(values, gradient + row * width, width, factor);
            if (has_target) gradient[row * width + target] = from_float<T>(of_target);
          }
        });
  });
}

}  // namespace trainyard::ops::cpu
