#include "tokenizer/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>

#include "base/error.h"

namespace trainyard::tokenizer {
namespace {

template <auto Destroy>
struct Destroyer {
  void operator()(auto* handle) const noexcept { Destroy(handle); }
};
using Code = std::unique_ptr<pcre2_code, Destroyer<pcre2_code_free_8>>;
using MatchData = std::unique_ptr<pcre2_match_data, Destroyer<pcre2_match_data_free_8>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Destroyer<pcre2_match_context_free_8>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Destroyer<pcre2_jit_stack_free_8>>;

constexpr size_t kJitStackStart = size_t{32} << 10, kJitStackBytes = size_t{8} << 20;
constexpr uint32_t kMatchLimit = 50'000'000;

/// Unicode's White_Space. PCRE's \s adds U+180E, which left that property in Unicode 6.3; the reference tokenizers
/// follow the property.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// `pattern` with \s and \S spelled as that property. Inside a class \S stays: ranges cannot say it.
std::string with_unicode_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's')
        out += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
      else if (escaped == 'S' && !in_class)
        out += fmt::format("[^{}]", kWhiteSpace);
      else
        out += c, out += escaped;
      continue;
    }
    if (c == '[' && !in_class)
      in_class = true;
    else if (c == ']')
      in_class = false;
    out += c;
  }
  return out;
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

Code compile(const SplitRule& rule, std::string_view where) {
  const std::string pattern = rule.is_literal ? rule.pattern : with_unicode_space(rule.pattern);
  const uint32_t options =
      rule.is_literal ? PCRE2_LITERAL | PCRE2_UTF : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  size_t offset = 0;
  Code code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset, nullptr));
  if (!code) throw InputError(fmt::format("{}: split pattern '{}': {}", where, rule.pattern, message_of(error)));
  // Without the compiler to machine code (a pattern too large for it) pcre2_match interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

struct Splitter::Scratch::Handles {
  MatchData match{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(kJitStackStart, kJitStackBytes, nullptr)};
};

Splitter::Scratch::Scratch() : handles_(std::make_unique<Handles>()) {
  if (!handles_->match || !handles_->context || !handles_->stack) throw std::bad_alloc();
  pcre2_set_match_limit(handles_->context.get(), kMatchLimit);
  pcre2_jit_stack_assign(handles_->context.get(), nullptr, handles_->stack.get());
}
Splitter::Scratch::~Scratch() = default;

class Splitter::Step {
 public:
  Step(const SplitRule& rule, std::string_view where) : code_(compile(rule, where)), rule_(rule), where_(where) {}

  void split(std::string_view text, Scratch& scratch, const Sink& sink) const {
    if (rule_.behavior == SplitBehavior::Isolated)
      return for_each_segment(text, scratch, [&](std::string_view segment, bool) { sink(segment); });
    std::vector<Segment> segments;
    for_each_segment(text, scratch, [&](std::string_view segment, bool is_match) {
      segments.push_back({segment, is_match != rule_.inverted});
    });
    for (const Segment& segment : joined(segments))
      if (rule_.behavior != SplitBehavior::Removed || !segment.is_match) sink(segment.text);
  }

 private:
  struct Segment {
    std::string_view text;
    bool is_match;
  };

  /// Matches and what lies between them, in order; none empty.
  template <typename Visit>
  void for_each_segment(std::string_view text, Scratch& scratch, const Visit& visit) const {
    size_t at = 0;
    while (at < text.size()) {
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, scratch.handles_->match.get(),
                                    scratch.handles_->context.get());
      if (found == PCRE2_ERROR_NOMATCH) return visit(text.substr(at), false);
      if (found < 0)
        throw InputError(fmt::format("{}: split pattern '{}' gives up at byte {} of a text: {}", where_, rule_.pattern,
                                     at, message_of(found)));
      const size_t* const range = pcre2_get_ovector_pointer(scratch.handles_->match.get());
      // Never empty (NOTEMPTY), and \K can only move the start forward, so every round advances.
      const size_t begin = range[0], end = range[1];
      if (begin > at) visit(text.substr(at, begin - at), false);
      visit(text.substr(begin, end - begin), true);
      at = end;
    }
  }

  [[nodiscard]] std::vector<Segment> joined(const std::vector<Segment>& segments) const {
    std::vector<Segment> out;
    bool open = false;  // the last segment of `out` takes the next one in
    for (const Segment& segment : segments) {
      const bool takes = !out.empty() && open_for(out.back(), segment, open);
      if (takes)
        out.back().text = {out.back().text.data(), out.back().text.size() + segment.text.size()};
      else
        out.push_back(segment);
      open = !takes || rule_.behavior == SplitBehavior::Contiguous;
    }
    return out;
  }

  [[nodiscard]] bool open_for(const Segment& last, const Segment& next, bool open) const {
    switch (rule_.behavior) {
      case SplitBehavior::Contiguous:
        return last.is_match == next.is_match;
      case SplitBehavior::MergedWithPrevious:
        return open && !last.is_match && next.is_match;
      case SplitBehavior::MergedWithNext:
        return open && last.is_match && !next.is_match;
      default:
        return false;
    }
  }

  Code code_;
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
