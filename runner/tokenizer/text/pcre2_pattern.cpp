#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <stdexcept>

#include "tokenizer/text/pattern.h"

namespace trainyard::tokenizer {
namespace {

template <auto Destroy>
struct FreePcre2 {
  void operator()(auto* handle) const noexcept { Destroy(handle); }
};
using Pcre2Code = std::unique_ptr<pcre2_code, FreePcre2<pcre2_code_free_8>>;
using MatchData = std::unique_ptr<pcre2_match_data, FreePcre2<pcre2_match_data_free_8>>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreePcre2<pcre2_match_context_free_8>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, FreePcre2<pcre2_jit_stack_free_8>>;

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

std::string pcre2_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

Pcre2Code compile_pcre2(const std::string& written, PatternSyntax syntax) {
  const bool is_literal = syntax == PatternSyntax::Literal;
  const std::string pattern = is_literal ? written : with_unicode_space(written);
  const uint32_t options = is_literal ? PCRE2_LITERAL | PCRE2_UTF : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  size_t offset = 0;
  Pcre2Code code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset, nullptr));
  if (!code) throw std::invalid_argument(pcre2_message(error));
  // Without the compiler to machine code (a pattern too large for it) pcre2_match interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

struct Pcre2Space {
  MatchData match{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(kJitStackStart, kJitStackBytes, nullptr)};

  Pcre2Space() {
    if (!match || !context || !stack) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

namespace {

class Pcre2Pattern : public Pattern {
 public:
  Pcre2Pattern(const std::string& pattern, PatternSyntax syntax) : code_(compile_pcre2(pattern, syntax)) {}

  [[nodiscard]] std::optional<Match> find(std::string_view text, size_t from, SearchSpace& space) const override {
    if (!space.pcre2) space.pcre2 = std::make_shared<Pcre2Space>();
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, space.pcre2->match.get(),
                                  space.pcre2->context.get());
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) throw std::runtime_error(pcre2_message(found));
    const size_t* const range = pcre2_get_ovector_pointer(space.pcre2->match.get());
    return Match{range[0], range[1]};
  }

 private:
  Pcre2Code code_;
};

}  // namespace

std::unique_ptr<Pattern> pcre2_pattern(const std::string& pattern, PatternSyntax syntax) {
  return std::make_unique<Pcre2Pattern>(pattern, syntax);
}

bool may_match_nothing(const std::string& pattern) {
  uint32_t may = 1;
  pcre2_pattern_info(compile_pcre2(pattern, PatternSyntax::Pcre2).get(), PCRE2_INFO_MATCHEMPTY, &may);
  return may != 0;
}

}  // namespace trainyard::tokenizer
