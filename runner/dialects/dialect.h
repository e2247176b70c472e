#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/problem.h"
#include "dialects/document.h"

// What another program calls an option, and what it is here: one table a program, a row a key.
namespace trainyard::dialects {

/// One of their values and ours for it. "true" and "false" stand for all that YAML, TOML and flags write for them.
struct Word {
  std::string_view theirs;
  std::string_view ours;
};

/// Our value for `entry`, where it depends on other keys; "" where there is nothing to set. Throws InputError.
using Compute = std::string (*)(const Entry& entry, const Document& document);
/// The same for a value that follows from what the whole run has, whoever set that.
using Derive = std::string (*)(const Entry& entry, const Document& document, const config::Loaded& run);

/// What becomes of a key: `ours` is a key of the schema, a flag of `launch` (--nnodes), a variable of its ranks
/// (CAPITALS) or a command that is asked for in place of training ("trainyard plan"); "" where there is nothing to set.
/// A key that becomes two of ours has two rows.
/// `theirs` may end in * (all that begin so) or begin with *. (a name in any section); exact rows go first.
struct Row {
  std::string_view theirs;
  std::string_view ours{};
  std::vector<Word> words{};      ///< the values that are taken; empty: any
  Compute compute = nullptr;      ///< in place of words
  Derive derive = nullptr;        ///< the same
  std::string_view why{};         ///< nothing to set: the reason; with words: why no others
  std::string_view remark{};      ///< for the page alone
  std::string_view by_default{};  ///< what they take where the key is absent, and we would not
  std::string_view bare{};        ///< what the flag alone means; "" where it needs a value
  bool is_refused = false;        ///< whatever its value, for the reason in `why`
  std::string_view when{};        ///< the row is for this value alone, and what is given anywhere goes before it
  bool is_noted = false;          ///< sets nothing, whatever its value; a run says why, but for `words`
  Compute reason = nullptr;       ///< beside compute, where that sets nothing: why; "" where nobody asks
  bool is_weak = false;           ///< what is given anywhere goes before it
  bool may_be_auto = false;       ///< "auto" leaves it to what else is given, or to `automatic`
  std::string_view automatic{};   ///< what "auto" is where nothing else is given; "" as it is here
  bool is_tuning = false;         ///< sets nothing, and one note tells of all such keys
};

// The kinds of rows, so that a table reads as what becomes of each key.

/// Their value is ours.
Row takes(std::string_view theirs, std::string_view ours, std::string_view by_default = {});
/// Their words are ours by this list.
Row maps(std::string_view theirs, std::string_view ours, std::vector<Word> words, std::string_view by_default = {});
/// Ours follows from theirs and from other keys; `remark` tells a reader how.
Row follows(std::string_view theirs, std::string_view ours, Compute compute, std::string_view remark,
            std::string_view by_default = {});
/// Ours follows from theirs and from what the run has in the end.
Row derives(std::string_view theirs, std::string_view ours, Derive derive, std::string_view remark,
            std::string_view by_default = {});
/// Ours follows from other keys of theirs, and what is given anywhere goes before it.
Row suggests(std::string_view theirs, std::string_view ours, Compute compute, std::string_view remark);
/// `row`, whose value may be "auto": what else is given, or else `otherwise`.
Row automatic(Row row, std::string_view otherwise = {});
/// Any value is taken, and asks for nothing but speed.
Row tuning(std::string_view theirs);
/// `row`, of which a run says why it sets nothing.
Row because(Row row, Compute reason);
/// Any value is taken; where somebody might expect more of it, `why` is what a run says once. `quiet` are values by
/// which nobody expects anything.
Row no_op(std::string_view theirs, std::string_view why, std::vector<std::string_view> quiet = {});
/// Only these values are taken, which ask for nothing; `why` tells what others would have asked for.
Row only(std::string_view theirs, std::vector<std::string_view> values, std::string_view why);
/// No value is taken.
Row refused(std::string_view theirs, std::string_view why);
/// Where `theirs` is `value`, ours is `value_of_ours` unless it is given: for a word that stands for many settings.
Row brings(std::string_view theirs, std::string_view value, std::string_view ours, std::string_view value_of_ours);
/// torch.compile's mode, of which two launch CUDA graphs: so do we then, where a run can.
Row compile_mode(std::string_view theirs);
/// A word of the command line that needs no value after it.
Row alone(Row row, std::string_view bare);
/// A truth value that needs no word after it.
Row truth(std::string_view theirs, std::string_view ours, std::vector<Word> words);

/// What a key is taken to be where it is left out.
struct Default {
  std::string_view theirs, value;
};

/// One of several programs, or releases of one, whose keys a table holds together.
struct Variant {
  std::string_view name;                  ///< "the HyperPod example"
  std::span<const std::string_view> own;  ///< keys that it alone has: who gives one means its defaults; none: who
                                          ///< gives none of the others' does
  std::span<const Default> defaults;      ///< they go before those of the rows
  std::string_view meaning = "what is left out is as there";  ///< what a run says of it
  std::span<const Word> brings{};         ///< settings of ours that no key of theirs asks for: key and value
  bool is_for_flags = false;                                  ///< its defaults do not hold beside a file of settings
};

struct Dialect {
  std::string_view name;  ///< "torchtitan"
  std::string_view from;  ///< what its keys stand in, for docs
  std::span<const Row> rows;
  void (*check)(const Document& document) = nullptr;  ///< contradictions that no row sees; throws InputError
  std::span<const Variant> variants{};                ///< the first of which a key of its own is given is meant
};

/// A flag of `launch`, or a variable of its ranks.
struct LauncherInput {
  std::string name, value;
  Entry entry;  ///< what it came from
};

struct Translation {
  std::vector<config::Problem> problems;  ///< of keys that are unknown or refused, or contradict others of their layer
  std::vector<config::Setting> settings;
  std::vector<config::Setting> defaults;  ///< what everything that is given anywhere goes before
  std::vector<LauncherInput> launcher;
  std::map<std::string, std::string> instead;  ///< as Loaded::instead
  std::vector<std::string> became;             ///< as Loaded::became
  std::vector<std::string> notes;              ///< as Loaded::notes
  std::string understood;                      ///< whose defaults hold, and by which key; "" where no variant is meant
};

/// What a document stands beside.
struct Beside {
  const config::Loaded* run = nullptr;  ///< what the whole run has; null where nobody knows yet
  bool has_settings_file = false;       ///< ours, or torchtitan's
};

/// What is wrong with single keys is in the result; throws InputError, with file and line, for what contradicts beyond
/// that. What follows from the run is left out where there is none yet.
Translation translate(const Dialect& dialect, const Document& document, const Beside& beside = {});

/// Whether `row` is for `key`, by its name or its pattern.
bool covers(const Row& row, std::string_view key);
bool is_pattern(const Row& row);
/// Whether two names are one key: a name that is known in any section is so in all.
bool is_same_key(const Dialect& dialect, std::string_view one, std::string_view other);
/// The names that might have been meant by `key`; those known in any section in its own.
std::vector<std::string> names_near(const Dialect& dialect, std::string_view key);

/// Whether `given` is the word of a table: in any case, truth values in all that is written for them.
bool is_same_word(std::string_view table, std::string_view given);
/// true for true, yes, on and 1; false for false, no, off and 0, in any case; none for anything else.
std::optional<bool> truth_of(std::string_view text);

}  // namespace trainyard::dialects
