#include "config/strategy.h"

#include <stdexcept>

#include "base/text.h"
#include "config/schema.h"

namespace trainyard::config {

StrategyTraits traits_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::FullShard:
      return {};
    case Strategy::ShardGradOp:
      return {.reshards_after_forward = false};
    case Strategy::NoShard:
      return {.shards = false};
    case Strategy::HybridShard:
      return {.is_hybrid = true};
    case Strategy::HybridShardZero2:
      return {.reshards_after_forward = false, .is_hybrid = true};
  }
  throw std::logic_error("traits_of: no such strategy");
}

std::string word_of(Strategy strategy) {
  Config config;
  config.parallel.strategy = strategy;
  return format_value(find_key("parallel.strategy")->get(config));
}

std::optional<ReshardAfterForward> parse_reshard_after_forward(std::string_view text) {
  if (text.empty()) return AsStrategy{};
  if (text == "true" || text == "false") return text == "true";
  if (const auto ranks = parse_int(text); ranks && *ranks >= 1) return *ranks;
  return std::nullopt;
}

namespace {

ReshardAfterForward reshard_of(const Parallel& parallel) {
  const auto reshard = parse_reshard_after_forward(parallel.reshard_after_forward);
  if (!reshard) throw std::logic_error("parallel.reshard_after_forward was not checked");
  return *reshard;
}

}  // namespace

bool keeps_until_backward(const Parallel& parallel) {
  const ReshardAfterForward reshard = reshard_of(parallel);
  const bool is_kept_by_word = reshard == ReshardAfterForward(false) || reshard == ReshardAfterForward(int64_t{1});
  return is_kept_by_word || !traits_of(parallel.strategy).reshards_after_forward;
}

std::optional<int64_t> post_forward_ranks(const Parallel& parallel) {
  const ReshardAfterForward reshard = reshard_of(parallel);
  const auto* const ranks = std::get_if<int64_t>(&reshard);
  return ranks && *ranks > 1 ? std::optional(*ranks) : std::nullopt;
}

bool is_copy_a_node(const Parallel& parallel) {
  return traits_of(parallel.strategy).is_hybrid && parallel.shard == -1 && parallel.replicate == -1;
}

}  // namespace trainyard::config
