#pragma once

#include "ops/activation.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/float8.h"
#include "ops/image.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"

// The CPU's kernels: one function for each op, arguments as in the op's header, already checked there.
namespace trainyard::ops::cpu {

void absmax(const Tensor& x, Along along, Tensor& most);
void activation(Activation f, const Tensor& x, Tensor& y);
void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx);
void add(const Tensor& a, const Tensor& b, Tensor& out);
void add_to(Tensor& total, const Tensor& addend);
void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step);
bool all_finite(const Tensor& x);
void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse);
void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients& gradients);
void add_bias(Tensor& y, const Tensor& bias);
void bias_backward(const Tensor& dy, Tensor& dbias);
void cast(const Tensor& from, Tensor& to);
Loss cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale, Tensor* dlogits);
void dropout(const Tensor& x, const Dropout& dropout, Tensor& y);
void embedding(const Tensor& ids, const Tensor& table, Tensor& out);
void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable);
void channels_first(const Tensor& x, const ImageShape& shape, Tensor& y);
void channels_last(const Tensor& y, const ImageShape& shape, Tensor& x);
Tensor clip_factor(const Tensor& squares, double limit, double loss_scale);
void fill(Tensor& x, float value);
void float8_cast(const Tensor& x, Float8Target& by_rows, Float8Target& by_columns);
void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions options);
void float8_scale(const Tensor& most, const Float8Cast& cast, Float8Scale& made);
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, Tensor& y, RowMoments& moments);
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients& gradients);
/// `gradients` null: the loss alone.
Loss linear_cross_entropy(const Tensor& h, const Tensor& w, const Targets& targets, LossGradients* gradients,
                          Tensor* token_loss);
void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options);
void multiply(const Tensor& a, const Tensor& b, Tensor& y);
void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias);
void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable);
void max_pool(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& y, Tensor& chosen);
void max_pool_backward(const Tensor& dy, const Tensor& chosen, const ImageShape& shape, int64_t size, Tensor& dx);
void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd);
void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd);
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients);
void rms_norm_rope(const Tensor& x, const Tensor& weight, float eps, const RopePlaces& places, Tensor& out,
                   Tensor& rstd);
void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients& gradients);
void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out);
void scale(Tensor& x, float factor);
void set_zero(Tensor& x);
Tensor sum(const Tensor& x);
SquareSums sums_of_squares(std::span<const Tensor> tensors);
void swiglu(const Tensor& gate, const Tensor& up, Tensor& y);
void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup);
void unfold(const Tensor& x, const ImageShape& shape, int64_t size, Tensor& patches);
void unfold_backward(const Tensor& dpatches, const ImageShape& shape, int64_t size, Tensor& dx);

/// `tensor` itself where it is float32, else a converted copy.
Tensor in_float(const Tensor& tensor);

}  // namespace trainyard::ops::cpu
