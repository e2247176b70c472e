#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/sharded_model.h"
#include "checkpoint/saver.h"
#include "comm/communicator.h"
#include "optim/adamw.h"
#include "rendezvous/store.h"

#include <trainyard/trainyard.h>

// What stands behind the installed headers (include/trainyard): they name these types and show nothing of them.
namespace trainyard::fsdp {

struct ProcessGroupState {
  comm::Communicator& comm;
  rendezvous::Store& store;
  int local_world = 1;
  int64_t generation = 0;
  std::vector<std::shared_ptr<MeshState>> meshes = {};  ///< closed in good order before the world is
};

struct MeshState {
  ProcessGroupState& ranks;
  std::shared_ptr<shard::Mesh> mesh;
};

/// It has no mesh and no engine before the first fully_shard().
struct ModelState : train::ShardedModel {
  std::vector<nn::Module*> modules = {};  ///< the model, and all below it depth first
  std::vector<autograd::Parameter*> parameters = {};
  uint64_t seed = 0;
  std::string given_config_json = {};  ///< what its config.json was; "" of a preset
  std::shared_ptr<MeshState> layout = {};
  bool is_complete = false;  ///< the whole model was sharded: there are weights
  bool requires_sync = true;
  int64_t passes = 0, targets = 0;  ///< seen by loss(); targets of all ranks

  /// Throw std::logic_error where it is not so far.
  void require_complete(const char* who) const;
  [[nodiscard]] shard::Group& group_of(std::size_t module, const char* who) const;
  /// Null: not in a group yet.
  [[nodiscard]] const shard::ParameterShard* shard_of(const autograd::Parameter& parameter) const;
  [[nodiscard]] shard::Group* group_with(const autograd::Parameter& parameter) const;
  [[nodiscard]] size_t number_of(const nn::Module& module) const;
  /// What was gathered by hand is of the weights as they are now.
  void reshard_all() const;
};

struct OptimizerState {
  std::shared_ptr<ModelState> model;
  optim::AdamW adamw;
  double lr;
  std::unique_ptr<checkpoint::Saver> saver = {};  ///< of saver_folder: one claims its folder once
  std::filesystem::path saver_folder = {};
};

[[nodiscard]] ::trainyard::DType internal(DType dtype);
[[nodiscard]] DType external(::trainyard::DType dtype);

}  // namespace trainyard::fsdp
