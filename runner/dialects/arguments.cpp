#include "dialects/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "config/problem.h"
#include "config/schema.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

/// "--fsdp-sharding-strategy=X" → {"fsdp_sharding_strategy", "X"}; none for what is no flag.
struct Flag {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Flag> as_flag(const std::string& argument) {
  if (!argument.starts_with("--") || argument.size() == 2) return std::nullopt;
  const size_t equals = argument.find('=');
  Flag flag{argument.substr(2, equals == std::string::npos ? equals : equals - 2), std::nullopt};
  if (equals != std::string::npos) flag.value = argument.substr(equals + 1);
  std::ranges::replace(flag.name, '-', '_');
  return flag;
}

const Row* row_of(const Dialect& dialect, std::string_view key) {
  const auto found = std::ranges::find(dialect.rows, key, &Row::theirs);
  return found == dialect.rows.end() ? nullptr : &*found;
}

/// Names that are known in any section give way to ours: training.batch_size is both.
const Row* pattern_of(const Dialect& dialect, std::string_view key) {
  if (config::find_key(key)) return nullptr;
  const auto is_it = [&](const Row& row) { return is_pattern(row) && covers(row, key); };
  const auto found = std::ranges::find_if(dialect.rows, is_it);
  return found == dialect.rows.end() ? nullptr : &*found;
}

constexpr std::string_view kKwargs = "lr_scheduler_kwargs";

bool is_sectioned(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

/// "checkpoint.no_enable" → "checkpoint.enable"; "" where nothing is negated.
std::string positive_of(std::string_view name) {
  const size_t last = name.rfind('.') + 1;
  if (!name.substr(last).starts_with("no_")) return "";
  return std::string(name.substr(0, last)) + std::string(name.substr(last + 3));
}

/// Flags of one name: the last counts, as with ours.
Document last_of_each(const Document& document) {
  Document result;
  for (auto entry = document.rbegin(); entry != document.rend(); ++entry)
    if (!find(result, entry->key)) result.insert(result.begin(), *entry);
  return result;
}

class Sorter {
 public:
  explicit Sorter(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Sorted sort() {
    find_files();
    for (at_ = 0; at_ < arguments_.size();) {
      const std::string& argument = arguments_[at_++];
      const auto flag = as_flag(argument);
      if (!flag ||
          !(is_file(*flag) || is_trainers(*flag) || is_deepspeeds(*flag) || is_override(*flag) || is_scripts(*flag)))
        sorted_.ours.push_back(argument);
    }
    if (is_deepspeed_ && sorted_.deepspeed.empty() && sorted_.files.empty())
      throw InputError("--deepspeed needs its json after it, or --deepspeed_config FILE");
    sorted_.overrides = last_of_each(sorted_.overrides);
    sorted_.flags = last_of_each(sorted_.flags);
    return std::move(sorted_);
  }

 private:
  /// Whether there is a TOML decides what --section.key means, so files are looked for first.
  void find_files() {
    for (at_ = 0; at_ < arguments_.size();) {
      const auto flag = as_flag(arguments_[at_++]);
      if (!flag || (flag->name != "job.config_file" && flag->name != "config")) continue;
      const std::string path = value_of(*flag);
      sorted_.files.push_back({path, flag->name == "job.config_file" || path.ends_with(".toml")});
    }
  }

  bool is_file(const Flag& flag) {
    if (flag.name != "config" && flag.name != "job.config_file") return false;
    value_of(flag);
    return true;
  }

  bool is_trainers(const Flag& flag) {
    if (flag.name == "fsdp") {
      append(sorted_.trainer, config::on_layer(read_trainer_words(value_or(flag, "true")), config::kFlagLayer));
      return true;
    }
    if (flag.name != "fsdp_config") return false;
    append(sorted_.trainer, json_of(flag, value_of(flag), read_trainer_config));
    return true;
  }

  /// --deepspeed names the json for the Trainer; alone it is DeepSpeed's own, beside --deepspeed_config.
  bool is_deepspeeds(const Flag& flag) {
    const bool is_trainers_own = flag.name == "deepspeed";
    if (!is_trainers_own && flag.name != "deepspeed_config" && flag.name != "deepspeed_config_file") return false;
    const std::string value = is_trainers_own ? value_or(flag, "true") : value_of(flag);
    is_deepspeed_ = is_deepspeed_ || value == "true";
    if (value.empty() || value == "true") return true;
    append(sorted_.deepspeed, json_of(flag, value, read_deepspeed));
    const std::string shown = value.starts_with('{') ? "{…}" : value;
    if (is_trainers_own)
      sorted_.flags.push_back(
          {.key = flag.name, .value = shown, .origin = "--" + flag.name, .layer = config::kFlagLayer});
    return true;
  }

  /// A json, or the file of one: as the Trainer tells them apart.
  Document json_of(const Flag& flag, const std::string& value, Document (*read)(const config::YamlText&)) {
    if (value.starts_with('{')) return config::on_layer(read({"--" + flag.name, value}), config::kFlagLayer);
    return config::on_layer(read(sorted_.read.emplace_back(config::read_text(value))), config::kNamedFileLayer);
  }

  bool is_override(const Flag& flag) {
    if (!sorted_.has_toml() || !is_sectioned(flag.name)) return false;
    const std::string positive = flag.value ? "" : positive_of(flag.name);
    for (const auto& row : {row_of, pattern_of}) {
      if (row(torchtitan(), flag.name)) return add_override(flag, flag.name, value_or(flag, "true"));
      if (!positive.empty() && row(torchtitan(), positive)) return add_override(flag, positive, "false");
    }
    return false;
  }

  bool add_override(const Flag& flag, const std::string& key, const std::string& value) {
    sorted_.overrides.push_back({.key = key, .value = value, .origin = "--" + flag.name, .layer = config::kFlagLayer});
    return true;
  }

  bool is_scripts(const Flag& flag) {
    if (flag.name == kKwargs) return add_kwargs(value_of(flag));
    const Row* const row = row_of(scripts(), flag.name);
    if (!row) return !flag.value && is_negated(flag);
    const std::string value = row->bare.empty() ? value_of(flag) : value_or(flag, std::string(row->bare));
    sorted_.flags.push_back({.key = flag.name, .value = value, .origin = "--" + flag.name, .layer = config::kFlagLayer});
    return true;
  }

  /// `--no_x` of a truth value is `--x false`, as transformers and torchtitan have it.
  bool is_negated(const Flag& flag) {
    const std::string positive = positive_of(flag.name);
    const Row* const row = positive.empty() ? nullptr : row_of(scripts(), positive);
    if (!row || row->bare != "true") return false;
    sorted_.flags.push_back(
        {.key = positive, .value = "false", .origin = "--" + flag.name, .layer = config::kFlagLayer});
    return true;
  }

  /// Its JSON's keys, each with the flag's name before it.
  bool add_kwargs(const std::string& json) {
    for (Entry entry : read_document({fmt::format("--{}", kKwargs), json})) {
      entry.key = fmt::format("{}.{}", kKwargs, entry.key);
      entry.layer = config::kFlagLayer;
      sorted_.flags.push_back(entry);
    }
    return true;
  }

  static void append(Document& document, const Document& more) {
    document.insert(document.end(), more.begin(), more.end());
  }

  /// The last of a flag counts, so -1 is a value and --x none.
  std::string value_of(const Flag& flag) {
    if (flag.value) return *flag.value;
    if (at_ == arguments_.size() || arguments_[at_].starts_with("--"))
      throw InputError(fmt::format("--{} needs a value after it", config::shown(flag.name)));
    return arguments_[at_++];
  }
  std::string value_or(const Flag& flag, const std::string& alone) {
    const bool has_none = at_ == arguments_.size() || arguments_[at_].starts_with("--");
    return !flag.value && has_none ? alone : value_of(flag);
  }

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  bool is_deepspeed_ = false;  ///< --deepspeed was given alone
  Sorted sorted_;
};

bool is_ours(const std::string& name) {
  return config::find_key(name) || config::find_key(positive_of(name));
}

/// Theirs beside a file of theirs, and ours.
std::vector<std::string> names_known(const std::string& name) {
  std::vector<std::string> known = names_near(torchtitan(), name);
  for (const config::Key& key : config::keys()) known.push_back(key.full_name());
  return known;
}

/// A name of torchtitan's is a flag only beside a TOML. Without one the hint is our key of the same meaning.
std::string hint_without_toml(const std::string& name) {
  const Row* const exact = row_of(torchtitan(), name);
  const Row* const row = exact ? exact : pattern_of(torchtitan(), name);
  if (!row || !config::find_key(row->ours)) return "";
  return fmt::format("--{} (torchtitan's name is taken beside a TOML)", row->ours);
}

/// A key of the same name in another section is the better guess, which ours will make.
std::string hint_beside_toml(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  if (std::ranges::any_of(config::keys(), [&](const config::Key& key) { return key.name == last; })) return "";
  const auto near = nearest(name, names_known(name));
  return near ? "--" + *near : "";
}

}  // namespace

bool Sorted::has_toml() const {
  return std::ranges::any_of(files, &NamedFile::is_toml);
}

Sorted sort(const std::vector<std::string>& arguments) {
  return Sorter(arguments).sort();
}

void refuse_misspelt(const Sorted& sorted) {
  std::vector<config::Problem> problems;
  for (const std::string& argument : sorted.ours) {
    const auto flag = as_flag(argument);
    if (!flag || !is_sectioned(flag->name) || is_ours(flag->name)) continue;
    const std::string hint = sorted.has_toml() ? hint_beside_toml(flag->name) : hint_without_toml(flag->name);
    problems.push_back({hint.empty() ? config::unknown_flag(flag->name)
                                     : fmt::format("unknown flag --{}; did you mean {}?", config::shown(flag->name), hint),
                        "--" + flag->name, true});
  }
  config::refuse(problems);
}

}  // namespace trainyard::dialects
