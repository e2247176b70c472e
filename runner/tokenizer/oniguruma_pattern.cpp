#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <stdexcept>

#include "tokenizer/pattern.h"

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
  const std::string pattern = with_symbols_in_punct(written);
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

std::string with_symbols_in_punct(std::string_view pattern) {
  constexpr std::string_view kPunct = "[:punct:]", kNoPunct = "[:^punct:]";
  std::string out;
  int depth = 0;  // of classes in classes
  const auto take = [&](size_t length) {
    out += pattern.substr(0, length);
    pattern.remove_prefix(std::min(length, pattern.size()));
  };
  while (!pattern.empty()) {
    if (depth > 0 && pattern.starts_with(kPunct)) {
      take(kPunct.size());
      out += R"(\p{S})";
    } else if (depth > 0 && pattern.starts_with(kNoPunct)) {
      pattern.remove_prefix(kNoPunct.size());
      out += R"([^[:punct:]\p{S}])";
    } else if (pattern[0] == '[') {
      ++depth;
      take(pattern.starts_with("[^") ? 2 : 1);
      if (pattern.starts_with(']')) take(1);  // at the front of a class it is one of its characters
    } else {
      if (pattern[0] == ']' && depth > 0) --depth;
      take(pattern[0] == '\\' ? 2 : 1);
    }
  }
  return out;
}

std::unique_ptr<Pattern> oniguruma_pattern(const std::string& pattern) {
  return std::make_unique<OnigurumaPattern>(pattern);
}

}  // namespace trainyard::tokenizer
