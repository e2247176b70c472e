#include "tokenizer/text/splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

std::unique_ptr<Pattern> pattern_of(const SplitRule& rule, std::string_view where) {
  try {
    return runs_in_oniguruma(rule) ? oniguruma_pattern(rule.pattern) : pcre2_pattern(rule.pattern, rule.syntax);
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("{}: split pattern '{}': {}", where, rule.pattern, error.what()));
  }
}

/// Of a published pattern no match goes on from another character to a space, none but of white space alone looks at what
/// is behind it, and each space begins one. A line feed alone, between other characters, ends one, too.
bool ends_at_words(const SplitRule& rule) {
  const bool is_published = rule.pattern == kGpt2Pattern || rule.pattern == kLlama3Pattern || rule.pattern == kQwen2Pattern;
  return is_published && rule.syntax != PatternSyntax::Literal && rule.behavior == SplitBehavior::Isolated;
}

/// Whether the matches have no white space in them and depend on nothing around them, so that the rule before or behind
/// this one decides about the ends of words.
bool leaves_spaces(const SplitRule& rule) {
  const bool is_digits = rule.pattern == R"(\p{N})" || rule.pattern == R"(\p{N}+)" || rule.pattern == R"(\p{N}{1,3})";
  const bool is_text = rule.syntax == PatternSyntax::Literal && !rule.pattern.empty() &&
                       rule.pattern.find_first_of(" \t\n\v\f\r") == std::string::npos;
  const bool stands_alone = rule.behavior == SplitBehavior::Isolated ||
                            (rule.behavior == SplitBehavior::Removed && !rule.inverted);
  return stands_alone && (is_text || (is_digits && rule.syntax != PatternSyntax::Literal));
}

}  // namespace

bool runs_in_oniguruma(const SplitRule& rule) {
  switch (rule.syntax) {
    case PatternSyntax::Pcre2:
      return false;
    case PatternSyntax::Literal:
      return rule.pattern.empty();
    case PatternSyntax::Oniguruma:
      return !is_read_alike(rule.pattern);
  }
  throw std::invalid_argument("split pattern: unknown syntax");
}

bool are_cut_at_words(const std::vector<SplitRule>& rules) {
  return std::ranges::any_of(rules, ends_at_words) &&
         std::ranges::all_of(rules, [](const SplitRule& rule) { return ends_at_words(rule) || leaves_spaces(rule); });
}

class Splitter::Step {
 public:
  Step(const SplitRule& rule, std::string_view where) : pattern_(pattern_of(rule, where)), rule_(rule), where_(where) {}

  void split(std::string_view text, Scratch& scratch, const Sink& sink) const {
    if (rule_.behavior == SplitBehavior::Isolated)
      return for_each_segment(text, scratch, [&](std::string_view segment, bool) {
        if (!segment.empty()) sink(segment);
      });
    std::vector<Segment> segments;
    for_each_segment(text, scratch, [&](std::string_view segment, bool is_match) {
      segments.push_back({segment, is_match != rule_.inverted});
    });
    for (const Segment& segment : joined(segments))
      if (!segment.text.empty() && (rule_.behavior != SplitBehavior::Removed || !segment.is_match)) sink(segment.text);
  }

 private:
  struct Segment {
    std::string_view text;
    bool is_match;
  };

  [[nodiscard]] std::optional<Pattern::Match> find(std::string_view text, size_t from, Scratch& scratch) const {
    try {
      return pattern_->find(text, from, scratch);
    } catch (const std::runtime_error& error) {
      throw InputError(fmt::format("{}: split pattern '{}' gives up at byte {} of a text: {}", where_, rule_.pattern,
                                   from, error.what()));
    }
  }

  /// Matches and what lies between them, in order. A match without length counts, but not right behind another match.
  template <typename Visit>
  void for_each_segment(std::string_view text, Scratch& scratch, const Visit& visit) const {
    size_t seen = 0;                         // all before is handed on
    std::optional<size_t> end_of_last = {};  // match
    for (size_t from = 0; from <= text.size();) {
      const auto match = find(text, from, scratch);
      if (!match) break;
      if (match->begin == match->end && match->end == end_of_last) {
        from += from < text.size() ? utf8_length(static_cast<unsigned char>(text[from])) : 1;
        continue;
      }
      if (match->begin > seen) visit(text.substr(seen, match->begin - seen), false);
      visit(text.substr(match->begin, match->end - match->begin), true);
      end_of_last = from = seen = match->end;
    }
    if (seen < text.size()) visit(text.substr(seen), false);
  }

  [[nodiscard]] std::vector<Segment> joined(const std::vector<Segment>& segments) const {
    if (rule_.behavior == SplitBehavior::MergedWithNext) return joined_backwards(segments);
    std::vector<Segment> out;
    bool last_is_match = false;
    for (const Segment& segment : segments) {
      if (!out.empty() && joins(segment.is_match, last_is_match))
        out.back().text = {out.back().text.data(), out.back().text.size() + segment.text.size()};
      else
        out.push_back(segment);
      last_is_match = segment.is_match;
    }
    return out;
  }

  [[nodiscard]] static std::vector<Segment> joined_backwards(const std::vector<Segment>& segments) {
    std::vector<Segment> out;
    bool last_is_match = false;
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      if (!out.empty() && segment->is_match && !last_is_match)
        out.back().text = {segment->text.data(), segment->text.size() + out.back().text.size()};
      else
        out.push_back(*segment);
      last_is_match = segment->is_match;
    }
    return {out.rbegin(), out.rend()};
  }

  /// Whether a segment is joined to the one before it.
  [[nodiscard]] bool joins(bool is_match, bool last_is_match) const {
    if (rule_.behavior == SplitBehavior::Contiguous) return is_match == last_is_match;
    return rule_.behavior == SplitBehavior::MergedWithPrevious && is_match && !last_is_match;
  }

  std::unique_ptr<Pattern> pattern_;
  SplitRule rule_;
  std::string where_;
};

Splitter::Splitter(const std::vector<SplitRule>& rules, std::string_view where) {
  for (const SplitRule& rule : rules) steps_.emplace_back(rule, where);
}
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter::~Splitter() = default;

void Splitter::split(std::string_view text, Scratch& scratch, const Sink& sink) const {
  if (!text.empty()) split_from(0, text, scratch, sink);
}

void Splitter::split_from(size_t step, std::string_view text, Scratch& scratch, const Sink& sink) const {
  if (step == steps_.size()) return sink(text);
  if (step + 1 == steps_.size()) return steps_[step].split(text, scratch, sink);
  steps_[step].split(text, scratch, [&](std::string_view piece) { split_from(step + 1, piece, scratch, sink); });
}

}  // namespace trainyard::tokenizer
