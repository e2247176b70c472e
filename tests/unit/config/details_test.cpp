// Keys that mean nothing beside others: the table of details() is gone over row by row.
#include "config/details.h"

#include <catch2/catch.hpp>

#include <set>

#include "config/check.h"
#include "config/schema.h"
#include "unit/config/error_of.h"

namespace trainyard::config {
namespace {
using Words = std::vector<std::string>;

Loaded beside(Words flags, const Words& more = {}) {
  flags.insert(flags.end(), more.begin(), more.end());
  return load(flags, {{"train.yaml", "model: {preset: tiny}\ndata: {path: corpus.jsonl, tokenizer: bytes}\n"}});
}

/// What `key` is set to, flags beside which it is idle for the sake of `of`, and flags beside which it counts.
struct Tried {
  const char *key, *of, *value;
  Words idle, counts;
};

const Words kRandom{"--data.path=random", "--data.tokenizer=", "--training.steps=1"};
const Words kRandomHeldOut{"--data.path=random", "--data.tokenizer=", "--training.steps=1", "--validation.tokens=v"};
const Words kTokens{"--data.path=", "--data.tokenizer=", "--data.tokens=t.safetensors"};
const Words kImages{"--data.path=", "--data.tokenizer=", "--data.images=mnist"};
const Words kPairs{"--data.source_field=a", "--data.target_field=b"};
const Words kTalks{"--data.messages_field=messages"};
const Words kIds{"--data.input_ids_field=input_ids"};
const Words kSplit{"--validation.split=0.1"};
const Words kFloat16{"--parallel.param_dtype=fp16"};
const Words kConstantScale{"--parallel.param_dtype=fp16", "--training.loss_scale=none"};
const Words kAlone{"--parallel.strategy=no_shard"}, kOffloaded{"--parallel.shard=1", "--parallel.offload=true"};
const Words kAdapted{"--model.preset=", "--model.init_from=a", "--lora.rank=8"};
const Words kOneGroup{"--parallel.wrap=no_wrap"}, kOnCpu{"--device=cpu"};
const Words kUnsaved{"--checkpoint.no_enabled"};

const std::vector<Tried>& trials() {
  static const std::vector<Tried> list{
      {"model.seed", "model.init_from", "3", {"--model.preset=", "--model.init_from=a"}, {}},
      {"data.tokenizer", "data.images", "bytes", {"--data.path=", "--data.images=mnist"}, {}},
      {"data.config", "data.path", "en", {"--data.path=embedded"}, {"--data.path=org/texts"}},
      {"data.split", "data.path", "test", {"--data.path=corpus.jsonl"}, {"--data.path=org/texts@v1"}},
      {"data.messages_field", "data.path", "m", {"--data.path=corpus.txt"}, {"--validation.path=held_out.jsonl"}},
      {"data.messages_field", "data.source_field", "m", kPairs, {}},
      {"data.input_ids_field", "data.path", "i", {"--data.path=random", "--training.steps=1"}, {"--data.tokenizer="}},
      {"data.input_ids_field", "data.source_field", "i", kPairs, {}},
      {"data.input_ids_field", "data.messages_field", "i", kTalks, {}},
      {"data.loss_on", "data.messages_field", "all", {}, kTalks},
      {"data.chat_template", "data.messages_field", "t.jinja", {}, kTalks},
      {"data.chat_template_kwargs", "data.messages_field", "{}", {}, kTalks},
      {"data.field", "data.messages_field", "body", kTalks, {}},
      {"data.append_eos", "data.messages_field", "false", kTalks, {}},
      {"data.field", "data.input_ids_field", "body", kIds, {}},
      {"data.append_eos", "data.input_ids_field", "false", kIds, {}},
      {"data.field", "data.path", "body", {"--data.path=corpus.txt"}, {}},
      {"data.field", "data.path", "body", {"--data.path=corpus.TXT"}, {}},
      {"data.cache_dir", "data.path", "c", {"--data.path=embedded"}, {}},
      {"data.append_eos", "data.path", "false", kRandom, {"--data.path=embedded"}},
      {"data.special_tokens", "data.tokenizer", "parse", kTokens, {}},
      {"data.shuffle", "data.path", "false", kRandom, {}},
      {"data.seed", "data.path", "3", kTokens, kRandom},
      {"data.seed", "data.shuffle", "3", {"--data.shuffle=false"}, {}},
      {"data.source_field", "data.path", "a", {"--data.path=embedded"}, {"--data.target_field=b"}},
      {"data.target_field", "data.path", "b", {"--data.path=embedded"}, {"--data.source_field=a"}},
      {"data.prefix", "data.source_field", "x", {}, kPairs},
      {"data.max_source_length", "data.source_field", "9", {}, kPairs},
      {"data.max_target_length", "data.source_field", "9", {}, kPairs},
      {"data.truncate", "data.source_field", "false", {}, kPairs},
      {"data.padding", "data.source_field", "longest", {}, kPairs},
      {"data.pad_to_multiple_of", "data.source_field", "8", {}, kPairs},
      {"data.max_samples", "data.source_field", "5", {}, kPairs},
      {"data.num_workers", "data.path", "2", kRandom, kImages},
      {"data.prefetch_factor", "data.num_workers", "4", {}, {"--data.num_workers=1"}},
      {"validation.steps", "validation.path", "5", {}, {"--validation.tokens=v.safetensors"}},
      {"validation.batch_size", "validation.path", "4", {"--validation.tokens=v.safetensors"}, kSplit},
      {"training.epochs", "training.steps", "2", {"--training.steps=5"}, {}},
      {"training.sequence_length", "data.images", "64", kImages, {}},
      {"training.sequence_length", "data.source_field", "64", kPairs, {}},
      {"training.sync_every_micro_batch",
       "training.accumulation_steps",
       "true",
       {},
       {"--training.accumulation_steps=2"}},
      {"training.loss_scale_init", "training.loss_scale", "1024", kConstantScale, kFloat16},
      {"training.loss_scale_growth_factor", "training.loss_scale", "4", kConstantScale, kFloat16},
      {"training.loss_scale_backoff_factor", "training.loss_scale", "0.25", kConstantScale, kFloat16},
      {"training.loss_scale_growth_interval", "training.loss_scale", "50", kConstantScale, kFloat16},
      {"training.loss_scale_init", "parallel.param_dtype", "1024", {}, {"--parallel.precision=root=fp16"}},
      {"training.loss_scale_growth_factor", "parallel.param_dtype", "4", {}, {"--parallel.reduce_dtype=fp16"}},
      {"training.loss_scale_backoff_factor", "parallel.param_dtype", "0.25", {}, {"--parallel.output_dtype=fp16"}},
      {"training.loss_scale_growth_interval",
       "parallel.param_dtype",
       "50",
       {"--parallel.precision=root=bf16"},
       kFloat16},
      {"optimizer.warmup_ratio", "optimizer.warmup_steps", "0.5", {"--optimizer.warmup_steps=3"}, {}},
      {"optimizer.warmup_from_zero", "optimizer.warmup_steps", "true", {}, {"--optimizer.warmup_steps=3"}},
      {"optimizer.warmup_from_zero", "optimizer.warmup_steps", "true", {}, {"--optimizer.warmup_ratio=0.5"}},
      {"optimizer.warmup_from_zero",
       "optimizer.warmup_shape",
       "true",
       {"--optimizer.warmup_steps=3", "--optimizer.warmup_shape=log"},
       {"--optimizer.warmup_steps=3"}},
      {"optimizer.warmup_shape", "optimizer.warmup_steps", "log", {}, {"--optimizer.warmup_steps=3"}},
      {"optimizer.warmup_min_ratio", "optimizer.warmup_steps", "0.5", {}, {"--optimizer.schedule_lags=true"}},
      {"optimizer.min_lr_ratio", "optimizer.decay", "0.5", {"--optimizer.decay=constant"}, {}},
      {"optimizer.stable_steps", "optimizer.decay", "3", {"--optimizer.decay=constant"}, {}},
      {"optimizer.decayed_parameters", "optimizer.weight_decay", "all", {"--optimizer.weight_decay=0"}, {}},
      {"parallel.context_method", "parallel.context", "ulysses", {}, {"--parallel.context=2"}},
      {"parallel.context_balance", "parallel.context", "none", {}, {"--parallel.context=2"}},
      {"parallel.sequence_parallel", "parallel.tensor", "false", {}, {"--parallel.tensor=2"}},
      {"parallel.loss_parallel", "parallel.tensor", "false", {}, {"--parallel.tensor=2"}},
      {"parallel.async_tensor", "parallel.tensor", "true", {}, {"--parallel.tensor=2"}},
      {"parallel.async_tensor",
       "parallel.sequence_parallel",
       "true",
       {"--parallel.tensor=2", "--parallel.sequence_parallel=false"},
       {"--parallel.tensor=2"}},
      {"parallel.cast_forward_inputs", "parallel.param_dtype", "false", {}, {"--parallel.output_dtype=bf16"}},
      {"parallel.min_num_params", "parallel.wrap", "1000", {}, {"--parallel.wrap=size_based_wrap"}},
      {"parallel.transformer_layer_cls_to_wrap", "parallel.wrap", "LlamaDecoderLayer", kOneGroup, {}},
      {"parallel.reshard_after_forward", "parallel.wrap", "false", kOneGroup, {}},
      {"parallel.offload", "device.kind", "true", kOnCpu, {}},
      {"parallel.prefetch", "parallel.strategy", "2", kAlone, kOffloaded},
      {"parallel.prefetch", "parallel.wrap", "2", kOneGroup, {}},
      {"parallel.forward_prefetch", "parallel.strategy", "2", kAlone, kOffloaded},
      {"parallel.forward_prefetch", "parallel.wrap", "2", kOneGroup, {}},
      {"parallel.backward_prefetch", "parallel.strategy", "backward_post", kAlone, kOffloaded},
      {"parallel.backward_prefetch", "parallel.wrap", "backward_post", kOneGroup, {}},
      {"parallel.backward_prefetch", "parallel.prefetch", "backward_post", {"--parallel.prefetch=0"}, {}},
      {"parallel.unshard_early", "parallel.strategy", "true", kAlone, kOneGroup},
      {"parallel.limit_all_gathers", "parallel.strategy", "false", kOffloaded, {}},
      {"parallel.limit_all_gathers", "parallel.wrap", "false", kOneGroup, {}},
      {"parallel.limit_all_gathers",
       "parallel.prefetch",
       "false",
       {"--parallel.prefetch=0"},
       {"--parallel.prefetch=0", "--parallel.forward_prefetch=2"}},
      {"parallel.bucket_cap_mb", "parallel.strategy", "50", {}, {"--parallel.shard=1"}},
      {"parallel.cpu_ram_efficient_loading", "model.init_from", "true", {}, {"--model.preset=", "--model.init_from=a"}},
      {"float8.all_gather", "float8.recipe", "true", {"--float8.recipe=rowwise"}, {"--float8.recipe=tensorwise"}},
      {"float8.all_gather",
       "parallel.strategy",
       "true",
       {"--float8.recipe=tensorwise", "--parallel.strategy=no_shard"},
       {"--float8.recipe=tensorwise"}},
      {"float8.filter_fqns", "float8.recipe", "k_proj", {}, {"--float8.recipe=rowwise"}},
      {"lora.alpha", "lora.rank", "16", {}, kAdapted},
      {"lora.dropout", "lora.rank", "0.1", {}, kAdapted},
      {"lora.target_modules", "lora.rank", "q_proj", {}, kAdapted},
      {"lora.init_from", "lora.rank", "peft", {}, kAdapted},
      {"lora.base_dtype", "lora.rank", "bf16", {}, kAdapted},
      {"activation_checkpointing.n",
       "activation_checkpointing.mode",
       "2",
       {"--activation_checkpointing.mode=full"},
       {"--activation_checkpointing.mode=every_n"}},
      {"activation_checkpointing.offload",
       "device.kind",
       "true",
       {"--device=cpu", "--activation_checkpointing.mode=full"},
       kOnCpu},
      {"checkpoint.name", "checkpoint.enabled", "n", kUnsaved, {}},
      {"checkpoint.overwrite", "checkpoint.enabled", "true", kUnsaved, {"--checkpoint.name=n"}},
      {"checkpoint.interval", "checkpoint.enabled", "5", kUnsaved, {}},
      {"validation.epoch_interval", "data.path", "1", kRandomHeldOut, kSplit},
      {"checkpoint.epoch_interval", "checkpoint.enabled", "1", kUnsaved, kTokens},
      {"checkpoint.epoch_interval", "data.path", "1", kRandom, {}},
      {"checkpoint.keep", "checkpoint.enabled", "3", kUnsaved, {}},
      {"checkpoint.keep", "checkpoint.overwrite", "3", {"--checkpoint.overwrite", "--checkpoint.name=n"}, {}},
      {"checkpoint.async", "checkpoint.enabled", "true", kUnsaved, {}},
      {"checkpoint.async",
       "checkpoint.state_dict",
       "true",
       {"--checkpoint.state_dict=full"},
       {"--checkpoint.state_dict=full", "--checkpoint.final_state_dict=sharded"}},
      {"checkpoint.state_dict", "checkpoint.enabled", "full", kUnsaved, {}},
      {"checkpoint.broadcast_from_rank0",
       "checkpoint.enabled",
       "true",
       kUnsaved,
       {"--checkpoint.no_enabled", "--model.preset=", "--model.init_from=a"}},
      {"checkpoint.final_state_dict", "checkpoint.enabled", "full", kUnsaved, {}},
      {"checkpoint.final_model_only", "checkpoint.enabled", "true", kUnsaved, {}},
      {"checkpoint.exclude",
       "checkpoint.resume",
       "data",
       {"--checkpoint.resume=never"},
       {"--checkpoint.resume=never", "--checkpoint.initial_load_path=c", "--checkpoint.no_initial_load_model_only"}},
      {"checkpoint.exclude",
       "checkpoint.enabled",
       "data",
       kUnsaved,
       {"--checkpoint.no_enabled", "--checkpoint.resume=c"}},
      {"checkpoint.timeout",
       "checkpoint.enabled",
       "1min",
       kUnsaved,
       {"--checkpoint.no_enabled", "--checkpoint.initial_load_path=c"}},
      {"comm.user_buffers", "comm.backend", "true", {"--comm.backend=gloo"}, {}},
      {"comm.user_buffers", "device.kind", "true", kOnCpu, {}},
      {"comm.shared_memory", "comm.backend", "false", {"--comm.backend=mpi"}, {}},
      {"comm.shared_memory", "device.kind", "false", {"--device=cuda"}, {}},
      {"metrics.validation_line", "validation.path", "{step}", {}, kSplit},
      {"metrics.profile_steps", "metrics.profile_interval", "2", {}, {"--metrics.profile_interval=5"}},
      {"metrics.profile_keep", "metrics.profile_interval", "1", {}, {"--metrics.profile_interval=5"}},
      {"sample.prompt", "data.tokenizer", "x", kTokens, {}},
      {"sample.max_new_tokens", "sample.prompt", "5", {}, {"--sample.prompt=x"}},
      {"sample.temperature", "sample.prompt", "0.5", {}, {"--sample.prompt=x"}},
      {"sample.top_p", "sample.prompt", "0.5", {}, {"--sample.prompt=x"}},
      {"sample.top_p",
       "sample.temperature",
       "0.5",
       {"--sample.prompt=x", "--sample.temperature=0"},
       {"--sample.prompt=x"}},
      {"sample.path", "data.tokenizer", "s.jsonl", kTokens, kPairs},
      {"sample.count",
       "sample.path",
       "5",
       {},
       {"--sample.path=s.jsonl", "--data.source_field=a", "--data.target_field=b"}},
  };
  return list;
}

// They count whatever others are, or are what others count beside, or are refused where nothing takes them (check.cpp).
const std::set<std::string> kCountAlone{
    "model.preset",
    "model.config",
    "model.init_from",
    "model.name_map",
    "model.hidden_size",
    "model.intermediate_size",
    "model.layers",
    "model.heads",
    "model.kv_heads",
    "model.vocab_size",
    "data.path",
    "data.mix",
    "data.tokens",
    "data.images",
    "validation.interval",
    "validation.path",
    "validation.tokens",
    "validation.images",
    "validation.split",
    "training.steps",
    "training.accumulation_steps",
    "training.freeze",
    "training.global_batch_size",
    "training.clip_grad_norm",
    "training.loss_scale",
    "training.seed",
    "training.batch_size",     // beside data.tokens trainyard plan, which opens no data, plans with it
    "training.deterministic",  // false allows what a GPU may do and asks for nothing
    "optimizer.lr",
    "optimizer.warmup_steps",
    "optimizer.schedule_lags",
    "optimizer.decay",
    "optimizer.betas",
    "optimizer.eps",
    "optimizer.weight_decay",
    "optimizer.state_dtype",
    "parallel.strategy",
    "parallel.shard",
    "parallel.replicate",
    "parallel.context",
    "parallel.tensor",
    "parallel.param_dtype",
    "parallel.reduce_dtype",
    "parallel.output_dtype",
    "parallel.precision",
    "parallel.wrap",
    "parallel.sync_module_states",
    "float8.recipe",
    "lora.rank",
    "activation_checkpointing.mode",
    "checkpoint.enabled",
    "checkpoint.resume",
    "checkpoint.create_seed_checkpoint",
    "checkpoint.initial_load_path",
    "checkpoint.initial_load_model_only",
    "checkpoint.dir",  // a place, which asks for nothing
    "comm.backend",
    "comm.timeout",
    "rendezvous.timeout",
    "device.kind",
    "device.threads",
    "device.cuda_graphs",
    "metrics.dir",
    "metrics.interval",
    "metrics.line",
    "metrics.tensorboard",
    "metrics.port",
    "metrics.profile_interval"};

TEST_CASE("details: a key is refused beside each value that leaves it nothing to say, and taken beside another", "[config]") {
  for (const Tried& row : trials()) {
    const std::string key = row.key, flag = "--" + key + "=" + row.value;
    INFO(flag << " beside " << row.of);
    const std::string refusal = error_of([&] { check_details(beside(row.idle, {flag})); });
    CHECK_THAT(refusal, Catch::StartsWith("--" + key + " is ") && Catch::EndsWith("; leave one out") &&
                            Catch::Contains(std::string("which is for ") + row.of + " "));
    CHECK(error_of([&] { check(beside(row.counts, {flag})); }) == "no error");
  }
}

TEST_CASE("details: what another program says of such a key is told of and falls away", "[config]") {
  for (const Tried& row : trials()) {
    Loaded loaded = beside(row.idle, {std::string("--") + row.key + "=" + row.value});
    loaded.origins[row.key].text = "--theirs";
    drop_idle(loaded);
    INFO(row.key << " beside " << row.of);
    const Key& key = *find_key(row.key);
    CHECK(key.get(loaded.config) == key.get(Config{}));
    REQUIRE(loaded.notes.size() == 1);
    CHECK_THAT(loaded.notes.front(), Catch::Contains(std::string(row.key) + " is ") &&
                                         Catch::Contains(std::string(" changes nothing: it is for ") + row.of + " "));
  }
}

TEST_CASE("details: every row of the table is tried here, and every key stands there or counts alone", "[config]") {
  std::set<std::pair<std::string, std::string>> tried, there;
  std::set<std::string> known = kCountAlone, all;
  for (const Tried& row : trials()) tried.emplace(row.key, row.of);
  for (const Detail& detail : details()) {
    there.emplace(detail.key, detail.of);
    known.insert(detail.key);
    CHECK(kCountAlone.count(detail.key) == 0);
    REQUIRE(find_key(detail.key));
    REQUIRE(find_key(detail.of));
  }
  CHECK(tried == there);
  for (const Key& key : keys()) all.insert(key.full_name());
  CHECK(known == all);
}

TEST_CASE("details: defaults that a file spells out are refused beside nothing", "[config]") {
  const Config defaults;
  for (const Tried& row : trials()) {
    const Words spelled{std::string("--") + row.key + "=" + format_value(find_key(row.key)->get(defaults))};
    INFO(spelled.front() << " beside " << row.of);
    CHECK(error_of([&] { check_details(beside(spelled, row.idle)); }) == "no error");
  }
}

Loaded of_files(const Words& flags, const std::vector<YamlText>& files) {
  Loaded loaded = load(flags, files);
  drop_idle(loaded);
  return loaded;
}

TEST_CASE("details: a later file leaves behind what an earlier one says of the way that it changes", "[config]") {
  const YamlText base{"base.yaml", "model: {preset: tiny}\ndata: {path: a, tokenizer: bytes}\ncheckpoint: {interval: 5}\n"};
  const YamlText off{"off.yaml", "checkpoint: {enabled: false}\n"};
  const Loaded later = of_files({}, {base, off});
  CHECK(later.config.checkpoint.interval == 0);
  CHECK(later.notes.empty());
  CHECK(error_of([&] { check(later); }) == "no error");
  CHECK(error_of([&] { check(of_files({}, {off, base})); }) ==
        "base.yaml:3: checkpoint.interval is 5, which is for checkpoint.enabled true, but that is false (off.yaml:1); "
        "leave one out");
}

TEST_CASE("details: what falls away takes along what is for it", "[config]") {
  const YamlText file{"train.yaml",
                      "model: {preset: tiny}\ndata: {path: a.jsonl, tokenizer: bytes, num_workers: 2, prefetch_factor: 4}\n"
                      "sample: {prompt: x, temperature: 0.5, top_p: 0.5}\n"};
  const Loaded loaded = of_files(kTokens, {file});
  CHECK(loaded.config.data.num_workers == 0);
  CHECK(loaded.config.data.prefetch_factor == Data().prefetch_factor);
  CHECK(loaded.config.sample.top_p == Sample().top_p);
  CHECK(error_of([&] { check(loaded); }) == "no error");
}

}  // namespace
}  // namespace trainyard::config
