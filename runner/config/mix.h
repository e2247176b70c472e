#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What the text of data.mix says.
namespace trainyard::config {

/// A corpus of a mix. Of as many sequences as the weights of all sum to, `weight` are of this one.
struct MixedPath {
  std::string path;
  int64_t weight;  ///< 1 or more; those of all have no common divisor
};

/// The corpora of a text such as `c4=0.7, code.jsonl=0.3`; none where it is empty. Throws InputError for what is no
/// PATH=WEIGHT, a weight that is not above 0, a path that is there twice, and weights whose ratio takes sums above a
/// million.
std::vector<MixedPath> mixed_paths(const std::string& text);

}  // namespace trainyard::config
