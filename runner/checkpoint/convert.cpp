#include "checkpoint/convert.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/adapter.h"
#include "checkpoint/copied_files.h"
#include "checkpoint/distcp_writer.h"
#include "checkpoint/files_beside.h"
#include "checkpoint/meta_names.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/rank_files.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/torch_writer.h"
#include "tensor/convert.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kOutput = "--output";

/// Parameters of models here are neither single numbers nor whole ones.
bool is_weight(const Weights& weights, const std::string& name) {
  const std::string stored = weights.stored_dtype(name);
  return !weights.shape(name).empty() && (stored.starts_with("F") || stored.starts_with("BF"));
}

/// The dtype that is stored; a double becomes a float, which is what is computed with.
DType kept_dtype(const Weights& weights, const std::string& name) {
  const auto stored = dtype_of_safetensors(weights.stored_dtype(name));
  return stored && is_computed(*stored) ? *stored : DType::Float32;
}

std::vector<RowSource> sources_of(const Weights& weights, std::optional<DType> wanted) {
  std::vector<RowSource> sources;
  for (const std::string& name : weights.names()) {
    if (!is_weight(weights, name)) {
      spdlog::warn("{}: '{}' is left out: {} of shape {} is no weight", weights.path_of(name).string(), name,
                   weights.stored_dtype(name), to_string(weights.shape(name)));
      continue;
    }
    const DType dtype = wanted.value_or(kept_dtype(weights, name));
    sources.push_back({name, dtype, weights.shape(name), [&weights, name, dtype](int64_t begin, int64_t count) {
                         return converted(weights.read_rows(name, begin, count), dtype);
                       }});
  }
  if (sources.empty()) throw InputError("the source holds no weights");
  return sources;
}

std::vector<RowSource> sources_of(const Checkpoint& checkpoint, Kind kind) {
  std::vector<RowSource> sources;
  for (const StoredTensor& tensor : checkpoint.manifest().tensors)
    if (tensor.kind == kind)
      sources.push_back({tensor.name, tensor.dtype, tensor.shape, [&](int64_t begin, int64_t count) {
                           return checkpoint.read_rows(tensor.name, begin, count);
                         }});
  return sources;
}

void write_beside(const ModelFiles& beside, const fs::path& folder, DType dtype) {
  const json state{{"config_json", beside.config_json}};
  write_file_atomically(folder / "config.json", config_text(state, "the source", dtype));
  for (const fs::path& file : beside.files) fs::copy_file(file, folder / file.filename());
}

void write_weight_file(const fs::path& path, const WeightFile& file, std::span<const RowSource> sources) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const size_t tensor : file.tensors)
    declared.push_back({sources[tensor].name, sources[tensor].dtype, sources[tensor].shape});
  SafetensorsWriter writer(path, declared, {{"format", "pt"}});
  for (const size_t tensor : file.tensors)
    for_each_piece(sources[tensor], 0, sources[tensor].shape[0], [&](const Tensor& piece) { writer.append(piece); });
  writer.finish();
}

/// The manifest that `world` ranks would have made of `files`.
Manifest resharded(const Checkpoint& checkpoint, int world, const fs::path& folder, std::vector<StoredFile> files) {
  Manifest manifest = checkpoint.manifest();
  manifest.world = world;
  manifest.members.clear();
  for (int rank = 0; rank < world; ++rank) manifest.members.push_back(rank);
  manifest.rank_states.assign(static_cast<size_t>(world), json::object());
  manifest.files = std::move(files);
  manifest.tensors.clear();
  for (const Kind kind : {Kind::Model, Kind::Optimizer}) {
    std::vector<Shard> shards;
    for (const RowSource& source : sources_of(checkpoint, kind)) shards.push_back({source.name, source.shape, 0, {}});
    for (StoredTensor& tensor : collect_tensors(folder, manifest.files, kind, shards, true))
      manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

Exported summary_of(std::span<const StoredFile> files, size_t tensors) {
  Exported exported{.tensors = tensors, .files = files.size()};
  for (const StoredFile& file : files) exported.bytes += file.bytes;
  return exported;
}

}  // namespace

Exported write_hugging_face(const Weights& weights, const ModelFiles& beside, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  const std::vector<RowSource> sources = sources_of(weights, options.dtype);
  std::vector<uint64_t> bytes;
  std::vector<std::string> names;
  for (const RowSource& source : sources) {
    bytes.push_back(static_cast<uint64_t>(count_of(source.shape)) * size_of(source.dtype));
    names.push_back(source.name);
  }
  const std::vector<WeightFile> files = divide(bytes, options.max_shard_bytes, "model");
  folder.fill([&] {
    write_beside(beside, folder.path(), sources.front().dtype);
    for (const WeightFile& file : files) write_weight_file(folder.path() / file.name, file, sources);
    if (files.size() > 1) write_file_atomically(folder.path() / index_name("model"), index_text(files, names));
  });
  Exported exported{.tensors = sources.size(), .files = files.size()};
  for (const WeightFile& file : files) exported.bytes += file.bytes;
  return exported;
}

namespace {

Exported export_adapter(const Checkpoint& checkpoint, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  std::vector<RowSource> sources = sources_of(checkpoint, Kind::Model);
  for (RowSource& source : sources) {
    source.name = kPeftPrefix + source.name;
    source.dtype = options.dtype.value_or(source.dtype);
    source.read = [read = source.read, dtype = source.dtype](int64_t begin, int64_t count) {
      return converted(read(begin, count), dtype);
    };
  }
  WeightFile file{.name = "adapter_model.safetensors", .tensors = {}};
  for (size_t tensor = 0; tensor < sources.size(); ++tensor) file.tensors.push_back(tensor);
  folder.fill([&] {
    write_file_atomically(folder.path() / "adapter_config.json", checkpoint.state().at(kAdapter).dump(2) + "\n");
    for (const fs::path& beside : files_beside(checkpoint.path()))
      fs::copy_file(beside, folder.path() / beside.filename());
    write_weight_file(folder.path() / file.name, file, sources);
  });
  Exported exported{.tensors = sources.size(), .files = 1};
  for (const RowSource& source : sources)
    exported.bytes += static_cast<uint64_t>(count_of(source.shape)) * size_of(source.dtype);
  return exported;
}

}  // namespace

Exported export_to_hugging_face(const Checkpoint& checkpoint, const ExportOptions& options) {
  const json& state = checkpoint.state();
  if (state.contains(kAdapter)) return export_adapter(checkpoint, options);
  // Throws where there is none: nobody could load the weights without it.
  static_cast<void>(config_text(state, checkpoint.path().string(), DType::Float32));
  const ModelFiles beside{state["config_json"], files_beside(checkpoint.path())};
  return write_hugging_face(*open_weights(checkpoint.path()), beside, options);
}

Exported write_dcp(const Weights& weights, const ModelFiles& beside, int world, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  const std::vector<RowSource> sources = sources_of(weights, options.dtype);
  std::vector<StoredFile> files;
  folder.fill([&] {
    if (!beside.config_json.empty()) write_beside(beside, folder.path(), sources.front().dtype);
    files = write_rank_files(*real_disk(), folder.path(), Kind::Model, world, sources);
  });
  return summary_of(files, sources.size());
}

Exported write_distcp(const Weights& weights, const ModelFiles& beside, int world, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  const std::vector<RowSource> sources = sources_of(weights, options.dtype);
  Exported exported{.tensors = sources.size(), .files = static_cast<size_t>(world)};
  folder.fill([&] {
    if (!beside.config_json.empty()) write_beside(beside, folder.path(), sources.front().dtype);
    exported.bytes = write_distcp_files(folder.path(), world, sources);
  });
  return exported;
}

Exported write_torch(const Weights& weights, const ModelFiles& beside, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  const std::vector<RowSource> sources = sources_of(weights, options.dtype);
  const fs::path file = folder.path() / "pytorch_model.bin";
  Exported exported{.tensors = sources.size(), .files = 1};
  folder.fill([&] {
    if (!beside.config_json.empty()) write_beside(beside, folder.path(), sources.front().dtype);
    write_torch_file(file, sources);
    exported.bytes = fs::file_size(file);
  });
  return exported;
}

namespace {

constexpr const char *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";

std::vector<RowSource> meta_sources_of(const Weights& weights, int64_t head_dim, std::optional<DType> wanted) {
  std::vector<RowSource> sources;
  for (RowSource& source : sources_of(weights, wanted)) {
    if (source.name.ends_with("rotary_emb.inv_freq")) continue;  // computed from params.json
    const auto place = meta_name_of(source.name);
    if (!place)
      throw InputError(fmt::format("{}: Meta's form of Llama has no place for '{}'",
                                   weights.path_of(source.name).string(), source.name));
    if (place->is_rotated && source.shape.at(0) % head_dim != 0)
      throw InputError(fmt::format("{}: '{}' of shape {} has no whole heads of {} rows",
                                   weights.path_of(source.name).string(), source.name, to_string(source.shape),
                                   head_dim));
    if (place->is_rotated)
      source.read = [&weights, name = source.name, dtype = source.dtype, head_dim](int64_t begin, int64_t count) {
        const auto rows = reordered_rows(Pairs::SideBySide, head_dim, begin, count, [&](int64_t first, int64_t some) {
          return weights.read_rows(name, first, some);
        });
        return converted(rows, dtype);
      };
    source.name = place->name;
    sources.push_back(std::move(source));
  }
  const auto has = [&](const std::string& name) { return std::ranges::count(sources, name, &RowSource::name) > 0; };
  const std::string head = meta_name_of(kHead)->name, embedding = meta_name_of(kEmbedding)->name;
  if (!has(head) && has(embedding)) {
    RowSource copy = *std::ranges::find(sources, embedding, &RowSource::name);
    copy.name = head;
    sources.push_back(std::move(copy));
  }
  return sources;
}

}  // namespace

Exported write_meta(const Weights& weights, const MetaFiles& beside, const ExportOptions& options) {
  NewFolder folder(options.output, kOutput);
  const std::vector<RowSource> sources = meta_sources_of(weights, beside.head_dim, options.dtype);
  const fs::path file = folder.path() / "consolidated.00.pth";
  Exported exported{.tensors = sources.size(), .files = 1};
  folder.fill([&] {
    write_file_atomically(folder.path() / "params.json", beside.params_json);
    for (const fs::path& other : beside.files) fs::copy_file(other, folder.path() / other.filename());
    write_torch_file(file, sources);
    exported.bytes = fs::file_size(file);
  });
  return exported;
}

Exported reshard(const Checkpoint& checkpoint, int world, const fs::path& output) {
  NewFolder folder(output, kOutput);
  const FilesBeside beside = read_files(files_beside(checkpoint.path()));
  std::vector<StoredFile> files;
  size_t tensors = 0;
  folder.fill([&] {
    const fs::path step = folder.path() / Naming().folder_of(checkpoint.step());
    const auto disk = real_disk();
    disk->create_folders(step);
    files = write_files(*disk, step, beside);
    for (const Kind kind : {Kind::Model, Kind::Optimizer}) {
      const std::vector<RowSource> sources = sources_of(checkpoint, kind);
      tensors += sources.size();
      for (StoredFile& file : write_rank_files(*disk, step, kind, world, sources)) files.push_back(std::move(file));
    }
    write_file(*disk, step / kManifestName, format_manifest(resharded(checkpoint, world, step, files)));
    disk->sync_folder(step);
    write_file(*disk, folder.path() / Naming().pointer(), step.filename().string() + "\n");
  });
  return summary_of(files, tensors);
}

}  // namespace trainyard::checkpoint
