#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/hugging_face.h"
#include "tensor/convert.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kPieceBytes = int64_t{64} << 20;  // of a tensor on its way from file to file

/// One file of weights.
struct Part {
  std::vector<const StoredTensor*> tensors;
  uint64_t bytes = 0;
};

uint64_t bytes_of(const StoredTensor& tensor, DType dtype) {
  return static_cast<uint64_t>(count_of(tensor.shape)) * size_of(dtype);
}

/// In the model's order, each file as full as the limit allows.
std::vector<Part> divide(const Manifest& manifest, const ExportOptions& options) {
  std::vector<Part> parts(1);
  for (const StoredTensor& tensor : manifest.tensors) {
    if (tensor.kind != Kind::Model) continue;
    const uint64_t bytes = bytes_of(tensor, options.dtype);
    if (!parts.back().tensors.empty() && parts.back().bytes + bytes > options.max_shard_bytes) parts.emplace_back();
    parts.back().tensors.push_back(&tensor);
    parts.back().bytes += bytes;
  }
  return parts;
}

void write_part(const Checkpoint& checkpoint, const Part& part, const fs::path& path, DType dtype) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const StoredTensor* tensor : part.tensors) declared.push_back({tensor->name, dtype, tensor->shape});
  SafetensorsWriter writer(path, declared, {{"format", "pt"}});
  for (const StoredTensor* tensor : part.tensors) {
    const int64_t rows = tensor->shape.at(0);
    const int64_t row_bytes = rows == 0 ? 1 : static_cast<int64_t>(bytes_of(*tensor, tensor->dtype)) / rows;
    const int64_t at_once = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
    for (int64_t row = 0; row < rows; row += at_once)
      writer.append(converted(checkpoint.read_rows(tensor->name, row, std::min(at_once, rows - row)), dtype));
  }
  writer.finish();
}

void write_weights(const Checkpoint& checkpoint, const std::vector<Part>& parts, const fs::path& folder, DType dtype) {
  if (parts.size() == 1) return write_part(checkpoint, parts[0], folder / "model.safetensors", dtype);
  uint64_t total = 0;
  json weight_map = json::object();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, parts.size());
    write_part(checkpoint, parts[i], folder / name, dtype);
    for (const StoredTensor* tensor : parts[i].tensors) weight_map[tensor->name] = name;
    total += parts[i].bytes;
  }
  const json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
  write_file_atomically(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

/// As the run recorded it, but for the type of the weights.
void write_config(const Checkpoint& checkpoint, const fs::path& folder, DType dtype) {
  const json& state = checkpoint.state();
  if (!state.contains("config_json") || !state["config_json"].is_string())
    throw InputError(fmt::format("{}: records no config.json of its model, so nobody could load an export",
                                 checkpoint.path().string()));
  auto config = nlohmann::ordered_json::parse(state["config_json"].get<std::string>(), nullptr, false);
  if (!config.is_object())
    throw InputError(fmt::format("{}: the config.json it records is no JSON object", checkpoint.path().string()));
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = name_of(dtype);  // transformers 5 renamed it
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

void copy_tokenizer(const Checkpoint& checkpoint, const fs::path& folder) {
  const json& state = checkpoint.state();
  if (!state.contains("tokenizer_files")) return;
  for (const json& recorded : state["tokenizer_files"]) {
    const fs::path file = recorded.get<std::string>();
    if (fs::is_regular_file(file))
      fs::copy_file(file, folder / file.filename());
    else
      spdlog::warn("{}: this file of the tokenizer has gone; copy it into the export yourself", file.string());
  }
}

}  // namespace

Exported export_to_hugging_face(const Checkpoint& checkpoint, const ExportOptions& options) {
  const fs::path output = fs::absolute(options.output).lexically_normal();
  if (fs::exists(output) && !(fs::is_directory(output) && fs::is_empty(output)))
    throw InputError(fmt::format("--output {}: is there already and not an empty folder", output.string()));
  const std::vector<Part> parts = divide(checkpoint.manifest(), options);
  const fs::path target = output.has_filename() ? output : output.parent_path();
  const fs::path temporary =
      target.parent_path() / fmt::format(".{}.{}.tmp", target.filename().string(), random_name());
  try {
    fs::create_directories(temporary);
    write_config(checkpoint, temporary, options.dtype);
    copy_tokenizer(checkpoint, temporary);
    write_weights(checkpoint, parts, temporary, options.dtype);
    sync_folder(temporary);
    fs::rename(temporary, target);
    sync_folder(target.parent_path());
  } catch (const std::exception& error) {
    std::error_code ignored;  // the first failure is the one worth reporting
    fs::remove_all(temporary, ignored);
    if (const auto* disk = dynamic_cast<const fs::filesystem_error*>(&error))
      throw InputError(fmt::format("--output {}: {}", target.string(), disk->what()));
    throw;
  }
  Exported exported{.files = parts.size()};
  for (const Part& part : parts) exported.tensors += part.tensors.size(), exported.bytes += part.bytes;
  return exported;
}

}  // namespace trainyard::checkpoint
