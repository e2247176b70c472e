#include "ops/cost.h"
#include "ops/cpu/attention_blocks.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/cpu_info.h"

namespace trainyard::ops::cpu {
namespace {

/// Scores become probabilities P, and dprobabilities become dscores, P · (dP − delta) with delta = Σ dout · out.
struct GradientBlock {
  float *scores, *dprobabilities;
  const int32_t *begin, *end;
  const float *lse, *delta;
  int64_t rows, columns;
};

TRAINYARD_MULTIVERSION void gradient_block(const GradientBlock& block) {
  for (int64_t row = 0; row < block.rows; ++row) {
    const MaskedRow masked =
        mask_row(block.scores + row * kScoreStride, block.begin[row], block.end[row], block.columns);
    float *const p = masked.scores, *const d = block.dprobabilities + (p - block.scores);
    float* const d_row = block.dprobabilities + row * kScoreStride;
    for (float* before = d_row; before < d; ++before) *before = 0;
    for (float* after = d + masked.count; after < d_row + block.columns; ++after) *after = 0;
    const float lse = block.lse[row], delta = block.delta[row];
#pragma omp simd
    for (int64_t i = 0; i < masked.count; ++i) {
      p[i] = exp_nonpositive(p[i] - lse);
      d[i] = p[i] * (d[i] - delta);
    }
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void row_dots(Head<const T> a, Head<const T> b, Range rows, int64_t head_dim, float* dots) {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const T *const left = a.at(row), *const right = b.at(row);
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < head_dim; ++i) dot += to_float(left[i]) * to_float(right[i]);
    dots[row - rows.begin] = dot;
  }
}

void clear(Head<float> head, Range tokens, int64_t head_dim) {
  for (int64_t token = tokens.begin; token < tokens.end; ++token) std::fill_n(head.at(token), head_dim, 0.0F);
}

template <typename T>
struct GradientScratch {
  std::vector<float> scores = std::vector<float>(kQueryBlock * kScoreStride);
  std::vector<float> dprobabilities = std::vector<float>(kQueryBlock * kScoreStride);
  std::vector<float> delta = std::vector<float>(kQueryBlock);
  BlockColumns columns;
  RoundedBlock<T> probabilities, dscores;
  HeadSums<T> dq, dk, dv;

  explicit GradientScratch(const AttentionShape& shape)
      : dq(kQueryBlock, shape.head_dim), dk(shape.kv_tokens, shape.head_dim), dv(shape.kv_tokens, shape.head_dim) {}
};

/// One KV head of one batch row is one unit of work: the query heads that share it add to its dk and dv in turn, so
/// nothing depends on the number of threads and five products do where a split by keys would need seven.
template <typename T>
class Backward {
  using Scratch = GradientScratch<T>;

 public:
  Backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
           const AttentionOptions& options, AttentionGradients& gradients)
      : dout_(dout.data<T>()),
        q_(saved.q.data<T>()),
        k_(saved.k.data<T>()),
        v_(saved.v.data<T>()),
        out_(saved.out.data<T>()),
        lse_(saved.lse.data<float>()),
        dq_(gradients.dq.data<T>()),
        dk_(gradients.dk.data<T>()),
        dv_(gradients.dv.data<T>()),
        shape_(shape),
        bias_(options.bias.defined() ? options.bias.data<float>() : nullptr),
        scale_(options.scale),
        visibility_(shape, options),
        dropout_(options) {
    if (!bias_) return;
    dbias_ = gradients.dbias;
    row_dbias_ = Tensor::zeros({shape.batch, dbias_.size(0), dbias_.size(1)}, DType::Float32);
  }

  void run() {
    parallel_for(shape_.batch * shape_.kv_heads, 1, [&](int64_t begin, int64_t end) {
      const SerialScope serial;
      Scratch scratch(shape_);
      for (int64_t unit = begin; unit < end; ++unit)
        add_kv_head(unit / shape_.kv_heads, unit % shape_.kv_heads, scratch);
    });
    if (bias_) sum_bias_gradients();
  }

 private:
  /// The pointers that one query head and its KV head need, from the first token of a batch row on.
  struct Heads {
    Head<const T> q, out, dout, k, v;
    Head<T> dq, dk, dv;
    const float* lse;
    int64_t row, head;
  };

  [[nodiscard]] Heads heads_of(int64_t row, int64_t kv_head, int64_t head) const {
    const AttentionShape& s = shape_;
    const auto of_query = [&](auto* data) { return head_of(data, row * s.q_tokens, head, s.heads, s.head_dim); };
    const auto of_key = [&](auto* data) { return head_of(data, row * s.kv_tokens, kv_head, s.kv_heads, s.head_dim); };
    return {.q = of_query(q_),
            .out = of_query(out_),
            .dout = of_query(dout_),
            .k = of_key(k_),
            .v = of_key(v_),
            .dq = of_query(dq_),
            .dk = of_key(dk_),
            .dv = of_key(dv_),
            .lse = lse_ + (row * s.heads + head) * s.q_tokens,
            .row = row,
            .head = head};
  }

  void add_kv_head(int64_t row, int64_t kv_head, Scratch& scratch) {
    const int64_t group = shape_.heads / shape_.kv_heads;
    const Heads first = heads_of(row, kv_head, kv_head * group);
    clear(scratch.dk.of(first.dk), {0, shape_.kv_tokens}, shape_.head_dim);
    clear(scratch.dv.of(first.dv), {0, shape_.kv_tokens}, shape_.head_dim);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const Heads heads = heads_of(row, kv_head, head);
      for (int64_t query = 0; query < shape_.q_tokens; query += kQueryBlock)
        add_queries(heads, {query, std::min(query + kQueryBlock, shape_.q_tokens)}, scratch);
    }
    scratch.dk.round_to(first.dk, shape_.kv_tokens);
    scratch.dv.round_to(first.dv, shape_.kv_tokens);
  }

  void add_queries(const Heads& heads, Range queries, Scratch& scratch) {
    row_dots(heads.dout, heads.out, queries, shape_.head_dim, scratch.delta.data());
    const Range visible = visibility_.keys_of(heads.row, queries);
    const Head<T> dq{heads.dq.at(queries.begin), heads.dq.stride};
    if (visible.size() == 0) clear(scratch.dq.of(dq), {0, queries.size()}, shape_.head_dim);
    for (int64_t key = visible.begin; key < visible.end; key += kKeyBlock) {
      const Range keys{key, std::min(key + kKeyBlock, visible.end)};
      scratch.columns.set(visibility_, heads.row, queries, keys);
      add_block(heads, queries, keys, key == visible.begin ? 0.0F : 1.0F, scratch);
    }
    scratch.dq.round_to(dq, queries.size());
  }

  void add_block(const Heads& at, Range queries, Range keys, float dq_beta, Scratch& scratch) {
    const int64_t rows = queries.size(), columns = keys.size(), head_dim = shape_.head_dim;
    const Factor<T> q(at.q.at(queries.begin), at.q.stride), dout(at.dout.at(queries.begin), at.dout.stride);
    const Factor<T> k(at.k.at(keys.begin), at.k.stride), v(at.v.at(keys.begin), at.v.stride);
    const Product scores{scratch.scores.data(), kScoreStride}, dscores{scratch.dprobabilities.data(), kScoreStride};
    const auto transposed = [](Factor<T> factor) { return Factor<T>(factor.data, factor.stride, Transpose::Yes); };

    gemm({.m = rows, .n = columns, .k = head_dim, .alpha = scale_}, q, transposed(k), scores);
    gemm({.m = rows, .n = columns, .k = head_dim}, dout, transposed(v), dscores);
    if (bias_) add_bias(scores.data, bias_at(bias_, shape_, at.head, queries.begin, keys.begin), rows, columns);
    if (dropout_.drops()) dropout_.apply(dscores.data, at.row, at.head, queries, keys);
    gradient_block({scores.data, dscores.data, scratch.columns.begin.data(), scratch.columns.end.data(),
                    at.lse + queries.begin, scratch.delta.data(), rows, columns});
    if (bias_) {
      float* const dbias = row_dbias_.template data<float>() + at.row * dbias_.count();
      add_to_bias(dscores.data, bias_at(dbias, shape_, at.head, queries.begin, keys.begin), rows, columns);
    }
    if (dropout_.drops()) dropout_.apply(scores.data, at.row, at.head, queries, keys);
    const Head<float> dq = scratch.dq.of({at.dq.at(queries.begin), at.dq.stride}), dk = scratch.dk.of(at.dk),
                      dv = scratch.dv.of(at.dv);
    const Factor<T> probabilities = scratch.probabilities.of(scores.data, rows, columns),
                    dscores_factor = scratch.dscores.of(dscores.data, rows, columns);
    gemm({.m = columns, .n = head_dim, .k = rows, .beta = 1}, transposed(probabilities), dout,
         {dv.at(keys.begin), dv.stride});
    gemm({.m = columns, .n = head_dim, .k = rows, .alpha = scale_, .beta = 1}, transposed(dscores_factor), q,
         {dk.at(keys.begin), dk.stride});
    gemm({.m = rows, .n = head_dim, .k = columns, .alpha = scale_, .beta = dq_beta}, dscores_factor, k,
         {dq.data, dq.stride});
  }

  /// Each row has sums of its own until here, so that the order of the addends is the same for any number of threads.
  void sum_bias_gradients() {
    cpu::set_zero(dbias_);
    for (int64_t row = 0; row < shape_.batch; ++row) {
      const Tensor of_row = row_dbias_.rows(row, 1).reshape(dbias_.shape());
      cpu::add_to(dbias_, of_row);
    }
  }

  const T *dout_, *q_, *k_, *v_, *out_;
  const float* lse_;
  T *dq_, *dk_, *dv_;
  const AttentionShape& shape_;
  const float* bias_;
  float scale_;
  Visibility visibility_;
  BlockDropout dropout_;
  Tensor dbias_, row_dbias_;  // [heads, span], and the same for each row
};

Tensor float_like(const Tensor& tensor) {
  return Tensor::empty(tensor.shape(), DType::Float32);
}

}  // namespace

void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients& gradients) {
  if (runs_elsewhere()) return;
  if (saved.q.dtype() == DType::Float32) return Backward<float>(dout, saved, shape, options, gradients).run();
  if (saved.q.dtype() == DType::BFloat16 && multiplies_bfloat16())
    return Backward<BFloat16>(dout, saved, shape, options, gradients).run();
  const bool has_bias = options.bias.defined();
  if (has_bias) cpu::set_zero(gradients.dbias);
  for (int64_t row = 0; row < shape.batch; ++row) {
    const AttentionRow at(shape, options, row);
    const Tensor q = in_float(at.queries(saved.q)), k = in_float(at.keys(saved.k)), v = in_float(at.keys(saved.v));
    const Tensor out = in_float(at.queries(saved.out)), lse = saved.lse.rows(row, 1);
    AttentionGradients in_row{.dq = float_like(q),
                              .dk = float_like(k),
                              .dv = float_like(v),
                              .dbias = has_bias ? float_like(gradients.dbias) : Tensor()};
    Backward<float>(in_float(at.queries(dout)), {q, k, v, out, lse}, at.shape, at.options, in_row).run();
    Tensor dq = at.queries(gradients.dq), dk = at.keys(gradients.dk), dv = at.keys(gradients.dv);
    cast(in_row.dq, dq);
    cast(in_row.dk, dk);
    cast(in_row.dv, dv);
    if (has_bias) add_to(gradients.dbias, in_row.dbias);
  }
}

}  // namespace trainyard::ops::cpu
