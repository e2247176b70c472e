#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

/// What one chunk's logits may take. Large enough that the sum of dw, read and written once a chunk, does not weigh
/// beside the products (2 % at vocabulary 8192, hidden 512); a large vocabulary gets kLeastChunk tokens all the same.
constexpr int64_t kChunkBytes = int64_t{16} << 20;
constexpr int64_t kLeastChunk = 128, kMostChunk = 1024;

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

/// The tokens of one chunk: a range of h where none in between is ignored, else gathered.
struct Chunk {
  Tensor ids;       ///< [rows] int32
  bool contiguous;  ///< ids count up by one

  [[nodiscard]] int64_t first() const { return ids.values<int32_t>()[0]; }
  [[nodiscard]] Tensor rows_of(const Tensor& all) const {
    if (contiguous) return all.rows(first(), ids.count());
    Tensor gathered = Tensor::empty({ids.count(), all.size(1)}, all.dtype());
    embedding(ids, all, gathered);
    return gathered;
  }
};

Tensor valid_tokens(const Tensor& targets) {
  std::vector<int32_t> valid;
  valid.reserve(static_cast<size_t>(targets.count()));
  const std::span<const int32_t> values = targets.values<int32_t>();
  for (size_t token = 0; token < values.size(); ++token)
    if (values[token] != kIgnoredTarget) valid.push_back(static_cast<int32_t>(token));
  return Tensor::from<int32_t>(valid, {static_cast<int64_t>(valid.size())});
}

/// One call of the op: its arguments and what its chunks share.
class HeadLoss {
 public:
  HeadLoss(const Tensor& h, const Tensor& w, const Tensor& targets, LossGradients* gradients)
      : h_(h),
        w_(w),
        targets_(targets.data<int32_t>()),
        gradients_(gradients),
        token_loss_(static_cast<size_t>(h.size(0))) {}

  LossSums run(const Tensor& valid) {
    if (gradients_ && valid.count() < h_.size(0) && !dry_run())
      std::memset(gradients_->dh.raw(), 0, gradients_->dh.bytes());
    const int64_t vocab = std::max<int64_t>(w_.size(0), 1);
    const int64_t limit = std::clamp(kChunkBytes / (vocab * 4), kLeastChunk, kMostChunk);
    const int64_t chunks = (valid.count() + limit - 1) / limit;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {  // of equal size, give or take one
      const int64_t begin = valid.count() * chunk / chunks, end = valid.count() * (chunk + 1) / chunks;
      add_chunk(chunk_of(valid.rows(begin, end - begin)));
    }
    LossSums sums{.loss_sum = 0, .valid = valid.count()};
    for (const int32_t token : valid.values<int32_t>()) sums.loss_sum += token_loss_[static_cast<size_t>(token)];
    return sums;
  }

  [[nodiscard]] const std::vector<double>& token_loss() const { return token_loss_; }

 private:
  static Chunk chunk_of(Tensor ids) {
    const std::span<const int32_t> values = ids.values<int32_t>();
    const bool contiguous = values.back() - values.front() + 1 == static_cast<int64_t>(values.size());
    return {.ids = std::move(ids), .contiguous = contiguous};
  }

  void add_chunk(const Chunk& chunk) {
    const Tensor rows = chunk.rows_of(h_);
    Tensor logits = Tensor::empty({rows.size(0), w_.size(0)}, DType::Float32);
    matmul(rows, w_, logits, {.b = Transpose::Yes});
    Tensor dlogits = !gradients_ || h_.dtype() == DType::Float32 ? logits : Tensor::empty(logits.shape(), h_.dtype());
    with_element(h_.dtype(), [&]<typename T>(T*) { softmax_rows<T>(chunk.ids.data<int32_t>(), logits, dlogits); });
    if (!gradients_) return;
    if (gradients_->dw.defined()) matmul(dlogits, rows, gradients_->dw, {.a = Transpose::Yes, .accumulate = true});
    if (chunk.contiguous) {
      Tensor dh = gradients_->dh.rows(chunk.first(), rows.size(0));
      return matmul(dlogits, w_, dh, {});
    }
    Tensor dh = Tensor::empty(rows.shape(), rows.dtype());
    matmul(dlogits, w_, dh, {});
    embedding_backward(dh, chunk.ids, gradients_->dh);  // adds to rows that run() has cleared
  }

  /// Losses of the rows, and their gradients where those are wanted.
  template <typename T>
  void softmax_rows(const int32_t* ids, Tensor& logits, Tensor& dlogits) {
    const int64_t vocab = logits.size(1);
    T* const gradient = gradients_ ? dlogits.data<T>() : nullptr;
    parallel_for(logits.size(0), rows_grain(4 * vocab),
                 [=, this, logit = logits.data<float>()](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     softmax_row(ids[row], logit + row * vocab, gradient ? gradient + row * vocab : nullptr, vocab);
                 });
  }

  template <typename T>
  void softmax_row(int32_t token, float* logits, T* gradient, int64_t vocab) {
    const int32_t target = targets_[token];
    const RowLoss<T> row(logits, vocab, target);
    token_loss_[static_cast<size_t>(token)] = row.loss;
    if (gradient) row_gradient(logits, gradient, vocab, target, row.sums.total, gradients_->grad_scale);
  }

  const Tensor &h_, &w_;
  const int32_t* targets_;
  LossGradients* gradients_;
  std::vector<double> token_loss_;
};

}  // namespace

LossSums linear_cross_entropy(const Tensor& h, const Tensor& w, const Tensor& targets, LossGradients* gradients,
                              Tensor* token_loss) {
  HeadLoss loss(h, w, targets, gradients);
  const LossSums sums = loss.run(valid_tokens(targets));
  if (token_loss)
    std::transform(loss.token_loss().begin(), loss.token_loss().end(), token_loss->data<float>(),
                   [](double value) { return static_cast<float>(value); });
  return sums;
}

LossSums cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale, Tensor* dlogits) {
  LossSums sums;
  if (dry_run()) return sums;
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
  return sums;
}

}  // namespace trainyard::ops::cpu
