#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/reader.h"
#include "cli/command.h"
#include "cli/parse.h"

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

/// A checkpoint, or all of a folder of them.
int verify(const fs::path& path) {
  std::vector<fs::path> folders{locate(path)};
  if (folders[0] != path) {
    folders.clear();
    for (const StepFolder& each : step_folders(path)) folders.push_back(each.path);
  }
  for (const fs::path& folder : folders) {
    const Checkpoint checkpoint(folder);
    if (const auto damage = find_damage(checkpoint)) throw InputError("damaged: " + *damage);
    fmt::print("{}: intact, step {}, {} files, {}\n", folder.string(), checkpoint.step(),
               checkpoint.manifest().files.size(), human_bytes(checkpoint.manifest().bytes()));
  }
  return 0;
}

int export_model(const fs::path& path, const ExportOptions& options) {
  Agreement alone;
  const Checkpoint checkpoint = open_checkpoint(path, alone);
  const Exported exported = export_to_hugging_face(checkpoint, options);
  fmt::print("Exported step {} to {}: {} tensors, {} in {} file{}\n", checkpoint.step(), options.output.string(),
             exported.tensors, human_bytes(exported.bytes), exported.files, exported.files == 1 ? "" : "s");
  return 0;
}

}  // namespace

int run_checkpoint(const Arguments& arguments) {
  CLI::App app("Looks into, verifies and exports checkpoints", "trainyard checkpoint");
  app.require_subcommand(1);
  std::string folder;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* const command = app.add_subcommand(name, text);
    command->add_option("DIR", folder, "A checkpoint (…/step-50), or a folder of them: the newest")->required();
    return command;
  };
  const CLI::App* const inspecting = add("inspect", "Print step, world, tokens, tensors and files");
  const CLI::App* const verifying =
      add("verify", "Compare every file with its checksum; all checkpoints of a folder of them");
  CLI::App* const exporting = add("export", "Write the model as a Hugging Face folder");
  ExportOptions options;
  std::string output, dtype = "float32", max_shard_size = "5GB";
  exporting->add_option("--output", output, "Folder to make")->required();
  exporting->add_option("--dtype", dtype, "Type of the weights")
      ->transform(CLI::IsMember(kExportTypes, CLI::ignore_case))
      ->capture_default_str();
  exporting->add_option("--max-shard-size", max_shard_size, "Largest file of weights: 5GB, 500MB, 4GiB")
      ->capture_default_str();
  if (const auto code = parse(app, arguments)) return *code;
  if (inspecting->parsed()) return inspect(folder);
  if (verifying->parsed()) return verify(folder);
  options.output = output;
  options.dtype = kExportTypes.at(dtype);
  const auto max_shard_bytes = parse_bytes(max_shard_size);
  if (!max_shard_bytes || *max_shard_bytes == 0)
    throw InputError(fmt::format("--max-shard-size {}: a size such as 5GB or 500MB", max_shard_size));
  options.max_shard_bytes = *max_shard_bytes;
  return export_model(folder, options);
}

}  // namespace trainyard::cli
