#include "metrics/porter_stemmer.h"

#include <map>
#include <span>
#include <string_view>

namespace trainyard::metrics {
namespace {

/// A y is a vowel behind a consonant.
bool is_consonant(std::string_view word, size_t at) {
  if (word[at] == 'y') return at == 0 || !is_consonant(word, at - 1);
  return std::string_view("aeiou").find(word[at]) == std::string_view::npos;
}

/// How often a consonant follows a vowel: Porter's m.
int measure(std::string_view stem) {
  int count = 0;
  for (size_t i = 1; i < stem.size(); ++i) count += !is_consonant(stem, i - 1) && is_consonant(stem, i) ? 1 : 0;
  return count;
}

bool has_vowel(std::string_view stem) {
  for (size_t i = 0; i < stem.size(); ++i)
    if (!is_consonant(stem, i)) return true;
  return false;
}

bool ends_in_double_consonant(std::string_view word) {
  const size_t size = word.size();
  return size >= 2 && word[size - 1] == word[size - 2] && is_consonant(word, size - 1);
}

/// Consonant, vowel, consonant, the last none of w, x and y: "hop"; by nltk also the two letters of "ed".
bool ends_short(std::string_view word) {
  const size_t size = word.size();
  if (size == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
  return size >= 3 && is_consonant(word, size - 3) && !is_consonant(word, size - 2) && is_consonant(word, size - 1) &&
         std::string_view("wxy").find(word[size - 1]) == std::string_view::npos;
}

std::string_view without(std::string_view word, std::string_view suffix) {
  return word.substr(0, word.size() - suffix.size());
}

struct Rule {
  std::string_view suffix, replacement;
};

/// The first rule whose suffix the word has decides: it is applied where the stem measures more than `least`.
std::string by_first(const std::string& word, std::span<const Rule> rules, int least) {
  for (const auto& [suffix, replacement] : rules) {
    if (!word.ends_with(suffix)) continue;
    const std::string_view stem = without(word, suffix);
    return measure(stem) > least ? std::string(stem) + std::string(replacement) : word;
  }
  return word;
}

std::string plural(const std::string& word) {
  if (word.ends_with("ies") && word.size() == 4) return word.substr(0, 3);
  static constexpr Rule kRules[] = {{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}};
  return by_first(word, kRules, -1);
}

/// What "ed" or "ing" has left behind.
std::string mended(const std::string& stem) {
  for (const std::string_view suffix : {"at", "bl", "iz"})
    if (stem.ends_with(suffix)) return stem + "e";
  if (ends_in_double_consonant(stem))
    return std::string_view("lsz").find(stem.back()) == std::string_view::npos ? stem.substr(0, stem.size() - 1) : stem;
  return measure(stem) == 1 && ends_short(stem) ? stem + "e" : stem;
}

std::string past_and_progressive(const std::string& word) {
  if (word.ends_with("ied")) return word.substr(0, word.size() - (word.size() == 4 ? 1 : 2));
  if (word.ends_with("eed")) return measure(without(word, "eed")) > 0 ? word.substr(0, word.size() - 1) : word;
  for (const std::string_view suffix : {"ed", "ing"})
    if (word.ends_with(suffix) && has_vowel(without(word, suffix))) return mended(std::string(without(word, suffix)));
  return word;
}

std::string y_to_i(const std::string& word) {
  const bool changes = word.ends_with("y") && word.size() > 2 && is_consonant(word, word.size() - 2);
  return changes ? word.substr(0, word.size() - 1) + "i" : word;
}

std::string double_suffix(const std::string& word) {
  if (word.ends_with("alli") && measure(without(word, "alli")) > 0)
    return double_suffix(word.substr(0, word.size() - 2));
  static constexpr Rule kRules[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
                                    {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
                                    {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                                    {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
                                    {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
                                    {"fulli", "ful"}};
  if (word.ends_with("logi"))
    return measure(word.substr(0, word.size() - 3)) > 0 ? word.substr(0, word.size() - 1) : word;
  return by_first(word, kRules, 0);
}

std::string suffix(const std::string& word) {
  static constexpr Rule kRules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                    {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
  return by_first(word, kRules, 0);
}

std::string last_suffix(const std::string& word) {
  static constexpr Rule kRules[] = {{"al", ""},   {"ance", ""}, {"ence", ""}, {"er", ""},    {"ic", ""},
                                    {"able", ""}, {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""},
                                    {"ent", ""},  {"ion", ""},  {"ou", ""},   {"ism", ""},   {"ate", ""},
                                    {"iti", ""},  {"ous", ""},  {"ive", ""},  {"ize", ""}};
  if (word.ends_with("ion") && !word.ends_with("sion") && !word.ends_with("tion")) return word;
  return by_first(word, kRules, 1);
}

std::string final_e_and_l(std::string word) {
  if (word.ends_with("e")) {
    const std::string_view stem = without(word, "e");
    if (measure(stem) > 1 || (measure(stem) == 1 && !ends_short(stem))) word.pop_back();
  }
  if (word.ends_with("ll") && measure(without(word, "l")) > 1) word.pop_back();
  return word;
}

}  // namespace

std::string porter_stem(std::string word) {
  static const std::map<std::string_view, std::string_view> kIrregular = {
      {"skies", "sky"},      {"sky", "sky"},         {"dying", "die"},        {"lying", "lie"},
      {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
      {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
      {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};
  if (const auto found = kIrregular.find(word); found != kIrregular.end()) return std::string(found->second);
  if (word.size() <= 2) return word;
  return final_e_and_l(last_suffix(suffix(double_suffix(y_to_i(past_and_progressive(plural(word)))))));
}

}  // namespace trainyard::metrics
