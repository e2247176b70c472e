#include <catch2/catch.hpp>

#include <random>

#include "base/error.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/pattern.h"
#include "tokenizer/text/splitter.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const SplitRule& rule, std::string_view text) {
  const Splitter splitter({rule}, "test");
  Splitter::Scratch scratch;
  Pieces out;
  splitter.split(text, scratch, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

Pieces pieces_of(const std::string& regex, std::string_view text) {
  return pieces_of({.pattern = regex, .syntax = PatternSyntax::Oniguruma}, text);
}

using Matches = std::vector<std::pair<size_t, size_t>>;

/// Matches that have a length, one behind another.
Matches matches(const Pattern& pattern, std::string_view text) {
  SearchSpace space;
  Matches out;
  for (size_t from = 0; from < text.size();) {
    const auto match = pattern.find(text, from, space);
    if (!match) break;
    out.emplace_back(match->begin, match->end);
    REQUIRE(match->end > from);
    from = match->end;
  }
  return out;
}

/// All characters from `first` to `last` but surrogates.
std::string characters(char32_t first, char32_t last) {
  std::string text;
  for (char32_t c = first; c <= last; ++c)
    if (c < 0xD800 || c > 0xDFFF) append_utf8(text, c);
  return text;
}

std::string with_pattern(const std::string& regex) {
  return R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + regex +
         R"("}, "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
         "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
}

// What published tokenizers have.
constexpr const char* kDeepSeek =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";

}  // namespace

// The pieces are those of tokenizers 0.23.3.
TEST_CASE("Regex: a pattern is read as Oniguruma reads it", "[tokenizer]") {
  const auto [regex, text, expected] = GENERATE(table<std::string, std::string, Pieces>({
      {R"([\p{L}&&[^\p{Han}]]+)", "ab\u5b57c1", {"ab", "\u5b57", "c", "1"}},
      {R"([a-c[x-z]]+)", "axdby", {"ax", "d", "by"}},
      {R"( ?[^(\s|[.,!?])]+)", "a b, (c|d)", {"a", " b", ", (", "c", "|", "d", ")"}},
      {R"(^a)", "ab\nab", {"a", "b\n", "a", "b"}},
      {R"(b$)", "ab\nb b", {"a", "b", "\nb ", "b"}},
      {R"(\h+)", "zabz z", {"z", "ab", "z z"}},
      {R"(a{1,2}+)", "aaaaab", {"aaaaa", "b"}},
      {R"((?:\p{L}|\u200d)+)", "1a\u200db2", {"1", "a\u200db", "2"}},
      {R"(\p{Punct}+)", "a!?b\u3002c", {"a", "!?", "b", "\u3002", "c"}},
      {R"([[:alpha:]]+)", "1ab2", {"1", "ab", "2"}},
      {R"([[:punct:]]+)", "a$<!\u00a2b", {"a", "$<!\u00a2", "b"}},
      {R"([^[:punct:]]+)", "a$<!\u00a2b", {"a", "$<!\u00a2", "b"}},
      {R"([^\][:^punct:]]+)", "a$]!b", {"a", "$", "]", "!", "b"}},
      {R"([]a[:punct:]]+)", "xa]~x", {"x", "a]~", "x"}},
      {R"([:punct:]+)", "run$", {"r", "un", "$"}},
      {R"(\p{Word}+)", "a²³¹¼½¾b×c", {"a²³¹¼½¾b", "×", "c"}},
      {R"(\P{^w_ORD}+)", "a²¾×c", {"a²¾", "×", "c"}},
      {R"(\p{^Word}+)", "a²×¾c", {"a²", "×", "¾c"}},
      {R"(\P{Word}+)", "a²×¾c", {"a²", "×", "¾c"}},
      {R"([\p{Word}×]+)", "a²×¾÷c", {"a", "²", "×", "¾÷", "c"}},
      {R"([^\p{Word}]+)", "a²×÷¾c", {"a", "²×÷¾", "c"}},
      {R"([\p{Word}&&[^a]]+)", "a²¾×c", {"a²¾×", "c"}},
      {R"([\}\w]+|\{)", "a}²{b", {"a}", "²", "{", "b"}},
      {R"(\\p{2})", "a\\ppb", {"a", "\\pp", "b"}},
      {R"(\w+)", "a_b-c\u0301", {"a_b", "-", "c\u0301"}},
      {R"(\p{Han}+)", "a\u3001\u5b57b", {"a\u3001", "\u5b57", "b"}},
      {R"((?<n>a)\g<n>)", "aab", {"aa", "b"}},
      {R"(\R)", "a\r\nb\nc", {"a", "\r\n", "b", "\n", "c"}},
      {R"((?m:a.b))", "xa\nbx", {"x", "a\nb", "x"}},
      {R"((?~b))", "aab", {"aa", "b"}},
      {R"(a\Kb)", "ab", {"a", "b"}},
      {R"(\Aa)", "aa", {"a", "a"}},
      {R"(\Ga)", "aaba", {"a", "a", "ba"}},
  }));
  INFO(regex);
  CHECK(pieces_of(regex, text) == expected);
}

TEST_CASE("Regex: a match without length is a border, in each behavior", "[tokenizer]") {
  using enum SplitBehavior;
  constexpr const char* kCase = "(?<=[a-z])(?=[A-Z])|b";
  const auto [regex, text, behavior, inverted, expected] =
      GENERATE(table<std::string, std::string, SplitBehavior, bool, Pieces>({
          {"(?<=[a-z])(?=[A-Z])", "aBaB", Isolated, false, {"a", "Ba", "B"}},
          {R"((?=\d{3}(?:\d{3})*$))", "12345678", Isolated, false, {"12", "345", "678"}},
          {R"((?=(?:\d{3})+(?!\d)))", "1234567 12", Removed, false, {"1", "234", "567 12"}},
          {"a*", "baac", Isolated, false, {"b", "aa", "c"}},
          {"", "ab", Isolated, false, {"a", "b"}},
          {kCase, "aBbaB b", Isolated, false, {"a", "B", "b", "a", "B ", "b"}},
          {kCase, "aBbaB b", Removed, false, {"a", "B", "a", "B "}},
          {kCase, "aBbaB b", Removed, true, {"b", "b"}},
          {kCase, "aBbaB b", MergedWithPrevious, false, {"a", "Bb", "a", "B b"}},
          {kCase, "aBbaB b", MergedWithPrevious, true, {"a", "B", "ba", "B ", "b"}},
          {kCase, "aBbaB b", MergedWithNext, false, {"a", "B", "ba", "B ", "b"}},
          {kCase, "aBbaB b", MergedWithNext, true, {"a", "Bb", "a", "B b"}},
          {kCase, "aBbaB b", Contiguous, false, {"a", "B", "b", "a", "B ", "b"}},
          {kCase, "aBbaB b", Contiguous, true, {"a", "B", "b", "a", "B ", "b"}},
          {"x*", "axxb", MergedWithPrevious, false, {"axx", "b"}},
          {"x*", "axxb", MergedWithPrevious, true, {"a", "xxb"}},
          {"x*", "axxb", MergedWithNext, false, {"a", "xxb"}},
          {"x*", "axxb", MergedWithNext, true, {"axx", "b"}},
      }));
  INFO(regex << " " << static_cast<int>(behavior) << inverted);
  CHECK(pieces_of({regex, PatternSyntax::Oniguruma, behavior, inverted}, text) == expected);
  CHECK(pieces_of({"", PatternSyntax::Literal}, "a\u00e9b") == Pieces{"a", "\u00e9", "b"});
}

TEST_CASE("Regex: what is wrong with a pattern is said in Oniguruma's words", "[tokenizer]") {
  const auto [regex, message] = GENERATE(table<std::string, std::string>({
      {"(", "end pattern with unmatched parenthesis"},
      {"[a", "premature end of char-class"},
      {R"(\p{Nope})", "invalid character property name {Nope}"},
  }));
  CHECK_THROWS_AS(pieces_of(regex, "a"), InputError);
  CHECK_THROWS_WITH(pieces_of(regex, "a"), "test: split pattern '" + regex + "': " + message);
}

TEST_CASE("Regex: a pattern that explodes is an error that names the limit, and never an unsplit text", "[tokenizer]") {
  CHECK_THROWS_AS(pieces_of("(a+)+$", std::string(4000, 'a') + "!"), InputError);
  CHECK_THROWS_WITH(pieces_of("(a+)+$", "b" + std::string(4000, 'a') + "!"),
                    Catch::Contains("'(a+)+$' gives up at byte 0 of a text: retry-limit-in-match over"));
}

TEST_CASE("Regex: what both engines read alike is told from what they do not", "[tokenizer]") {
  const std::string alike = GENERATE(
      as<std::string>(), kGpt2Pattern, kLlama3Pattern, kQwen2Pattern, kDeepSeek, kO200k, R"(\p{N}{1,3})",
      "[\u4e00-\u9fa5\u3040-\u309f]+", R"([a-z0-9-]+)", R"(a{2}b{1,}c{1,2}d)", "a.b", R"([^\p{L}\s]++\r?+\n*?x)");
  INFO(alike);
  CHECK(is_read_alike(alike));
  const std::string other = GENERATE(
      as<std::string>(), kBloom, "", "x*", "(?=a)", "(?<=a)b", "^a", "a$", R"(\h)", R"(\w+)", R"(\bb)", R"(\d)", R"(\p{Han})",
      R"(\p{^L})", R"(\pL)", R"([\S])", "[a[b]]", "[a&&b]", "[]a]", R"([\s-z])", R"([a-\s])", "[+--]", "[a", "a{,2}",
      "a{1,2}+", "a{2}?", "a{3,1}", "a**", "(?:a)+", "(?:a){2}", "(?:a|)", "(?i:ss)", "(?i:\u00e9)", "(?i:s{2})", "(a)b", "(?>a)",
      R"(a\Kb)", R"(\'a)", R"(\<a)", R"(\x41)", R"(\u0041)", "(", "a)", "a\xff", "a|");
  INFO(other);
  CHECK_FALSE(is_read_alike(other));
}

TEST_CASE("Regex: both engines have the same general categories, white space and cases, for every character",
          "[tokenizer]") {
  const std::string name = GENERATE(
      as<std::string>(), "C", "Cc", "Cf", "Cn", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd",
      "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs");
  static const std::string kAll = characters(1, 0x10FFFF);
  for (const std::string& pattern : {"\\p{" + name + "}+", "[^\\P{" + name + "}]+", std::string(R"(\s+)"),
                                     std::string(R"(\S+)"), std::string(R"([^\s]+)"), std::string(".+"),
                                     std::string("(?i:'s|'t|'re|'ve|'m|'ll|'d|k|i)")}) {
    if (pattern.find(name) == std::string::npos && name != "C") continue;  // once
    INFO(pattern);
    const auto pcre2 = pcre2_pattern(pattern, PatternSyntax::Pcre2), oniguruma = oniguruma_pattern(pattern);
    CHECK((matches(*pcre2, kAll) == matches(*oniguruma, kAll)));
  }
}

TEST_CASE("Regex: both engines find the same in random texts, with patterns that they read alike", "[tokenizer]") {
  const std::vector<std::string> atoms{
      R"(\p{L})", R"(\p{Lu})", R"(\p{N})", R"(\s)", R"(\S)", " ", "a", "'", R"([\r\n])", R"([^\r\n\p{L}\p{N}])", ".",
      R"([^\s\p{L}\p{N}])", R"([a-c])", "(?i:'s|'ll)", "(?:ab|a)", "(?!\\S)", "(?=a)", R"(\n)", "\u5b57"};
  const std::vector<std::string> quantifiers{"", "", "?", "*", "+", "*?", "+?", "++", "?+", "{1,3}", "{2}"};
  const std::vector<std::string> parts{"a", "b", "B", "1", "\u00bd", " ", "  ", "\n", "\r\n", "'s", "'LL", "!", ".",
                                       "\u5b57", "\u0301", "\u180e", "\u3000", "\u017f", "\U0001F600"};
  std::mt19937 random(11);
  const auto one_of = [&](const std::vector<std::string>& all) { return all[random() % all.size()]; };
  int read_alike = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string regex, text;
    for (size_t i = 1 + random() % 6; i > 0; --i) regex += one_of(atoms) + one_of(quantifiers) + (random() % 3 ? "" : "|");
    if (round < 5)
      regex = std::vector<std::string>{kGpt2Pattern, kLlama3Pattern, kQwen2Pattern, kDeepSeek, kO200k}[static_cast<size_t>(round)];
    while (text.size() < 300) text += one_of(parts);
    if (!is_read_alike(regex)) continue;
    ++read_alike;
    INFO(regex << "\n" << text);
    REQUIRE(matches(*pcre2_pattern(regex, PatternSyntax::Pcre2), text) == matches(*oniguruma_pattern(regex), text));
  }
  CHECK(read_alike > 500);
}

TEST_CASE("Regex: the fingerprint stays where the ids stay, and is another where Oniguruma reads the pattern",
          "[tokenizer]") {
  const auto fingerprint = [](const std::string& regex) {
    return read_hugging_face(with_pattern(regex), "tokenizer.json", {})->fingerprint();
  };
  const auto once = [](const std::string& regex) {
    return Fingerprint().add("hugging-face 1").add(with_pattern(regex)).add("").hex();
  };
  CHECK(fingerprint(R"(\\p{L}+|\\s+)") == once(R"(\\p{L}+|\\s+)"));
  CHECK(fingerprint("[a&&b]") != once("[a&&b]"));
  Fingerprint without_symbols;
  without_symbols.add("hugging-face 1").add(with_pattern("[[:punct:]]")).add("").add("oniguruma");
  CHECK(fingerprint("[[:punct:]]") != without_symbols.hex());
  Fingerprint without_signs;
  without_signs.add("hugging-face 1").add(with_pattern(R"(\\p{Word})")).add("").add("oniguruma");
  CHECK(fingerprint(R"(\\p{Word})") != without_signs.hex());
}

}  // namespace trainyard::tokenizer
