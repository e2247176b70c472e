#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <vector>

namespace trainyard::test {

/// Choices (indices) such that any two of different kinds come together in one of them: of the whole product, in its
/// order, each that brings a pair not seen before.
inline std::vector<std::vector<size_t>> covering(const std::vector<size_t>& sizes) {
  std::set<std::array<size_t, 4>> pairs;
  std::vector<std::vector<size_t>> chosen;
  size_t product = 1;
  for (const size_t size : sizes) product *= size;
  for (size_t number = 0; number < product; ++number) {
    std::vector<size_t> choice;
    for (size_t kind = 0, rest = number; kind < sizes.size(); rest /= sizes[kind++])
      choice.push_back(rest % sizes[kind]);
    // Kinds in step with the number would meet in few ways at first: each is turned by the ones before it.
    for (size_t kind = 1; kind < sizes.size(); ++kind) choice[kind] = (choice[kind] + choice[kind - 1]) % sizes[kind];
    size_t added = 0;
    for (size_t a = 0; a < sizes.size(); ++a)
      for (size_t b = a + 1; b < sizes.size(); ++b) added += pairs.insert({a, b, choice[a], choice[b]}).second ? 1 : 0;
    if (added > 0) chosen.push_back(choice);
  }
  return chosen;
}

}  // namespace trainyard::test
