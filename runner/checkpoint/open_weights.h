#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/reader.h"
#include "checkpoint/weights.h"

namespace trainyard::checkpoint {

/// Opens the weights at `path`, by what is there:
///   a folder with model.safetensors or model.safetensors.index.json   as Hugging Face writes them (hugging_face.h)
///   a folder with checkpoint.json, or of such folders                 a checkpoint of ours
///   a folder with shard-*.safetensors                                 PyTorch's distributed checkpoint (dcp.h)
///   a folder with .metadata and .distcp files                         the same as torch.distributed.checkpoint.save()
///   wrote it
///                                                                     (distcp.h)
///   a folder with consolidated.00.pth and params.json                 Llama as Meta publishes it (meta_llama.h)
///   a folder with pytorch_model.bin.index.json                        torch.save, read without running it
///   (torch_file.h) a folder with a single .pt, .pth or .bin file, or such a file     the same a .safetensors file that
///   one
/// Throws InputError, saying what was looked for, where it is none of these, damaged, or a checkpoint of adapters
/// alone.
std::unique_ptr<Weights> open_weights(const std::filesystem::path& path);

/// The same, but null for a folder that holds none of these, as where only other ranks have the weights.
std::unique_ptr<Weights> find_weights(const std::filesystem::path& path);

/// The member of a checkpoint's state that holds the adapter_config.json of a run that trained adapters (LoRA). The
/// checkpoint then holds these alone.
inline constexpr const char* kAdapter = "adapter";

/// Throws InputError, with the command that makes a whole model, for a checkpoint of adapters alone.
void require_whole_model(const Checkpoint& checkpoint);

/// Adapters as they lie somewhere.
struct StoredAdapter {
  std::filesystem::path path;  ///< for messages: of adapter_config.json or the checkpoint
  nlohmann::json config;       ///< adapter_config.json, an object
  std::unique_ptr<Weights> tensors;
};

/// Those of a checkpoint, or of a folder as PEFT writes it (adapter_config.json, adapter_model.safetensors or .bin).
/// Throws InputError where there are none.
StoredAdapter open_adapter(const std::filesystem::path& path);

/// Where the config.json of the weights at `path` lies, which need not be there themselves: other ranks may read them.
/// For Meta's files without one it is their params.json.
std::filesystem::path config_path_of(const std::filesystem::path& path);

/// config.json of the weights at `path`: beside them, made from Meta's params.json, or what a
/// checkpoint of ours recorded; "" where there is none.
std::string config_json_of(const std::filesystem::path& path);

}  // namespace trainyard::checkpoint
