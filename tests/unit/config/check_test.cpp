#include "config/check.h"
#include "config/details.h"

#include <catch2/catch.hpp>

#include "unit/config/error_of.h"

namespace trainyard::config {
namespace {

/// A sound configuration with `flags` on top.
Loaded with(const std::vector<std::string>& flags) {
  return load(flags, {{"train.yaml", "model: {preset: tiny}\ndata:\n  path: corpus.txt\n  tokenizer: bytes\n"}});
}

TEST_CASE("a plan refuses a reshard_after_forward that is no word and no number, as training does", "[config]") {
  const Loaded loaded = with({"--parallel.reshard_after_forward=maybe"});
  CHECK_THROWS_WITH(check_for_plan(loaded), Catch::Contains("parallel.reshard_after_forward is maybe; use true, false"));
  CHECK_NOTHROW(check_for_plan(with({"--parallel.reshard_after_forward=2"})));
}

TEST_CASE("values that contradict each other are refused with both places", "[config]") {
  struct Row {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Row> rows{
      {{}, "no error"},
      {{"--model.preset="},
       "no model is given; set one of model.preset, model.config and model.init_from (in a file: --config FILE)"},
      {{"--model.config=c.json"}, "--model.config and model.preset (train.yaml:1) are both given; keep one"},
      {{"--model.init_from=folder"}, "--model.init_from and model.preset (train.yaml:1) are both given; keep one"},
      {{"--data.path="},
       "no data is given; set data.path (a .txt, .jsonl or .parquet file, a folder, embedded or random), data.mix, "
       "data.tokens or data.images"},
      {{"--data.images=mnist"}, "--data.images and data.path (train.yaml:3) are both given; keep one"},
      {{"--data.images=mnist", "--data.path=", "--data.tokenizer="}, "no error"},
      {{"--data.path=random", "--data.tokenizer="}, "--data.path is random, which has no end; set training.steps"},
      {{"--data.path=random", "--data.tokenizer=", "--training.steps=3"}, "no error"},
      {{"--data.tokens=t.safetensors"}, "--data.tokens and data.path (train.yaml:3) are both given; keep one"},
      {{"--data.tokens=t.safetensors", "--data.path="}, "no error"},
      {{"--data.tokenizer="},
       "train.yaml:3: data.path is corpus.txt, but no data.tokenizer is given; name a tokenizer's file or folder, or "
       "bytes for byte-level"},
      {{"--parallel.reshard_after_forward=maybe"},
       "--parallel.reshard_after_forward is maybe; use true, false, or the number of ranks that share a copy until "
       "backward"},
      {{"--parallel.reshard_after_forward=false", "--parallel.strategy=full_shard"},
       "--parallel.reshard_after_forward is false, but parallel.strategy is full_shard (flag), which gives parameters "
       "back after forward; leave one out, or use shard_grad_op"},
      {{"--parallel.reshard_after_forward=2", "--parallel.strategy=shard_grad_op"},
       "--parallel.reshard_after_forward is 2, but parallel.strategy is shard_grad_op (flag), which keeps parameters "
       "until backward; leave one out"},
      {{"--parallel.reshard_after_forward=true", "--parallel.strategy=no_shard"},
       "--parallel.reshard_after_forward is true, but parallel.strategy is no_shard (flag), which shards nothing; "
       "leave "
       "one out"},
      {{"--parallel.min_num_params=1000"},
       "--parallel.min_num_params is 1000, which is for parallel.wrap size_based_wrap, but that is "
       "transformer_based_wrap "
       "(default); leave one out"},
      {{"--parallel.transformer_layer_cls_to_wrap=LlamaDecoderLayer", "--parallel.wrap=no_wrap"},
       "--parallel.transformer_layer_cls_to_wrap is LlamaDecoderLayer, which is for parallel.wrap "
       "transformer_based_wrap, but "
       "that is no_wrap (flag); leave one out"},
      {{"--activation_checkpointing.n=2", "--activation_checkpointing.mode=full"},
       "--activation_checkpointing.n is 2, which is for activation_checkpointing.mode every_n, but that is full "
       "(flag); leave one out"},
      {{"--activation_checkpointing.n=1", "--activation_checkpointing.mode=full"}, "no error"},
      {{"--activation_checkpointing.n=2", "--activation_checkpointing.mode=every_n"}, "no error"},
      {{"--parallel.bucket_cap_mb=50"},
       "--parallel.bucket_cap_mb is 50, which is for parallel.strategy no_shard, but that is full_shard (default); "
       "leave one out"},
      {{"--float8.recipe=rowwise", "--float8.all_gather=true"},
       "--float8.all_gather is true, which is for float8.recipe tensorwise, but that is rowwise (flag); leave one out"},
      {{"--float8.filter_fqns=k_proj"},
       "--float8.filter_fqns is k_proj, which is for float8.recipe tensorwise, rowwise and rowwise_with_gw_hp, but "
       "that "
       "is none (default); leave one out"},
      {{"--float8.recipe=tensorwise", "--float8.all_gather=true", "--float8.filter_fqns=k_proj"}, "no error"},
      {{"--parallel.bucket_cap_mb=50", "--parallel.strategy=no_shard"}, "no error"},
      {{"--parallel.bucket_cap_mb=50", "--parallel.shard=1"}, "no error"},
      {{"--data.prefetch_factor=4"},
       "--data.prefetch_factor is 4, which is for data.num_workers 1 or more, but that is 0 (default); leave one out"},
      {{"--data.prefetch_factor=4", "--data.num_workers=1"}, "no error"},
      {{"--comm.user_buffers=true", "--comm.backend=gloo"},
       "--comm.user_buffers is true, which is for comm.backend nccl, or auto where there are GPUs, but that is gloo "
       "(flag); leave one out"},
      {{"--comm.user_buffers=true"}, "no error"},
      {{"--device.cuda_graphs=true", "--parallel.offload=true"},
       "--device.cuda_graphs is always, but parallel.offload is true (flag), which moves what it needs through the "
       "host; "
       "leave one out"},
      {{"--training.loss_scale_init=1024", "--training.loss_scale=none", "--parallel.param_dtype=fp16"},
       "--training.loss_scale_init is 1024, which is for training.loss_scale auto, but that is none (flag); leave one "
       "out"},
      {{"--training.loss_scale_init=1024", "--parallel.param_dtype=fp16"}, "no error"},
      {{"--metrics.profile_keep=1"},
       "--metrics.profile_keep is 1, which is for metrics.profile_interval 1 or more, but that is 0 (default); leave "
       "one out"},
      {{"--parallel.cpu_ram_efficient_loading", "--parallel.no_sync_module_states"},
       "--parallel.cpu_ram_efficient_loading is true, but parallel.sync_module_states is false (flag), and what rank 0 "
       "alone reads it must broadcast; leave one out"},
      {{"--parallel.precision=model.layers.*=fp32, root=fp8"},
       "--parallel.precision: param_dtype of root is 'fp8'; use fp32, bf16 or fp16"},
      {{"--parallel.precision=model.layers.*=fp32"}, "no error"},
      {{"--training.loss_scale=dynamic"},
       "--training.loss_scale: 'dynamic' is none of auto, none and a number above 0"},
      {{"--data.path=", "--data.mix=a=1,b=2"}, "--data.mix is a=1,b=2, which has no end; set training.steps"},
      {{"--data.path=", "--data.mix=a=1,b=2", "--training.steps=5", "--data.tokenizer="},
       "--data.mix is a=1,b=2, but no data.tokenizer is given; name a tokenizer's file or folder, or bytes for "
       "byte-level"},
      {{"--data.path=", "--data.mix=a=1,a=2", "--training.steps=5"},
       "--data.mix: the corpus 'a' is given twice; keep one"},
      {{"--data.path=", "--data.mix=random=1,a=2", "--training.steps=5"},
       "--data.mix: 'random' is no text; leave it out"},
      {{"--data.path=", "--data.mix=a=1,b=2", "--training.steps=5", "--validation.split=0.1"},
       "--validation.split is 0.1, but data.mix (flag) has no end, and so no share; set validation.path"},
      {{"--data.path=", "--data.mix=a=1,b=2", "--training.steps=5", "--data.source_field=a", "--data.target_field=b",
        "--validation.path=v.jsonl"},
       "--data.source_field is a, but data.mix (flag) is of texts and not of pairs"},
      {{"--data.path=", "--data.mix=a=1,b=2", "--training.steps=5"}, "no error"},
      {{"--validation.interval=5"},
       "--validation.interval is 5, but no held-out data is given; set validation.path, validation.tokens, "
       "validation.images or validation.split"},
      {{"--validation.epoch_interval=1"},
       "--validation.epoch_interval is 1, but no held-out data is given; set validation.path, validation.tokens, "
       "validation.images or validation.split"},
      {{"--validation.interval=5", "--validation.split=0.1"}, "no error"},
      {{"--validation.split=0.1", "--validation.path=v.txt"},
       "--validation.split and validation.path (flag) are both given; keep one"},
      {{"--validation.split=0.1", "--data.path=random", "--training.steps=1"},
       "--validation.split is 0.1, but data.path is random (flag), which has no end, and so no share"},
      {{"--validation.split=0.1", "--data.tokens=t.safetensors", "--data.path="},
       "--validation.split is 0.1, but data.tokens (flag) is a list of batches; set validation.tokens"},
      {{"--validation.steps=5"},
       "--validation.steps is 5, which is for validation.path (or tokens, images or split) that is given, but that is "
       "not given; leave one out"},
      {{"--training.epochs=2", "--training.steps=5"},
       "--training.epochs is 2, which is for training.steps 0, but that is 5 (flag); leave one out"},
      {{"--data.max_samples=5"},
       "--data.max_samples is 5, which is for data.source_field that is given, but that is not given; leave one out"},
      {{"--data.max_samples=5", "--data.source_field=a", "--data.target_field=b"}, "no error"},
      {{"--data.path=random", "--training.steps=1", "--data.field=body"},
       "--data.field is body, which is for data.path a corpus of JSON lines, but that is random (flag); leave one out"},
      {{"--data.field=body", "--data.path=corpus.jsonl"}, "no error"},
      {{"--model.init_from=a", "--model.preset=", "--model.seed=3"},
       "--model.seed is 3, which is for model.init_from left empty, but that is a (flag); leave one out"},
      {{"--optimizer.decay=constant", "--optimizer.min_lr_ratio=0.5"},
       "--optimizer.min_lr_ratio is 0.5, which is for optimizer.decay other than constant, but that is constant "
       "(flag); leave one out"},
      {{"--sample.count=5"},
       "--sample.count is 5, which is for sample.path that is given, but that is not given; leave one out"},
      {{"--checkpoint.exclude=data", "--checkpoint.resume=never"},
       "--checkpoint.exclude is data, which is for checkpoint.resume auto, extend or a checkpoint, but that is never "
       "(flag); "
       "leave one out"},
      {{"--checkpoint.create_seed_checkpoint", "--checkpoint.no_enabled"},
       "--checkpoint.create_seed_checkpoint is true, but checkpoint.enabled is false (flag); set it to true"},
      {{"--validation.path=v.txt"}, "no error"},
      {{"--validation.path=v.txt", "--validation.tokens=v.safetensors"},
       "--validation.tokens and validation.path (flag) are both given; keep one"},
      {{"--validation.path=v.txt", "--data.path=", "--data.tokens=t.safetensors", "--data.tokenizer="},
       "--validation.path is v.txt, but no data.tokenizer is given; name that of the training data"},
      {{"--parallel.shard=0"}, "--parallel.shard is 0; use 1 or more, or -1 for the rest"},
      {{"--parallel.shard=2", "--parallel.strategy=no_shard"},
       "--parallel.shard is 2, but parallel.strategy is no_shard (flag); leave parallel.shard out, or use full_shard"},
      {{"--checkpoint.interval=5", "--checkpoint.keep=1"},
       "--checkpoint.keep is 1, but checkpoint.interval is 5 (flag); use 2 or more, so that a damaged checkpoint has "
       "one before it"},
      {{"--checkpoint.initial_load_path=a/step-1", "--checkpoint.resume=b/step-2"},
       "--checkpoint.initial_load_path is a/step-1, and checkpoint.resume names another to begin from (flag); keep "
       "one"},
      {{"--checkpoint.initial_load_path=a/step-1", "--checkpoint.resume=never"}, "no error"},
      {{"--checkpoint.initial_load_path=a/step-1", "--checkpoint.resume=extend"}, "no error"},
      {{"--checkpoint.no_initial_load_model_only"},
       "--checkpoint.initial_load_model_only is false, but no checkpoint.initial_load_path is given, which it is "
       "about"},
      {{"--checkpoint.keep=1"}, "no error"},
      {{"--checkpoint.interval=5", "--checkpoint.no_enabled"},
       "--checkpoint.interval is 5, which is for checkpoint.enabled true, but that is false (flag); leave one out"},
      {{"--metrics.line={los}"}, "--metrics.line: unknown placeholder {los}; did you mean {loss}?"},
      {{"--metrics.profile_interval=2", "--metrics.profile_steps=3"},
       "--metrics.profile_steps is 3, but metrics.profile_interval is 2 (flag); use at most that"},
      {{"--metrics.validation_line={", "--validation.path=v.txt"},
       "--metrics.validation_line: a { without its }; write {{ for the character itself"},
  };
  for (const Row& row : rows) CHECK(error_of([&] { check(with(row.flags)); }) == row.message);
}

TEST_CASE("a flag leaves behind what a file says of the way that it changes", "[config]") {
  const YamlText file{"train.yaml",
                      "model: {preset: tiny}\ndata: {path: a, tokenizer: bytes}\n"
                      "activation_checkpointing:\n  mode: every_n\n  n: 3\n"};
  const auto dropped = [&](const std::vector<std::string>& flags) {
    Loaded loaded = load(flags, {file});
    drop_idle(loaded);
    return loaded;
  };
  CHECK(dropped({}).config.activation_checkpointing.n == 3);
  const Loaded off = dropped({"--activation_checkpointing.mode=none"});
  CHECK(off.config.activation_checkpointing.n == 1);
  CHECK(off.origin("activation_checkpointing.n") == "default");
  CHECK(error_of([&] { check(off); }) == "no error");
  const Loaded both = dropped({"--activation_checkpointing.mode=none", "--activation_checkpointing.n=2"});
  CHECK(error_of([&] { check(both); }) ==
        "--activation_checkpointing.n is 2, which is for activation_checkpointing.mode every_n, but that is none "
        "(flag); leave one out");
}

TEST_CASE("the rows of a step over all ranks give what is left open, and all that is given must agree", "[config]") {
  const auto on = [](int world, std::vector<std::string> flags) {
    flags.emplace_back("--training.global_batch_size=24");
    return for_world(with(flags), world).config.training;
  };
  CHECK(on(3, {"--training.batch_size=4"}).accumulation_steps == 2);
  CHECK(on(3, {"--training.batch_size=0"}).batch_size == 8);
  CHECK(on(3, {"--training.batch_size=0", "--training.accumulation_steps=2"}).batch_size == 4);
  CHECK(on(3, {"--training.batch_size=4", "--training.accumulation_steps=2"}).accumulation_steps == 2);
  CHECK(on(4, {"--training.batch_size=0", "--parallel.tensor=2"}).batch_size == 12);
  CHECK(error_of([&] { on(3, {"--training.batch_size=4", "--training.accumulation_steps=1"}); }) ==
        "--training.global_batch_size is 24, but training.batch_size 4 (flag) with training.accumulation_steps 1 (flag) "
        "on 3 ranks makes 12; leave one out");
  CHECK(error_of([&] { on(5, {"--training.batch_size=0"}); }) ==
        "--training.global_batch_size is 24, but training.accumulation_steps 1 on 5 ranks makes 5 rows at once; use a "
        "multiple of 5");
  CHECK(error_of([&] { check(with({"--training.batch_size=0"})); }) ==
        "--training.batch_size is 0, but no training.global_batch_size is given, of which it would be a part");
}

TEST_CASE("a backend that moves other memory than the device's is refused", "[config]") {
  struct Row {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Row> rows{
      {{"--comm.backend=nccl", "--device=cpu"},
       "--comm.backend is nccl, which moves the memory of GPUs, but device.kind is cpu (flag); leave it out"},
      {{"--comm.backend=gloo", "--device=cuda"},
       "--comm.backend is gloo, which moves host memory, but device.kind is cuda (flag); leave it out"},
      {{"--comm.backend=nccl", "--device=cuda"}, "no error"},
      {{"--comm.backend=nccl"}, "no error"},
      {{"--comm.backend=mpi", "--device=cpu"}, "no error"},
  };
  for (const Row& row : rows) CHECK(error_of([&] { check(with(row.flags)); }) == row.message);
}

}  // namespace
}  // namespace trainyard::config
