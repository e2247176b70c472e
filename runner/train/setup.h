#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "config/config.h"
#include "config/load.h"
#include "data/loader.h"
#include "models/config.h"
#include "optim/loss_scaler.h"
#include "shard/policy.h"
#include "tokenizer/tokenizer.h"
#include "train/pace.h"
#include "train/sharded_model.h"

// From the words of a configuration to the parts of a run.
namespace trainyard::train {

DType dtype_of(config::Precision precision);

/// The model that model.preset, model.config or model.init_from names.
models::ModelConfig model_config_of(const config::Model& model);

/// The model of a checkpoint. Throws InputError where it records none.
models::ModelConfig model_config_of(const checkpoint::Checkpoint& checkpoint);

/// For a rank that computes on `device`.
shard::Policy policy_of(const config::Config& config, Device device);

/// What a rank that computes on `device` has in host memory beside it: nothing of a CPU's.
std::vector<MemoryKind> kinds_on_host(const config::Config& config, Device device);

/// As training.loss_scale says; auto: dynamic where a group of `engine` uses float16.
optim::LossScaling loss_scaling_of(const config::Training& training, const shard::Engine& engine);

/// Everything that shard_model asks, for a mesh of mesh_of().
Sharding sharding_of(const config::Config& config, MeshSize mesh, Device device);

/// Whose initial weights count, as parallel.sync_module_states and cpu_ram_efficient_loading say.
FilledBy filled_by(const config::Config& config);

/// Says of each block whether and how much of it is computed again in backward.
void set_recompute(models::Model& model, const config::ActivationCheckpointing& settings);

/// CPU threads for each rank of a host: what device.threads says, else the cores dealt out.
int threads_of(const config::DeviceSection& device, int local_world);

/// The tokenizer of data.tokenizer; null where the data is pre-tokenised and none is named.
std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Data& data);

/// Files that belong to the tokenizer, for exports; none for byte-level.
std::vector<std::string> tokenizer_files_of(const config::Data& data);

/// Refuses a data.path, validation.path or sample.path that is not there, by the name under which it was given.
void require_text_files(const config::Loaded& loaded);

/// This rank's loader. Throws InputError where the data and the model do not fit each other.
std::unique_ptr<data::Loader> loader_of(const config::Config& config, const tokenizer::Tokenizer* tokenizer,
                                        const models::ModelConfig& model, int rank, int world);

/// This rank's loader of the held-out data: one pass in the order of the data. Null where none is given.
std::unique_ptr<data::Loader> validation_loader_of(const config::Config& config, const tokenizer::Tokenizer* tokenizer,
                                                   const models::ModelConfig& model, int rank, int world);

/// make(), read ahead by data.num_workers threads.
std::unique_ptr<data::Loader> by_workers(const config::Data& data,
                                         const std::function<std::unique_ptr<data::Loader>()>& make);

/// training.steps, or what the epochs come to. Throws InputError where the data ends before.
int64_t total_steps_of(const config::Training& training, const data::Loader& loader, const Pace& pace);

}  // namespace trainyard::train
