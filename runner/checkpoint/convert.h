#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/hugging_face_files.h"
#include "checkpoint/reader.h"
#include "checkpoint/weights.h"

// Weights on the disk go from one form to another, a piece of one tensor in memory at a time. What is written appears
// complete or not at all. What is no floating point (masks, counters) is no weight and is left out. All throw
// InputError: the output holds files or cannot be written, or the source lacks something.
namespace trainyard::checkpoint {

struct ExportOptions {
  std::filesystem::path output;                    ///< made; an existing one must be empty
  std::optional<DType> dtype = {};                 ///< Float32, BFloat16 or Float16; none: each tensor as it is stored
  uint64_t max_shard_bytes = kMaxWeightFileBytes;  ///< of one file, unless a single tensor is larger
};

struct Exported {
  size_t tensors = 0;
  size_t files = 0;    ///< of weights
  uint64_t bytes = 0;  ///< of weights
};

/// What belongs beside weights.
struct ModelFiles {
  std::string config_json;                   ///< its text
  std::vector<std::filesystem::path> files;  ///< copied: files_beside()
};

/// Writes a Hugging Face folder: config.json, the files beside it, and the weights in one file or several with an
/// index. A tied head is not stored, as transformers does it, where the source does not store it.
Exported write_hugging_face(const Weights& weights, const ModelFiles& beside, const ExportOptions& options);

/// The model of a checkpoint, with config.json as it records it and the files beside it; of one that holds adapters
/// alone, these as PEFT has them: adapter_config.json, adapter_model.safetensors and the files beside it.
Exported export_to_hugging_face(const Checkpoint& checkpoint, const ExportOptions& options);

/// Writes the weights as `world` ranks of torch.distributed.checkpoint.save() would (distcp_writer.h).
Exported write_distcp(const Weights& weights, const ModelFiles& beside, int world, const ExportOptions& options);

/// Writes the weights as `world` ranks of PyTorch's distributed checkpoint in safetensors would (dcp.h).
Exported write_dcp(const Weights& weights, const ModelFiles& beside, int world, const ExportOptions& options);

/// Writes pytorch_model.bin, as torch.save would (torch_writer.h), and beside it what a Hugging Face folder has.
Exported write_torch(const Weights& weights, const ModelFiles& beside, const ExportOptions& options);

/// What Meta's form needs beside the weights of a Llama.
struct MetaFiles {
  std::string params_json;  ///< its text
  int64_t head_dim = 0;
  std::vector<std::filesystem::path> files;  ///< copied
};

/// Writes consolidated.00.pth and params.json, as Meta publishes Llama (meta_llama.h). Throws InputError for a tensor
/// that this form has no name for. A head that is not stored is the embedding.
Exported write_meta(const Weights& weights, const MetaFiles& beside, const ExportOptions& options);

/// Writes `output`/step-N and its pointer: the checkpoint, optimizer included, as `world` ranks would have saved it.
/// Any world reads any checkpoint; this is for programs that do not.
Exported reshard(const Checkpoint& checkpoint, int world, const std::filesystem::path& output);

}  // namespace trainyard::checkpoint
