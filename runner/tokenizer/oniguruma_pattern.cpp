#include <fmt/format.h>
#include <oniguruma.h>

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

OnigurumaCode compile_oniguruma(std::string_view pattern) {
  initialize_oniguruma();
  OnigRegex code = nullptr;
  OnigErrorInfo info{};
  const int error = onig_new(&code, bytes_of(pattern), bytes_of(pattern) + pattern.size(), ONIG_OPTION_NONE,
                             ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
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
  explicit OnigurumaPattern(std::string_view pattern) : code_(compile_oniguruma(pattern)) {}

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

std::unique_ptr<Pattern> oniguruma_pattern(const std::string& pattern) {
  return std::make_unique<OnigurumaPattern>(pattern);
}

}  // namespace trainyard::tokenizer
