#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/copied_files.h"
#include "tensor/chunk.h"
#include "tensor/tensor.h"

namespace trainyard::checkpoint {

/// A shard is the part of one tensor that one rank holds. It has the rows [row_offset, row_offset + local.size(0)) of
/// dim 0. Of these rows it has all columns (dim 1) or some of them.
/// Every rank names every tensor, in the same order, also where its part is empty (an undefined `local` is empty too).
struct Shard {
  std::string name;
  Shape global_shape;  ///< one dimension or more
  int64_t row_offset = 0;
  Tensor local;  ///< [rows, the rest of global_shape], or [rows, columns]
  int64_t column_offset = 0;
  Rows written =
      kAllRows;  ///< of the local rows, those that no other rank writes (own_part() of checkpoint/division.h)

  static constexpr Rows kAllRows{0, -1};
};

/// Everything that a resumed run needs. Names are unique over model and optimizer together.
/// Known members of `state` that the tools read: "tokens" (seen so far) and "config_json" (the text of the model's
/// Hugging Face config.json, which an export writes beside the weights).
struct Snapshot {
  int64_t step = 0;
  /// Ranks that hold the same rows as this one, itself among them: copies of a model. One of them writes each tensor
  /// (division.h). Empty: nobody else holds them.
  std::vector<int> holders = {};
  std::vector<Shard> model;                         ///< by Hugging Face name: "model.layers.0.self_attn.q_proj.weight"
  std::vector<Shard> optimizer;                     ///< "adam.m.<model name>", "adam.v.<model name>"
  nlohmann::json state = nlohmann::json::object();  ///< the same on every rank: schedule, loader, configuration
  nlohmann::json rank_state = nlohmann::json::object();  ///< this rank's own: random generators; a few KiB at most
  /// What the ranks that lead a folder write into the checkpoint beside the weights. Null: nothing.
  std::shared_ptr<const FilesBeside> files = {};
};

/// What became of a save: the same on every rank.
struct SaveResult {
  int64_t step = 0;
  bool saved = false;
  std::string reason;          ///< where not saved: which rank, which file, why
  std::filesystem::path path;  ///< where saved: the folder
  uint64_t bytes = 0;
  double seconds = 0;
};

}  // namespace trainyard::checkpoint
