#include "shard/traffic.h"

namespace trainyard::shard {
namespace {

void add(Messages& messages, int64_t count, int64_t times, size_t bytes) {
  if (bytes == 0) return;
  messages.count += count * times;
  messages.bytes += static_cast<uint64_t>(times) * bytes;
}

}  // namespace

Traffic traffic_of(const Engine& engine, int64_t micro_batches) {
  const Policy& policy = engine.policy();
  const int64_t reductions = policy.sync_every_micro_batch ? micro_batches : 1;
  int64_t scales = 0;
  Traffic traffic;
  for (const auto& group : engine.groups()) {
    const bool is_root = group.get() == engine.root();
    scales += group->scales();
    add(traffic.gathers, group->gather_messages(), micro_batches, group->gather_bytes());
    if (!is_root && policy.reshard == Reshard::AfterForward)
      add(traffic.gathers, group->gather_messages(), micro_batches, group->post_forward_gather_bytes());
    if (!group->trains()) continue;
    add(traffic.tensor_sums, 1, reductions, group->tensor_sum_bytes());
    add(traffic.scatters, 1, reductions, group->scatter_bytes());
    add(traffic.sums, group->sum_messages(), reductions, group->sum_bytes());
  }
  add(traffic.scales, 1, 1, static_cast<size_t>(scales) * sizeof(float));
  return traffic;
}

}  // namespace trainyard::shard
