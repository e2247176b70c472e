#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "assemble/sharded_model.h"
#include "fsdp/state.h"

namespace trainyard::fsdp {
namespace {

shard::GroupPolicy policy_of(const FullyShardOptions& options) {
  const MixedPrecisionPolicy& theirs = options.mp_policy;
  shard::GroupPolicy policy;
  shard::MixedPrecision& precision = policy.precision.emplace();
  precision.param_dtype = internal(theirs.param_dtype);
  precision.reduce_dtype = internal(theirs.reduce_dtype);
  if (theirs.output_dtype) precision.output_dtype = internal(*theirs.output_dtype);
  precision.cast_forward_inputs = theirs.cast_forward_inputs;
  if (const auto& reshards = options.reshard_after_forward)
    policy.reshard = *reshards ? shard::Reshard::AfterForward : shard::Reshard::AfterBackward;
  return policy;
}

void require_new(const ModelState& state, const nn::Module& module) {
  const auto parameters = module.parameters();
  if (std::ranges::all_of(parameters, [&](const autograd::Parameter* each) { return state.shard_of(*each); }))
    throw std::logic_error(fmt::format(
        "fully_shard: every parameter of '{}' is in a group already; call it on inner modules first", module.name()));
}

}  // namespace

void fully_shard(const Module& module, const DeviceMesh& mesh, const FullyShardOptions& options) {
  ModelState& state = *module.state();
  nn::Module& wrapped = *state.modules.at(module.number());
  if (!state.layout) {
    state.layout = mesh.state();
    state.mesh = state.layout->mesh;
    state.engine = std::make_unique<shard::Engine>(*state.mesh, shard::Policy{});
  }
  if (state.layout != mesh.state())
    throw std::logic_error("fully_shard: all modules of a model go onto one mesh, and this is another than before");
  const bool is_root = module.number() == 0;
  if (!is_root && wrapped.holds_shared())
    throw std::logic_error(fmt::format(
        "fully_shard: '{}' holds a tied embedding, which the head uses too: only the whole model may hold it",
        module.name()));
  require_new(state, wrapped);
  state.engine->fully_shard(wrapped, policy_of(options));
  if (!is_root) return;
  state.is_complete = true;
  train::fill_random(*state.engine, state.seed);
}

}  // namespace trainyard::fsdp
