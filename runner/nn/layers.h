#pragma once

#include <vector>

#include "autograd/functions.h"
#include "nn/module.h"

namespace trainyard::nn {

enum class Bias { No, Yes };

/// y = x · weightᵀ, + bias in each row where it has one; weight [out, in], bias [out], zeros at first.
class Linear : public Module {
 public:
  Linear(std::string name, int64_t in, int64_t out, Init init = {}, Bias bias = Bias::No)
      : Module(std::move(name)),
        weight_(add_parameter("weight", {out, in}, init)),
        bias_(bias == Bias::Yes ? &add_parameter("bias", {out}, {Init::Kind::Zeros}) : nullptr) {}
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) {
      return bias_ ? autograd::linear(input, weight_, *bias_) : autograd::linear(input, weight_);
    });
  }
  [[nodiscard]] std::string_view class_name() const override { return "Linear"; }
  [[nodiscard]] Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
  Parameter* bias_;  // null: none
};

/// Zhang & Sennrich 2019, as Hugging Face computes it: in float32, cast, then × weight.
class RmsNorm : public Module {
 public:
  RmsNorm(std::string name, int64_t size, float eps)
      : Module(std::move(name)), weight_(add_parameter("weight", {size}, {Init::Kind::Ones})), eps_(eps) {}
  Variable operator()(const Variable& x) const {
    return run(x, [this](const Variable& input) { return autograd::rms_norm(input, weight_, eps_); });
  }

 private:
  Parameter& weight_;
  float eps_;
};

/// Rows of a table [vocab, hidden].
class Embedding : public Module {
 public:
  Embedding(std::string name, int64_t vocab, int64_t hidden, Init init = {})
      : Module(std::move(name)), weight_(add_parameter("weight", {vocab, hidden}, init)) {}
  Variable operator()(const Tensor& ids, Tape* tape) const {
    return run(tape, [&] { return autograd::embedding(ids, weight_, tape); });
  }
  [[nodiscard]] std::string_view class_name() const override { return "Embedding"; }
  [[nodiscard]] Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
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
