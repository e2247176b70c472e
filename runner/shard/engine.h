#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "ops/norm.h"
#include "shard/group.h"
#include "shard/parameter_shard.h"

namespace trainyard::shard {

/// One thing that the engine did, for traces and tests.
struct Event {
  /// Reduce: over shards; Sum: over replicas; TensorSum: over the tensor dimension; Scale: the scales of all groups'
  /// weights in 8 bits
  enum class Kind { Gather, Use, Reshard, Reduce, Sum, TensorSum, Scale } kind;
  std::string group;
  size_t gathered_bytes;  ///< of all groups, afterwards
  size_t message_bytes;   ///< of what was sent, the whole side; 0: nothing
};

/// Fully sharded data parallelism (Zhao et al. 2023; Rajbhandari et al. 2020) around a model that knows nothing of it.
///
///   Engine engine(mesh, policy);
///   for (nn::Module* block : model.blocks()) engine.fully_shard(*block);
///   engine.fully_shard(model);
///   engine.fill(…);                     // load or initialise: each rank its rows only
///   per step: engine.begin_step();
///   per micro-batch: engine.begin_micro_batch(last); model.loss(…, &tape); tape.backward();
///   engine.finish_backward(); …step on shards()…; engine.release_gradients();
///
/// Groups gather before their module's forward and backward and are given back after; those next in order are gathered
/// behind the compute of this one, on the communicator's thread; a group's gradients are reduced behind the backward of
/// the one before it, at most one scatter in flight. The order is what the first forward did.
/// The mesh, the modules and the engine must outlive each other's use; one thread runs all of it.
class Engine {
 public:
  Engine(const Mesh& mesh, const Policy& policy);
  ~Engine();

  /// Makes a group of the parameters below `module` that are in none yet. Innermost first, the whole model last.
  void fully_shard(nn::Module& module, const GroupPolicy& own = {});
  /// One group of several modules, in the order of their forward, none inside another: gathered before the first and
  /// given back after the last.
  void fully_shard(std::span<nn::Module* const> modules, const GroupPolicy& own = {});

  /// The group that fully_shard made of `module` and what is below it; null where it made none.
  [[nodiscard]] Group* group_of(const nn::Module& module) const;

  /// FSDP2's unshard() and reshard(), by hand. Collective. begin_unshard() lets the gather run behind what comes next;
  /// after unshard() the values are there. They stay until reshard(), the group's own use, or the end of a backward.
  void begin_unshard(Group& group) { gather(group); }
  void unshard(Group& group);
  void reshard(Group& group);

  /// FSDP2's set_modules_to_forward_prefetch() and …_backward_prefetch(): where `group` is used, these are asked for in
  /// this order, in place of those that Prefetch says.
  void set_forward_prefetch(const Group& group, std::vector<Group*> ahead) { forward_ahead_[&group] = std::move(ahead); }
  void set_backward_prefetch(const Group& group, std::vector<Group*> ahead) {
    backward_ahead_[&group] = std::move(ahead);
  }

  /// Gives every rank's rows their values: `source` writes rows of a whole parameter into `out` (float32, row by row).
  /// Collective where a base is in NF4, of which ranks exchange the scales.
  using Source = std::function<void(const autograd::Parameter& parameter, Rows rows, std::span<float> out)>;
  void fill(const Source& source);
  /// The same with the values of rank 0, the only one to ask `source`: it broadcasts whole parameters a block of rows
  /// at a time, of which each rank keeps its own. Collective.
  void fill_from_rank_0(const Source& source);

  /// It is called before a step's data is loaded: with Prefetch::early its first gathers begin.
  void begin_step();
  /// `last`: the gradients of the step are complete after this one, so reduce them.
  void begin_micro_batch(bool last);
  /// Waits for the reductions under way. Afterwards gradients are valid, of all micro-batches since
  /// release_gradients().
  void finish_backward();
  /// The state becomes that after a step's finish_backward(), where a graph of that step (tensor/stream_graph.h) has
  /// filled the gradients.
  void accept_gradients();
  /// Gives the gradients back; the optimizer may have changed the weights.
  void release_gradients();

  [[nodiscard]] const std::vector<ParameterShard>& shards() const { return shards_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Group>>& groups() const { return groups_; }
  /// The group of the whole model, which takes what is left; null where nothing was.
  [[nodiscard]] const Group* root() const { return root_; }
  /// Σ gradient² over this rank's rows that count: of each of shards() that is not frozen, and of all; that summed over
  /// the shard and the tensor dimension is the square of the global norm. Where the gradients lie; nothing is waited
  /// for.
  [[nodiscard]] ops::SquareSums gradient_squares() const;

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }

  void on_event(std::function<void(const Event&)> observer) { observer_ = std::move(observer); }

 private:
  class Hooks;
  struct Place;

  void before_forward(Group& group);
  void after_forward(Group& group, Reshard reshard, bool will_go_back);
  void before_backward(Group& group);
  void after_backward(Group& group);
  void use(Group& group);
  using Ahead = std::map<const Group*, std::vector<Group*>>;
  void prefetch_forward(Group& group);
  void prefetch_backward(Group& group);
  void prefetch_after(Group& group, const std::vector<Group*>& order, int count);
  void gather(Group& group);
  void update_scales();
  void finish_gather(Group& group);
  void reduce(Group& group);
  void sum_over_tensor(Group& group);
  void await_offloaded_gradients();
  void advance_reductions();
  void tell(Event::Kind kind, const Group& group, size_t message_bytes = 0) const;

  const Mesh& mesh_;
  Policy policy_;
  std::vector<std::unique_ptr<Group>> groups_;
  Group* root_ = nullptr;
  std::vector<ParameterShard> shards_;
  std::vector<Group*> forward_order_, backward_order_;  // as the first forward began and ended them
  Ahead forward_ahead_, backward_ahead_;                // of the groups that were given theirs by hand
  std::map<const nn::Module*, Group*> group_of_;
  std::vector<Group*> gathers_;                         // under way, oldest first
  std::vector<Group*> reductions_;                      // under way, oldest first
  ops::Float8Scale scales_;                             // of all weights that are gathered in 8 bits
  bool scales_are_current_ = false;                     // the weights are as they were when these were made
  Group* latest_ = nullptr;                             // whose backward began last
  bool reduces_ = true, goes_back_ = false;
  std::function<void(const Event&)> observer_;
};

}  // namespace trainyard::shard
