#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autograd/functions.h"
#include "nn/init.h"
#include "nn/lora.h"
#include "nn/module.h"

namespace trainyard::nn {

enum class Bias { No, Yes };

/// y = x · weightᵀ, + bias in each row where it has one; weight [out, in], bias [out], zeros at first unless `init` is
/// uniform_init().
class Linear : public Module {
 public:
  Linear(std::string name, int64_t in, int64_t out, Init init = {}, Bias bias = Bias::No)
      : Module(std::move(name)),
        weight_(add_parameter("weight", {out, in}, init)),
        bias_(bias == Bias::Yes ? &add_parameter("bias", {out}, bias_init(init)) : nullptr) {}
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) {
      const Variable y = product(input);
      return adapter_ ? autograd::add(y, (*adapter_)(input)) : y;
    });
  }
  /// Puts an adapter beside the layer, whose output is added to its own. Before its parameters are placed.
  void adapt(const Lora& lora, const DropoutContext& dropped) {
    adapter_ = std::make_unique<LoraAdapter>(name(), weight_.whole_shape(), lora, dropped);
    add_child(*adapter_);
  }
  [[nodiscard]] std::string_view class_name() const override { return "Linear"; }
  [[nodiscard]] Parameter& weight() const { return weight_; }

 private:
  static Init bias_init(const Init& init) { return init.kind == Init::Kind::Uniform ? init : kZeros; }
  [[nodiscard]] Variable product(const Variable& x) const {
    if (functions().product) return functions().product(x, weight_);
    return bias_ ? autograd::linear(x, weight_, *bias_) : autograd::linear(x, weight_);
  }

  Parameter& weight_;
  Parameter* bias_;                       // null: none
  std::unique_ptr<LoraAdapter> adapter_;  // null: none
};

/// The linear layers of a module, itself among them, in order of construction.
std::vector<Linear*> linear_layers(Module& module);

/// A layer as PyTorch's nn.Linear begins.
inline Linear uniform_linear(std::string name, int64_t in, int64_t out, Bias bias = Bias::No) {
  return {std::move(name), in, out, uniform_init(in), bias};
}

/// PyTorch's Conv2d of step 1 without padding: weight [out, in, size, size], bias [out].
class Convolution : public Module {
 public:
  Convolution(std::string name, int64_t in, int64_t out, int64_t size)
      : Module(std::move(name)),
        weight_(add_parameter("weight", {out, in, size, size}, uniform_init(in * size * size))),
        bias_(add_parameter("bias", {out}, uniform_init(in * size * size))) {}
  /// x [pixels, in] of `shape` → [pixels, out] of output_of(shape).
  Variable operator()(const Variable& x, const ops::ImageShape& shape) const {
    return run(x, [this, shape](const Variable& input) { return autograd::convolution(input, shape, weight_, bias_); });
  }
  [[nodiscard]] ops::ImageShape output_of(const ops::ImageShape& shape) const {
    return ops::convolved(shape, weight_.shape()[3], weight_.shape()[0]);
  }
  [[nodiscard]] std::string_view class_name() const override { return "Conv2d"; }

 private:
  Parameter &weight_, &bias_;
};

/// Ba et al. 2016.
class LayerNorm : public Module {
 public:
  LayerNorm(std::string name, int64_t size, float eps = 1e-5F)
      : Module(std::move(name)),
        weight_(add_parameter("weight", {size}, kOnes)),
        bias_(add_parameter("bias", {size}, kZeros)),
        eps_(eps) {}
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) { return autograd::layer_norm(input, weight_, bias_, eps_); });
  }

 private:
  Parameter &weight_, &bias_;
  float eps_;
};

/// Zhang & Sennrich 2019, as Hugging Face computes it: in float32, cast, then × weight.
class RmsNorm : public Module {
 public:
  RmsNorm(std::string name, int64_t size, float eps, Init init = kOnes)
      : Module(std::move(name)), weight_(add_parameter("weight", {size}, init)), eps_(eps) {}
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) { return autograd::rms_norm(input, weight_, eps_); });
  }
  /// x + residual, and its norm.
  [[nodiscard]] autograd::SumAndNorm of_sum(const Variable& x, const Variable& residual) const {
    if (is_plain()) return autograd::add_rms_norm(x, residual, weight_, eps_);
    const Variable sum = autograd::add(x, residual);  // what reaches the norm may not be what this is
    return {sum, (*this)(sum)};
  }

 private:
  Parameter& weight_;
  float eps_;
};

/// Rows of a table [vocab, hidden]. `padding_idx`, as PyTorch's: a row that begins at zero and gets no gradient from
/// what is looked up here.
class Embedding : public Module {
 public:
  Embedding(std::string name, int64_t vocab, int64_t hidden, Init init = {}, std::optional<int64_t> padding_idx = {})
      : Module(std::move(name)),
        weight_(add_parameter("weight", {vocab, hidden}, {init.kind, init.scale, padding_idx})),
        padding_idx_(padding_idx) {}
  Variable operator()(const Tensor& ids, Tape* tape) const {
    return run(tape, [&] { return autograd::embedding(ids, weight_, tape, padding_idx_); });
  }
  [[nodiscard]] std::string_view class_name() const override { return "Embedding"; }
  [[nodiscard]] Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
  std::optional<int64_t> padding_idx_;
};

/// down(silu(gate(x)) · up(x)), Shazeer 2020.
class SwiGlu : public Module {
 public:
  SwiGlu(std::string name, int64_t hidden, int64_t ff, Init init);
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) { return down_(autograd::swiglu(gate_(input), up_(input))); });
  }

 private:
  Linear gate_, up_, down_;
};

}  // namespace trainyard::nn
