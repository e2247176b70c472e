#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "hub/fetch.h"
#include "rendezvous/place.h"
#include "s3/fetch.h"

namespace trainyard::cli {
namespace {
namespace fs = std::filesystem;

struct DownloadOptions {
  std::string name, repo_id, revision, local_dir, token;
  std::vector<std::string> assets, patterns;
  bool takes_all = false;
  hub::RepoKind kind = hub::RepoKind::Model;
};

void add_options(CLI::App& app, DownloadOptions& options) {
  app.add_option("NAME", options.name,
                 "org/name or org/name@revision: into the cache, or into --local_dir itself; s3://bucket/key: into the "
                 "cache");
  app.add_option("--repo_id", options.repo_id, "as torchtitan's script: org/name, into the folder name of --local_dir")
      ->excludes("NAME");
  app.add_option("--local_dir", options.local_dir,
                 "folder to download to; default: the cache, with --repo_id assets/hf");
  app.add_option("--revision", options.revision, "a branch, a tag or a commit; default: main");
  app.add_option("--assets", options.assets, fmt::format("what of a model: {}, all", hub::kAssetWords))
      ->expected(1, -1);
  app.add_option("--additional_patterns", options.patterns, "other files, such as '*.md'")->expected(1, -1);
  app.add_flag("--all", options.takes_all, "every file; default with NAME: what training needs");
  app.add_option("--hf_token", options.token, "in place of HF_TOKEN; others of this machine can see it");
  add_choice<hub::RepoKind>(app, "--repo_type", options.kind,
                            {{"model", hub::RepoKind::Model}, {"dataset", hub::RepoKind::Dataset}},
                            "what NAME is; of a data set every file is taken");
}

hub::Name name_of(const DownloadOptions& options) {
  const std::string& text = options.name.empty() ? options.repo_id : options.name;
  if (text.empty()) throw InputError("download: name a repository: trainyard download org/name");
  auto name = hub::parse_name(text, options.kind);
  if (!name) throw InputError(fmt::format("download: '{}' is no name: {}", text, hub::kNameRule));
  if (options.revision.empty()) return *name;
  if (!hub::is_revision(options.revision))
    throw InputError(
        fmt::format("download: --revision is '{}'; a branch, a tag or a commit is needed", options.revision));
  name->revision = options.revision;
  return *name;
}

/// One word of --assets, or the patterns beside them.
struct Part {
  std::string name;
  std::vector<std::string> patterns;
};

std::vector<Part> parts_of(const DownloadOptions& options) {
  std::vector<Part> parts;
  for (const std::string& word : options.assets) {
    parts.push_back({"--assets " + word, hub::patterns_of_assets(word)});
    if (parts.back().patterns.empty())
      throw InputError(fmt::format("download: --assets is '{}'; known are {}, all", word, hub::kAssetWords));
  }
  if (!options.patterns.empty()) parts.push_back({"--additional_patterns", options.patterns});
  return parts;
}

/// What any of `parts` names. Warns of one that names nothing.
hub::FileNames chosen_by(const std::vector<Part>& parts, const hub::FileNames& there, const std::string& name) {
  std::vector<std::string> patterns;
  for (const Part& part : parts) {
    if (hub::matching(part.patterns, there).empty()) spdlog::warn("{} has no file of {}", name, part.name);
    patterns.insert(patterns.end(), part.patterns.begin(), part.patterns.end());
  }
  const hub::FileNames chosen = hub::matching(patterns, there);
  if (chosen.empty())
    throw InputError(fmt::format("{} has none of the files that were asked for; it has {}", name, shortened(there)));
  return chosen;
}

hub::Choice choice_of(DownloadOptions options, const hub::Name& name) {
  if (std::erase(options.assets, "all") > 0 || options.kind == hub::RepoKind::Dataset) options.takes_all = true;
  const auto lacks_nothing = [](const hub::FileNames&) { return std::string(); };
  if (options.takes_all) return {.chosen = [](const hub::FileNames& there) { return there; }, .lacking = lacks_nothing};
  const std::vector<Part> parts = parts_of(options);
  if (parts.empty() && options.name.empty())
    throw InputError(
        "download: --repo_id needs --all, --assets or --additional_patterns; trainyard download org/name "
        "takes what training needs");
  if (!parts.empty())
    return {.chosen = [parts, name](const auto& there) { return chosen_by(parts, there, hub::to_string(name)); },
            .lacking = lacks_nothing};
  return hub::choice_of(hub::Need::Weights);
}

/// The folder that was named; "": the cache.
fs::path folder_of(const DownloadOptions& options, const hub::Name& name) {
  if (options.repo_id.empty()) return options.local_dir;
  const fs::path top = options.local_dir.empty() ? "assets/hf" : options.local_dir;
  return top / name.repo.substr(name.repo.find('/') + 1);
}

/// Names of S3 have no revisions, and what is asked for is all that is there.
int download_objects(const DownloadOptions& options) {
  if (!options.local_dir.empty() || !options.revision.empty() || !options.token.empty() || !options.assets.empty() ||
      !options.patterns.empty())
    throw InputError(
        fmt::format("download: {} goes into the cache, whole, and takes no other flag; `aws s3 sync` fills a folder",
                    options.name));
  const s3::Settings settings = s3::settings_of(rendezvous::process_environment());
  s3::Client client(settings);
  const s3::Fetched fetched = s3::fetch(client, s3::parse_wanted(options.name));
  spdlog::info("{}: version {}, {} files, of which {} were downloaded, {}", options.name, fetched.version,
               fetched.files, fetched.downloaded, human_bytes(fetched.bytes));
  fmt::print("{}\n", fetched.path.string());
  return 0;
}

}  // namespace

int run_download(const Arguments& arguments) {
  CLI::App app(
      "Fetches a model or a data set from the Hugging Face hub, and prints the folder in which it lies: as "
      "huggingface_hub has it in its cache, or as torchtitan's scripts/download_hf_assets.py (docs/hub.md). Objects of "
      "S3 (docs/s3.md) likewise.",
      "trainyard download");
  DownloadOptions options;
  add_options(app, options);
  if (const auto code = parse(app, arguments)) return *code;
  if (s3::is_name(options.name)) return download_objects(options);
  const hub::Name name = name_of(options);
  const hub::Choice choice = choice_of(options, name);
  hub::Settings settings = hub::settings_of(rendezvous::process_environment());
  if (!options.token.empty()) settings.token = hub::clean_token(options.token, "--hf_token");
  const fs::path folder = folder_of(options, name);
  const hub::Fetched fetched =
      folder.empty() ? hub::fetch(name, choice, settings) : hub::fetch_into(folder, name, choice, settings);
  spdlog::info("{}: commit {}, {} files, of which {} were downloaded, {}", hub::to_string(name), fetched.commit,
               fetched.files, fetched.downloaded, human_bytes(fetched.bytes));
  fmt::print("{}\n", fetched.folder.string());
  return 0;
}

}  // namespace trainyard::cli
