#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/lowercase.h"
#include "base/text.h"
#include "dialects/dialect.h"

namespace trainyard::dialects {
namespace {
using config::shown;

/// A flag of the launcher or a variable for its ranks, which the schema knows nothing of.
bool is_launchers(std::string_view ours) {
  return ours.starts_with("--") || std::isupper(static_cast<unsigned char>(ours.front()));
}

/// Who fills in what is "auto".
constexpr std::string_view kWhoseAuto = "transformers' Trainer";

/// A command in place of training.
constexpr std::string_view kCommand = "trainyard ";

class Translator {
 public:
  Translator(const Dialect& dialect, const Document& document, const Beside& beside)
      : dialect_(dialect), document_(document), beside_(beside) {}

  Translation run() {
    add_defaults_of_variant();
    for (const Entry& entry : document_) translate_entry(entry);
    if (!translation_.problems.empty()) return std::move(translation_);
    tell_of_tuning();
    apply_defaults_of_rows();
    if (dialect_.check) dialect_.check(document_);
    return std::move(translation_);
  }

 private:
  /// What is wrong with a key is kept, as those after it may be wrong too.
  void translate_entry(const Entry& entry) {
    const std::vector<const Row*> rows = rows_of(entry);
    try {
      if (rows.empty()) check_known(entry);
      const size_t before = translation_.became.size();
      for (const Row* const row : rows)
        if (!entry.is_default || !is_set(row->ours)) apply(*row, entry);
      if (rows.size() > 1) drop_repeated(entry, before);
    } catch (const InputError& error) {
      translation_.problems.push_back({error.what(), entry.key, rows.empty()});
    }
  }

  /// Where several rows stand for a key, those that set nothing say nothing beside others that do.
  void drop_repeated(const Entry& entry, size_t before) {
    std::vector<std::string>& became = translation_.became;
    const std::string line = nothing_line(entry, "");
    while (became.size() > before + 1) {
      const auto found = std::find(became.begin() + static_cast<ptrdiff_t>(before), became.end(), line);
      if (found == became.end()) return;
      became.erase(found);
    }
  }

  /// Rows for the entry's very value go before those of its name, and those before patterns.
  [[nodiscard]] std::vector<const Row*> rows_of(const Entry& entry) const {
    std::vector<const Row*> by_value, exact, by_pattern;
    for (const Row& row : dialect_.rows) {
      if (!covers(row, entry.key)) continue;
      if (row.when.empty())
        (is_pattern(row) ? by_pattern : exact).push_back(&row);
      else if (is_same_word(row.when, entry.value))
        by_value.push_back(&row);
    }
    if (!by_value.empty()) return by_value;
    return exact.empty() ? by_pattern : exact;
  }

  static bool is_listed(const Row& row, const std::string& value) {
    return std::ranges::any_of(row.words, [&](const Word& word) { return is_same_word(word.theirs, value); });
  }

  /// A section without keys is no key.
  void check_known(const Entry& entry) const {
    const std::string prefix = entry.key + ".";
    const auto is_inside = [&](const Row& row) { return row.theirs.starts_with(prefix); };
    const bool is_section = std::ranges::any_of(dialect_.rows, is_inside);
    if (is_section && (entry.value == "{}" || entry.value == "null")) return;
    if (is_section) throw InputError(fmt::format("{}: {} holds no keys", entry.origin, shown(entry.key)));
    const auto near = nearest(entry.key, names_near(dialect_, entry.key));
    throw InputError(fmt::format(
        "{}: unknown key {} of {}; {}", entry.origin, shown(entry.key), dialect_.name,
        near ? fmt::format("did you mean {}?", *near) : "docs/coming-from-pytorch.md lists those that are known"));
  }

  void apply(const Row& row, const Entry& entry) {
    if (entry.value == "null") return;
    if (row.may_be_auto && entry.value == "auto") return leave_to_others(row, entry);
    if (row.is_tuning && truth_of(entry.value) != false) tuning_.push_back(&entry);
    const std::string ours = ours_of(row, entry);
    if (row.ours.empty() || ours.empty()) return nothing(row, entry);
    set(row, entry, ours);
  }

  void apply_defaults_of_rows() {
    for (const Row& row : dialect_.rows) {
      if (row.by_default.empty() || is_given(row.theirs) || is_set(row.ours)) continue;
      apply(row, default_entry({row.theirs, row.by_default}, dialect_.name));
    }
  }

  static Entry default_entry(const Default& each, std::string_view whose) {
    return {std::string(each.theirs), std::string(each.value), fmt::format("default of {}", whose), true};
  }

  /// They stand behind what is given, so that what follows from several keys finds them too.
  void add_defaults_of_variant() {
    const Variant* const variant = variant_meant();
    if (!variant) return;
    for (const Default& each : variant->defaults) {
      if (is_given(each.theirs)) continue;
      std::erase_if(document_, [&](const Entry& entry) { return entry.key == each.theirs; });
      document_.push_back(default_entry(each, variant->name));
    }
    for (const Word& each : variant->brings) {
      const Entry entry = default_entry({each.theirs, each.ours}, variant->name);
      translation_.defaults.push_back(setting_of(*config::find_key(each.theirs), entry, entry.value));
    }
  }

  /// The variant by whose defaults what the document leaves out is taken. One without keys of its own is meant where no
  /// other is.
  const Variant* variant_meant() {
    for (const Variant& variant : dialect_.variants) {
      const auto own = std::ranges::find_if(variant.own, [this](std::string_view key) { return is_given(key); });
      const bool is_known = own != variant.own.end();
      if ((!is_known && !variant.own.empty()) || (variant.is_for_flags && beside_.has_settings_file)) continue;
      translation_.understood =
          fmt::format("{}{}: {}", variant.name, is_known ? fmt::format(" ({})", find(document_, *own)->origin) : "",
                      variant.meaning);
      return &variant;
    }
    return nullptr;
  }

  [[nodiscard]] bool is_given(std::string_view key) const {
    const Entry* const entry = find(document_, key);
    return entry && !entry->is_default && entry->value != "null";
  }

  [[nodiscard]] bool is_set(std::string_view ours) const {
    return std::ranges::any_of(by_ours_, [&](const auto& set) { return set.first.second == ours; });
  }

  /// Our value for theirs. Throws InputError where it is refused.
  [[nodiscard]] std::string ours_of(const Row& row, const Entry& entry) const {
    if (row.compute) return row.compute(entry, document_);
    if (row.derive) return beside_.run ? row.derive(entry, document_, *beside_.run) : "";
    if (row.is_noted) return "";
    if (row.words.empty() && !row.is_refused) return entry.value;
    for (const Word& word : row.words)
      if (is_same_word(word.theirs, entry.value)) return std::string(word.ours);
    throw InputError(row.why.empty()
                         ? wrong_word(row, entry)
                         : fmt::format("{}: {} is {}: {}", entry.origin, entry.key, shown(entry.value), row.why));
  }

  static std::string wrong_word(const Row& row, const Entry& entry) {
    std::vector<std::string> known;
    for (const Word& word : row.words) known.emplace_back(word.theirs);
    const auto near = nearest(entry.value, known);
    return fmt::format("{}: {} is '{}'; use {}{}", entry.origin, entry.key, shown(entry.value), fmt::join(known, ", "),
                       near ? fmt::format(" (did you mean {}?)", *near) : "");
  }

  /// The reason is for those who ask for something: not where a value that means nothing is spelt out.
  [[nodiscard]] std::string reason_of(const Row& row, const Entry& entry) const {
    if (row.reason) return row.reason(entry, document_);
    return is_listed(row, entry.value) ? "" : std::string(row.why);
  }

  /// What the run has of ours is its value, by whatever it was set.
  void leave_to_others(const Row& row, const Entry& entry) {
    const config::Key* const key = config::find_key(row.ours);
    if (key && !row.automatic.empty()) {
      const Entry meant = default_entry({row.theirs, row.automatic}, kWhoseAuto);
      translation_.defaults.push_back(setting_of(*key, meant, meant.value));
    }
    if (!key || !beside_.run) return translation_.became.push_back(nothing_line(entry, ""));
    translation_.became.push_back(fmt::format("{}: auto → {} {} ({}, {})", entry.key, row.ours,
                                              shown(config::format_value(key->get(beside_.run->config))),
                                              shown(beside_.run->origin(std::string(row.ours))), entry.origin));
  }

  /// They are many, and one sentence is enough for all.
  void tell_of_tuning() {
    if (tuning_.empty()) return;
    std::vector<std::string> keys;
    for (const Entry* const entry : tuning_) keys.push_back(entry->key);
    translation_.notes.push_back(fmt::format("{}: what tunes speed and memory alone changes nothing here: {}",
                                             tuning_.front()->origin, fmt::join(keys, ", ")));
  }

  static std::string nothing_line(const Entry& entry, const std::string& reason) {
    return fmt::format("{}: {} → nothing{}{} ({})", entry.key, shown(entry.value), reason.empty() ? " to set" : ": ",
                       reason, entry.origin);
  }

  void nothing(const Row& row, const Entry& entry) {
    const std::string reason = reason_of(row, entry);
    translation_.became.push_back(nothing_line(entry, reason));
    if (!reason.empty() && !row.is_tuning)
      translation_.notes.push_back(
          fmt::format("{}: {} {} changes nothing: {}", entry.origin, entry.key, shown(entry.value), reason));
  }

  void set(const Row& row, const Entry& entry, const std::string& ours) {
    std::string meaning = ours;
    if (row.ours.starts_with(kCommand)) {
      translation_.instead.emplace(row.ours.substr(kCommand.size()),
                                   entry.origin.starts_with("--") ? entry.origin : entry.origin + ": " + entry.key);
    } else if (is_launchers(row.ours)) {
      refuse_contradiction(row, entry, meaning);
      translation_.launcher.push_back({std::string(row.ours), ours, entry});
    } else {
      const config::Setting setting = setting_of(*config::find_key(row.ours), entry, ours);
      meaning = config::format_value(setting.value);
      const bool gives_way = !row.when.empty() || row.is_weak, is_weak = entry.is_default || gives_way;
      if (!gives_way) refuse_contradiction(row, entry, meaning);
      (is_weak ? translation_.defaults : translation_.settings).push_back(setting);
    }
    translation_.became.push_back(
        fmt::format("{}: {} → {} {} ({})", entry.key, shown(entry.value), row.ours, shown(meaning), entry.origin));
  }

  static config::Setting setting_of(const config::Key& key, const Entry& entry, const std::string& ours) {
    const bool is_truth = std::holds_alternative<bool>(key.rule.type);
    const auto truth = is_truth ? truth_of(ours) : std::nullopt;
    const std::string subject = fmt::format("{}: {} ({})", entry.origin, entry.key, key.full_name());
    return {&key, config::parse_value(key.rule, truth ? (*truth ? "true" : "false") : ours, subject),
            entry.origin.starts_with("--") ? entry.origin : fmt::format("{} ({})", entry.origin, entry.key),
            entry.layer};
  }

  void refuse_contradiction(const Row& row, const Entry& entry, const std::string& meaning) {
    const std::pair place(entry.layer, std::string(row.ours));
    const auto [before, added] = by_ours_.emplace(place, Meaning{entry, meaning});
    if (added || before->second.value == meaning) return;
    const Entry& first = before->second.entry;
    throw InputError(fmt::format("{}: {} {} contradicts {} {} ({}): {} would be {} and {}; keep one", entry.origin,
                                 entry.key, shown(entry.value), first.key, shown(first.value), first.origin, row.ours,
                                 shown(before->second.value), shown(meaning)));
  }

  struct Meaning {
    Entry entry;
    std::string value;
  };

  const Dialect& dialect_;
  Document document_;
  const Beside& beside_;
  Translation translation_;
  std::map<std::pair<size_t, std::string>, Meaning> by_ours_;  ///< by layer and key
  std::vector<const Entry*> tuning_;
};

}  // namespace

bool is_same_word(std::string_view table, std::string_view given) {
  if (lowercase(table) == lowercase(given)) return true;
  return (table == "true" || table == "false") && truth_of(given) == (table == "true");
}

std::optional<bool> truth_of(std::string_view text) {
  const std::string word = lowercase(text);
  for (const char* const yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (const char* const no : {"false", "no", "off", "0"})
    if (word == no) return false;
  return std::nullopt;
}

Translation translate(const Dialect& dialect, const Document& document, const Beside& beside) {
  return Translator(dialect, document, beside).run();
}

}  // namespace trainyard::dialects
