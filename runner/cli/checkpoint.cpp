#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "assemble/stored_weights.h"
#include "base/files.h"
#include "base/open_file.h"
#include "base/text.h"
#include "checkpoint/adapter.h"
#include "checkpoint/convert.h"
#include "checkpoint/files_beside.h"
#include "checkpoint/name_map.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/reader.h"
#include "cli/command.h"
#include "cli/hub_names.h"
#include "cli/parse.h"
#include "models/meta_params.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

const std::map<std::string, DType> kExportTypes{{"float32", DType::Float32},   {"fp32", DType::Float32},
                                                {"bfloat16", DType::BFloat16}, {"bf16", DType::BFloat16},
                                                {"float16", DType::Float16},   {"fp16", DType::Float16}};

void print_summary(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  int64_t parameters = 0;
  for (const StoredTensor& tensor : manifest.tensors)
    if (tensor.kind == Kind::Model) parameters += count_of(tensor.shape);
  const int64_t tokens = manifest.state.value("tokens", int64_t{0});
  fmt::print("checkpoint  {}\nstep        {}\nsaved       {}\n", checkpoint.path().string(), manifest.step,
             manifest.saved_at);
  fmt::print("world       {} ranks, generation {}{}\n", manifest.world, manifest.generation,
             manifest.is_shared() ? "" : fmt::format(", here only ranks {}", fmt::join(manifest.members, ", ")));
  fmt::print("tokens      {}\nparameters  {}\nsize        {} in {} files\n", with_thousands(tokens),
             with_thousands(parameters), human_bytes(manifest.bytes()), manifest.files.size());
}

void print_tensors(const Manifest& manifest) {
  size_t widest = 6;
  for (const StoredTensor& tensor : manifest.tensors) widest = std::max(widest, tensor.name.size());
  fmt::print("\n{:<{}}  {:<9}  {:<18}  {:<8}  {}\n", "tensor", widest, "of", "shape", "dtype", "shards");
  for (const StoredTensor& tensor : manifest.tensors)
    fmt::print("{:<{}}  {:<9}  {:<18}  {:<8}  {}\n", tensor.name, widest,
               tensor.kind == Kind::Model ? "model" : "optimizer", to_string(tensor.shape), name_of(tensor.dtype),
               tensor.shards.size());
}

void print_files(const Manifest& manifest) {
  fmt::print("\n{:<48}  {:>14}  {}\n", "file", "bytes", "checksum");
  for (const StoredFile& file : manifest.files)
    fmt::print("{:<48}  {:>14}  {}\n", file.name, with_thousands(static_cast<int64_t>(file.bytes)), file.checksum);
}

int inspect(const fs::path& path) {
  const Checkpoint checkpoint(locate(path));
  print_summary(checkpoint);
  print_tensors(checkpoint.manifest());
  print_files(checkpoint.manifest());
  return 0;
}

/// Prints a line, or one for each file that is damaged.
bool is_intact(const fs::path& folder) try {
  const Checkpoint checkpoint(folder);
  const auto files = static_cast<int>(checkpoint.manifest().files.size());
  bool is_intact = true;
  for (int file = 0; file < files; ++file)
    if (const auto damage = find_damage(checkpoint, file, files)) {
      fmt::print("damaged: {}\n", *damage);
      is_intact = false;
    }
  if (is_intact)
    fmt::print("{}: intact, step {}, {} files, {}\n", folder.string(), checkpoint.step(), files,
               human_bytes(checkpoint.manifest().bytes()));
  return is_intact;
} catch (const DeniedError&) {
  throw;
} catch (const InputError& error) {
  fmt::print("damaged: {}\n", error.what());
  return false;
}

/// A checkpoint, or all of a folder of them.
int verify(const fs::path& path) {
  const fs::path given = as_spelled(path);
  std::vector<fs::path> folders;
  if (!fs::exists(given / kManifestName))
    for (const Naming& naming : namings_in(given))
      for (const StepFolder& each : step_folders(given, naming)) folders.push_back(each.path);
  if (folders.empty()) folders.push_back(locate(given));
  size_t damaged = 0;
  for (const fs::path& folder : folders) damaged += is_intact(folder) ? 0 : 1;
  if (damaged > 0)
    throw InputError(fmt::format("{}: {} of {} checkpoint{} damaged", path.string(), damaged, folders.size(),
                                 folders.size() == 1 ? " is" : "s are"));
  return 0;
}

std::string described(const Exported& exported) {
  return fmt::format("{} tensors, {} in {} file{}", exported.tensors, human_bytes(exported.bytes), exported.files,
                     exported.files == 1 ? "" : "s");
}

int export_model(const fs::path& path, const ExportOptions& options) {
  Agreement alone;
  const Checkpoint checkpoint = open_checkpoint(path, alone);
  const Exported exported = export_to_hugging_face(checkpoint, options);
  fmt::print("Exported step {} to {}: {}\n", checkpoint.step(), options.output.string(), described(exported));
  return 0;
}

int reshard_checkpoint(const fs::path& path, int ranks, const fs::path& output) {
  Agreement alone;
  const Checkpoint checkpoint = open_checkpoint(path, alone);
  const Exported written = reshard(checkpoint, ranks, output);
  fmt::print("Resharded step {} from {} to {} ranks in {}: {}\n", checkpoint.step(), checkpoint.manifest().world, ranks,
             output.string(), described(written));
  return 0;
}

struct Conversion {
  std::string format = "hf", name_map, config;
  int ranks = 1;
};

/// What a lost file would have held nobody misses but the model.
void require_all_rows(const Weights& weights, const std::vector<Wanted>& model) {
  for (const auto& [name, shape] : model)
    if (weights.has(name) && !shape.empty() && weights.shape(name).at(0) < shape[0])
      throw InputError(fmt::format("{}: {} is {}, but config.json makes it {}; is the file of a rank missing?",
                                   weights.path_of(name).string(), name, to_string(weights.shape(name)),
                                   to_string(shape)));
}

MetaFiles meta_files_of(const ModelFiles& beside, const fs::path& config) {
  const models::ModelConfig model = models::parse_config(beside.config_json, config);
  return {models::meta_params(model), model.head_dim, beside.files};
}

int convert(const fs::path& source, const Conversion& conversion, const ExportOptions& options) {
  auto weights = open_weights(source);
  if (const auto damage = weights->find_damage(0, 1)) throw InputError("damaged: " + *damage);
  const fs::path config = conversion.config.empty() ? config_path_of(source) : fs::path(conversion.config);
  ModelFiles beside{conversion.config.empty() ? config_json_of(source) : read_file(config),
                    files_beside(source)};
  warn_of_left_behind(source);
  const bool is_meta = conversion.format == "meta";
  const bool needs_config = conversion.format == "hf" || is_meta || !conversion.name_map.empty();
  if (needs_config && beside.config_json.empty())
    throw InputError(fmt::format(
        "{}: no such file, and a Hugging Face folder, Meta's form and a map of names need it; name one with --config",
        config.string()));
  if (!conversion.name_map.empty())
    weights = mapped(std::move(weights), NameMap(conversion.name_map),
                     train::wanted_by(models::parse_config(beside.config_json, config)));
  if (weights->may_lack_rows() && !beside.config_json.empty())
    require_all_rows(*weights, train::wanted_by(models::parse_config(beside.config_json, config)));
  beside.config_json = train::as_stored(beside.config_json, *weights);
  const Exported written = conversion.format == "hf"   ? write_hugging_face(*weights, beside, options)
                           : conversion.format == "pt" ? write_torch(*weights, beside, options)
                           : is_meta                   ? write_meta(*weights, meta_files_of(beside, config), options)
                           : conversion.format == "distcp" ? write_distcp(*weights, beside, conversion.ranks, options)
                                                           : write_dcp(*weights, beside, conversion.ranks, options);
  fmt::print("Converted {} to {}: {}\n", source.string(), options.output.string(), described(written));
  return 0;
}

/// The base of an adapter that says which one it is for.
fs::path base_of(const StoredAdapter& adapter) {
  const auto named = adapter.config.find("base_model_name_or_path");
  const std::string base = named != adapter.config.end() && named->is_string() ? named->get<std::string>() : "";
  if (base.empty() || !fs::exists(base))
    throw InputError(
        fmt::format("{}: its base, '{}', is not there; name one with --base", adapter.path.string(), base));
  return base;
}

int merge(const fs::path& folder, const std::string& given_base, const ExportOptions& options) {
  StoredAdapter adapter = open_adapter(folder);
  const fs::path base = given_base.empty() ? base_of(adapter) : fs::path(given_base);
  ModelFiles beside{config_json_of(base), files_beside(base)};
  if (beside.config_json.empty())
    throw InputError(fmt::format("{}: no such file, and the merged model needs it", config_path_of(base).string()));
  const auto weights = merged(open_weights(base), std::move(adapter));
  if (const auto damage = weights->find_damage(0, 1)) throw InputError("damaged: " + *damage);
  beside.config_json = train::as_stored(beside.config_json, *weights);
  const Exported written = write_hugging_face(*weights, beside, options);
  fmt::print("Merged {} and {} in {}: {}\n", base.string(), folder.string(), options.output.string(),
             described(written));
  return 0;
}

/// What the words of a command line name.
struct Chosen {
  std::string folder, output, dtype, base, max_shard_size = "5GB";
  int ranks = 1;
  Conversion conversion;
};

void add_weight_options(CLI::App& command, Chosen& chosen, const char* default_dtype) {
  command.add_option("--output", chosen.output, "Folder to make")->required();
  Arguments types;
  for (const auto& type : kExportTypes) types.push_back(type.first);
  add_word(command, "--dtype", chosen.dtype, types,
           fmt::format("Type of the weights; without it {}", default_dtype));
  command
      .add_option("--max-shard-size", chosen.max_shard_size, "Largest file of a Hugging Face folder: 5GB, 500MB, 4GiB")
      ->capture_default_str();
}

void add_conversion_options(CLI::App& command, Chosen& chosen) {
  command
      .add_option("SOURCE", chosen.folder,
                  "A folder or file of weights: Hugging Face, .pt, PyTorch's DCP, Meta's Llama, or ours")
      ->required();
  add_word(command, "--format", chosen.conversion.format, {"hf", "dcp", "distcp", "pt", "meta"},
           "hf: a Hugging Face folder; distcp: PyTorch's distributed checkpoint; dcp: its safetensors form; pt: "
           "torch.save's; meta: Llama as Meta publishes it");
  add_count(command, "--ranks", chosen.conversion.ranks, {1, 1 << 20}, "Of distcp and dcp: ranks");
  command.add_option("--name-map", chosen.conversion.name_map,
                     "Names of the source as the model's (docs/checkpoints.md)");
  command.add_option("--config", chosen.conversion.config, "config.json, where none lies beside the source");
}

ExportOptions options_of(const Chosen& chosen) {
  const auto max_shard_bytes = parse_bytes(chosen.max_shard_size);
  if (!max_shard_bytes || *max_shard_bytes == 0)
    throw InputError(fmt::format("--max-shard-size {}: a size such as 5GB or 500MB", chosen.max_shard_size));
  ExportOptions options{.output = chosen.output, .dtype = {}, .max_shard_bytes = *max_shard_bytes};
  if (!chosen.dtype.empty()) options.dtype = kExportTypes.at(chosen.dtype);
  return options;
}

}  // namespace

int run_checkpoint(const Arguments& arguments) {
  CLI::App app("Looks into, verifies, exports and converts checkpoints", "trainyard checkpoint");
  app.require_subcommand(1);
  Chosen chosen;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* const command = app.add_subcommand(name, text);
    command->add_option("DIR", chosen.folder, "A checkpoint (…/step-50), or a folder of them: the newest")->required();
    return command;
  };
  CLI::App* const merging =
      add("merge", "Write a whole model: the base with the adapters (LoRA) of DIR, which may be PEFT's");
  merging->add_option("--base", chosen.base, "The weights that the adapters are for; without it those that DIR names");
  add_weight_options(*merging, chosen, "each tensor as the base has it");
  const CLI::App* const inspecting = add("inspect", "Print step, world, tokens, tensors and files");
  const CLI::App* const verifying =
      add("verify", "Compare every file with its checksum; all checkpoints of a folder of them");
  CLI::App* const exporting = add("export", "Write the model as a Hugging Face folder");
  add_weight_options(*exporting, chosen, "float32, as it is stored");
  CLI::App* const resharding = add("reshard", "Write a checkpoint as another number of ranks would have");
  resharding->add_option("--output", chosen.output, "Folder to make, for --checkpoint.dir")->required();
  add_count(*resharding, "--ranks", chosen.ranks, {1, 1 << 20}, "Ranks")->required();
  CLI::App* const converting = app.add_subcommand("convert", "Weights from one form to another");
  add_conversion_options(*converting, chosen);
  add_weight_options(*converting, chosen, "each tensor as it is stored");
  if (const auto code = parse(app, arguments)) return *code;
  if (inspecting->parsed()) return inspect(chosen.folder);
  if (verifying->parsed()) return verify(chosen.folder);
  if (resharding->parsed()) return reshard_checkpoint(chosen.folder, chosen.ranks, chosen.output);
  const ExportOptions options = options_of(chosen);
  refuse_name("checkpoint merge: --base", chosen.base);
  if (converting->parsed()) refuse_name("checkpoint convert: SOURCE", chosen.folder);
  if (merging->parsed()) return merge(chosen.folder, chosen.base, options);
  return converting->parsed() ? convert(chosen.folder, chosen.conversion, options)
                              : export_model(chosen.folder, options);
}

}  // namespace trainyard::cli
