#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/export.h"
#include "trainyard/parameter.h"

namespace trainyard::fsdp {

/// A part of a model: what FSDPModule is to FSDP2. Cheap to copy; it keeps its model alive.
class TRAINYARD_EXPORT Module {
 public:
  Module(std::shared_ptr<ModelState> model, std::size_t number) : model_(std::move(model)), number_(number) {}

  /// The name is as in "layers.3"; the whole model has an empty one.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::vector<Module> children() const;
  /// These are the parameters of this module and of all modules below it.
  [[nodiscard]] std::vector<Parameter> parameters() const;
  /// These are the parameters that this module's own fully_shard() took. unshard() gathers them.
  [[nodiscard]] std::vector<Parameter> managed_parameters() const;

  /// Gathers the managed parameters; they stay until reshard(), or until the module's forward or a backward gives them
  /// back. Collective. unshard_async() returns at once, and the gather runs behind what comes next.
  /// All here below throw std::logic_error where fully_shard() was not called on this module.
  void unshard();
  void unshard_async();
  void reshard();

  /// When this module's forward (backward) begins, the gathers of these begin too, in this order, in place of those that
  /// would come next by themselves. All of one model.
  void set_modules_to_forward_prefetch(const std::vector<Module>& modules);
  void set_modules_to_backward_prefetch(const std::vector<Module>& modules);

  [[nodiscard]] const std::shared_ptr<ModelState>& state() const { return model_; }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  std::shared_ptr<ModelState> model_;
  std::size_t number_;
};

/// This rank's rows of token ids. Where `targets` is empty each position predicts the next one; -100 counts for nothing.
struct Batch {
  std::int64_t rows = 0, tokens = 0;
  std::vector<std::int32_t> input_ids;     ///< rows · tokens, row by row
  std::vector<std::int32_t> targets = {};  ///< the same number
};

/// A loss holds what its forward pass left for backward(). It can be moved and not copied.
class TRAINYARD_EXPORT Loss {
 public:
  struct State;
  explicit Loss(std::unique_ptr<State> state);
  ~Loss();
  Loss(Loss&&) noexcept;
  Loss& operator=(Loss&&) noexcept;

  /// The mean over all ranks' targets. Collective.
  [[nodiscard]] double item();
  /// Adds the gradient of the mean to the parameters', reduced over the ranks. Once.
  void backward();

 private:
  std::unique_ptr<State> state_;
};

/// A model of a known family, whole in itself and not knowing of ranks. It has no weights before the fully_shard() of
/// the whole model gives each rank its rows of them: random ones, the same at any number of ranks. Copies share it.
class TRAINYARD_EXPORT Model : public Module {
 public:
  /// Makes the model of that name: "tutorial" is the Transformer of the FSDP2 tutorial, and docs/models.md lists the
  /// others. An unknown name throws, and the message has the nearest one.
  static Model preset(const std::string& name, std::uint64_t seed = 0);
  /// Makes the model that a config.json of Hugging Face describes.
  static Model from_config(const std::string& path, std::uint64_t seed = 0);

  /// The repeated blocks, first to last.
  [[nodiscard]] std::vector<Module> layers() const;

  /// A forward pass of all ranks, each with its own batch: the mean cross-entropy over all of their targets (the
  /// tutorial's model has none; its loss is the mean over ranks of the sum of its outputs). `scale` multiplies the
  /// gradient: one over the micro-batches where several accumulate. Collective.
  [[nodiscard]] Loss loss(const Batch& batch, double scale = 1);
  /// The same number without a way back. Collective.
  [[nodiscard]] double evaluate(const Batch& batch);
  /// FSDP2's: false keeps gradients unreduced until a backward pass with true, for accumulation.
  void set_requires_gradient_sync(bool is_required);

 private:
  using Module::Module;
};

}  // namespace trainyard::fsdp
