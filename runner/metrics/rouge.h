#pragma once

#include <string_view>

namespace trainyard::metrics {

/// ROUGE (Lin 2004) of one text against its reference, F1 each, as Google's rouge_score: words are runs of ASCII
/// letters and digits in lower case.
struct Rouge {
  double rouge1 = 0, rouge2 = 0;  ///< words and pairs of words in common
  double rougeL = 0;              ///< the longest common subsequence of words
  double rougeLsum = 0;           ///< of each line of the reference, those with all lines of the text together
};

/// Stems: words of four letters and more by Porter's algorithm (metrics/porter_stemmer.h), as summaries are scored.
enum class Words { AsTheyAre, Stems };

Rouge rouge(std::string_view made, std::string_view reference, Words words);

}  // namespace trainyard::metrics
