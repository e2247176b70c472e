#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "shard/layout.h"
#include "shard/mesh.h"
#include "shard/policy.h"

namespace trainyard::shard {

/// The parameters of one fully_shard call: gathered together, reduced together.
///
/// Holds this rank's shard in float32 for good, and the unsharded parameters and gradients between unshard and reshard.
/// Where the shard dimension has one rank and nothing is cast, unsharded parameters are the shard itself: no copies.
class Group {
 public:
  Group(std::string label, std::span<autograd::Parameter* const> parameters, const Mesh& mesh, const Policy& policy);

  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Float32 [shard_elements], this rank's padded chunks; padding is zero and stays so.
  [[nodiscard]] Tensor& shard() { return shard_; }
  /// The reduced gradient, like shard(). Valid from the first finish_reduction() to release_gradient().
  [[nodiscard]] Tensor& shard_gradient() { return shard_gradient_; }
  [[nodiscard]] bool has_gradient() const { return has_gradient_; }

  /// Starts gathering, if not begun. The shard must not change before finish_unshard().
  void begin_unshard();
  /// Waits for the gather; the parameters' values are valid afterwards.
  void finish_unshard();
  void reshard();
  [[nodiscard]] bool is_sharded() const { return state_ == State::Sharded; }

  /// Makes the parameters' gradients ready to be added to: zero, unless an earlier micro-batch left its sum there.
  void prepare_gradient();

  /// Starts the reduction of the gradients gathered so far and gives the unsharded ones back.
  void begin_reduction();
  /// Takes the reduction a stage on: scattered, then summed over replicas, then added to shard_gradient(). Waits for
  /// the stage under way. True when that was the last.
  bool advance_reduction();
  /// No gradient any more: the next reduction begins a new sum.
  void release_gradient();

  /// Bytes that unsharded parameters and gather buffers hold now.
  [[nodiscard]] size_t gathered_bytes() const;

 private:
  enum class State { Sharded, Gathering, Unsharded };
  enum class Reduction { None, Scattering, Summing };

  [[nodiscard]] Tensor gather_input() const;
  void accumulate(const Tensor& reduced);

  std::string label_;
  Layout layout_;
  comm::Communicator& sharders_;
  comm::Communicator& replicas_;
  DType param_dtype_, reduce_dtype_;
  bool in_place_;           // unsharded parameters are the shard
  bool gradient_in_place_;  // unsharded gradients are the reduced ones

  Tensor shard_, shard_gradient_;
  Tensor whole_, whole_gradient_;  // flat, [whole_elements]; the parameters' values and gradients are views of them
  bool has_gradient_ = false, whole_gradient_ready_ = false;

  State state_ = State::Sharded;
  Tensor gathered_;
  comm::Work gathering_;
  Reduction reduction_ = Reduction::None;
  Tensor reduce_input_, reduced_;
  comm::Work reducing_;
};

}  // namespace trainyard::shard
