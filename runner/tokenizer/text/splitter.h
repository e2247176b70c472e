#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/pattern.h"

namespace trainyard::tokenizer {

/// What a split does with what its pattern matches; names and meaning are those of Hugging Face `tokenizers`.
enum class SplitBehavior { Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous };

struct SplitRule {
  std::string pattern;
  PatternSyntax syntax = PatternSyntax::Pcre2;
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool inverted = false;  ///< what lies between the matches counts as the match
  bool operator==(const SplitRule&) const = default;
};

/// Whether Oniguruma runs the rule's pattern: what is in its syntax and PCRE2 reads otherwise, and a text without length.
bool runs_in_oniguruma(const SplitRule& rule);

/// Whether `rules`, one after another, prove for any text that its pieces are those of its two parts wherever it is cut
/// between words or lines (is_between_words_or_lines()).
bool are_cut_at_words(const std::vector<SplitRule>& rules);

/// Cuts text into the pieces that BPE then encodes on their own. Immutable; a thread needs a Scratch of its own.
class Splitter {
 public:
  using Scratch = SearchSpace;
  using Sink = std::function<void(std::string_view piece)>;

  /// Rules apply one after another, each to the pieces of the one before. Throws InputError, naming `where`, for a
  /// pattern that does not compile.
  Splitter(const std::vector<SplitRule>& rules, std::string_view where);
  Splitter(Splitter&&) noexcept;
  ~Splitter();

  /// Hands the pieces of `text`, which is well-formed UTF-8, to `sink` in order, none empty.
  /// Throws InputError, naming the limit, where a pattern needs more steps than are allowed (a pattern that explodes).
  void split(std::string_view text, Scratch& scratch, const Sink& sink) const;

 private:
  class Step;
  void split_from(size_t step, std::string_view text, Scratch& scratch, const Sink& sink) const;

  std::vector<Step> steps_;
};

// The published patterns. Llama 3 takes digits in threes, Qwen2 one by one.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace trainyard::tokenizer
