#pragma once

#include <cstdint>

namespace trainyard::data {

/// Which tokens of a row each rank of a context has. A row is cut into pieces of equally many tokens. With head_tail
/// each rank has two, the r-th and the r-th from the end: later tokens see more keys, and so all ranks compute equally
/// much causal attention, as in torchtitan and Megatron-LM.
class RowParts {
 public:
  enum class Balance { HeadTail, None };

  constexpr RowParts(int ranks, Balance balance) : ranks_(ranks), pieces_(balance == Balance::HeadTail ? 2 : 1) {}

  [[nodiscard]] constexpr int ranks() const { return ranks_; }
  /// The pieces of a row that each rank has.
  [[nodiscard]] constexpr int pieces() const { return pieces_; }
  /// The pieces of a row on all ranks; rows have a multiple of so many tokens.
  [[nodiscard]] constexpr int all_pieces() const { return ranks_ * pieces_; }
  /// The place in the row of a rank's piece: 0 is the row's first.
  [[nodiscard]] constexpr int place_of(int rank, int piece) const {
    return piece == 0 ? rank : all_pieces() - 1 - rank;
  }
  /// `tokens` and the padding of a row that has so many.
  [[nodiscard]] constexpr int64_t padded(int64_t tokens) const {
    return (tokens + all_pieces() - 1) / all_pieces() * all_pieces();
  }

 private:
  int ranks_, pieces_;
};

}  // namespace trainyard::data
