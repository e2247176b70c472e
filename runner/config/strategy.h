#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "config/config.h"

// What parallel.strategy and parallel.reshard_after_forward mean, whatever the ranks are.
namespace trainyard::config {

/// What a strategy does, in the terms of PyTorch's FSDP.
struct StrategyTraits {
  bool shards = true;                  ///< parameters, gradients and optimizer state; else every rank has all of them
  bool reshards_after_forward = true;  ///< where parallel.reshard_after_forward says nothing
  bool is_hybrid = false;              ///< one copy a node, where no sizes are given
};
StrategyTraits traits_of(Strategy strategy);

/// The word of the configuration: "full_shard".
std::string word_of(Strategy strategy);

struct AsStrategy {
  bool operator==(const AsStrategy&) const = default;
};
/// A number is that of the ranks which share a copy between forward and backward; 1 or more.
using ReshardAfterForward = std::variant<AsStrategy, bool, int64_t>;

/// None where the text is neither empty, true, false nor such a number.
std::optional<ReshardAfterForward> parse_reshard_after_forward(std::string_view text);

/// Whether each rank keeps unsharded parameters from forward to backward. The text was checked.
bool keeps_until_backward(const Parallel& parallel);

/// Ranks that share a copy between forward and backward, 2 or more, where that is another number than in forward.
/// The text was checked.
std::optional<int64_t> post_forward_ranks(const Parallel& parallel);

/// Whether the mesh is one copy a node: a hybrid strategy without sizes.
bool is_copy_a_node(const Parallel& parallel);

}  // namespace trainyard::config
