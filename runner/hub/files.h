#pragma once

#include <span>
#include <string>
#include <vector>

// Which files of a repository are needed. Names are as the hub lists them: relative, with '/' between folders.
namespace trainyard::hub {

using FileNames = std::vector<std::string>;

/// What a model's repository is asked for.
enum class Need {
  Config,     ///< config.json alone: a plan, or a model with random weights
  Tokenizer,  ///< the files that make texts of ids, and config.json where there is one
  Weights,    ///< all to train from it and to export it again: config.json, the weights, the tokenizer, a licence
};

/// Those of `there` that `need` takes, in the order of `there`. Of weights one form is taken: safetensors, else what
/// torch.save wrote; files in folders of the repository are none of them.
FileNames needed(Need need, const FileNames& there);

/// What `there`, a repository or a part of one on the disk, lacks of `need`: "config.json". "" where it is enough.
std::string lacking(Need need, const FileNames& there);

/// Those of `there` whose last part is one of `patterns`, with * ? [ ] as in a shell, as torchtitan's
/// download_hf_assets.py takes them.
FileNames matching(std::span<const std::string> patterns, const FileNames& there);

/// The patterns of torchtitan's --assets WORD; none of a word that it does not know.
std::vector<std::string> patterns_of_assets(const std::string& word);
inline constexpr const char* kAssetWords = "tokenizer, safetensors, index, config";

}  // namespace trainyard::hub
