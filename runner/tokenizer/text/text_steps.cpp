#include "tokenizer/text/text_steps.h"

#include <string>

#include "tokenizer/text/borders.h"

namespace trainyard::tokenizer {
namespace {

bool has_space_before_pieces(const TextSteps& steps) {
  return steps.add_prefix_space && !steps.before.empty();
}

std::vector<SplitRule> all_rules(const TextSteps& steps) {
  std::vector<SplitRule> all = steps.before;
  all.insert(all.end(), steps.rules.begin(), steps.rules.end());
  return all;
}

}  // namespace

PieceSplitter::PieceSplitter(const TextSteps& steps, std::string_view where)
    : splitter_(has_space_before_pieces(steps) ? steps.rules : all_rules(steps), where),
      add_prefix_space_(steps.add_prefix_space),
      has_borders_(are_cut_at_words(all_rules(steps))) {
  if (has_space_before_pieces(steps)) before_.emplace(steps.before, where);
}

void PieceSplitter::split(std::string_view text, Place place, Splitter::Scratch& scratch,
                          const Splitter::Sink& sink) const {
  if (before_)
    return before_->split(text, scratch, [&](std::string_view piece) { split_with_space(piece, scratch, sink); });
  if (add_prefix_space_ && place == Place::Begins) return split_with_space(text, scratch, sink);
  splitter_.split(text, scratch, sink);
}

/// What an earlier step leaves gets a space wherever it begins with none, so a second part must begin with its own.
bool PieceSplitter::is_border(std::string_view text, size_t at) const {
  return has_borders_ && (before_ ? is_between_words(text, at) : is_between_words_or_lines(text, at));
}

void PieceSplitter::split_with_space(std::string_view text, Splitter::Scratch& scratch,
                                     const Splitter::Sink& sink) const {
  if (text.empty() || text.front() == ' ') return splitter_.split(text, scratch, sink);
  std::string changed(1, ' ');
  splitter_.split(changed.append(text), scratch, sink);
}

}  // namespace trainyard::tokenizer
