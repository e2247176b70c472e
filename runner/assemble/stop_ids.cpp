#include "assemble/stop_ids.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "assemble/exchange.h"
#include "base/error.h"
#include "base/files.h"
#include "checkpoint/files_beside.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr const char* kGenerationConfig = "generation_config.json";
constexpr size_t kLargestGenerationConfig = size_t{1} << 20;

bool is_id(const json& value, int64_t vocab_size) {
  return value.is_number_integer() && value >= 0 && value < vocab_size;
}

/// eos_token_id of the file with this text; empty where it has none.
std::vector<int32_t> ids_in(const std::string& text, const fs::path& file, int64_t vocab_size) {
  if (text.empty()) return {};
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) throw InputError(fmt::format("{}: a JSON object is needed", file.string()));
  const json found = document.value("eos_token_id", json());
  if (found.is_null()) return {};
  const json list = found.is_array() ? found : json::array({found});
  std::vector<int32_t> ids;
  for (const json& id : list)
    if (is_id(id, vocab_size)) ids.push_back(id.get<int32_t>());
  if (list.empty() || ids.size() < list.size())
    throw InputError(fmt::format("{}: eos_token_id is {}; an id of the model's vocabulary, from 0 to {}, or a list of "
                                 "such is needed",
                                 file.string(), found.dump(), vocab_size - 1));
  return ids;
}

}  // namespace

std::string generation_config_of(const fs::path& weights) {
  const fs::path file = checkpoint::model_folder_of(weights) / kGenerationConfig;
  return fs::is_regular_file(file) ? read_file(file, kLargestGenerationConfig) : "";
}

std::vector<int32_t> stop_ids_of(const StopSources& sources, const tokenizer::Tokenizer& tokenizer,
                                 int64_t vocab_size) {
  const fs::path folder = sources.where;
  if (auto ids = ids_in(sources.generation_config, folder / kGenerationConfig, vocab_size); !ids.empty()) return ids;
  if (auto ids = ids_in(sources.config_json, folder / "config.json", vocab_size); !ids.empty()) return ids;
  const auto end_of_document = tokenizer.eos_id();
  return end_of_document ? std::vector{*end_of_document} : std::vector<int32_t>{};
}

std::vector<int32_t> stop_ids_of_rank_0(const std::function<StopSources()>& sources, const tokenizer::Tokenizer& tokenizer,
                                        int64_t vocab_size, comm::Communicator& world) {
  std::string bytes;
  on_rank_0(world, [&] {
    const auto found = stop_ids_of(sources(), tokenizer, vocab_size);
    bytes.assign(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(int32_t));
  });
  share_from_rank_0(world, bytes, "ids that end a text");
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

}  // namespace trainyard::train
