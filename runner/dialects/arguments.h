#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dialects/document.h"

// What is given on a command line, by who understands it.
namespace trainyard::dialects {

struct NamedFile {
  std::string path;
  bool is_toml = false;  ///< torchtitan's
};

struct Sorted {
  std::vector<NamedFile> files;  ///< in order
  Document overrides;            ///< torchtitan's names, where a file of its is among them
  Document trainer;              ///< --fsdp and --fsdp_config
  Document deepspeed;            ///< the json of --deepspeed and --deepspeed_config
  std::vector<config::YamlText> read;  ///< files of --fsdp_config and those
  Document flags;                ///< of training scripts; of one name the last, as with ours
  std::vector<std::string> ours;

  [[nodiscard]] bool has_toml() const;
};

/// Throws InputError for a flag without its value, and for a file of --fsdp_config or --deepspeed that cannot be read.
Sorted sort(const std::vector<std::string>& arguments);

/// Throws InputError, as config::refuse() does, for flags --section.key of `sorted.ours` that do not exist.
void refuse_misspelt(const Sorted& sorted);

}  // namespace trainyard::dialects
