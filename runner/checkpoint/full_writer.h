#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/checksum.h"
#include "checkpoint/disk.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/manifest.h"
#include "checkpoint/snapshot.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

/// Writes a checkpoint in the full form: a Hugging Face folder (config.json, the files beside it, model.safetensors or several
/// with an index), and the optimizer's tensors in the same way under "optimizer". Tensors come one at a time, whole, in
/// the order of the snapshot, and only the one that comes is held.
/// Throws std::filesystem::filesystem_error; InputError where the snapshot records no config.json.
class FullWriter {
 public:
  FullWriter(Disk& disk, std::filesystem::path folder, uint64_t max_file_bytes)
      : disk_(disk), folder_(std::move(folder)), max_file_bytes_(max_file_bytes) {}

  /// config.json and what stands beside the weights.
  void write_description(const Snapshot& snapshot);
  /// The tensors of `shards` follow, under "model" or "optimizer".
  void begin(Kind kind, std::span<const Shard> shards);
  void append(const Tensor& whole);
  /// All tensors of begin() have come.
  void end();

  [[nodiscard]] const std::vector<StoredFile>& files() const { return written_; }

 private:
  void open_next();
  void close_open();
  void write_text(const std::string& name, std::string_view content);

  Disk& disk_;
  std::filesystem::path folder_;
  uint64_t max_file_bytes_;
  std::vector<StoredFile> written_;
  std::string stem_;
  std::vector<std::string> names_;
  std::vector<SafetensorsWriter::Declared> declared_;
  std::vector<WeightFile> planned_;
  size_t next_file_ = 0, left_ = 0;  // tensors that the open file waits for
  std::optional<ChecksumSink::Seen> seen_;
  std::optional<SafetensorsWriter> open_;
};

}  // namespace trainyard::checkpoint
