#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/recompute.h"
#include "autograd/tape.h"

namespace trainyard::nn {

using autograd::Init;
using autograd::kOnes;
using autograd::kZeros;
using autograd::Parameter;
using autograd::Tape;
using autograd::Variable;

/// What somebody outside a model does around a module's forward and backward: how sharding reaches in without the
/// model's knowledge. Called on the thread that runs the model, each once a pass and in this order.
class ModuleHooks {
 public:
  virtual ~ModuleHooks() = default;
  /// `will_go_back`: a tape records the pass, so before_backward and after_backward follow.
  virtual void before_forward(bool will_go_back) = 0;
  virtual void after_forward(bool will_go_back) = 0;
  virtual void before_backward() = 0;
  virtual void after_backward() = 0;
  /// What the module gets in place of its input `x`, and what it gives in place of its output `y`: the same value,
  /// maybe in another dtype. Between before_forward and after_forward; not again where the module is recomputed.
  [[nodiscard]] virtual Variable input(const Variable& x) { return x; }
  [[nodiscard]] virtual Variable output(const Variable& y) { return y; }
};

/// What tensor parallelism puts around a module, as PyTorch's distribute_module() does: `input` in place of its first
/// input, `output` in place of what it gives, and in a linear layer without bias `product` in place of x · weightᵀ. All
/// are recomputed with the module. None: it stays as it is.
struct ModuleFunctions {
  std::function<Variable(const Variable& x)> input, output;
  std::function<Variable(const Variable& x, Parameter& weight)> product;
};

/// A part of a model: its parameters, its parts, and the places around its forward where hooks run.
/// Built without memory for its parameters: who places them decides where they live.
class Module {
 public:
  /// `name` is the prefix of its parameters: "model.layers.3"; empty for the whole model.
  explicit Module(std::string name) : name_(std::move(name)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Module*>& children() const { return children_; }
  /// What transformers calls its class ("LlamaDecoderLayer"): how wrap policies name it. "" where nobody needs to.
  [[nodiscard]] virtual std::string_view class_name() const { return ""; }
  /// This module's parameters and its children's, in order of construction.
  [[nodiscard]] std::vector<Parameter*> parameters() const;

  /// Its own alone.
  [[nodiscard]] std::vector<Parameter*> own_parameters() const;

  /// Parameters below are used outside this module's forward too, as a tied embedding's are by the head: only a group
  /// of the whole model may hold them.
  void set_shared() { shared_ = true; }
  /// True for it and for what contains it.
  [[nodiscard]] bool holds_shared() const;

  void set_hooks(std::unique_ptr<ModuleHooks> hooks) { hooks_ = std::move(hooks); }
  void set_functions(ModuleFunctions functions) { functions_ = std::move(functions); }
  /// Keep only this module's inputs for backward, and what `retention` says, and compute the rest again.
  void set_recompute(bool recompute, autograd::Retention retention = {}) {
    recompute_ = recompute;
    retention_ = retention;
  }
  [[nodiscard]] bool recomputes() const { return recompute_; }

  /// Runs `body` as the forward of a module that takes and gives no variable, as a head and a whole model: hooks around
  /// it, on the way back too. `tape` null: no backward follows.
  void run_root(Tape* tape, const std::function<void()>& body) const;
  /// The same for one that gives a variable, as an embedding.
  Variable run(Tape* tape, const std::function<Variable()>& body) const;

 protected:
  /// A parameter named name() + "." + suffix, owned by this module.
  Parameter& add_parameter(const std::string& suffix, Shape shape, Init init = {});
  [[nodiscard]] const ModuleFunctions& functions() const { return functions_; }
  /// Whether nothing comes between this module's callers and its body.
  [[nodiscard]] bool is_plain() const { return !hooks_ && !recompute_ && !functions_.input && !functions_.output; }
  /// A part that a derived class holds as a member.
  void add_child(Module& child) { children_.push_back(&child); }
  [[nodiscard]] std::string name_of(const std::string& suffix) const {
    return name_.empty() ? suffix : name_ + "." + suffix;
  }

  /// Runs `body` as this module's forward: hooks around it, on the way back too, recomputed there if set so. What
  /// `body` uses of values on the tape is all among `inputs`.
  Variable run(std::vector<Variable> inputs, std::function<Variable(std::span<const Variable>)> body) const;
  Variable run(const Variable& x, std::function<Variable(const Variable&)> body) const;
  /// body(inputs), both as the hooks want them, recomputed on the way back if set so: for a module that does more than
  /// that between its hooks.
  Variable recomputed(std::vector<Variable> inputs, std::function<Variable(std::span<const Variable>)> body) const;

 private:
  using Body = std::function<Variable(std::span<const Variable>)>;
  [[nodiscard]] Variable given(const Variable& y) const { return hooks_ ? hooks_->output(y) : y; }
  [[nodiscard]] Variable replaced(const Variable& y) const { return functions_.output ? functions_.output(y) : y; }
  [[nodiscard]] Body with_functions(Body body) const;

  std::string name_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Module*> children_;
  std::unique_ptr<ModuleHooks> hooks_;
  ModuleFunctions functions_;
  bool recompute_ = false, shared_ = false;
  autograd::Retention retention_;
};

/// Gives every parameter of `module` memory of its own, whole, in `dtype`, gradients zeroed: a model without sharding.
void place_whole(Module& module, DType dtype = DType::Float32, Device device = {});

}  // namespace trainyard::nn
