#include <cfloat>

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"
#include "ops/head_chunks.h"
#include "ops/vocabulary_parts.h"
#include "tensor/dry_run.h"

namespace trainyard::ops::cuda {
namespace {

constexpr int32_t kIgnored = 0, kWrong = 1, kCorrect = 2;  ///< what became of a target

template <typename T>
struct Softmax {
  const T* logits;
  T* gradient;             ///< null: the loss alone; may be `logits`
  const int32_t* tokens;   ///< of the rows; null: row i is token i
  const int32_t* targets;  ///< by token, as all that follow
  double* losses;
  float* token_loss;  ///< null: not wanted
  int32_t* outcomes;  ///< null: not wanted
  int64_t vocab;
  float grad_scale;
};

/// exp(logit − most) of what a thread has seen, summed. With no logit seen, or −infinity alone, the total is 0.
struct Exponentials {
  float most = -FLT_MAX, total = 0;

  /// It has no branch, and takes one more exponential for all of them.
  template <int kCount>
  __device__ void add(const float (&logits)[kCount]) {
    const float before = most;
    for (const float logit : logits) most = fmaxf(most, logit);
    total *= expf(before - most);
    for (const float logit : logits) total += expf(logit - most);  // of a NaN: a NaN from here on
  }
};

/// The exponentials of a row, which its threads combine.
__device__ inline Exponentials combined(const Exponentials& mine) {
  const float most = among_block(mine.most, Most{});
  return {most, block_sum(mine.total * expf(mine.most - most))};
}

/// Calls body(index of the first, logits) for each pack of a thread's.
template <int kCount, typename T, typename Body>
__device__ void for_logits(const T* logits, int64_t vocab, const Body& body) {
  for (int64_t i = threadIdx.x; i < vocab / kCount; i += blockDim.x) {
    const auto pack = load<kCount>(logits, i);
    float values[kCount];
    for (int k = 0; k < kCount; ++k) values[k] = to_float(pack.values[k]);
    body(i * kCount, values);
  }
}

/// gradient = (softmax − onehot(target)) · grad_scale; zeros where the target is ignored.
template <int kCount, typename T>
__device__ void store_gradient(const T* logits, T* gradient, const Softmax<T>& work, int32_t target,
                               const Exponentials& row) {
  const float factor = target == kIgnoredTarget ? 0.0F : work.grad_scale / row.total;
  for (int64_t i = threadIdx.x; i < work.vocab / kCount; i += blockDim.x) {
    auto pack = load<kCount>(logits, i);
    for (int k = 0; k < kCount; ++k) {
      float value = factor == 0 ? 0.0F : expf(to_float(pack.values[k]) - row.most) * factor;
      if (i * kCount + k == target) value -= work.grad_scale;
      pack.values[k] = from_float<T>(value);
    }
    store<kCount>(gradient, i, pack);
  }
}

/// A block a row: its logits are read once for the loss and once for the gradient.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) softmax_kernel(Softmax<T> work) {
  const int64_t row = blockIdx.x, token = work.tokens ? work.tokens[row] : row;
  const int32_t target = work.targets[token];
  const T* const logits = work.logits + row * work.vocab;
  Exponentials mine;
  double loss = 0;
  int32_t outcome = kIgnored;
  if (target != kIgnoredTarget) {
    const float of_target = to_float(logits[target]);
    int larger = 0;
    for_logits<kCount>(logits, work.vocab, [&](int64_t first, const float(&values)[kCount]) {
      mine.add(values);
      if (!work.outcomes) return;
      for (int k = 0; k < kCount; ++k)
        larger += values[k] > of_target || (values[k] == of_target && first + k < target) ? 1 : 0;
    });
    mine = combined(mine);
    loss = log(static_cast<double>(mine.total)) + mine.most - of_target;
    if (work.outcomes) outcome = block_sum(larger) == 0 ? kCorrect : kWrong;
  }
  if (threadIdx.x == 0) {
    work.losses[token] = loss;
    if (work.token_loss) work.token_loss[token] = static_cast<float>(loss);
    if (work.outcomes) work.outcomes[token] = outcome;
  }
  if (work.gradient) store_gradient<kCount>(logits, work.gradient + row * work.vocab, work, target, mine);
}

template <typename T>
void softmax(const char* name, int64_t rows, const Softmax<T>& work, Device device) {
  if (rows == 0) return;
  with_packs(
      work.vocab % kWide<T> == 0,
      [&](auto width) { launch(name, device, {.blocks = rows}, softmax_kernel<width.value, T>, work); }, work.logits,
      work.gradient ? work.gradient : work.logits);
}

/// sums = Σ losses, and of the outcomes how many are not kIgnored, and how many kCorrect; without outcomes `valid` and
/// 0.
__global__ void __launch_bounds__(kThreads)
    sums_kernel(int64_t tokens, const double* losses, const int32_t* outcomes, int64_t valid, double* sums) {
  double loss = 0, counted = 0, correct = 0;
  for (int64_t token = threadIdx.x; token < tokens; token += blockDim.x) {
    loss += losses[token];
    if (!outcomes) continue;
    counted += outcomes[token] == kIgnored ? 0 : 1;
    correct += outcomes[token] == kCorrect ? 1 : 0;
  }
  loss = block_sum(loss), counted = block_sum(counted), correct = block_sum(correct);
  if (threadIdx.x > 0) return;
  sums[0] = loss;
  sums[1] = outcomes ? counted : static_cast<double>(valid);
  sums[2] = correct;
}

/// `outcomes` undefined: `valid` tokens count.
Loss sums_of(const char* name, const Tensor& losses, const Tensor& outcomes, int64_t valid) {
  Tensor sums = Tensor::empty({3}, DType::Float64, losses.device());
  launch(name, losses.device(), {}, sums_kernel, losses.count(), elements<double>(losses),
         outcomes.defined() ? elements<int32_t>(outcomes) : nullptr, valid, elements<double>(sums));
  return Loss(std::move(sums));
}

template <typename T>
struct PartOfSoftmax {
  const T* logits;
  T* gradient;  ///< null: the loss alone; may be `logits`
  const int32_t *tokens, *targets;
  int64_t first, width;
  const float* gathered;  ///< [parts, rows, 3]
  int64_t parts, rows;
  float grad_scale;
  float* losses;  ///< by token
};

/// A block a row: sums[row] is the largest logit, the sum of the exponentials and the target's logit, 0 where it is in
/// another part.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) softmax_sums_kernel(PartOfSoftmax<T> work, float* sums) {
  const int64_t row = blockIdx.x, target = work.targets[work.tokens[row]] - work.first;
  const T* const logits = work.logits + row * work.width;
  Exponentials mine;
  for_logits<kCount>(logits, work.width, [&](int64_t, const float(&values)[kCount]) { mine.add(values); });
  mine = combined(mine);
  if (threadIdx.x > 0) return;
  sums[3 * row] = mine.most, sums[3 * row + 1] = mine.total;
  sums[3 * row + 2] = target >= 0 && target < work.width ? to_float(logits[target]) : 0.0F;
}

template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) softmax_of_parts_kernel(PartOfSoftmax<T> work) {
  const int64_t row = blockIdx.x, target = work.targets[work.tokens[row]] - work.first;
  const WholeSoftmax whole = whole_softmax(
      work.gathered + 3 * row, work.parts, 3 * work.rows, [](float x) { return expf(x); },
      [](float x) { return logf(x); });
  if (threadIdx.x == 0) work.losses[work.tokens[row]] = whole.loss;
  if (!work.gradient) return;
  const float factor = work.grad_scale / whole.total;
  const T* const logits = work.logits + row * work.width;
  for (int64_t i = threadIdx.x; i < work.width / kCount; i += blockDim.x) {
    auto pack = load<kCount>(logits, i);
    for (int k = 0; k < kCount; ++k) {
      float value = expf(to_float(pack.values[k]) - whole.most) * factor;
      if (i * kCount + k == target) value -= work.grad_scale;
      pack.values[k] = from_float<T>(value);
    }
    store<kCount>(work.gradient + row * work.width, i, pack);
  }
}

}  // namespace

Loss linear_cross_entropy(const Tensor& h, const Tensor& w, const Targets& targets, LossGradients* gradients,
                          Tensor* token_loss) {
  const Tensor by_token = targets.values_on(h.device());
  Tensor losses = Tensor::zeros({h.size(0)}, DType::Float64, h.device());
  if (token_loss) set_zero(*token_loss);
  for_head_chunks(h, w, targets, gradients, [&](const Tensor& ids, Tensor& logits, Tensor* dlogits) {
    if (dry_run()) return;
    with_element(h.dtype(), [&]<typename T>(T*) {
      const Softmax<T> work{.logits = elements<T>(std::as_const(logits)),
                            .gradient = dlogits ? elements<T>(*dlogits) : nullptr,
                            .tokens = elements<int32_t>(ids),
                            .targets = elements<int32_t>(by_token),
                            .losses = elements<double>(losses),
                            .token_loss = token_loss ? elements<float>(*token_loss) : nullptr,
                            .outcomes = nullptr,
                            .vocab = logits.size(1),
                            .grad_scale = gradients ? gradients->grad_scale : 0};
      softmax("linear_cross_entropy", ids.count(), work, h.device());
    });
  });
  return sums_of("linear_cross_entropy", losses, {}, targets.valid().count());
}

Loss cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale, Tensor* dlogits) {
  Tensor losses = Tensor::empty(targets.shape(), DType::Float64, logits.device()),
         outcomes = Tensor::empty(targets.shape(), DType::Int32, logits.device());
  with_element(logits.dtype(), [&]<typename T>(T*) {
    const Softmax<T> work{.logits = elements<T>(logits),
                          .gradient = dlogits ? elements<T>(*dlogits) : nullptr,
                          .tokens = nullptr,
                          .targets = elements<int32_t>(targets),
                          .losses = elements<double>(losses),
                          .token_loss = nullptr,
                          .outcomes = elements<int32_t>(outcomes),
                          .vocab = logits.size(1),
                          .grad_scale = grad_scale};
    softmax("cross_entropy", logits.size(0), work, logits.device());
  });
  return sums_of("cross_entropy", losses, outcomes, 0);
}

void softmax_sums(Tensor& logits, const VocabularyRows& rows, Tensor& own) {
  if (logits.size(0) == 0 || dry_run()) return;
  with_element(logits.dtype(), [&]<typename T>(T*) {
    const PartOfSoftmax<T> work{.logits = elements<T>(std::as_const(logits)),
                                .gradient = nullptr,
                                .tokens = elements<int32_t>(rows.tokens),
                                .targets = elements<int32_t>(rows.targets),
                                .first = rows.first,
                                .width = logits.size(1),
                                .gathered = nullptr,
                                .parts = 0,
                                .rows = logits.size(0),
                                .grad_scale = 0,
                                .losses = nullptr};
    with_packs(
        work.width % kWide<T> == 0,
        [&](auto width) {
          launch("softmax_sums", logits.device(), {.blocks = work.rows}, softmax_sums_kernel<width.value, T>, work,
                 elements<float>(own));
        },
        work.logits);
  });
}

void softmax_of_parts(const Tensor& logits, const VocabularyRows& rows, const Tensor&, const Tensor& gathered,
                      float grad_scale, Tensor& losses, Tensor* dlogits) {
  if (logits.size(0) == 0 || dry_run()) return;
  with_element(logits.dtype(), [&]<typename T>(T*) {
    const PartOfSoftmax<T> work{.logits = elements<T>(logits),
                                .gradient = dlogits ? elements<T>(*dlogits) : nullptr,
                                .tokens = elements<int32_t>(rows.tokens),
                                .targets = elements<int32_t>(rows.targets),
                                .first = rows.first,
                                .width = logits.size(1),
                                .gathered = elements<float>(gathered),
                                .parts = gathered.size(0) / logits.size(0),
                                .rows = logits.size(0),
                                .grad_scale = grad_scale,
                                .losses = elements<float>(losses)};
    with_packs(
        work.width % kWide<T> == 0,
        [&](auto width) {
          launch("softmax_of_parts", logits.device(), {.blocks = work.rows}, softmax_of_parts_kernel<width.value, T>,
                 work);
        },
        work.logits, work.gradient ? work.gradient : work.logits);
  });
}

}  // namespace trainyard::ops::cuda
