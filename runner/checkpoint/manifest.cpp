#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json_depth.h"
#include "checkpoint/checksum.h"

namespace trainyard::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "trainyard-checkpoint";
// Version 2 has parts of rows, as tensor parallelism makes them; what has none is written as version 1.
constexpr int kVersion = 2, kVersionOfRows = 1;
constexpr size_t kMaxManifestBytes = size_t{256} << 20;  // a thousand ranks times a thousand tensors fit several times

json to_json(const StoredTensor& tensor) {
  json shards = json::array();
  for (const StoredRows& rows : tensor.shards) {
    json shard{rows.file, rows.row_offset, rows.rows};
    if (rows.columns != StoredRows::kAllColumns) shard.insert(shard.end(), {rows.column_offset, rows.columns});
    shards.push_back(std::move(shard));
  }
  return {{"name", tensor.name},
          {"kind", tensor.kind == Kind::Model ? "model" : "optimizer"},
          {"dtype", name_of(tensor.dtype)},
          {"shape", tensor.shape},
          {"shards", std::move(shards)}};
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : kDTypes)
    if (name == name_of(dtype)) return dtype;
  throw InputError(fmt::format("unknown dtype '{}'", name));
}

StoredTensor tensor_from(const json& text) {
  StoredTensor tensor{.name = text.at("name"),
                      .kind = text.at("kind") == "model" ? Kind::Model : Kind::Optimizer,
                      .dtype = dtype_named(text.at("dtype")),
                      .shape = text.at("shape"),
                      .shards = {}};
  for (const json& shard : text.at("shards")) {
    StoredRows rows{.file = shard.at(0), .row_offset = shard.at(1), .rows = shard.at(2)};
    if (shard.size() > 3) {
      rows.column_offset = shard.at(3), rows.columns = shard.at(4);
      const int64_t width = tensor.shape.size() < 2 ? 0 : tensor.shape[1];
      if (rows.column_offset < 0 || rows.columns < 0 || rows.columns > width - rows.column_offset)
        throw InputError(fmt::format("tensor '{}' has columns {} to {} of {}", tensor.name, rows.column_offset,
                                     rows.column_offset + rows.columns - 1, width));
    }
    tensor.shards.push_back(rows);
  }
  return tensor;
}

StoredFile file_from(const json& text) {
  StoredFile file{text.at("name"), text.at("bytes"), text.at("checksum")};
  // The name goes into a path; nothing outside the folder is ever this checkpoint's.
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.starts_with('.'))
    throw InputError(fmt::format("'{}' is no name of a file", file.name));
  return file;
}

Manifest manifest_from(const json& text) {
  if (text.at("format") != kFormat || (text.at("version") != kVersion && text.at("version") != kVersionOfRows))
    throw InputError(fmt::format("format {} version {}, this program reads {} versions 1 to {}",
                                 text.at("format").dump(), text.at("version").dump(), kFormat, kVersion));
  Manifest manifest{.step = text.at("step"),
                    .generation = text.at("generation"),
                    .job = text.value("job", ""),
                    .world = text.at("world_size"),
                    .members = text.at("ranks"),
                    .saved_at = text.at("saved_at"),
                    .files = {},
                    .tensors = {},
                    .state = text.at("state"),
                    .rank_states = text.at("rank_states")};
  for (const json& file : text.at("files")) manifest.files.push_back(file_from(file));
  for (const json& tensor : text.at("tensors")) manifest.tensors.push_back(tensor_from(tensor));
  for (const StoredTensor& tensor : manifest.tensors)
    for (const StoredRows& rows : tensor.shards)
      if (rows.file >= manifest.files.size())
        throw InputError(fmt::format("tensor '{}' is in file {} of {}", tensor.name, rows.file, manifest.files.size()));
  return manifest;
}

int version_of(const Manifest& manifest) {
  const auto is_part = [](const StoredRows& rows) { return rows.columns != StoredRows::kAllColumns; };
  return std::ranges::any_of(manifest.tensors,
                             [&](const StoredTensor& tensor) { return std::ranges::any_of(tensor.shards, is_part); })
             ? kVersion
             : kVersionOfRows;
}

}  // namespace

uint64_t Manifest::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const StoredFile& file) { return sum + file.bytes; });
}

std::string format_manifest(const Manifest& manifest) {
  json files = json::array(), tensors = json::array();
  for (const StoredFile& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  for (const StoredTensor& tensor : manifest.tensors) tensors.push_back(to_json(tensor));
  json text{{"format", kFormat},         {"version", version_of(manifest)},
            {"step", manifest.step},     {"generation", manifest.generation},
            {"job", manifest.job},       {"world_size", manifest.world},
            {"ranks", manifest.members}, {"saved_at", manifest.saved_at},
            {"files", std::move(files)}, {"tensors", std::move(tensors)},
            {"state", manifest.state},   {"rank_states", manifest.rank_states}};
  text["checksum"] = checksum_of(text.dump());
  return text.dump(1);
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
  if (!is_shallow_json(text)) throw InputError(where + ": damaged: its brackets are too deep");
  try {
    json parsed = json::parse(text);
    if (parsed.at("format") == kFormat && parsed.at("version").is_number_integer() && parsed["version"] > kVersion)
      throw NewerVersionError(fmt::format(
          "{}: version {} of the format, and this program reads versions up to {}; use the program that wrote it, or "
          "a newer one",
          where, parsed["version"].dump(), kVersion));
    const std::string expected = parsed.at("checksum");
    parsed.erase("checksum");
    // Keys are sorted and numbers shortest, so the compact form is one for one content.
    if (checksum_of(parsed.dump()) != expected) throw InputError("its checksum does not fit its content");
    return manifest_from(parsed);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: damaged: {}", where, error.what()));
  } catch (const NewerVersionError&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: damaged: {}", where, error.what()));
  }
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  return parse_manifest(read_file(path, kMaxManifestBytes), path.string());
}

}  // namespace trainyard::checkpoint
