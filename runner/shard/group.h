#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shard/layout.h"
#include "shard/mesh.h"
#include "shard/policy.h"
#include "shard/unsharded.h"
#include "tensor/side_work.h"

namespace trainyard::shard {

/// The parameters of one fully_shard call: gathered together, reduced together.
///
/// Holds this rank's shard for good, and the unsharded parameters and gradients between unshard and reshard. Shards are
/// float32, but those of a base, which never change (Parameter::is_base()), in Policy::base_dtype or NF4.
/// A gather is one message for all parameters of one form: a base has one of its own where it differs from the rest,
/// and so have the weights of layers in 8 bits with Policy::float8_all_gather.
/// Frozen parameters are gathered as the others are, and have no gradient and no part in the reduction.
/// The one place that says where shards live: parameters and gradients are allocated here, moments like them.
class Group {
 public:
  /// `policy.precision` is the group's.
  Group(std::string label, std::span<autograd::Parameter* const> parameters, const Mesh& mesh, const Policy& policy);
  Group(const Group&) = delete;  // its parameters refer to it
  Group& operator=(const Group&) = delete;

  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const MixedPrecision& precision() const { return precision_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// How the gradients of the parameters that are not frozen lie.
  [[nodiscard]] const Layout& gradient_layout() const { return gradient_layout_; }
  /// False where every parameter is frozen: there is nothing to reduce.
  [[nodiscard]] bool trains() const { return !gradient_layout_.pieces.empty(); }
  /// This rank's rows of each parameter, in the order of layout().
  [[nodiscard]] std::vector<Tensor> shard_rows() const;
  /// The reduced gradient [gradient_layout().shard_elements]. Valid from the first finished reduction to
  /// release_gradient().
  [[nodiscard]] Tensor& shard_gradient() { return shard_gradient_; }
  [[nodiscard]] bool has_gradient() const { return has_gradient_; }

  /// How many weights are gathered in 8 bits.
  [[nodiscard]] int64_t scales() const;
  /// Where their scales are, each [scales()]; written before begin_unshard() wherever the shard has changed.
  void use_scales(const ops::Float8Scale& scales);
  /// The largest |element| of this rank's rows of each (shard/unsharded.h).
  void absmax(Tensor& most) const;

  /// Starts gathering, if not begun. The shard must not change before finish_unshard().
  void begin_unshard();
  /// Waits for the gather; the parameters' values are valid afterwards.
  void finish_unshard();
  /// Gives the unsharded parameters back, and with them the shard that reshard_to_post_forward() kept.
  void reshard();
  /// Gives them back but for this rank's shard among the ranks of Mesh::post_forward(): the next gather is theirs
  /// alone.
  void reshard_to_post_forward();
  [[nodiscard]] bool is_sharded() const { return state_ == State::Sharded; }
  /// It is so from finish_unshard() to reshard(): its parameters are those that were gathered.
  [[nodiscard]] bool is_unsharded() const { return state_ == State::Unsharded; }

  /// Sums what ranks of the tensor dimension have of gradients that are parts of a sum over them (autograd::Part). A
  /// KV head that several ranks need is on each of them. Before begin_reduction(); waits.
  void sum_over_tensor();
  [[nodiscard]] size_t tensor_sum_bytes() const;  ///< of its message; 0: none

  /// Starts the reduction of the gradients gathered so far and gives the unsharded ones back.
  void begin_reduction();
  /// Takes the reduction a stage on: scattered, then summed over replicas, then added to shard_gradient(). Waits for
  /// the stage under way. True when that was the last. An offloaded one has_arriving() then.
  bool advance_reduction();
  /// Somebody else has filled shard_gradient().
  void accept_gradient();
  /// Whether an offloaded gradient is on its way to the host. end_sending() puts what the device is given from now on
  /// behind that, so that its memory there can serve others; when the device has come past, take_arrived() makes it
  /// part of shard_gradient().
  [[nodiscard]] bool has_arriving() const { return arriving_.defined(); }
  void end_sending();
  void take_arrived();
  /// No gradient any more: the next reduction begins a new sum.
  void release_gradient();

  /// Bytes that unsharded parameters and gather buffers hold now.
  [[nodiscard]] size_t gathered_bytes() const;

  // Bytes of the messages, the whole side; 0 where none is sent.
  [[nodiscard]] size_t gather_bytes() const;    ///< of a gather from all shards
  [[nodiscard]] size_t post_forward_gather_bytes() const;  ///< of one after reshard_to_post_forward()
  [[nodiscard]] size_t next_gather_bytes() const;
  /// The messages that a gather takes.
  [[nodiscard]] int64_t gather_messages() const { return std::ssize(unsharded_); }
  [[nodiscard]] size_t scatter_bytes() const;
  [[nodiscard]] size_t sum_bytes() const;  ///< over replicas
  /// The messages that a sum over replicas takes.
  [[nodiscard]] int64_t sum_messages() const;

 private:
  enum class State { Sharded, Gathering, Unsharded };
  enum class Reduction { None, Scattering, Summing };

  [[nodiscard]] bool has_tensor_sum() const;
  [[nodiscard]] std::vector<Unsharded> all_messages(const Mesh& mesh, const Policy& policy) const;
  [[nodiscard]] ops::Nf4Scales empty_scales(const Piece& piece) const;
  void place_parameters();
  void scatter_in_place();
  void release_whole_gradient();
  [[nodiscard]] size_t sum_over_messages(size_t (Unsharded::*bytes)() const) const;
  void prepare_gradient();
  void begin_all_reduce();
  [[nodiscard]] int64_t elements_a_message() const;
  void accumulate(const Tensor& reduced);
  void send_to_host(const Tensor& reduced);
  void add(const Tensor& reduced);

  std::string label_;
  comm::Communicator& sharders_;
  comm::Communicator& replicas_;
  comm::Communicator& tensor_;
  Layout layout_, gradient_layout_;
  MixedPrecision precision_;
  int64_t bucket_bytes_;
  Device device_;
  bool offloads_;           // the shard and its gradient are on the host, and everything else is not
  bool gradient_in_place_;  // unsharded gradients are the reduced ones
  bool coalesces_;          // each gradient is scattered from where it lies, without a buffer in between

  std::vector<Unsharded> unsharded_;  // one for each form; one in 8 bits is the last
  Tensor shard_gradient_;
  Tensor unsharded_gradient_;  // flat, [unsharded_elements]; the parameters' gradients are views of it
  bool has_gradient_ = false, whole_gradient_ready_ = false;

  State state_ = State::Sharded;
  Reduction reduction_ = Reduction::None;
  Tensor reduce_input_, reduced_, arriving_;
  SideWork sending_;
  std::vector<comm::Work> reducing_;
};

}  // namespace trainyard::shard
