#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/agreement.h"
#include "checkpoint/disk.h"
#include "checkpoint/fence.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/full_writer.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/manifest.h"
#include "checkpoint/naming.h"
#include "checkpoint/snapshot.h"
#include "rendezvous/store.h"

namespace trainyard::checkpoint {

struct SaverOptions {
  std::filesystem::path folder;                                 ///< checkpoint.dir
  Naming naming = {};                                           ///< checkpoint.name
  int64_t keep = 2;                                             ///< the newest so many stay; 0 = all
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};  ///< for the slowest rank of a save
  int rank = 0;
  int world = 1;
  int64_t generation = 0;                            ///< TRAINYARD_GENERATION
  std::string job;                                   ///< a digest of the job's token; "" without one
  std::chrono::milliseconds sharing_patience{3000};  ///< for another host's file to appear (folder_group.h)
  uint64_t max_file_bytes = kMaxWeightFileBytes;     ///< of the full form
};

/// The whole of a tensor, on the host, from the rows that each rank holds. Collective.
using Gather = std::function<Tensor(const Shard& shard)>;

/// Writes checkpoints, each complete or absent.
///
/// Every rank writes its own rows into a temporary folder and tells only names, sizes and checksums through the store;
/// of rows that replicas of the model hold alike, each replica writes a part.
/// Once all have, the leader of the folder writes the manifest, renames the folder and points `latest` at it, in this
/// order, each step durable before the next. A crash between any two leaves the older checkpoints as they were.
/// A save that fails is no error of the run: every rank gets the same SaveResult, the temporary folder goes, and
/// training goes on. Collective: every rank makes one and calls save() for the same steps in the same order.
class Saver {
 public:
  /// Claims the folder, removes what crashed saves left, and finds out which ranks share it. `store` must outlive this.
  /// Throws InputError on every rank where the folder cannot be written, or a newer generation has claimed it.
  Saver(SaverOptions options, rendezvous::Store& store, std::shared_ptr<Disk> disk = real_disk());
  /// A folder that this run made and saved nothing in goes again: a start that failed leaves no trace.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Reads the tensors until it returns. Throws PeerError where the store or rank 0 is lost; whatever else goes wrong,
  /// on whichever rank, is the result's reason.
  SaveResult save(const Snapshot& snapshot);

  /// The same in the full form: a Hugging Face folder with the optimizer beside it (full_writer.h), written by the
  /// leader of each folder. The ranks gather one tensor after the other and nobody holds more than that one; before
  /// each they meet in the store, with the save's time-out, so that a slow disk never looks like a lost rank to
  /// `gather`.
  SaveResult save_full(const Snapshot& snapshot, const Gather& gather);

  /// What save() would write of `snapshot` on this rank; `local` is undefined where another rank writes the rows.
  [[nodiscard]] Snapshot own_part(const Snapshot& snapshot) const;

  /// From any thread: a save under way ends soon, and every later one, with PeerError. For when a rank is known to be
  /// lost, so that nobody waits for what it has not written.
  void give_up() { ranks_.give_up(); }

  [[nodiscard]] const SaverOptions& options() const { return options_; }

 private:
  struct Paths {
    std::filesystem::path temporary, final, pointer;
  };
  [[nodiscard]] bool leads() const { return group_.leader() == options_.rank; }
  void claim_folder();
  void remove_leftovers();
  [[nodiscard]] Paths paths_of(int64_t step);
  using Write = std::function<nlohmann::json(const Paths& paths, const Agreement::Decide& all_or_cleared)>;
  SaveResult save_by(const Snapshot& snapshot, const Write& write);
  [[nodiscard]] nlohmann::json write_own(const Snapshot& snapshot, const Paths& paths);
  [[nodiscard]] nlohmann::json write_full(const Snapshot& snapshot, const Gather& gather, const Paths& paths,
                                          const Agreement::Decide& all_or_cleared);
  [[nodiscard]] nlohmann::json commit_if_leading(const Snapshot& snapshot, const Paths& paths);
  [[nodiscard]] Manifest collect(const Snapshot& snapshot, const Paths& paths);
  void put_in_place(const Manifest& manifest, const Paths& paths);
  void retain(int64_t newest);

  SaverOptions options_;
  bool found_folder_;  ///< it was there before this run
  std::shared_ptr<Disk> disk_;
  Agreement ranks_;
  FolderGroup group_;
  Fence fence_;
  Owner owner_;
  std::string life_;  ///< rank 0's: the same on every rank
  int64_t saves_ = 0;
};

/// "Saved checkpoint …", or why not: for rank 0.
void log_result(const SaveResult& result);

}  // namespace trainyard::checkpoint
