#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace trainyard::checkpoint {

constexpr std::string_view kManifestName = "checkpoint.json";

enum class Kind { Model, Optimizer };

/// A file of the checkpoint's folder.
struct StoredFile {
  std::string name;
  uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const StoredFile&) const = default;
};

/// Rows [row_offset, row_offset + rows) of a tensor, under its name in files[file]; of these all columns (dim 1), or
/// those from column_offset on.
struct StoredRows {
  size_t file = 0;
  int64_t row_offset = 0;
  int64_t rows = 0;
  int64_t column_offset = 0;
  int64_t columns = kAllColumns;

  static constexpr int64_t kAllColumns = -1;
};

struct StoredTensor {
  std::string name;
  Kind kind = Kind::Model;
  DType dtype = DType::Float32;
  Shape shape;                     ///< of the whole
  std::vector<StoredRows> shards;  ///< by row_offset, then column_offset
};

/// checkpoint.json: what a checkpoint consists of. Written by the leader of a folder once all its ranks have written,
/// so that a folder with an intact manifest and intact files is complete (docs/checkpoints.md).
struct Manifest {
  int64_t step = 0;
  int64_t generation = 0;
  std::string job;  ///< a digest that tells jobs apart; "" where it has none
  int world = 1;
  std::vector<int> members;  ///< ranks whose rows are here: all, or those of one host where folders are not shared
  std::string saved_at;      ///< UTC, "2026-01-31T12:00:00Z"
  std::vector<StoredFile> files;
  std::vector<StoredTensor> tensors;  ///< model first, in the model's order
  nlohmann::json state;
  std::vector<nlohmann::json> rank_states;  ///< by position in members

  [[nodiscard]] bool is_shared() const { return static_cast<int>(members.size()) == world; }
  [[nodiscard]] uint64_t bytes() const;  ///< of all files
};

/// The file's text, with a checksum over itself.
std::string format_manifest(const Manifest& manifest);

/// A checkpoint of a version that this program is too old for: it is not damaged, and none before it stands in for it.
class NewerVersionError : public InputError {
  using InputError::InputError;
};

/// Throws InputError, beginning with `where`, for anything that format_manifest cannot have written whole;
/// NewerVersionError for what a later one has.
Manifest parse_manifest(const std::string& text, const std::string& where);

/// Reads `folder`/checkpoint.json.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace trainyard::checkpoint
