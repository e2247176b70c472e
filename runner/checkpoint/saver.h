#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/agreement.h"
#include "checkpoint/disk.h"
#include "checkpoint/fence.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/manifest.h"
#include "checkpoint/snapshot.h"
#include "rendezvous/store.h"

namespace trainyard::checkpoint {

struct SaverOptions {
  std::filesystem::path folder;                                 ///< checkpoint.dir
  int64_t keep = 2;                                             ///< the newest so many stay; 0 = all
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};  ///< for the slowest rank of a save
  int rank = 0;
  int world = 1;
  int64_t generation = 0;                            ///< TRAINYARD_GENERATION
  std::string job;                                   ///< a digest of the job's token; "" without one
  std::chrono::milliseconds sharing_patience{3000};  ///< for another host's file to appear (folder_group.h)
};

/// Writes checkpoints, each complete or absent.
///
/// Every rank writes its own rows into a temporary folder and tells only names, sizes and checksums through the store.
/// Once all have, the leader of the folder writes the manifest, renames the folder and points `latest` at it, in this
/// order, each step durable before the next. A crash between any two leaves the older checkpoints as they were.
/// A save that fails is no error of the run: every rank gets the same SaveResult, rank 0 logs it, the temporary folder
/// goes, and training goes on. Collective: every rank makes one and calls save() for the same steps in the same order.
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

 private:
  struct Paths {
    std::filesystem::path temporary, final, pointer;
  };
  [[nodiscard]] bool leads() const { return group_.leader() == options_.rank; }
  void claim_folder();
  void remove_leftovers();
  [[nodiscard]] Paths paths_of(int64_t step);
  [[nodiscard]] bool writes_for_holders(const Snapshot& snapshot) const;
  [[nodiscard]] nlohmann::json write_own(const Snapshot& snapshot, const Paths& paths);
  [[nodiscard]] nlohmann::json commit_if_leading(const Snapshot& snapshot, const Paths& paths);
  [[nodiscard]] Manifest collect(const Snapshot& snapshot, const Paths& paths);
  void put_in_place(const Manifest& manifest, const Paths& paths);
  void retain(int64_t newest);
  [[nodiscard]] SaveResult conclude(const nlohmann::json& outcome, const Paths& paths, int64_t step,
                                    double seconds) const;

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

}  // namespace trainyard::checkpoint
