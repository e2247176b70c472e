#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard::data {

/// An endless order of draws from several sources. Of as many draws as the weights sum to, each source has as many as
/// its weight says, spread evenly. It takes no seed, and nothing but the number of a draw tells what it is.
class Mixture {
 public:
  struct Draw {
    size_t source;
    int64_t index;  ///< how many draws of this source come before
    bool operator==(const Draw&) const = default;
  };

  /// At least one weight. Throws std::invalid_argument where one is below 1, or they sum to more than kMostDraws.
  explicit Mixture(std::vector<int64_t> weights);
  static constexpr int64_t kMostDraws = 1'000'000;

  [[nodiscard]] Draw at(int64_t draw) const;
  [[nodiscard]] const std::vector<int64_t>& weights() const { return weights_; }

 private:
  std::vector<int64_t> weights_;
  std::vector<Draw> cycle_;  ///< the order repeats itself after these
};

}  // namespace trainyard::data
