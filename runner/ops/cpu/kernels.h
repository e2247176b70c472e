#pragma once

#include "ops/activation.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

// What a device must provide for the ops: one function each, arguments as in the op's header, already checked there.
// ops/<op>.cpp checks and chooses the device; another device has a file like this one.
namespace trainyard::ops::cpu {

void activation(Activation f, const Tensor& x, Tensor& y);
void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx);
void add(const Tensor& a, const Tensor& b, Tensor& out);
void add_to(Tensor& total, const Tensor& addend);
void adamw_step(Tensor& param, const Tensor& grad, Tensor& m, Tensor& v, const AdamWStep& step);
bool all_finite(const Tensor& x);
void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse);
void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients& gradients);
void cast(const Tensor& from, Tensor& to);
void dropout(const Tensor& x, const Dropout& dropout, Tensor& y);
void embedding(const Tensor& ids, const Tensor& table, Tensor& out);
void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable);
/// `gradients` null: the loss alone.
LossSums linear_cross_entropy(const Tensor& h, const Tensor& w, const Tensor& targets, LossGradients* gradients,
                              Tensor* token_loss);
void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options);
void multiply(const Tensor& a, const Tensor& b, Tensor& y);
void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias);
void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable);
void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd);
void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd);
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients);
void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out);
void scale(Tensor& x, float factor);
double sum_of_squares(const Tensor& x);
void swiglu(const Tensor& gate, const Tensor& up, Tensor& y);
void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup);

/// `tensor` itself where it is float32, else a converted copy.
Tensor in_float(const Tensor& tensor);

}  // namespace trainyard::ops::cpu
