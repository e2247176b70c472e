#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <stdexcept>

#include "base/lowercase.h"
#include "tokenizer/text/pattern.h"

namespace trainyard::tokenizer {
namespace {

template <auto Destroy>
struct FreeOniguruma {
  void operator()(auto* handle) const noexcept { Destroy(handle); }
};
void free_region(OnigRegion* region) {
  onig_region_free(region, 1);
}
using OnigurumaCode = std::unique_ptr<OnigRegexType, FreeOniguruma<onig_free>>;
using Region = std::unique_ptr<OnigRegion, FreeOniguruma<free_region>>;
using Parameters = std::unique_ptr<OnigMatchParam, FreeOniguruma<onig_free_match_param>>;

/// The reference's limit from one place; over all places it has none, and a text of no match may take it hours.
constexpr unsigned long kRetriesInMatch = 10'000'000, kRetriesInSearch = 2'000'000'000;

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string oniguruma_message(int error, OnigErrorInfo* info = nullptr) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int length = onig_error_code_to_str(text.data(), error, info);
  return {reinterpret_cast<const char*>(text.data()), static_cast<size_t>(length)};
}

/// The library asks for it once, before anything else.
void initialize_oniguruma() {
  static std::once_flag done;
  std::call_once(done, [] {
    std::array<OnigEncoding, 1> encodings{ONIG_ENCODING_UTF8};
    if (const int error = onig_initialize(encodings.data(), static_cast<int>(encodings.size())))
      throw std::runtime_error(fmt::format("Oniguruma: {}", oniguruma_message(error)));
  });
}

OnigurumaCode compile_oniguruma(const std::string& written) {
  initialize_oniguruma();
  const std::string pattern = with_signs_in_word(with_symbols_in_punct(written));
  OnigRegex code = nullptr;
  OnigErrorInfo info{};
  const OnigUChar* const begin = bytes_of(pattern);
  const int error = onig_new(&code, begin, begin + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                             ONIG_SYNTAX_DEFAULT, &info);
  if (error != ONIG_NORMAL) throw std::invalid_argument(oniguruma_message(error, &info));
  return OnigurumaCode(code);
}

}  // namespace

struct OnigurumaSpace {
  Region region{onig_region_new()};
  Parameters parameters{onig_new_match_param()};

  OnigurumaSpace() {
    if (!region || !parameters) throw std::bad_alloc();
    onig_set_retry_limit_in_match_of_match_param(parameters.get(), kRetriesInMatch);
    onig_set_retry_limit_in_search_of_match_param(parameters.get(), kRetriesInSearch);
  }
};

namespace {

class OnigurumaPattern : public Pattern {
 public:
  explicit OnigurumaPattern(const std::string& pattern) : code_(compile_oniguruma(pattern)) {}

  [[nodiscard]] std::optional<Match> find(std::string_view text, size_t from, SearchSpace& space) const override {
    if (!space.oniguruma) space.oniguruma = std::make_shared<OnigurumaSpace>();
    const OnigUChar* const begin = bytes_of(text);
    const OnigUChar* const end = begin + text.size();
    OnigRegion* const region = space.oniguruma->region.get();
    const int found = onig_search_with_param(code_.get(), begin, end, begin + from, end, region, ONIG_OPTION_NONE,
                                             space.oniguruma->parameters.get());
    if (found == ONIG_MISMATCH) return std::nullopt;
    if (found < 0) throw std::runtime_error(oniguruma_message(found));
    if (region->beg[0] > region->end[0]) throw std::runtime_error("a match begins behind its end: \\K in a look-ahead");
    return Match{static_cast<size_t>(region->beg[0]), static_cast<size_t>(region->end[0])};
  }

 private:
  OnigurumaCode code_;
};

}  // namespace

namespace {

constexpr std::string_view kPunct = "[:punct:]", kNoPunct = "[:^punct:]";

bool names_property(std::string_view escape) {
  return escape.starts_with("\\p{") || escape.starts_with("\\P{");
}

/// How long the escape is that `pattern` begins with: \p{…} with its name, else a character.
size_t escape_length(std::string_view pattern) {
  const size_t end = names_property(pattern) ? pattern.find('}') : std::string_view::npos;
  return end == std::string_view::npos ? 2 : end + 1;
}

/// A bracket that opens a class takes in its ^, and a bracket at the front, which is one of its characters.
size_t token_length(std::string_view pattern, bool is_in_class) {
  for (const std::string_view name : {kPunct, kNoPunct})
    if (is_in_class && pattern.starts_with(name)) return name.size();
  if (pattern[0] == '\\') return escape_length(pattern);
  if (pattern[0] != '[') return 1;
  const size_t opened = pattern.starts_with("[^") ? 2 : 1;
  return opened + (pattern.substr(opened).starts_with(']') ? 1 : 0);
}

/// `pattern` with what `replace` makes of each token, which it gets with whether that is in a class.
template <typename Replace>
std::string with_tokens_replaced(std::string_view pattern, const Replace& replace) {
  std::string out;
  int depth = 0;  // of classes in classes
  while (!pattern.empty()) {
    const std::string_view token = pattern.substr(0, token_length(pattern, depth > 0));
    out += replace(token, depth > 0);
    if (token[0] == '[' && token != kPunct && token != kNoPunct) ++depth;
    if (token == "]" && depth > 0) --depth;
    pattern.remove_prefix(token.size());
  }
  return out;
}

/// The property's name as Oniguruma looks it up, without ^; "" where `escape` names none.
std::string property_of(std::string_view escape) {
  if (!names_property(escape)) return "";
  std::string name;
  for (const char c : escape.substr(3, escape.size() - 4))
    if (std::string_view(" -_^").find(c) == std::string_view::npos) name += c;
  return lowercase(name);
}

}  // namespace

std::string with_symbols_in_punct(std::string_view pattern) {
  return with_tokens_replaced(pattern, [](std::string_view token, bool) -> std::string {
    if (token == kPunct) return R"([:punct:]\p{S})";
    return token == kNoPunct ? R"([^[:punct:]\p{S}])" : std::string(token);
  });
}

std::string with_signs_in_word(std::string_view pattern) {
  return with_tokens_replaced(pattern, [](std::string_view token, bool is_in_class) -> std::string {
    if (is_in_class || property_of(token) != "word") return std::string(token);
    const bool is_negated = (token[1] == 'P') != (token[3] == '^');
    return is_negated ? R"(\W)" : R"(\w)";
  });
}

std::unique_ptr<Pattern> oniguruma_pattern(const std::string& pattern) {
  return std::make_unique<OnigurumaPattern>(pattern);
}

}  // namespace trainyard::tokenizer
