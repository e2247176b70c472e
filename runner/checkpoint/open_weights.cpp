#include "checkpoint/open_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/dcp.h"
#include "checkpoint/distcp.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/meta_llama.h"
#include "checkpoint/reader.h"
#include "checkpoint/torch_file.h"
#include "tensor/convert.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

/// The model of a checkpoint of ours.
class CheckpointWeights final : public Weights {
 public:
  explicit CheckpointWeights(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}

  bool has(const std::string& name) const override {
    return checkpoint_.has(name) && checkpoint_.tensor(name).kind == Kind::Model;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const StoredTensor& tensor : checkpoint_.manifest().tensors)
      if (tensor.kind == Kind::Model) names.push_back(tensor.name);
    return names;
  }
  Shape shape(const std::string& name) const override { return checkpoint_.tensor(name).shape; }
  std::string stored_dtype(const std::string& name) const override {
    return std::string(safetensors_name_of(checkpoint_.tensor(name).dtype));
  }
  fs::path path_of(const std::string&) const override { return checkpoint_.path(); }
  Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override {
    return converted(checkpoint_.read_rows(name, begin, count), DType::Float32);
  }
  std::optional<std::string> find_damage(int part, int parts) const override {
    return checkpoint::find_damage(checkpoint_, part, parts);
  }

 private:
  Checkpoint checkpoint_;
};

std::unique_ptr<Weights> open_model_of(const fs::path& folder) {
  Checkpoint checkpoint(folder);
  require_whole_model(checkpoint);
  return std::make_unique<CheckpointWeights>(std::move(checkpoint));
}

bool is_torch_name(const fs::path& path) {
  constexpr std::array<const char*, 3> kEndings{".pt", ".pth", ".bin"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

/// The files of a folder for which `is_wanted`, by name.
template <typename Wanted>
std::vector<fs::path> files_in(const fs::path& folder, Wanted is_wanted) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_wanted(entry.path())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

bool holds_checkpoint(const fs::path& folder) {
  return fs::exists(folder / kManifestName) || !namings_in(folder).empty();
}

/// Null where it holds none.
std::unique_ptr<Weights> open_folder(const fs::path& folder) {
  if (fs::exists(folder / kManifestName)) return open_model_of(folder);
  if (fs::exists(folder / "model.safetensors") || fs::exists(folder / "model.safetensors.index.json"))
    return std::make_unique<HuggingFaceWeights>(folder);
  if (holds_checkpoint(folder)) return open_model_of(locate(folder));
  const auto is_shard = [](const fs::path& path) {
    return path.filename().string().starts_with("shard-") && path.extension() == ".safetensors";
  };
  if (!files_in(folder, is_shard).empty()) return std::make_unique<DcpWeights>(folder);
  if (fs::exists(folder / ".metadata")) return std::make_unique<DistcpWeights>(folder);
  if (fs::exists(folder / "pytorch_model.bin.index.json"))
    return std::make_unique<TorchWeights>(indexed_files(folder / "pytorch_model.bin.index.json"));
  if (is_meta_llama(folder)) return std::make_unique<MetaLlamaWeights>(folder);
  if (const auto torch = files_in(folder, is_torch_name); torch.size() == 1)
    return std::make_unique<TorchWeights>(torch);
  return nullptr;
}

/// Meta's params.json tells what the model is, where no config.json does.
bool has_only_params(const fs::path& folder) {
  return fs::is_directory(folder) && !fs::exists(folder / "config.json") && is_meta_llama(folder);
}

[[noreturn]] void refuse_without_weights(const fs::path& folder) {
  throw InputError(
      fmt::format("{}: no weights that are read here: neither model.safetensors nor its index, a checkpoint, "
                  "shard-*.safetensors, .metadata with .distcp files, consolidated.*.pth with params.json, nor {}",
                  folder.string(),
                  files_in(folder, is_torch_name).empty() ? "a .pt, .pth or .bin file"
                                                          : "a single .pt, .pth or .bin file; name the one you mean"));
}

std::unique_ptr<Weights> open_existing(const fs::path& path) {
  if (fs::is_directory(path)) return open_folder(path);
  if (!fs::exists(path)) throw InputError(fmt::format("{}: no such file or folder", path.string()));
  if (path.extension() == ".safetensors") return std::make_unique<HuggingFaceWeights>(path);
  if (is_torch_name(path)) return std::make_unique<TorchWeights>(std::vector{path});
  throw InputError(
      fmt::format("{}: weights are read from .safetensors, .pt, .pth and .bin files, and from folders", path.string()));
}

}  // namespace

std::unique_ptr<Weights> find_weights(const fs::path& given) {
  try {
    return open_existing(as_spelled(given));
  } catch (const fs::filesystem_error& error) {  // a folder that may not be looked into
    throw InputError(error.what());
  }
}

std::unique_ptr<Weights> open_weights(const fs::path& given) {
  auto weights = find_weights(given);
  if (!weights) refuse_without_weights(as_spelled(given));
  return weights;
}

void require_whole_model(const Checkpoint& checkpoint) {
  if (!checkpoint.state().contains(kAdapter)) return;
  throw InputError(
      fmt::format("{0}: holds adapters (LoRA) alone; make a whole model of them and their base: trainyard checkpoint "
                  "merge {0} --base WEIGHTS --output FOLDER",
                  checkpoint.path().string()));
}

StoredAdapter open_adapter(const fs::path& given) {
  const fs::path path = as_spelled(given), description = path / "adapter_config.json";
  if (fs::exists(description)) {
    const fs::path tensors = path / "adapter_model.safetensors", pickled = path / "adapter_model.bin";
    json config = json::parse(read_file(description, kMaxConfigBytes), nullptr, false);
    if (!config.is_object()) throw InputError(fmt::format("{}: is no JSON object", description.string()));
    if (fs::exists(tensors)) return {description, std::move(config), std::make_unique<HuggingFaceWeights>(tensors)};
    if (fs::exists(pickled))
      return {description, std::move(config), std::make_unique<TorchWeights>(std::vector{pickled})};
    throw InputError(fmt::format("{}: has neither {} nor {}", path.string(), tensors.filename().string(),
                                 pickled.filename().string()));
  }
  if (!fs::is_directory(path) || !holds_checkpoint(path))
    throw InputError(fmt::format("{}: neither a checkpoint nor a folder with adapter_config.json", path.string()));
  Checkpoint checkpoint(locate(path));
  const auto found = checkpoint.state().find(kAdapter);
  if (found == checkpoint.state().end())
    throw InputError(fmt::format("{}: holds a whole model, and no adapters (LoRA)", checkpoint.path().string()));
  json config = *found;
  return {checkpoint.path(), std::move(config), std::make_unique<CheckpointWeights>(std::move(checkpoint))};
}

fs::path config_path_of(const fs::path& given) {
  const fs::path path = as_spelled(given);
  const bool is_file = !fs::is_directory(path) && (is_torch_name(path) || path.extension() == ".safetensors");
  const fs::path folder = is_file ? path.parent_path() : path, config = folder / "config.json";
  return !is_file && has_only_params(folder) ? folder / "params.json" : config;
}

std::string config_json_of(const fs::path& given) {
  const fs::path path = as_spelled(given), beside = config_path_of(given);
  if (has_only_params(path)) return meta_config_json(path);
  if (fs::exists(beside)) return read_file(beside, kMaxConfigBytes);
  if (!fs::is_directory(path) || !holds_checkpoint(path)) return "";
  return Checkpoint(locate(path)).state().value("config_json", "");
}

}  // namespace trainyard::checkpoint
