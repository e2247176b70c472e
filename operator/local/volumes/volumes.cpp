#include "local/volumes/volumes.h"

#include <fmt/format.h>

#include "local/manifest/refusal.h"
#include "local/volumes/volume_files.h"

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

fs::path host_path(const Json& source, const std::string& pod) {
  const fs::path path = text_at(source, "/path");
  const std::string type = text_at(source, "/type");
  if (!path.is_absolute()) throw Refusal(fmt::format("pod {}: hostPath '{}' must begin with '/'", pod, path.string()));
  std::error_code error;
  if (type == "DirectoryOrCreate") fs::create_directories(path, error);
  if (type == "FileOrCreate" && !fs::exists(path)) write_volume_file(path, "", 0644);
  if (error || !fs::exists(path))
    throw Refusal(
        fmt::format("pod {}: hostPath {} is not there{}", pod, path.string(),
                    error ? " and cannot be made: " + error.message() : "; make it, or say type: DirectoryOrCreate"));
  return path;
}

/// The folder of a claim: of the PersistentVolume in the input that it names, else one of the run's own that stays.
fs::path claim_folder(const std::string& name, const PodContext& context, const fs::path& run_folder) {
  const auto claim = context.input.claims.find(context.job.ns + "/" + name);
  const std::string wanted = claim == context.input.claims.end() ? "" : text_at(claim->second, "/spec/volumeName");
  if (const auto volume = context.input.volumes.find(wanted); volume != context.input.volumes.end())
    if (const Json* const source = object_at(volume->second, "/spec/hostPath"))
      return host_path(*source, context.name());
  const fs::path folder = run_folder / "volumes" / name;
  fs::create_directories(folder);
  return folder;
}

}  // namespace

Volumes::Volumes(const PodContext& context, const fs::path& run_folder) : pod_(context.name()) {
  const Json* const wanted = find(context.pod, "/spec/volumes");
  own_.push_back(run_folder / "pods" / pod_);
  fs::remove_all(own_.front());  // of a run that was killed
  fs::create_directories(own_.front());
  if (!wanted) return;
  for (const Json& volume : *wanted) volumes_[text_at(volume, "/name")] = make(volume, context, run_folder);
}

Volumes::~Volumes() {
  std::error_code ignored;  // at worst a folder stays that the next run removes
  for (const fs::path& folder : own_) fs::remove_all(folder, ignored);
}

Volumes::Volume Volumes::make(const Json& volume, const PodContext& context, const fs::path& run_folder) {
  const fs::path own = own_.front() / text_at(volume, "/name");
  if (volume.size() == 1) return make_empty({}, own);  // a name alone: so the API server takes it
  if (const Json* const source = find(volume, "/emptyDir")) return make_empty(*source, own);
  if (const Json* const source = find(volume, "/hostPath")) return {.path = host_path(*source, pod_)};
  if (const Json* const source = find(volume, "/persistentVolumeClaim"))
    return {.path = claim_folder(text_at(*source, "/claimName"), context, run_folder),
            .read_only = source->value("readOnly", false)};
  if (is_written_volume(volume)) {
    write_volume(volume, context, own);
    return {.path = own, .read_only = true};
  }
  std::string kind;
  for (const auto& [key, value] : volume.items())
    if (key != "name") kind = key;
  throw Refusal(
      fmt::format("pod {}: volume '{}' is a {}, which takes a cluster; here configMap, secret, emptyDir, hostPath, "
                  "persistentVolumeClaim, "
                  "projected and downwardAPI work: replace it by one of them",
                  pod_, text_at(volume, "/name"), kind));
}

Volumes::Volume Volumes::make_empty(const Json& source, const fs::path& own) {
  std::string memory = "/dev/shm/trainyard-XXXXXX";
  const bool is_memory = text_at(source, "/medium") == "Memory";
  if (is_memory && ::mkdtemp(memory.data())) {
    own_.push_back(memory);
    return {.path = memory, .is_memory = true};
  }
  fs::create_directories(own);
  return {.path = own, .is_memory = is_memory};
}

fs::path Volumes::source_of(const Json& mount, const Volume& volume, const Variables& variables) const {
  const std::string written = text_at(mount, "/subPathExpr");
  const fs::path below = written.empty() ? text_at(mount, "/subPath") : expand_all(written, variables);
  if (below.empty()) return volume.path;
  for (const fs::path& part : below)
    if (part == ".." || below.is_absolute())
      throw Refusal(fmt::format("pod {}: subPath '{}' must stay inside its volume", pod_, below.string()));
  const fs::path source = volume.path / below;
  if (!fs::exists(source) && volume.read_only)
    throw Refusal(
        fmt::format("pod {}: volume '{}' has no '{}' (subPath)", pod_, text_at(mount, "/name"), below.string()));
  return source;
}

std::vector<Mount> Volumes::mounts_of(const Json& container, const Variables& variables) const {
  std::vector<Mount> mounts;
  const Json* const wanted = find(container, "/volumeMounts");
  if (!wanted) return mounts;
  for (const Json& mount : *wanted) {
    const std::string name = text_at(mount, "/name"), at = text_at(mount, "/mountPath");
    const auto found = volumes_.find(name);
    if (found == volumes_.end())
      throw Refusal(fmt::format("pod {}: container {} mounts '{}', which is none of the pod's volumes", pod_,
                                text_at(container, "/name"), name));
    if (!at.starts_with('/') || at == "/")
      throw Refusal(fmt::format("pod {}: mountPath '{}' must be an absolute path below '/'", pod_, at));
    const Volume& volume = found->second;
    Mount made{at, source_of(mount, volume, variables), volume.read_only || mount.value("readOnly", false)};
    made.is_sub_path = !volume.read_only && made.source != volume.path;
    const auto place_of = [](const fs::path& path) { return (path / "").lexically_normal(); };  // "/a/" is "/a"
    made.is_in_place = !made.read_only && place_of(made.source) == place_of(at);
    if (!volume.is_memory || place_of(at) != "/dev/shm/") mounts.push_back(made);
  }
  return mounts;
}

void make_sub_paths(const std::vector<Mount>& mounts) {
  for (const Mount& mount : mounts) {
    std::error_code error;
    if (mount.is_sub_path && !fs::exists(mount.source, error)) fs::create_directories(mount.source, error);
    if (error) throw Refusal(fmt::format("its subPath {} cannot be made: {}", mount.source.string(), error.message()));
  }
}

}  // namespace trainyard::local
