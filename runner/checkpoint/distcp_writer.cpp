#include "checkpoint/distcp_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/pickle_text.h"
#include "checkpoint/torch_writer.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char *kModule = "torch.distributed.checkpoint.metadata",
                     *kFiles = "torch.distributed.checkpoint.filesystem";

/// Rows of a tensor, and where they lie.
struct WrittenRows {
  int64_t begin = 0, count = 0;
  std::string file;
  ByteRange range;
};

const char* torch_name_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "float32";
    case DType::BFloat16:
      return "bfloat16";
    case DType::Float16:
      return "float16";
    default:
      throw std::invalid_argument(fmt::format("distcp: no weights are {}", name_of(dtype)));
  }
}

Shape offsets_of(const RowSource& tensor, const WrittenRows& rows) {
  Shape offsets(tensor.shape.size(), 0);
  offsets[0] = rows.begin;
  return offsets;
}

void add_chunk(PickleText& pickle, const RowSource& tensor, const WrittenRows& rows) {
  Shape sizes = tensor.shape;
  sizes[0] = rows.count;
  pickle.object(kModule, "ChunkStorageMetadata");
  pickle.raw("}(");
  pickle.text("offsets");
  pickle.size(offsets_of(tensor, rows));
  pickle.text("sizes");
  pickle.size(sizes);
  pickle.raw("ub");
}

/// TensorStorageMetadata(properties, size, chunks). The properties are (dtype, layout, requires_grad, memory format,
/// pinned).
void add_tensor(PickleText& pickle, const RowSource& tensor, const std::vector<WrittenRows>& chunks) {
  pickle.object(kModule, "TensorStorageMetadata");
  pickle.raw("}(");
  pickle.text("properties");
  pickle.object(kModule, "TensorProperties");
  pickle.raw("(");
  pickle.name("torch", torch_name_of(tensor.dtype));
  pickle.name("torch.serialization", "_get_layout");
  pickle.text("torch.strided");
  pickle.raw("\x85R\x89");
  pickle.name(kModule, "_MEM_FORMAT_ENCODING");
  pickle.number(0);  // contiguous
  pickle.raw("\x85R\x89tb");
  pickle.text("size");
  pickle.size(tensor.shape);
  pickle.text("chunks");
  pickle.raw("](");
  for (const WrittenRows& rows : chunks) add_chunk(pickle, tensor, rows);
  pickle.raw("eub");
}

/// MetadataIndex(fqn, offset, index): _StorageInfo(relative_path, offset, length)
void add_place(PickleText& pickle, const RowSource& tensor, const WrittenRows& rows, int64_t index) {
  pickle.object(kModule, "MetadataIndex");
  pickle.raw("}(");
  pickle.text("fqn");
  pickle.text(tensor.name);
  pickle.text("offset");
  pickle.size(offsets_of(tensor, rows));
  pickle.text("index");
  pickle.number(index);
  pickle.raw("ub");
  pickle.object(kFiles, "_StorageInfo");
  pickle.raw("}(");
  pickle.text("relative_path");
  pickle.text(rows.file);
  pickle.text("offset");
  pickle.number(static_cast<int64_t>(rows.range.begin));
  pickle.text("length");
  pickle.number(static_cast<int64_t>(rows.range.bytes));
  pickle.raw("ub");
}

/// Metadata(state_dict_metadata, planner_data, storage_data). planner_data says that no name came of a nesting.
std::string metadata_of(std::span<const RowSource> tensors, const std::vector<std::vector<WrittenRows>>& written) {
  PickleText pickle;
  pickle.object(kModule, "Metadata");
  pickle.raw("}(");
  pickle.text("state_dict_metadata");
  pickle.raw("}(");
  for (size_t i = 0; i < tensors.size(); ++i) {
    pickle.text(tensors[i].name);
    add_tensor(pickle, tensors[i], written[i]);
  }
  pickle.raw("u");
  pickle.text("planner_data");
  pickle.raw("}(");
  for (const RowSource& tensor : tensors) {
    pickle.text(tensor.name);
    pickle.text(tensor.name);
    pickle.raw("\x85");
  }
  pickle.raw("u");
  pickle.text("storage_data");
  pickle.raw("}(");
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t chunk = 0; chunk < written[i].size(); ++chunk)
      add_place(pickle, tensors[i], written[i][chunk], static_cast<int64_t>(chunk));
  pickle.raw("uub");
  return pickle.finished();
}

}  // namespace

uint64_t write_distcp_files(const fs::path& folder, int world, std::span<const RowSource> tensors) {
  std::vector<std::vector<WrittenRows>> written(tensors.size());
  uint64_t bytes = 0;
  for (int rank = 0; rank < world; ++rank) {
    const std::string name = fmt::format("__{}_0.distcp", rank);
    TorchAppender file(folder / name);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int64_t rows = tensors[i].shape.at(0), chunk = (rows + world - 1) / world;
      const int64_t begin = std::min(rows, rank * chunk), count = std::min(chunk, rows - begin);
      if (count == 0) continue;
      written[i].push_back({begin, count, name, file.append(tensors[i], begin, count)});
      bytes += written[i].back().range.bytes;
    }
    file.finish();
  }
  write_file_atomically(folder / ".metadata", metadata_of(tensors, written));
  return bytes;
}

}  // namespace trainyard::checkpoint
