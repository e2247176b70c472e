#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::checkpoint {

/// What the checkpoints of a run are called. Those of several names may lie in one folder, each with a pointer of its
/// own, and know nothing of each other:
///   ""              step-50, step-100          latest
///   "qwen3"         qwen3-50steps, …           qwen3-latest
///   "qwen3", One    qwen3, replaced each time  qwen3-latest
class Naming {
 public:
  enum class Folders { OfSteps, One };

  Naming() = default;
  /// Throws InputError, beginning with `subject`, for a name that no folder should have or that would be taken for
  /// another one.
  explicit Naming(std::string name, Folders folders = Folders::OfSteps, std::string_view subject = "checkpoint.name");

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string folder_of(int64_t step) const;
  [[nodiscard]] std::string pointer() const;
  /// What says who may write checkpoints of this name (fence.h).
  [[nodiscard]] std::string claim() const;
  /// Whether a checkpoint of this name may be called so.
  [[nodiscard]] bool has(std::string_view folder_name) const;
  /// The step of the checkpoint in `folder`, in either spelling of "step-50"; none where it is no checkpoint of this
  /// name. Of the one folder its manifest says it, 0 where that is damaged.
  [[nodiscard]] std::optional<int64_t> step_of(const std::filesystem::path& folder) const;
  /// Whether `name` (is_temporary) is left by an unfinished save under this name, or by nobody's.
  [[nodiscard]] bool may_remove(std::string_view name) const;
  bool operator==(const Naming&) const = default;

 private:
  std::string name_;
  Folders folders_ = Folders::OfSteps;
};

/// Those of the checkpoints in `folder`, by name.
std::vector<Naming> namings_in(const std::filesystem::path& folder);
/// The one to take where a folder is given and no name: without a name, else the only one. Throws InputError where there
/// are several. None there: Naming().
Naming naming_in(const std::filesystem::path& folder);

}  // namespace trainyard::checkpoint
