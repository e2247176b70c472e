#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/text/normalizer.h"
#include "tokenizer/text/splitter.h"

namespace trainyard::tokenizer {

/// What is done to a text before its pieces are encoded.
struct TextSteps {
  std::vector<Normalization> normalization = {};
  std::vector<SplitRule> before = {};  ///< rules in front of the byte level
  std::vector<SplitRule> rules = {};   ///< the byte level's own
  bool add_prefix_space = false;       ///< in front of what the rules before leave, where that begins with none
  bool operator==(const TextSteps&) const = default;
};

/// What precedes a stretch of text: nothing or a token, or more of the text.
enum class Place { Begins, GoesOn };

/// Cuts normalised text into the pieces of a byte-level BPE. Immutable; a thread needs a Splitter::Scratch of its own.
class PieceSplitter {
 public:
  /// Throws InputError, naming `where`, for a pattern that does not compile.
  PieceSplitter(const TextSteps& steps, std::string_view where);

  /// Hands the pieces of `text` to `sink` in order. Throws as Splitter::split() does.
  void split(std::string_view text, Place place, Splitter::Scratch& scratch, const Splitter::Sink& sink) const;

  /// Whether the steps prove that the pieces of `text` are those of its two parts, the second of which goes on, where it
  /// is cut at `at`.
  [[nodiscard]] bool is_border(std::string_view text, size_t at) const;

 private:
  void split_with_space(std::string_view text, Splitter::Scratch& scratch, const Splitter::Sink& sink) const;

  std::optional<Splitter> before_;  ///< cuts what each gets a space; none: all rules are in splitter_
  Splitter splitter_;
  bool add_prefix_space_, has_borders_;
};

}  // namespace trainyard::tokenizer
