#include <cmath>

#include "ops/cost.h"
#include "ops/cpu/attention_blocks.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/cpu_info.h"

namespace trainyard::ops::cpu {
namespace {

/// What a query has gathered from the key blocks so far: exp(score) is kept relative to `most`.
struct Running {
  float most, total;
};

/// Scores in, exp(score − most) out, 0 where hidden; `out` rows are brought from the old maximum to the new.
/// rows queries, columns keys; the rows of `out` lie out_stride apart.
struct SoftmaxBlock {
  float* scores;
  const int32_t *begin, *end;
  Running* running;
  float* out;
  int64_t rows, columns, out_stride, head_dim;
};

TRAINYARD_MULTIVERSION void softmax_block(const SoftmaxBlock& block) {
  const int64_t head_dim = block.head_dim;
  for (int64_t row = 0; row < block.rows; ++row) {
    const MaskedRow masked =
        mask_row(block.scores + row * kScoreStride, block.begin[row], block.end[row], block.columns);
    if (masked.count == 0) continue;
    float* const scores = masked.scores;
    float most = block.running[row].most;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < masked.count; ++i) most = scores[i] > most ? scores[i] : most;
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < masked.count; ++i) {
      const float e = exp_nonpositive(scores[i] - most);
      scores[i] = e;
      total += e;
    }
    Running& running = block.running[row];
    if (running.total == 0) {  // the first block that this query sees: nothing gathered yet
      running = {most, total};
      continue;
    }
    const float correction = exp_nonpositive(running.most - most);
    running = {most, running.total * correction + total};
    float* const out = block.out + row * block.out_stride;
#pragma omp simd
    for (int64_t i = 0; i < head_dim; ++i) out[i] *= correction;
  }
}

TRAINYARD_MULTIVERSION void divide_rows(const SoftmaxBlock& block) {
  const int64_t head_dim = block.head_dim;
  for (int64_t row = 0; row < block.rows; ++row) {
    float* const out = block.out + row * block.out_stride;
    const float total = block.running[row].total;
    const float factor = total == 0 ? 0.0F : 1.0F / total;
#pragma omp simd
    for (int64_t i = 0; i < head_dim; ++i) out[i] *= factor;
  }
}

template <typename T>
class Forward {
 public:
  Forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
          const AttentionOptions& options, Tensor& out, Tensor& lse)
      : q_(q.data<T>()),
        k_(k.data<T>()),
        v_(v.data<T>()),
        out_(out.data<T>()),
        lse_(lse.data<float>()),
        shape_(shape),
        bias_(options.bias.defined() ? options.bias.data<float>() : nullptr),
        scale_(options.scale),
        visibility_(shape, options),
        dropout_(options) {}

  void run() {
    const int64_t blocks = (shape_.q_tokens + kQueryBlock - 1) / kQueryBlock;
    parallel_for(shape_.batch * shape_.heads * blocks, 1, [&](int64_t begin, int64_t end) {
      const SerialScope serial;
      Scratch scratch(shape_.head_dim);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t query = unit % blocks * kQueryBlock;
        add_queries(unit / blocks, {query, std::min(query + kQueryBlock, shape_.q_tokens)}, scratch);
      }
    });
  }

 private:
  struct Scratch {
    std::vector<float> scores = std::vector<float>(kQueryBlock * kScoreStride);
    BlockColumns columns;
    RoundedBlock<T> probabilities;
    HeadSums<T> sums;

    explicit Scratch(int64_t head_dim) : sums(kQueryBlock, head_dim) {}
  };

  /// `head` counts over all batch rows.
  void add_queries(int64_t head, Range queries, Scratch& scratch) {
    const AttentionShape& s = shape_;
    const int64_t row = head / s.heads, kv_head = head % s.heads / (s.heads / s.kv_heads);
    const auto q = head_of(q_, row * s.q_tokens, head % s.heads, s.heads, s.head_dim);
    const Head<T> out = head_of(out_, row * s.q_tokens + queries.begin, head % s.heads, s.heads, s.head_dim);
    const Head<float> sums = scratch.sums.of(out);
    const auto k = head_of(k_, row * s.kv_tokens, kv_head, s.kv_heads, s.head_dim);
    const auto v = head_of(v_, row * s.kv_tokens, kv_head, s.kv_heads, s.head_dim);
    float* const scores = scratch.scores.data();
    std::vector<Running> running(static_cast<size_t>(queries.size()), {-INFINITY, 0});
    const Range visible = visibility_.keys_of(row, queries);
    SoftmaxBlock block{.scores = scores,
                       .begin = scratch.columns.begin.data(),
                       .end = scratch.columns.end.data(),
                       .running = running.data(),
                       .out = sums.data,
                       .rows = queries.size(),
                       .columns = 0,  // of the keys at hand, set below
                       .out_stride = sums.stride,
                       .head_dim = s.head_dim};
    for (int64_t key = visible.begin; key < visible.end; key += kKeyBlock) {
      const Range keys{key, std::min(key + kKeyBlock, visible.end)};
      block.columns = keys.size();
      gemm({.m = queries.size(), .n = keys.size(), .k = s.head_dim, .alpha = scale_},
           Factor<T>(q.at(queries.begin), q.stride), Factor<T>(k.at(key), k.stride, Transpose::Yes),
           {scores, kScoreStride});
      if (bias_) add_bias(scores, bias_at(bias_, s, head % s.heads, queries.begin, key), queries.size(), keys.size());
      scratch.columns.set(visibility_, row, queries, keys);
      softmax_block(block);
      if (dropout_.drops()) dropout_.apply(scores, row, head % s.heads, queries, keys);
      gemm({.m = queries.size(), .n = s.head_dim, .k = keys.size(), .beta = key == visible.begin ? 0.0F : 1.0F},
           scratch.probabilities.of(scores, queries.size(), keys.size()), Factor<T>(v.at(key), v.stride),
           {sums.data, sums.stride});
    }
    finish(block, visible, lse_ + head * s.q_tokens + queries.begin);
    scratch.sums.round_to(out, queries.size());
  }

  static void finish(const SoftmaxBlock& block, Range visible, float* lse) {
    if (visible.size() == 0)
      for (int64_t row = 0; row < block.rows; ++row)
        std::fill_n(block.out + row * block.out_stride, block.head_dim, 0.0F);
    divide_rows(block);
    for (int64_t row = 0; row < block.rows; ++row)
      lse[row] = block.running[row].most + std::log(block.running[row].total);
  }

  const T *q_, *k_, *v_;
  T* out_;
  float* lse_;
  const AttentionShape& shape_;
  const float* bias_;
  float scale_;
  Visibility visibility_;
  BlockDropout dropout_;
};

}  // namespace

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse) {
  if (runs_elsewhere()) return;
  if (q.dtype() == DType::Float32) return Forward<float>(q, k, v, shape, options, out, lse).run();
  if (q.dtype() == DType::BFloat16 && multiplies_bfloat16())
    return Forward<BFloat16>(q, k, v, shape, options, out, lse).run();
  for (int64_t row = 0; row < shape.batch; ++row) {
    const AttentionRow at(shape, options, row);
    Tensor out_row = Tensor::empty(at.queries(out).shape(), DType::Float32), lse_row = lse.rows(row, 1);
    Forward<float>(in_float(at.queries(q)), in_float(at.keys(k)), in_float(at.keys(v)), at.shape, at.options, out_row,
                   lse_row)
        .run();
    Tensor rounded = at.queries(out);
    cast(out_row, rounded);
  }
}

}  // namespace trainyard::ops::cpu
