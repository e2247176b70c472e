#include "dialects/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/check.h"
#include "config/details.h"
#include "config/schema.h"
#include "config/yaml.h"
#include "dialects/arguments.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

/// All that was read. What it comes to is asked more than once, as some of it follows from the rest.
struct Sources {
  size_t files = 0;                     ///< that were read so far
  std::vector<config::YamlText> texts;  ///< as Loaded::texts
  std::vector<std::pair<const Dialect*, Document>> theirs;
  Document deepspeed;                 ///< all json of DeepSpeed's, of which what a key means depends on others
  std::vector<config::Setting> ours;  ///< of our YAML and flags
};

void add(Sources& sources, const std::vector<config::Setting>& settings) {
  sources.ours.insert(sources.ours.end(), settings.begin(), settings.end());
}

/// The document of `dialect`, which is made where there is none: what a key means in it depends on others.
Document& document_of(Sources& sources, const Dialect& dialect) {
  const auto is_it = [&](const auto& each) { return each.first == &dialect; };
  const auto found = std::ranges::find_if(sources.theirs, is_it);
  return found == sources.theirs.end() ? sources.theirs.emplace_back(&dialect, Document{}).second : found->second;
}

/// Adds what is stronger: a key that it gives is the weaker one's no longer.
void override_with(const Dialect& dialect, Document& document, const Document& stronger) {
  std::erase_if(document, [&](const Entry& entry) {
    const auto is_it = [&](const Entry& other) { return is_same_key(dialect, entry.key, other.key); };
    return std::ranges::any_of(stronger, is_it);
  });
  document.insert(document.end(), stronger.begin(), stronger.end());
}

void add_deepspeed(Sources& sources, const config::YamlText& text, size_t layer) {
  override_with(deepspeed(), sources.deepspeed, config::on_layer(read_deepspeed(text), layer));
}

/// The json that it may name counts with it.
void add_accelerate(Sources& sources, const config::YamlText& text, size_t layer) {
  const Document& document =
      sources.theirs.emplace_back(&accelerate(), config::on_layer(read_accelerate(text), layer)).second;
  const std::string json = value_of(document, "deepspeed_config_file", "");
  if (json.empty() || json == "null" || json == "none") return;
  add_deepspeed(sources, sources.texts.emplace_back(config::read_text(json)), layer);
}

void read_source(Sources& sources, const NamedFile& file) {
  const config::YamlText text = sources.texts.emplace_back(config::read_text(file.path));
  const size_t layer = ++sources.files;
  if (file.is_toml)
    override_with(torchtitan(), document_of(sources, torchtitan()), config::on_layer(read_toml(text), layer));
  else if (is_accelerate(text))
    add_accelerate(sources, text, layer);
  else if (is_deepspeed(text))
    add_deepspeed(sources, text, layer);
  else
    add(sources, config::on_layer(config::read_yaml(text), layer));
}

/// Flags of the Trainer that the json goes before are taken out of those that count.
void pass_over_flags(Sources& sources, Document& flags) {
  const auto is_passed_over = [](const Entry& entry) {
    return std::ranges::any_of(beside_a_scheduler().rows, [&](const Row& row) { return covers(row, entry.key); });
  };
  Document passed_over;
  std::ranges::copy_if(flags, std::back_inserter(passed_over), is_passed_over);
  std::erase_if(flags, is_passed_over);
  sources.theirs.emplace_back(&beside_a_scheduler(), passed_over);
}

/// It comes last, as what it leaves to its program's defaults goes before those of flags.
void add_json_of_deepspeed(Sources& sources) {
  if (find(sources.deepspeed, "scheduler.type")) pass_over_flags(sources, document_of(sources, scripts()));
  sources.theirs.emplace_back(&deepspeed(), sources.deepspeed);
}

Sources read_sources(const Sorted& sorted, const std::vector<config::YamlText>& first) {
  Sources sources;
  sources.texts = sorted.read;
  for (const config::YamlText& source : first)
    add(sources, config::on_layer(config::read_yaml(source), ++sources.files));
  for (const NamedFile& file : sorted.files) read_source(sources, file);
  if (sorted.has_toml()) override_with(torchtitan(), document_of(sources, torchtitan()), sorted.overrides);
  sources.theirs.emplace_back(&trainer(), sorted.trainer);
  sources.theirs.emplace_back(&scripts(), sorted.flags);
  override_with(deepspeed(), sources.deepspeed, sorted.deepspeed);
  if (!sources.deepspeed.empty()) add_json_of_deepspeed(sources);
  return sources;
}

/// One key of ours by two flags: which of two values is meant is not ours to guess. Ours are the last of the sources.
void refuse_contradiction(const config::Setting& first, const config::Setting& second) {
  if (first.layer != config::kFlagLayer || second.layer != config::kFlagLayer) return;
  if (first.key != second.key || first.value == second.value) return;
  const std::string name = second.origin == "flag" ? "--" + second.key->full_name() : second.origin;
  throw InputError(fmt::format("{} contradicts {}: {} would be {} and {}; keep one", first.origin, name,
                               first.key->full_name(), config::format_value(first.value),
                               config::format_value(second.value)));
}

/// What is to be set, in no order yet.
struct Gathered {
  std::vector<config::Setting> defaults, given;
};

void gather(Gathered& gathered, const std::vector<config::Setting>& more) {
  for (const config::Setting& one : gathered.given)
    for (const config::Setting& other : more) refuse_contradiction(one, other);
  gathered.given.insert(gathered.given.end(), more.begin(), more.end());
}

void take(config::Loaded& loaded, Gathered& gathered, Translation translation) {
  gather(gathered, translation.settings);
  std::ranges::move(translation.defaults, std::back_inserter(gathered.defaults));
  std::ranges::move(translation.became, std::back_inserter(loaded.became));
  std::ranges::move(translation.notes, std::back_inserter(loaded.notes));
  if (!translation.understood.empty()) loaded.understood.push_back(translation.understood);
  loaded.instead.merge(translation.instead);
}

/// A default falls away where another key is given that says the same another way.
void drop_displaced(Gathered& gathered) {
  std::erase_if(gathered.defaults, [&](const config::Setting& theirs) {
    return std::ranges::any_of(gathered.given,
                               [&](const config::Setting& given) { return config::excludes(*theirs.key, *given.key); });
  });
}

/// Whether a file of settings is among them, ours or torchtitan's: not one of `accelerate config`, which is no run's.
bool has_settings_file(const Sources& sources) {
  const auto is_titan = [](const auto& each) { return each.first == &torchtitan(); };
  const auto is_of_file = [](const config::Setting& setting) { return setting.layer != config::kFlagLayer; };
  return std::ranges::any_of(sources.theirs, is_titan) || std::ranges::any_of(sources.ours, is_of_file);
}

/// What the json says and flags say otherwise, as "ds.json:5 (optimizer.params.lr) is 3e-05 and --lr 1e-4".
std::vector<std::string> mismatches(const Translation& json, const Translation& flags) {
  std::vector<std::string> found;
  for (const config::Setting& one : json.settings)
    for (const config::Setting& other : flags.settings)
      if (one.key == other.key && one.value != other.value && other.layer == config::kFlagLayer)
        found.push_back(fmt::format("{} is {} and {} {}", one.origin, config::format_value(one.value), other.origin,
                                    config::format_value(other.value)));
  return found;
}

/// The same of a type that the json turns off and a flag turns on.
std::vector<std::string> mismatched_types(const Document& json, const Document& flags) {
  std::vector<std::string> found;
  for (const std::string type : {"bf16", "fp16"}) {
    const Entry *const one = find(json, type + ".enabled"), *const other = find(flags, type);
    if (one && other && truth_of(one->value) == false && truth_of(other->value) == true)
      found.push_back(fmt::format("{} ({}) is false and {} true", one->origin, one->key, other->origin));
  }
  return found;
}

/// The Trainer refuses it, and tells of all: which of two values is meant is not to be guessed.
void refuse_mismatches(const Sources& sources, const std::vector<Translation>& translations) {
  if (sources.deepspeed.empty()) return;
  const auto at = [&](const Dialect& dialect) {
    return static_cast<size_t>(
        std::ranges::find(sources.theirs, &dialect, [](const auto& each) { return each.first; }) -
        sources.theirs.begin());
  };
  std::vector<std::string> found = mismatched_types(sources.deepspeed, sources.theirs[at(scripts())].second);
  for (const Dialect* const flags : {&scripts(), &trainer()})
    std::ranges::move(mismatches(translations[at(deepspeed())], translations[at(*flags)]), std::back_inserter(found));
  if (!found.empty())
    throw InputError(fmt::format("{}; write \"auto\" there, or leave the flag{} out", fmt::join(found, "; "),
                                 found.size() == 1 ? "" : "s"));
}

/// What each source says, in order; what is wrong in any is told at once.
std::vector<Translation> translations_of(const Sources& sources, const config::Loaded* run) {
  const Beside beside{.run = run, .has_settings_file = has_settings_file(sources)};
  std::vector<Translation> translations;
  std::vector<config::Problem> problems;
  for (const auto& [dialect, document] : sources.theirs) {
    const Translation& one = translations.emplace_back(translate(*dialect, document, beside));
    problems.insert(problems.end(), one.problems.begin(), one.problems.end());
  }
  config::refuse(problems);
  refuse_mismatches(sources, translations);
  return translations;
}

/// The sources' settings, the weakest first; those that follow from `run` only where there is one.
config::Loaded merged(const Sources& sources, const config::Loaded* run) {
  config::Loaded loaded;
  Gathered gathered;
  for (Translation& each : translations_of(sources, run)) take(loaded, gathered, std::move(each));
  gather(gathered, sources.ours);
  drop_displaced(gathered);
  config::set_all(loaded, gathered.defaults);
  std::ranges::stable_sort(gathered.given, {}, &config::Setting::layer);
  config::set_all(loaded, gathered.given);
  return loaded;
}

/// Warm-up follows from the steps, and the steps at the peak from both.
constexpr int kRounds = 2;

}  // namespace

std::vector<std::string> accelerate_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const NamedFile& file : sort(arguments).files)
    if (!file.is_toml && is_accelerate(config::read_text(file.path))) paths.push_back(file.path);
  return paths;
}

bool names_file(const std::vector<std::string>& arguments) {
  const Sorted sorted = sort(arguments);
  return !sorted.files.empty() || !sorted.deepspeed.empty();
}

config::Loaded load(const std::vector<std::string>& arguments, const std::vector<config::YamlText>& first) {
  const Sorted sorted = sort(arguments);
  Sources sources = read_sources(sorted, first);
  refuse_misspelt(sorted);
  config::Arguments ours = config::read_arguments(sorted.ours);
  add(sources, ours.settings);
  config::Loaded loaded = merged(sources, nullptr);
  for (int round = 0; round < kRounds; ++round) loaded = merged(sources, &loaded);
  config::drop_idle(loaded);
  loaded.texts = std::move(sources.texts);
  loaded.rest = std::move(ours.rest);
  return loaded;
}

namespace {

std::string name_of(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

/// What was probably meant by `argument`, of `known` first.
std::string hint_for(const std::string& argument, const std::vector<std::string>& known) {
  if (!argument.starts_with("--")) return "--help lists all";
  if (const auto near = nearest(name_of(argument), known)) return fmt::format("did you mean {}?", *near);
  const std::string hint = config::suggest_key("", name_of(argument).substr(2), "--");
  return hint.empty() ? "--help lists all" : hint;
}

}  // namespace

void refuse(const std::vector<std::string>& rest, const std::vector<std::string>& own) {
  if (rest.empty()) return;
  std::vector<std::string> known{"--config",      "--job.config_file", "--device",          "--fsdp",
                                 "--fsdp_config", "--deepspeed",       "--deepspeed_config"};
  known.insert(known.end(), own.begin(), own.end());
  for (const Row& row : scripts().rows) known.push_back(fmt::format("--{}", row.theirs));
  std::vector<std::string> others;
  for (size_t i = 1; i < rest.size(); ++i)
    if (rest[i].starts_with("--")) others.push_back(config::shown(name_of(rest[i])));
  throw InputError(fmt::format("unknown argument {}; {}{}{}", config::shown(rest.front()),
                               hint_for(rest.front(), known), others.empty() ? "" : "; unknown besides: ",
                               fmt::join(others, ", ")));
}

}  // namespace trainyard::dialects
