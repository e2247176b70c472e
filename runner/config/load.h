#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/schema.h"
#include "config/setting.h"

// Files and flags become a Config here. The environment is no source: it says where a process is, not what it trains.
namespace trainyard::config {

/// Where a value came from.
struct Origin {
  std::string text = "default";  ///< "train.yaml:14" or "flag"
  size_t layer = kDefaultLayer;
};

/// A Config, and where each of its values came from.
struct Loaded {
  Config config;
  std::map<std::string, Origin> origins;  ///< by key, "training.steps"; absent: the default
  std::vector<std::string> rest;    ///< arguments that set nothing, in order; the caller takes or refuses them
  std::vector<std::string> became;  ///< of each key in another program's spelling (dialects/), a line: what it set
  std::vector<std::string> understood{};  ///< which other program's words were read, and by what they were known
  /// Commands that another program's key asks for in place of training, and by which: "plan" → "--comm.mode".
  std::map<std::string, std::string> instead{};
  std::vector<std::string> notes;   ///< those that were accepted and change nothing, a line each with the reason
  std::vector<YamlText> texts{};    ///< of the files that were read, as they were then; of no demonstration

  /// "train.yaml:14", "flag" or "default".
  [[nodiscard]] std::string origin(const std::string& key) const;
  [[nodiscard]] size_t layer(const std::string& key) const;
  /// How an error begins: "train.yaml:14: training.steps", "--training.steps", or "training.steps" for a default.
  [[nodiscard]] std::string subject(const std::string& key) const;
  /// The same with its value: "train.yaml:14: training.steps is 100".
  [[nodiscard]] std::string statement(const std::string& key) const;
};

/// The arguments of a command by their kind, each kind in order.
struct Arguments {
  std::vector<std::string> files;  ///< of --config
  std::vector<Setting> settings;   ///< of flags
  std::vector<std::string> rest;   ///< what is neither
};

/// Throws InputError for a flag --section.key that does not exist, or whose value does not fit.
Arguments read_arguments(const std::vector<std::string>& arguments);

/// The error for a flag --section.key that does not exist, with the one that was probably meant.
std::string unknown_flag(const std::string& name);

/// Sets them in order: the last of a key stays.
void set_all(Loaded& loaded, const std::vector<Setting>& settings);

/// The text of a configuration file. Throws InputError for one that cannot be read or is too large to be one.
YamlText read_text(const std::string& path);

/// Reads `arguments`: `--config FILE` (may be repeated: later files win), `--section.key value`, `--section.key=value`
/// (flags win over files, the last of a kind over those before), `--section.key` and `--section.no_key` of a truth
/// value, `--device cuda` for `--device.kind cuda`. `first` is read before any file: the defaults of a demonstration.
/// Everything else is left in Loaded::rest. Values are checked one by one; check() judges them together.
/// Throws InputError: "<file>:<line>: <key> is '<value>'; it must be …".
Loaded load(const std::vector<std::string>& arguments, const std::vector<YamlText>& first = {});

/// Throws InputError for the first of `rest`, naming the flag that was probably meant; returns where `rest` is empty.
void refuse(const std::vector<std::string>& rest);

}  // namespace trainyard::config
