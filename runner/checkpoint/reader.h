#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/agreement.h"
#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"
#include "checkpoint/snapshot.h"
#include "tensor/chunk.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

/// A complete checkpoint, open for reading, whatever world size wrote it. Only the rows that are asked for are read.
/// One thread.
class Checkpoint {
 public:
  /// `folder` is one checkpoint (".../step-50"). Throws InputError where its manifest is absent or damaged.
  explicit Checkpoint(std::filesystem::path folder);
  /// One whose manifest somebody else has read: the folder may be out of reach until rows are asked for.
  Checkpoint(std::filesystem::path folder, Manifest manifest);

  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] int64_t step() const { return manifest_.step; }
  [[nodiscard]] const nlohmann::json& state() const { return manifest_.state; }
  /// What this rank had saved; null where the world had another size, or this rank's host is another one now.
  [[nodiscard]] const nlohmann::json* rank_state(int rank, int world) const;

  [[nodiscard]] bool has(const std::string& name) const { return index_.contains(name); }
  /// Throws InputError where there is no such tensor.
  [[nodiscard]] const StoredTensor& tensor(const std::string& name) const;

  /// Rows [begin, begin + count) of a model or optimizer tensor, in its stored dtype. Throws InputError naming the rows
  /// that are not here, or the file that is damaged.
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const;
  /// This reads only the given columns (dim 1) of the given rows.
  [[nodiscard]] Tensor read_block(const std::string& name, Rows rows, Rows columns) const;
  /// Fills `shard.local` with its rows, and of these its columns. Throws InputError, naming both, where global shape or
  /// dtype differ.
  void read_into(Shard& shard) const;

  /// From here on read_into() is collective: one rank reads all rows, some 64 MiB at once, for everybody. `share` gives
  /// the reader's values of a tensor, on the host, to all.
  void read_for_all(bool is_reader, std::function<void(Tensor& rows)> share);

 private:
  [[nodiscard]] const SafetensorsFile& file(size_t index) const;

  [[nodiscard]] Tensor shared_rows(const StoredTensor& stored, int64_t begin, int64_t count) const;

  std::filesystem::path folder_;
  Manifest manifest_;
  std::map<std::string, size_t> index_;
  bool is_reader_ = true;
  std::function<void(Tensor& rows)> share_;  ///< null: each rank reads for itself
  mutable std::vector<std::unique_ptr<SafetensorsFile>> open_;  ///< by file, opened when first needed
};

/// What is wrong with the files of `checkpoint` whose index is `part` modulo `parts`; none: sizes and checksums are
/// right.
std::optional<std::string> find_damage(const Checkpoint& checkpoint, int part = 0, int parts = 1);

/// The checkpoint of this naming that a resuming run continues: what its pointer names, or the nearest before it that is intact. A
/// damaged one is named in a warning with what is wrong. None: `folder` holds no checkpoint, a fresh start. Collective:
/// every rank gets the same one and verifies its share of the files. `Agreement()` for a world of one. Throws
/// InputError where there are checkpoints and none is intact: starting afresh would bury that.
std::optional<Checkpoint> find_latest(const std::filesystem::path& folder, Agreement& ranks,
                                      const Naming& naming = {});

/// The same among what `job` (a digest, not empty) saved itself. None: it has saved nothing there yet.
std::optional<Checkpoint> find_latest_of(const std::string& job, const std::filesystem::path& folder, Agreement& ranks,
                                         const Naming& naming = {});

/// The checkpoint at `path`: a checkpoint itself, or a folder of them (then as find_latest). Collective and verified.
/// Throws InputError where there is none or it is damaged.
Checkpoint open_checkpoint(const std::filesystem::path& path, Agreement& ranks);

/// "Loaded checkpoint from step 50 …": for rank 0, once everything has been read.
void log_loaded(const Checkpoint& checkpoint, double seconds);

}  // namespace trainyard::checkpoint
