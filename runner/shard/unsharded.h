#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/float8.h"
#include "shard/layout.h"
#include "shard/mesh.h"
#include "shard/policy.h"
#include "tensor/side_work.h"

namespace trainyard::shard {

/// In what a parameter is between steps, in the message of its gather, and where a module computes with it. In NF4 it
/// is all the way bytes, UInt8: packed rows, of which any part is a parameter's (ops/nf4.h).
struct Form {
  DType kept, sent, value;
  bool operator==(const Form&) const = default;
};

/// The parameters of a group that have one form, and so one message.
///
/// Where the shard dimension has one rank and nothing is cast, they are the shard itself: no copies.
/// In 8 bits what is sent is the shard in the policy's param_dtype, cast with the scale of each whole weight: the same
/// bits as of a cast after a gather.
class Unsharded {
 public:
  /// `shard`: this rank's padded chunks of `parameters` in form.kept, one after the other.
  Unsharded(std::span<autograd::Parameter* const> parameters, Tensor shard, const Form& form, const Mesh& mesh,
            const Policy& policy);

  /// This rank's rows of each parameter, in order: views of the shard.
  [[nodiscard]] std::vector<Tensor> shard_rows() const;

  /// Where each parameter is between finish() and release(), in order.
  [[nodiscard]] std::vector<Tensor> values() const;

  /// Starts gathering. The shard must not change before finish().
  void begin(const std::string& label);
  /// Waits for the gather; the values are valid afterwards.
  void finish();
  /// Gives the values back, and with them the shard that release_to_post_forward() kept.
  void release();
  /// Gives them back but for this rank's shard among the ranks of Mesh::post_forward(): the next gather is theirs alone.
  void release_to_post_forward();
  [[nodiscard]] bool has_post_forward_shard() const { return post_forward_shard_.defined(); }

  // Of weights in 8 bits alone.
  /// How many there are; 0 of any other dtype.
  [[nodiscard]] int64_t scales() const;
  /// Their scales, each [scales()], which whoever made them writes before begin().
  void use_scales(const ops::Float8Scale& scales);
  /// The largest |element| of this rank's rows of each, as it is in param_dtype: float32 [scales()], where the shard
  /// is.
  void absmax(Tensor& most) const;

  [[nodiscard]] size_t held_bytes() const;      ///< by values and buffers now
  [[nodiscard]] size_t gather_bytes() const;    ///< of the message of a gather from all shards, the whole side; 0: none
  [[nodiscard]] size_t post_forward_gather_bytes() const;  ///< of one after release_to_post_forward()

 private:
  [[nodiscard]] bool is_alone() const { return sharders_->world() == 1; }
  void take_buffers();
  void write_shard(Tensor& to) const;
  void write_float8(const Tensor& shard, const Tensor& to) const;
  void send(const std::string& label);

  comm::Communicator* sharders_;
  comm::Communicator* post_forward_mesh_;  // null: none
  Layout layout_, post_forward_layout_;
  Form form_;
  DType param_dtype_;
  Device device_;
  Tensor shard_;
  bool in_place_;   // they are the shard
  bool coalesces_;  // each goes to its place, without a buffer in between
  Tensor flat_buffer_;    // flat, [unsharded_elements]; the values are views of it
  // Kept while it is sent: freed before, its memory would be there again for what comes next when the device is past
  // it, and so elsewhere on each rank; registered buffers are to be the same on all (comm/cuda/nccl_memory.h).
  Tensor sent_;
  Tensor gathered_, post_forward_shard_;
  SideWork fetching_;  // of an offloaded shard
  ops::Float8Scale scales_;
  comm::Work gathering_;
};

}  // namespace trainyard::shard
