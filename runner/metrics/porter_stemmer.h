#pragma once

#include <string>

namespace trainyard::metrics {

/// The stem of a word in lower case by Porter's algorithm (1980) with the extensions of nltk's PorterStemmer, which
/// rouge_score uses: "summarised" → "summaris".
std::string porter_stem(std::string word);

}  // namespace trainyard::metrics
