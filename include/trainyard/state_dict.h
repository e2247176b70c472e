#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/export.h"
#include "trainyard/model.h"
#include "trainyard/optim.h"
#include "trainyard/process_group.h"

namespace trainyard::fsdp {

struct FullTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using StateDict = std::map<std::string, FullTensor>;

/// Gives what PyTorch's gives with full_state_dict and cpu_offload: whole tensors on rank 0, which are gathered one at
/// a time, and nothing on the others. Collective.
[[nodiscard]] TRAINYARD_EXPORT StateDict get_model_state_dict(const Model& model);
/// Does what PyTorch's does with full_state_dict and broadcast_from_rank0: only rank 0's is looked at. Collective.
/// Throws on every rank alike where a tensor is missing or its shape is another one.
TRAINYARD_EXPORT void set_model_state_dict(const Model& model, const StateDict& state_dict);

/// The file that torch.save would write; torch.load(path, weights_only=True) reads it.
TRAINYARD_EXPORT void save_state_dict(const StateDict& state_dict, const std::string& path);
/// Reads a .pt or .safetensors file, or a Hugging Face folder. Nothing in it is run.
[[nodiscard]] TRAINYARD_EXPORT StateDict load_state_dict(const std::string& path);
/// The same into the model, without a whole copy anywhere: each rank reads its own rows. Collective.
TRAINYARD_EXPORT void load_weights(const Model& model, const std::string& path);

/// A sharded checkpoint of model and optimizer as <folder>/step-N, N the optimizer's steps: each rank writes its rows, and
/// it is complete or absent. The newest two stay. `trainyard checkpoint` lists, verifies and exports it. Collective; throws
/// std::runtime_error on every rank where it could not be saved.
TRAINYARD_EXPORT void save_checkpoint(const std::string& folder, const Model& model, const AdamW& optimizer);
/// Puts the newest complete one back, whatever number of ranks saved it, and gives its step. None: there is none.
/// Collective.
TRAINYARD_EXPORT std::optional<std::int64_t> load_checkpoint(const std::string& folder, const Model& model,
                                                             const AdamW& optimizer);

}  // namespace trainyard::fsdp
