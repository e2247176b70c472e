#include "metrics/rouge.h"

#include "metrics/porter_stemmer.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <nlohmann/json.hpp>

namespace trainyard::metrics {

TEST_CASE("rouge: F1 of words, pairs and subsequences as rouge_score has them, with stems and without", "[metrics]") {
  std::ifstream file(ROUGE_REFERENCE);
  const nlohmann::json rows = nlohmann::json::parse(file).at("scores");
  for (const nlohmann::json& row : rows) {
    const std::string made = row.at("made"), reference = row.at("reference");
    for (const auto& [key, words] : {std::pair{"plain", Words::AsTheyAre}, std::pair{"stemmed", Words::Stems}}) {
      CAPTURE(made, reference, key);
      const nlohmann::json& expected = row.at(key);
      const Rouge scores = rouge(made, reference, words);
      CHECK(scores.rouge1 == Approx(expected.at("rouge1").get<double>()).margin(1e-12));
      CHECK(scores.rouge2 == Approx(expected.at("rouge2").get<double>()).margin(1e-12));
      CHECK(scores.rougeL == Approx(expected.at("rougeL").get<double>()).margin(1e-12));
      CHECK(scores.rougeLsum == Approx(expected.at("rougeLsum").get<double>()).margin(1e-12));
    }
  }
}

TEST_CASE("porter_stem: stems as nltk's PorterStemmer has them", "[metrics]") {
  std::ifstream file(ROUGE_REFERENCE);
  const nlohmann::json stems = nlohmann::json::parse(file).at("stems");
  for (const auto& [word, stem] : stems.items()) {
    CAPTURE(word);
    CHECK(porter_stem(word) == stem.get<std::string>());
  }
}

}  // namespace trainyard::metrics
