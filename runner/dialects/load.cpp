#include "dialects/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/check.h"
#include "config/yaml.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

/// The arguments by who understands them.
struct Sorted {
  std::vector<std::string> files;  ///< in order
  std::optional<std::string> toml;
  Document overrides;  ///< of the TOML
  Document trainer;    ///< --fsdp and --fsdp_config
  Document flags;      ///< of training scripts
  std::vector<std::string> ours;
};

bool is_toml(const std::string& path) {
  return path.ends_with(".toml");
}

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

class Sorter {
 public:
  explicit Sorter(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Sorted sort() {
    find_toml();
    for (at_ = 0; at_ < arguments_.size();) {
      const std::string& argument = arguments_[at_++];
      const auto flag = as_flag(argument);
      if (!flag || !(is_file(*flag) || is_trainers(*flag) || is_override(*flag) || is_scripts(*flag)))
        sorted_.ours.push_back(argument);
    }
    return std::move(sorted_);
  }

 private:
  /// Whether there is one decides what --section.key means, so it is looked for first.
  void find_toml() {
    for (at_ = 0; at_ < arguments_.size();) {
      const auto flag = as_flag(arguments_[at_++]);
      if (!flag || (flag->name != "job.config_file" && flag->name != "config")) continue;
      const std::string path = flag->value || at_ < arguments_.size() ? value_of(*flag) : "";
      if (path.empty() || (flag->name == "config" && !is_toml(path))) continue;
      if (sorted_.toml) throw InputError(fmt::format("{} and {} are two TOML files; give one", *sorted_.toml, path));
      sorted_.toml = path;
    }
  }

  bool is_file(const Flag& flag) {
    if (flag.name != "config" && flag.name != "job.config_file") return false;
    sorted_.files.push_back(value_of(flag));
    return true;
  }

  bool is_trainers(const Flag& flag) {
    if (flag.name == "fsdp") {
      append(sorted_.trainer, read_trainer_words(value_of(flag)));
      return true;
    }
    if (flag.name != "fsdp_config") return false;
    const std::string value = value_of(flag);
    const bool is_json = value.starts_with('{');  // as the Trainer tells it from a path
    append(sorted_.trainer,
           read_trainer_config(is_json ? config::YamlText{"--fsdp_config", value} : config::read_text(value)));
    return true;
  }

  bool is_override(const Flag& flag) {
    if (!sorted_.toml || flag.name.find('.') == std::string::npos) return false;
    if (row_of(torchtitan(), flag.name)) {
      sorted_.overrides.push_back({flag.name, value_or(flag, "true"), "--" + flag.name});
      return true;
    }
    const size_t name = flag.name.rfind('.') + 1;
    const std::string positive = flag.name.substr(0, name) + flag.name.substr(std::min(name + 3, flag.name.size()));
    if (flag.value || flag.name.compare(name, 3, "no_") != 0 || !row_of(torchtitan(), positive)) return false;
    sorted_.overrides.push_back({positive, "false", "--" + flag.name});
    return true;
  }

  bool is_scripts(const Flag& flag) {
    const Row* const row = row_of(scripts(), flag.name);
    if (!row) return false;
    const std::string value = row->bare.empty() ? value_of(flag) : value_or(flag, std::string(row->bare));
    sorted_.flags.push_back({flag.name, value, "--" + flag.name});
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
  Sorted sorted_;
};

/// Flags of one name: the last counts, as with ours.
Document last_of_each(const Document& document) {
  Document result;
  for (auto entry = document.rbegin(); entry != document.rend(); ++entry)
    if (!find(result, entry->key)) result.insert(result.begin(), *entry);
  return result;
}

/// The file's keys, those that a flag gives in the flag's words.
Document overridden(Document document, const Document& flags) {
  std::erase_if(document, [&](const Entry& entry) { return find(flags, entry.key) != nullptr; });
  document.insert(document.end(), flags.begin(), flags.end());
  return document;
}

/// What is to be set, the weakest first.
struct Gathered {
  std::vector<config::Setting> defaults, files, flags;
};

void take(config::Loaded& loaded, Gathered& gathered, Translation translation) {
  std::ranges::move(translation.defaults, std::back_inserter(gathered.defaults));
  for (config::Setting& setting : translation.settings) {
    const bool is_flag = setting.origin.starts_with("--");  // a TOML's keys may be flags too
    (is_flag ? gathered.flags : gathered.files).push_back(std::move(setting));
  }
  std::ranges::move(translation.became, std::back_inserter(loaded.became));
  std::ranges::move(translation.notes, std::back_inserter(loaded.notes));
}

void read_source(config::Loaded& loaded, Gathered& gathered, const std::string& path, const Sorted& sorted) {
  const config::YamlText text = config::read_text(path);
  if (sorted.toml == path) {
    const Document document = overridden(read_toml(text), last_of_each(sorted.overrides));
    return take(loaded, gathered, translate(torchtitan(), document));
  }
  if (is_accelerate(text)) return take(loaded, gathered, translate(accelerate(), read_accelerate(text)));
  std::ranges::move(config::read_yaml(text), std::back_inserter(gathered.files));
}

/// A default falls away where another key is given that says the same another way.
void drop_displaced(Gathered& gathered) {
  const auto displaces = [&](const config::Setting& theirs, const std::vector<config::Setting>& given) {
    return std::ranges::any_of(given, [&](const auto& setting) { return config::excludes(*theirs.key, *setting.key); });
  };
  std::erase_if(gathered.defaults, [&](const config::Setting& theirs) {
    return displaces(theirs, gathered.files) || displaces(theirs, gathered.flags);
  });
}

/// One key of ours by two flags: which of two values is meant is not ours to guess. Ours are the last of the sources.
void refuse_contradiction(const std::vector<config::Setting>& ones, const std::vector<config::Setting>& others) {
  for (const config::Setting& one : ones)
    for (const config::Setting& other : others)
      if (one.key == other.key && one.value != other.value) {
        const std::string name = other.origin == "flag" ? "--" + other.key->full_name() : other.origin;
        throw InputError(fmt::format("{} contradicts {}: {} would be {} and {}; keep one", one.origin, name,
                                     one.key->full_name(), config::format_value(one.value),
                                     config::format_value(other.value)));
      }
}

void refuse_contradictions(std::initializer_list<std::vector<config::Setting>> sources) {
  for (const auto* one = sources.begin(); one != sources.end(); ++one)
    for (const auto* other = one + 1; other != sources.end(); ++other) refuse_contradiction(*one, *other);
}

}  // namespace

std::vector<std::string> accelerate_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> files = Sorter(arguments).sort().files;
  std::erase_if(files,
                [](const std::string& file) { return is_toml(file) || !is_accelerate(config::read_text(file)); });
  return files;
}

config::Loaded load(const std::vector<std::string>& arguments, const std::vector<config::YamlText>& first) {
  const Sorted sorted = Sorter(arguments).sort();
  config::Loaded loaded;
  Gathered gathered;
  for (const config::YamlText& source : first)
    std::ranges::move(config::read_yaml(source), std::back_inserter(gathered.files));
  for (const std::string& file : sorted.files) read_source(loaded, gathered, file, sorted);
  config::Arguments ours = config::read_arguments(sorted.ours);
  Translation by_trainer = translate(trainer(), sorted.trainer);
  Translation by_scripts = translate(scripts(), last_of_each(sorted.flags));
  refuse_contradictions({gathered.flags, by_trainer.settings, by_scripts.settings, ours.settings});
  take(loaded, gathered, std::move(by_trainer));
  take(loaded, gathered, std::move(by_scripts));
  std::ranges::move(ours.settings, std::back_inserter(gathered.flags));
  drop_displaced(gathered);
  for (const auto& settings : {gathered.defaults, gathered.files, gathered.flags}) config::set_all(loaded, settings);
  config::drop_overridden(loaded);
  loaded.rest = std::move(ours.rest);
  return loaded;
}

void refuse(const std::vector<std::string>& rest, const std::vector<std::string>& own) {
  if (rest.empty()) return;
  std::vector<std::string> known{"--config", "--job.config_file", "--device", "--fsdp", "--fsdp_config"};
  known.insert(known.end(), own.begin(), own.end());
  for (const Row& row : scripts().rows) known.push_back(fmt::format("--{}", row.theirs));
  const std::string& given = rest.front();
  const auto near = given.starts_with("--") ? nearest(given.substr(0, given.find('=')), known) : std::nullopt;
  if (near) throw InputError(fmt::format("unknown argument {}; did you mean {}?", config::shown(given), *near));
  config::refuse(rest);
}

}  // namespace trainyard::dialects
