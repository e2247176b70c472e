#include "checkpoint/distcp_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/pickle.h"

namespace trainyard::checkpoint {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr std::array kWrappers{"model", "state_dict", "model_state_dict", "module"};
constexpr std::array<std::pair<const char*, const char*>, 9> kTypes{{{"torch.float32", "F32"},
                                                                     {"torch.bfloat16", "BF16"},
                                                                     {"torch.float16", "F16"},
                                                                     {"torch.float64", "F64"},
                                                                     {"torch.int64", "I64"},
                                                                     {"torch.int32", "I32"},
                                                                     {"torch.uint8", "U8"},
                                                                     {"torch.bool", "BOOL"},
                                                                     {"torch.int8", "I8"}}};

/// Reads one `.metadata`.
class MetadataReader {
  using Kind = PickleValue::Kind;

 public:
  explicit MetadataReader(const std::filesystem::path& file)
      : where_(file.string()), pickle_(read_file(file, kMaxBytes), where_, Pickle::OtherCalls::Recorded) {}

  DistcpMetadata read() {
    const PickleValue& root = pickle_.root();
    if (root.kind != Kind::Object || !root.text.ends_with(".Metadata"))
      fail("it is no description of a distributed checkpoint of PyTorch's");
    read_storage(attribute(root, "storage_data", Kind::Mapping));
    read_paths(member(root, "planner_data"));
    for (const auto& [key, value] : attribute(root, "state_dict_metadata", Kind::Mapping).entries)
      if (value->kind == Kind::Object && value->text.ends_with(".TensorStorageMetadata"))
        read_tensor(text(*key), *value);
    if (made_.tensors.empty()) fail("no tensor of a model is described in it");
    return std::move(made_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{}: {}", where_, what)); }

  const PickleValue& attribute(const PickleValue& object, const char* name, Kind kind) const {
    const PickleValue* const value = member(object, name);
    if (!value || value->kind != kind)
      fail(fmt::format("its {} has no such '{}' as PyTorch writes", object.text, name));
    return *value;
  }
  const std::string& text(const PickleValue& value) const {
    if (value.kind != Kind::Text) fail("a name is no text");
    return value.text;
  }
  Shape sizes(const PickleValue& object, const char* name) const {
    Shape sizes;
    for (const PickleValue* const item : attribute(object, name, Kind::Sequence).items) {
      if (item->kind != Kind::Number || item->number < 0) fail(fmt::format("{} has a size that is none", name));
      sizes.push_back(item->number);
    }
    return sizes;
  }

  /// {MetadataIndex(fqn, offset): _StorageInfo(relative_path, offset, length)}
  void read_storage(const PickleValue& storage) {
    for (const auto& [index, info] : storage.entries) {
      if (index->kind != Kind::Object || info->kind != Kind::Object) fail("its storage_data is not that of PyTorch's");
      const PickleValue* const offset = member(*index, "offset");
      if (!offset || offset->kind != Kind::Sequence) continue;  // bytes of an object that is no tensor
      if (const PickleValue* const packed = member(*info, "transform_descriptors");
          packed && packed->kind != Kind::None)
        fail("its parts are packed (transform_descriptors), which is not read; save without an extension");
      const std::string& file = text(attribute(*info, "relative_path", Kind::Text));
      if (file.empty() || file.find('/') != std::string::npos)
        fail(fmt::format("a part lies in '{}', outside of the folder", file));
      const int64_t begin = attribute(*info, "offset", Kind::Number).number,
                    bytes = attribute(*info, "length", Kind::Number).number;
      if (begin < 0 || bytes < 0) fail(fmt::format("a part lies at byte {} of {}, {} long", begin, file, bytes));
      const auto place = std::pair(text(attribute(*index, "fqn", Kind::Text)), sizes(*index, "offset"));
      stored_.emplace(place, made_.stored.size());
      made_.stored.push_back({file, {static_cast<uint64_t>(begin), static_cast<uint64_t>(bytes)}});
    }
  }

  /// {"model.norm.weight": ("model", "norm.weight")}: how the names came about. Absent where nothing was nested.
  void read_paths(const PickleValue* planner) {
    if (!planner || planner->kind != Kind::Mapping) return;
    for (const auto& [name, path] : planner->entries) {
      if (name->kind != Kind::Text || path->kind != Kind::Sequence) continue;
      std::vector<std::string> steps;
      for (const PickleValue* const step : path->items) steps.push_back(step->kind == Kind::Text ? step->text : "");
      if (steps.size() > 1)
        for (const char* const wrapper : kWrappers) has_wrapper_ = has_wrapper_ || steps.front() == wrapper;
      paths_.emplace(name->text, std::move(steps));
    }
  }

  /// The tensor's name in the model; none where it is no part of one.
  [[nodiscard]] std::optional<std::string> name_in_model(const std::string& name) const {
    const auto path = paths_.find(name);
    if (path == paths_.end()) return has_wrapper_ ? std::nullopt : std::optional(name);
    const std::vector<std::string>& steps = path->second;
    if (!has_wrapper_) return steps.size() == 1 ? std::optional(name) : std::nullopt;
    const bool is_wrapped = steps.size() > 1 && std::ranges::find(kWrappers, steps.front(), [](const char* wrapper) {
                                                  return std::string(wrapper);
                                                }) != kWrappers.end();
    if (!is_wrapped) return std::nullopt;
    std::string joined = steps[1];
    for (size_t i = 2; i < steps.size(); ++i) joined += "." + steps[i];
    return joined;
  }

  void read_tensor(const std::string& stored_name, const PickleValue& described) {
    const auto name = name_in_model(stored_name);
    if (!name) return;
    DistcpMetadata::Tensor& tensor = made_.tensors[*name];
    tensor.dtype = type_of(attribute(described, "properties", Kind::Object));
    tensor.parts.shape = sizes(described, "size");
    for (const PickleValue* const chunk : attribute(described, "chunks", Kind::Sequence).items) {
      if (chunk->kind != Kind::Object) fail(fmt::format("a chunk of '{}' is none", stored_name));
      Part part{0, sizes(*chunk, "offsets"), sizes(*chunk, "sizes")};
      const auto stored = stored_.find({stored_name, part.offsets});
      if (stored == stored_.end())
        fail(fmt::format("the part of '{}' from {} on is in no file", stored_name, to_string(part.offsets)));
      require_inside(stored_name, part, tensor.parts.shape);
      part.source = stored->second;
      tensor.parts.parts.push_back(std::move(part));
    }
  }

  void require_inside(const std::string& name, const Part& part, const Shape& whole) const {
    const bool fits = part.offsets.size() == whole.size() && part.sizes.size() == whole.size();
    for (size_t dim = 0; fits && dim < whole.size(); ++dim)
      if (part.sizes[dim] > whole[dim] || part.offsets[dim] > whole[dim] - part.sizes[dim])
        fail(fmt::format("a part of '{}' goes beyond its shape {}", name, to_string(whole)));
    if (!fits) fail(fmt::format("a part of '{}' has other dimensions than {}", name, to_string(whole)));
  }

  /// TensorProperties' state is a tuple that begins with the type.
  [[nodiscard]] std::string type_of(const PickleValue& properties) const {
    const PickleValue* const state = properties.state;
    const PickleValue* const type = !state ? nullptr
                                    : state->kind == Kind::Sequence
                                        ? (state->items.empty() ? nullptr : state->items.front())
                                        : member(properties, "dtype");
    if (!type || type->kind != Kind::Global) fail("a tensor has no type");
    for (const auto& [theirs, ours] : kTypes)
      if (type->text == theirs) return ours;
    return "";
  }

  std::string where_;
  Pickle pickle_;
  DistcpMetadata made_;
  std::map<std::pair<std::string, Shape>, size_t> stored_;  // by name and offsets
  std::map<std::string, std::vector<std::string>> paths_;
  bool has_wrapper_ = false;
};

}  // namespace

DistcpMetadata read_distcp_metadata(const std::filesystem::path& file) {
  return MetadataReader(file).read();
}

}  // namespace trainyard::checkpoint
