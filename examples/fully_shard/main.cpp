// The FSDP2 tutorial with the library: a small Transformer, fully sharded over 2 ranks with mixed precision. It prints
// the dtypes of its parameters before and after unshard(), and takes ten steps.
//
//   ./fully_shard                                          the ranks are threads of this process
//   trainyard launch --nproc-per-node 2 ./fully_shard      they are processes; torchrun --no-python does as well
#include <trainyard/trainyard.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <vector>

namespace fsdp = trainyard::fsdp;

namespace {

fsdp::Model sharded_model(fsdp::ProcessGroup& ranks) {
  fsdp::Model model = fsdp::Model::preset("tutorial");
  const fsdp::DeviceMesh mesh(ranks);
  const fsdp::FullyShardOptions options{
      .mp_policy = {.param_dtype = fsdp::DType::BFloat16, .reduce_dtype = fsdp::DType::Float32}};
  for (const fsdp::Module& layer : model.layers()) fsdp::fully_shard(layer, mesh, options);
  fsdp::fully_shard(model, mesh, options);
  return model;
}

/// Sets what the tutorial sets with --explicit-prefetching: each layer gathers the two after it ahead of time.
void prefetch_explicitly(const fsdp::Model& model) {
  std::vector<fsdp::Module> layers = model.layers();
  for (std::size_t i = 0; i + 2 < layers.size(); ++i)
    layers[i].set_modules_to_forward_prefetch({layers[i + 1], layers[i + 2]});
  for (std::size_t i = 2; i < layers.size(); ++i)
    layers[i].set_modules_to_backward_prefetch({layers[i - 1], layers[i - 2]});
}

void print_dtype(const char* when, const fsdp::Parameter& parameter) {
  std::cout << when << ": " << parameter.name() << " is " << fsdp::to_string(parameter.dtype()) << ", "
            << parameter.local_shape()[0] << " of its " << parameter.shape()[0] << " rows here\n";
}

void show_dtypes(fsdp::Model& model, bool is_first) {
  fsdp::Module layer = model.layers().front();
  const fsdp::Parameter parameter = layer.managed_parameters()[2];
  if (is_first) print_dtype("sharded", parameter);
  layer.unshard();
  if (is_first) print_dtype("unsharded", parameter);
  layer.reshard();
  if (is_first) print_dtype("sharded again", parameter);
}

void train(fsdp::ProcessGroup& ranks) {
  const bool is_first = ranks.rank() == 0;
  fsdp::Model model = sharded_model(ranks);
  show_dtypes(model, is_first);
  prefetch_explicitly(model);

  fsdp::AdamW optimizer(model, {.lr = 1e-2, .weight_decay = 0});
  std::mt19937 random(static_cast<unsigned>(ranks.rank()));
  for (int step = 1; step <= 10; ++step) {
    model.unshard_async();  // the first gather runs while the batch is made
    fsdp::Batch batch{.rows = 8, .tokens = 64};
    for (int i = 0; i < 8 * 64; ++i) batch.input_ids.push_back(static_cast<std::int32_t>(random() % 1024));

    fsdp::Loss loss = model.loss(batch);
    loss.backward();
    const double norm = fsdp::clip_grad_norm(model, 1.0);
    optimizer.step();
    optimizer.zero_grad();
    const double value = loss.item();  // of all ranks, so each calls it
    if (is_first) std::printf("step %d: loss %.4f, gradient norm %.4f\n", step, value, norm);
  }
  fsdp::save_checkpoint("checkpoints", model, optimizer);
  const fsdp::StateDict whole = fsdp::get_model_state_dict(model);
  if (is_first) fsdp::save_state_dict(whole, "model_state_dict.pt");
}

}  // namespace

int main() {
  try {
    if (std::getenv("RANK")) {
      fsdp::run_process(train);
    } else {
      fsdp::run_threads(2, train);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return fsdp::exit_code(error);  // what the operator restarts a job by
  }
}
