#include "config/binding.h"

namespace trainyard::config {
namespace {

// Upper bounds keep products of sizes (rows × tokens × steps) far from 2^63; nobody is meant to reach them.
constexpr double kMany = 1e12;
constexpr double kRows = 1 << 20;
constexpr double kTokens = 1 << 24;
constexpr double kRanks = 1 << 20;
constexpr double kWeek = 7.0 * 24 * 3'600'000;  // poll() takes milliseconds in an int, which ends at 24 days

const Limits kAny;
const Limits kNotEmpty{.not_empty = true};
const Limits kTimeout{.min = 1, .max = kWeek};
Limits between(double min, double max) {
  return {.min = min, .max = max};
}
Limits at_least(double min) {
  return {.min = min};
}
Limits above(double min) {
  return {.min = min, .above_min = true};
}

void add_model(std::vector<Key>& table) {
  const SectionKeys<Model> key{table, "model", &Config::model};
  key("preset", &Model::preset, kAny,
      "A named model with random weights, such as Qwen3-0.6B. Exactly one of preset, config and init_from is given.");
  key("config", &Model::config, kAny,
      "A Hugging Face config.json, or a name on the hub (`org/name`, `org/name@revision`) where no such path is here: "
      "that "
      "model with random weights.");
  key("init_from", &Model::init_from, kAny,
      "A Hugging Face folder (config.json and safetensors), or a name on the hub where no such path is here: that "
      "model "
      "with its weights. Each rank reads its own slices.");
  key("name_map", &Model::name_map, kAny,
      "A YAML file that says how the names of init_from's tensors become the model's: rename, split, transpose.");
  key("seed", &Model::seed, kAny, "Seed of the random weights.");
  key("hidden_size", &Model::hidden_size, between(0, kTokens),
      "With preset or config: this size in place of the model's own; 0: as it says. So with those that follow.");
  key("intermediate_size", &Model::intermediate_size, between(0, kTokens), "Width of the feed-forward layers.");
  key("layers", &Model::layers, between(0, 4096), "Blocks.");
  key("heads", &Model::heads, between(0, kRows), "Attention heads.");
  key("kv_heads", &Model::kv_heads, between(0, kRows), "Heads of keys and values.");
  key("vocab_size", &Model::vocab_size, between(0, kTokens), "Rows of the embedding.");
}

void add_data(std::vector<Key>& table) {
  const SectionKeys<Data> key{table, "data", &Config::data};
  key("path", &Data::path, kAny,
      "The corpus: a .txt file, a .jsonl or .json file of JSON lines (packed as .gz or .zst, too), a .parquet or "
      ".arrow "
      "table, a folder of them or one of Hugging Face datasets (save_to_disk), a pattern such as "
      "`data/train-*.parquet`, "
      "`embedded` for the Shakespeare that ships with the program, or `random` for token ids drawn at random, without "
      "an "
      "end; or a data set's name on the hub where no such path is here. Exactly one of path, mix, tokens and images is "
      "given.");
  key("mix", &Data::mix, kAny,
      "Several corpora with weights in place of path, such as `c4=0.7, code.jsonl=0.3`: of ten sequences seven are of "
      "c4. "
      "A corpus that is through begins anew, so there is no end, and training.steps says how long.");
  key("config", &Data::config, kAny,
      "The configuration of a data set whose name on the hub is path; empty: the one that it has or prefers.");
  key("split", &Data::split, kNotEmpty, "The split of a data set whose name on the hub is path.");
  key("field", &Data::field, kNotEmpty, "The field of each JSON line, or the column of a table, that holds the text.");
  key("tokenizer", &Data::tokenizer, kAny,
      "A tokenizer's file or folder, a name on the hub where no such path is here, or `bytes` for byte-level without "
      "files. Needed with a path of text.");
  key("tokens", &Data::tokens, kAny,
      "A safetensors file of pre-tokenised batches in place of path: input_ids and labels [rows, tokens], or "
      "train.input_ids [steps, rows, tokens], replayed in file order. batch_size and sequence_length are then not used.");
  key("images", &Data::images, kAny,
      "For classifiers: a folder of MNIST's files (train-images-idx3-ubyte and train-labels-idx1-ubyte, with or "
      "without "
      ".gz) in place of path.");
}

void add_data_preparation(std::vector<Key>& table) {
  const SectionKeys<Data> key{table, "data", &Config::data};
  key("append_eos", &Data::append_eos, kAny, "Append the end-of-text token to each document.");
  key("special_tokens", &Data::special_tokens, kAny,
      "What special tokens such as <s> are where they stand in a text: text, the characters they are made of; "
      "parse, their ids. Added tokens that are not special are always found. Holds for validation and samples too.");
  key("seed", &Data::seed, kAny, "Seed of the order of sequences, and of the ids of `random`.");
  key("shuffle", &Data::shuffle, kAny, "Draw sequences in a random order, new in each epoch.");
  key("cache_dir", &Data::cache_dir, kAny,
      "Where tokenised corpora are kept; empty: beside the corpus, or the user's cache folder where that is read-only.")
      .agreement = Agreement::PerRank;
  key("messages_field", &Data::messages_field, kAny,
      "For conversations: the field of each JSON line, or the column of a table, that holds a list of messages "
      "{role, content} or, as ShareGPT, {from, value}. Their chat template prints them, special tokens parsed.");
  key("loss_on", &Data::loss_on, kAny,
      "Which tokens of a conversation the loss counts: the assistant's answers, or all.");
  key("chat_template", &Data::chat_template, kAny,
      "A file with the chat template of conversations; empty: the tokenizer's own.");
  key("chat_template_kwargs", &Data::chat_template_kwargs, kAny,
      "Further variables of the chat template, a JSON object such as `{\"enable_thinking\": false}`.");
  key("input_ids_field", &Data::input_ids_field, kAny,
      "For documents that are tokenised already: the field of each JSON line, or the column of a table, that holds a "
      "list "
      "of ids, as they are, without an end. Lists beside it count too: labels (-100: no target), loss_mask, "
      "attention_mask.");
  key("source_field", &Data::source_field, kAny,
      "For encoder-decoders: the field of each JSON line, or the column of a table, that holds the source; the first "
      "that "
      "is there of several with commas between. With target_field.");
  key("target_field", &Data::target_field, kAny,
      "The field that holds what is to be said; the first that is there, as in `summary, summary1`.");
  key("prefix", &Data::prefix, kAny, "Text before each source, such as `summarize: `.");
  key("max_source_length", &Data::max_source_length, between(2, kTokens),
      "Tokens of a source, its end of text included.");
  key("max_target_length", &Data::max_target_length, between(2, kTokens),
      "Tokens of a target, its end of text included.");
  key("truncate", &Data::truncate, kAny, "Cut off what is longer; false: a longer one is an error.");
  key("padding", &Data::padding, kAny,
      "Of pairs: bucket brings like lengths together and pads to the longest of a micro-batch, longest keeps the "
      "random "
      "order, max_length pads all to the limits.");
  key("pad_to_multiple_of", &Data::pad_to_multiple_of, between(1, 4096),
      "Pad pairs on to lengths that this divides, whatever padding is. 64 on a GPU, where attention over other lengths "
      "is slower; 1: not.");
  key("max_samples", &Data::max_samples, between(0, kMany), "Pairs that are taken from the beginning; 0: all.");
  key("num_workers", &Data::num_workers, between(0, 64),
      "Threads that make batches of data.path or data.images ahead of their use; the order is the same with any number. "
      "0: the training thread makes them.")
      .agreement = Agreement::PerRank;
  key("prefetch_factor", &Data::prefetch_factor, between(1, 1024),
      "Micro-batches that each of num_workers has ready at most.")
      .agreement = Agreement::PerRank;
}

void add_validation(std::vector<Key>& table) {
  const SectionKeys<Validation> key{table, "validation", &Config::validation};
  key("interval", &Validation::interval, between(0, kMany),
      "Steps between validations; 0: only after the last step. Without path, tokens, images and split there are none.");
  key("epoch_interval", &Validation::epoch_interval, between(0, kMany),
      "Also after so many passes over the training data; 0: not.");
  key("path", &Validation::path, kAny,
      "Held-out text, read as data.path is: by the same tokenizer, field and sequence length, in its own order.");
  key("tokens", &Validation::tokens, kAny,
      "A safetensors file of held-out pre-tokenised batches in place of path: input_ids [rows, tokens], else each "
      "batch of train.input_ids. batch_size is then not used.");
  key("images", &Validation::images, kAny,
      "For classifiers: a folder as data.images, of which the files t10k-… are taken, in place of path; the accuracy "
      "is "
      "told too.");
  key("split", &Validation::split, {.min = 0, .max = 1, .below_max = true},
      "In place of path: this share of data.path or data.images, its end, is held out and never trained on, the same "
      "on any number of ranks. 0: none.");
  key("steps", &Validation::steps, between(0, kMany), "Batches of a validation, always the first; 0: all there are.");
  key("batch_size", &Validation::batch_size, between(0, kRows), "Rows a rank and batch; 0: training.batch_size.");
}

void add_training(std::vector<Key>& table) {
  const SectionKeys<Training> key{table, "training", &Config::training};
  key("steps", &Training::steps, between(0, kMany), "Optimizer steps; 0: as epochs says.");
  key("epochs", &Training::epochs, {.min = 0, .max = kMany, .above_min = true},
      "Passes over the data, where steps is 0. A part of a pass ends with the step that completes it.");
  key("batch_size", &Training::batch_size, between(0, kRows),
      "Rows (sequences) a rank and micro-batch; 0: global_batch_size, divided by accumulation_steps and the ranks.");
  key("sequence_length", &Training::sequence_length, between(1, kTokens), "Tokens a row.");
  key("accumulation_steps", &Training::accumulation_steps, between(1, kRows), "Micro-batches an optimizer step.");
  key("freeze", &Training::freeze, kAny,
      "Parameters that are not trained: patterns such as `model.embed_tokens.*`, with commas between; * matches dots "
      "too.");
  key("global_batch_size", &Training::global_batch_size, between(0, kMany),
      "Rows an optimizer step over all ranks. Of batch_size and accumulation_steps the one that is left open follows "
      "from it and the ranks; where both are given, it must be their product. 0: it is.");
  key("sync_every_micro_batch", &Training::sync_every_micro_batch, kAny,
      "Reduce gradients after each micro-batch instead of once a step: less memory, more traffic, the same result.");
  key("clip_grad_norm", &Training::clip_grad_norm, at_least(0),
      "Largest global L2 norm of the gradient; 0: no clipping.");
  key("loss_scale", &Training::loss_scale, kNotEmpty,
      "What the loss is multiplied by so that small gradients do not vanish in fp16; gradients are divided by it "
      "again. "
      "auto: a scale that adapts, where any group's param_dtype, reduce_dtype or output_dtype is fp16, else none; a "
      "number: that scale.");
  key("loss_scale_init", &Training::loss_scale_init, {.min = 1, .max = 1e30}, "The scale that auto begins with.");
  key("loss_scale_growth_factor", &Training::loss_scale_growth_factor, {.min = 1, .max = 1024, .above_min = true},
      "What auto multiplies the scale by after loss_scale_growth_interval steps without an overflow.");
  key("loss_scale_backoff_factor", &Training::loss_scale_backoff_factor,
      {.min = 0, .max = 1, .above_min = true, .below_max = true},
      "What auto multiplies the scale by where gradients overflow; that step is skipped.");
  key("loss_scale_growth_interval", &Training::loss_scale_growth_interval, between(1, kMany),
      "Steps in a row without an overflow after which auto raises the scale.");
  key("seed", &Training::seed, kAny, "Seed of everything random in training that has no seed of its own.");
  key("deterministic", &Training::deterministic, kAny,
      "Equal runs give equal bits. false: on a GPU attention's backward in 16 bits adds in any order, as PyTorch's "
      "does by default, which spares the memory of the scores, its traffic, and our own kernels from compute "
      "capability 10 on.");
}

void add_optimizer(std::vector<Key>& table) {
  const SectionKeys<Optimizer> key{table, "optimizer", &Config::optimizer};
  key("lr", &Optimizer::lr, above(0), "Peak learning rate of AdamW.");
  key("warmup_steps", &Optimizer::warmup_steps, between(0, kMany), "Steps of linear warm-up.");
  key("warmup_ratio", &Optimizer::warmup_ratio, between(0, 1),
      "In place of warmup_steps: this share of all steps, rounded up.");
  key("warmup_from_zero", &Optimizer::warmup_from_zero, kAny,
      "Step n of the warm-up, counted from 1, has (n - 1) / warmup_steps of the peak, as in transformers. false: it has "
      "n / warmup_steps, so the last has the peak.");
  key("warmup_shape", &Optimizer::warmup_shape, kAny,
      "How the warm-up rises: linear; or log, where step n of it, counted from 1, has log(n) / log(warmup_steps) of "
      "the peak.");
  key("warmup_min_ratio", &Optimizer::warmup_min_ratio, between(0, 1),
      "Learning rate from which the warm-up rises, as a fraction of the peak.");
  key("schedule_lags", &Optimizer::schedule_lags, kAny,
      "The rates come one step late, as DeepSpeed's schedulers give them: steps 1 and 2 have the rate with which the "
      "warm-up begins, of which every schedule then has two steps at least. A cosine's way down is not late.");
  key("stable_steps", &Optimizer::stable_steps, between(0, kMany), "Steps at the peak between warm-up and decay.");
  key("decay", &Optimizer::decay, kAny, "Shape of the learning rate from the peak to min_lr_ratio at the last step. clamped_cosine and clamped_linear are "
      "those of Megatron's AnnealingLR: the way down to 0 takes as long as all the steps, and nothing is below "
      "min_lr_ratio.");
  key("min_lr_ratio", &Optimizer::min_lr_ratio, between(0, 1),
      "Learning rate at the last step, as a fraction of the peak.");
  key("betas", &Optimizer::betas, {.min = 0, .max = 1, .below_max = true, .entries = 2},
      "Decay rates of AdamW's two moments.");
  key("eps", &Optimizer::eps, above(0), "Added to the root of the second moment.");
  key("weight_decay", &Optimizer::weight_decay, at_least(0),
      "Decoupled weight decay of decayed_parameters.");
  key("decayed_parameters", &Optimizer::decayed_parameters, kAny,
      "What weight_decay acts on: matrices, which are the parameters of two or more dimensions; or all, norms and biases "
      "too, as with AdamW(model.parameters()) of PyTorch.");
  key("state_dtype", &Optimizer::state_dtype, kAny,
      "Type of AdamW's two moments. In bf16, half the memory, they are rounded stochastically.");
}

void add_parallel(std::vector<Key>& table) {
  const SectionKeys<Parallel> key{table, "parallel", &Config::parallel};
  key("strategy", &Parallel::strategy, kAny,
      "What is sharded: full_shard parameters, gradients and optimizer state; shard_grad_op the last two; no_shard "
      "nothing (DDP); hybrid_* shard inside a node and replicate between nodes.");
  key("shard", &Parallel::shard, between(-1, kRanks),
      "Ranks that share one copy of the model, those of context and tensor not counted; -1: the rest.");
  key("replicate", &Parallel::replicate, between(-1, kRanks),
      "Copies of the model; replicate × shard × context × tensor is the number of ranks. -1: the rest. Both -1: one "
      "copy in "
      "all, with no_shard one a rank, with hybrid_* one a node.");
  key("context", &Parallel::context, between(1, kRanks),
      "Context parallelism: neighbouring ranks that share the rows of a batch, each with a part of every row's tokens, "
      "so that activations of long rows fit. Parameters are sharded over them too (with no_shard they are not). For "
      "decoders.");
  key("context_method", &Parallel::context_method, kAny,
      "How attention sees the tokens of other ranks: ring passes keys and values on, each exchange behind the attention "
      "of the one before; all_gather gathers them; ulysses exchanges tokens for heads.");
  key("context_balance", &Parallel::context_balance, kAny,
      "Which tokens of a row a rank has: head_tail an early and a late piece, so that all ranks have equally much "
      "causal attention to compute; none one piece.");
  key("tensor", &Parallel::tensor, between(1, kRanks),
      "Tensor parallelism: neighbouring ranks that split every layer's weights and products, on the same tokens: "
      "attention by heads, the feed-forward by its width, embedding and head by the vocabulary. For language models.");
  key("sequence_parallel", &Parallel::sequence_parallel, kAny,
      "Between split layers each rank of tensor has a part of the tokens, so that norms and residuals take less "
      "memory. "
      "Without it each has all of them.");
  key("loss_parallel", &Parallel::loss_parallel, kAny,
      "The loss is computed where the vocabulary is split, so that no rank has whole logits. Without it they are "
      "gathered.");
  key("async_tensor", &Parallel::async_tensor, kAny,
      "What ranks of tensor exchange goes in parts, each beside the products of the part before.");
}

void add_parallel_precision(std::vector<Key>& table) {
  const SectionKeys<Parallel> key{table, "parallel", &Config::parallel};
  key("param_dtype", &Parallel::param_dtype, kAny,
      "Type of gathered parameters and of the computation. Shards and optimizer state stay fp32.");
  key("reduce_dtype", &Parallel::reduce_dtype, kAny, "Type in which gradients are summed over ranks.");
  key("output_dtype", &Parallel::output_dtype, kAny,
      "Type of what each group (block) hands on; none: as it was computed. The loss is fp32 in any case.");
  key("cast_forward_inputs", &Parallel::cast_forward_inputs, kAny,
      "Cast what each group gets to its param_dtype, the residual stream with it. Without it products are still in "
      "param_dtype, and the stream keeps its type.");
  key("precision", &Parallel::precision, kAny,
      "Groups of another precision, `pattern=type` with commas between: `model.layers.[01]=fp32, root=fp32`. A group "
      "is "
      "named as its module, the one of what is in no other root; * matches dots too, and of several rules that match "
      "the last counts. The type is the param_dtype; reduce_dtype, output_dtype and cast_forward_inputs can follow: "
      "`model.layers.0=fp32 output_dtype:bf16`. What a rule does not say is as above.");
}

void add_parallel_gathering(std::vector<Key>& table) {
  const SectionKeys<Parallel> key{table, "parallel", &Config::parallel};
  key("reshard_after_forward", &Parallel::reshard_after_forward, kAny,
      "What becomes of gathered parameters between forward and backward: true gives them back, false keeps them, a "
      "number keeps them split over so many neighbouring ranks, a divisor of shard × context, so that backward gathers from "
      "those "
      "alone. Empty: as the strategy says.");
  key("wrap", &Parallel::wrap, kAny,
      "What is gathered together: each module of the classes in transformer_layer_cls_to_wrap, each that has "
      "min_num_params left to itself, or the whole model.");
  key("transformer_layer_cls_to_wrap", &Parallel::transformer_layer_cls_to_wrap, kAny,
      "For transformer_based_wrap: classes as transformers names them, such as LlamaDecoderLayer, with commas between; "
      "empty: the model's blocks.");
  key("min_num_params", &Parallel::min_num_params, between(1, kMany),
      "With size_based_wrap: a module is a group where it has so many parameters left to itself.");
  key("prefetch", &Parallel::prefetch, between(0, 64),
      "Groups (blocks) gathered ahead of the one that computes; 0: none.");
  key("forward_prefetch", &Parallel::forward_prefetch, between(-1, 64), "The same in forward alone; -1: as prefetch.");
  key("backward_prefetch", &Parallel::backward_prefetch, kAny,
      "When backward asks for the groups that come next: before its own group computes, after it, or not ahead.");
  key("unshard_early", &Parallel::unshard_early, kAny, "Gather the first groups of a step while its data is loaded.");
  key("limit_all_gathers", &Parallel::limit_all_gathers, kAny,
      "At most two gathers under way at once: bounded memory.");
  key("bucket_cap_mb", &Parallel::bucket_cap_mb, between(1, kRanks),
      "With no_shard: MiB of gradients of whole blocks that are summed in one message.");
  key("sync_module_states", &Parallel::sync_module_states, kAny,
      "Rank 0's initial weights are everybody's: it broadcasts them. Without it each rank makes or reads its own rows, "
      "from the same seed or files.");
  key("cpu_ram_efficient_loading", &Parallel::cpu_ram_efficient_loading, kAny,
      "Only rank 0 reads model.init_from, a block of rows at a time, and broadcasts: the others need no access to it. "
      "Without it each rank reads its own rows. Neither way does a rank hold the whole model.");
  key("offload", &Parallel::offload, kAny,
      "Keep shards, gradients and optimizer state in host memory and step there. On a CPU they are there anyway.");
}

void add_float8(std::vector<Key>& table) {
  const SectionKeys<Float8> key{table, "float8", &Config::float8};
  key("recipe", &Float8::recipe, kAny,
      "How linear layers are computed in 8 bits: tensorwise with one scale for each matrix, rowwise with one for each "
      "row along its sums, rowwise_with_gw_hp the same but weight gradients in param_dtype; none: they are not. What "
      "is "
      "outside of the blocks stays as it is, and so do layers with a size that is no multiple of 16. A GPU needs "
      "compute "
      "capability 8.9; a CPU has no units for it and is slower with it.");
  key("filter_fqns", &Float8::filter_fqns, kAny,
      "Linear layers that are left as they are: parts of their names, such as `k_proj` or `layers.0.`, with commas "
      "between.");
  key("all_gather", &Float8::all_gather, kAny,
      "With tensorwise: gather the weights of these layers in 8 bits too, with scales that all ranks agree on once a "
      "step. The same results with less traffic.");
}

void add_lora(std::vector<Key>& table) {
  const SectionKeys<Lora> key{table, "lora", &Config::lora};
  key("rank", &Lora::rank, between(0, 1 << 16),
      "Rank of the adapters (LoRA) that are trained beside linear layers, while the weights of model.init_from stay as "
      "they "
      "are; 0: the model itself is trained. PEFT calls it r.");
  key("alpha", &Lora::alpha, above(0), "What an adapter gives is multiplied by alpha / rank. PEFT's lora_alpha.");
  key("dropout", &Lora::dropout, {.min = 0, .max = 1, .below_max = true},
      "Share of an adapter's inputs that is dropped while it trains. PEFT's lora_dropout.");
  key("target_modules", &Lora::target_modules, kAny,
      "The linear layers of the blocks that get an adapter: ends of their names, such as `q_proj,v_proj`, with commas "
      "between, "
      "or `all-linear`. Empty: the query and value projections, as PEFT.");
  key("init_from", &Lora::init_from, kAny,
      "Adapters to begin with, of the same rank, scale and layers: a folder as PEFT writes it (adapter_config.json, "
      "adapter_model.safetensors), or a checkpoint. Empty: A is random and B zero.");
  key("base_dtype", &Lora::base_dtype, kAny,
      "Type in which the weights that stay are kept and gathered. auto: what they are computed with in "
      "(parallel.param_dtype), with the results of float32. In another they are rounded once, as they are read, and "
      "cast where they have been gathered. nf4 (QLoRA): the weights of the blocks' linear layers in 4 bits, as torchao "
      "packs them, of which each product makes its own; what else stays is as with auto.");
}

void add_activation_checkpointing(std::vector<Key>& table) {
  const SectionKeys<ActivationCheckpointing> key{table, "activation_checkpointing", &Config::activation_checkpointing};
  key("mode", &ActivationCheckpointing::mode, kAny,
      "What is computed again in the backward pass instead of kept: nothing; full: every block; selective: of every "
      "block all but matrix products and attention, whose outputs are kept; every_n: every n-th block.");
  key("n", &ActivationCheckpointing::n, between(1, kRanks),
      "With mode every_n: of so many blocks the last is computed again.");
  key("offload", &ActivationCheckpointing::offload, kAny,
      "What blocks keep for backward waits in host memory; with mode none as with selective. On a CPU it is there "
      "already.");
}

void add_checkpoint(std::vector<Key>& table) {
  const SectionKeys<Checkpoint> key{table, "checkpoint", &Config::checkpoint};
  key("enabled", &Checkpoint::enabled, kAny,
      "Write checkpoints. false: none is written, and none in dir is gone on from.");
  key("dir", &Checkpoint::dir, kNotEmpty, "Folder of the checkpoints: <dir>/step-50, pointer file <dir>/latest.");
  key("name", &Checkpoint::name, kAny,
      "What the checkpoints are called instead: <dir>/<name>-50steps, pointer file <dir>/<name>-latest, so that runs "
      "of several names can share a folder. `{strategy}` in it stands for parallel.strategy as PyTorch spells it.");
  key("overwrite", &Checkpoint::overwrite, kAny,
      "Each save replaces the one before: <dir>/<name> is the only checkpoint. Needs a name.");
  key("interval", &Checkpoint::interval, between(0, kMany),
      "Steps between checkpoints; 0: only at the end and on SIGTERM.");
  key("epoch_interval", &Checkpoint::epoch_interval, between(0, kMany),
      "Also after so many passes over the data; 0: not.");
  key("keep", &Checkpoint::keep, between(1, kRows),
      "How many of the newest are kept. At least 2 with an interval, so that a damaged newest one has one before it.");
  key("resume", &Checkpoint::resume, kNotEmpty,
      "auto: go on from the newest complete checkpoint in dir, if there is one; extend: the same, and where all steps "
      "(or epochs) are done, train as many again; never: start anew; else the path of a checkpoint. A job that is "
      "started again after a loss goes on from what it saved itself, whatever this says.");
  key("async", &Checkpoint::async, kAny,
      "Write behind the training steps, which wait only until their tensors are copied. Takes memory for the copy.");
  key("state_dict", &Checkpoint::state_dict, kAny,
      "sharded: each rank writes its rows; full: rank 0 writes a Hugging Face folder, gathered tensor by tensor. Both "
      "resume at any number of ranks.");
  key("broadcast_from_rank0", &Checkpoint::broadcast_from_rank0, kAny,
      "Rank 0 alone reads the checkpoint that a run goes on from, or model.init_from, a block of rows at a time, and "
      "broadcasts: the others need no access to it. Without it each rank reads its own rows.");
  key("final_state_dict", &Checkpoint::final_state_dict, kAny, "The form of the last step's checkpoint.");
  key("final_model_only", &Checkpoint::final_model_only, kAny,
      "Leave the optimizer out of the last step's checkpoint: training cannot go on from it.");
  key("exclude", &Checkpoint::exclude, kAny,
      "What a resumed run does not take from its checkpoint but begins anew: optimizer, data (the place in it), "
      "progress "
      "(steps, and so the learning rate), with commas between.");
  key("create_seed_checkpoint", &Checkpoint::create_seed_checkpoint, kAny,
      "In place of training: save what it would begin with, as step-0 in dir, from which any number of ranks goes on.");
  key("initial_load_path", &Checkpoint::initial_load_path, kAny,
      "Another run's checkpoint, to begin from while there is none in dir to go on from.");
  key("initial_load_model_only", &Checkpoint::initial_load_model_only, kAny,
      "Of initial_load_path take the model alone: optimizer, place in the data and steps begin anew.");
  key("timeout", &Checkpoint::timeout, kTimeout,
      "How long ranks wait for each other to have written or verified a checkpoint.");
}

void add_system(std::vector<Key>& table) {
  const SectionKeys<Comm> comm{table, "comm", &Config::comm};
  comm("backend", &Comm::backend, kAny,
       "Who carries the collectives; auto: nccl on CUDA, mpi under mpirun, else gloo.");
  comm("timeout", &Comm::timeout, kTimeout, "How long a collective waits before it names the ranks that did not come.");
  comm("shared_memory", &Comm::shared_memory, kAny, "Let gloo's ranks on one host talk through shared memory.");
  comm("user_buffers", &Comm::user_buffers, kAny,
       "Gather and reduce in memory that NCCL (2.19 or newer) maps to the peers: its user-buffer registration, without "
       "copies in between where its algorithm allows (NVLink, NVLink SHARP, RDMA).");
  const SectionKeys<Rendezvous> rendezvous{table, "rendezvous", &Config::rendezvous};
  rendezvous("timeout", &Rendezvous::timeout, kTimeout,
             "How long ranks wait at the start for the master, for each other, and for those that still tokenise their "
             "corpus.")
      .agreement = Agreement::PerRank;
  const SectionKeys<DeviceSection> device{table, "device", &Config::device};
  device(
      "kind", &DeviceSection::kind, kAny,
      "Where to compute; auto: cuda where there is a GPU, else cpu. `--device cpu` is short for `--device.kind cpu`.");
  device("threads", &DeviceSection::threads, between(0, 4096),
         "CPU threads a rank; 0: OMP_NUM_THREADS, else the cores divided by the ranks of this host.")
      .agreement = Agreement::PerRank;
  device("cuda_graphs", &DeviceSection::cuda_graphs, kAny,
         "Forward and backward of a step as one CUDA graph that the host launches at once, where steps have one shape "
         "(docs/gpu.md). For one rank on a GPU; auto: where the run can have it.");
}

void add_people(std::vector<Key>& table) {
  const SectionKeys<Metrics> metrics{table, "metrics", &Config::metrics};
  metrics("dir", &Metrics::dir, kNotEmpty, "Folder of metrics.jsonl (every step) and of traces.").agreement =
      Agreement::PerRank;
  metrics("interval", &Metrics::interval, between(1, kMany), "Steps between printed lines.");
  metrics("line", &Metrics::line, kAny,
          "Pattern of the printed line, such as `{step} {loss:.3f}`; empty: the standard line; hyperpod, torchtitan, "
          "t5 or mnist: the line of those programs. Names: step, loss, "
          "grad_norm, lr, tokens, tokens_per_second, samples_per_second, mfu, memory, memory_bytes, time, "
          "validation_loss, validation_accuracy, loss_scale, data_wait_ms, compute_ms, communication_wait_ms, "
          "optimizer_ms, checkpoint_ms, slow_rank, "
          "epoch, epoch_number (from 1), epoch_step (from 0), epoch_samples, epoch_percent, dataset_size, strategy, tps and tflops (a "
          "rank's).")
      .agreement = Agreement::PerRank;
  metrics("validation_line", &Metrics::validation_line, kAny,
          "Pattern of the line after a validation, of the same names; empty: "
          "`Batch {step} Validation loss: {validation_loss}`.")
      .agreement = Agreement::PerRank;
  metrics("tensorboard", &Metrics::tensorboard, kAny,
          "Folder for TensorBoard's event file; `true`: <dir>/tensorboard; empty or `false`: none.")
      .agreement = Agreement::PerRank;
  metrics("port", &Metrics::port, between(0, 65535), "Rank 0 serves /metrics for Prometheus on this port; 0: no.")
      .agreement = Agreement::PerRank;
  metrics("profile_interval", &Metrics::profile_interval, between(0, kMany),
          "A trace of each rank in <dir>/traces every so many steps; 0: none.")
      .agreement = Agreement::PerRank;
  metrics("profile_steps", &Metrics::profile_steps, between(1, 1000),
          "Steps a trace holds: the last before it is written.")
      .agreement = Agreement::PerRank;
  metrics("profile_keep", &Metrics::profile_keep, between(1, kRows), "How many of a rank's newest traces are kept.")
      .agreement = Agreement::PerRank;
  const SectionKeys<Sample> sample{table, "sample", &Config::sample};
  sample("prompt", &Sample::prompt, kAny, "Text to continue before and after training; empty: no sample.");
  sample("max_new_tokens", &Sample::max_new_tokens, between(1, kTokens), "Length of the sample in tokens.");
  sample("temperature", &Sample::temperature, between(0, 100),
         "0: the likeliest token each time; 1: as the model says.");
  sample("top_p", &Sample::top_p, {.min = 0, .max = 1, .above_min = true},
         "Sample among the likeliest tokens that together have this probability.");
  sample("path", &Sample::path, kAny,
         "JSON lines or a table with the fields of data.source_field and data.target_field; the model answers them "
         "after training, "
         "and ROUGE tells how near it comes. Empty: none.");
  sample("count", &Sample::count, between(1, kMany), "How many of them, from the beginning.");
}

std::vector<Key> make_table() {
  std::vector<Key> table;
  add_model(table);
  add_data(table);
  add_data_preparation(table);
  add_validation(table);
  add_training(table);
  add_optimizer(table);
  add_parallel(table);
  add_parallel_precision(table);
  add_parallel_gathering(table);
  add_float8(table);
  add_lora(table);
  add_activation_checkpointing(table);
  add_checkpoint(table);
  add_system(table);
  add_people(table);
  return table;
}

}  // namespace

std::span<const SectionHelp> sections() {
  static const std::vector<SectionHelp> list{
      {"model", "Which model is trained."},
      {"data", "What it is trained on."},
      {"validation", "The loss on data that is not trained on."},
      {"training", "How long, and in what portions."},
      {"optimizer", "AdamW and its learning rate: warm-up, a stable phase, decay."},
      {"parallel", "How the model is spread over the ranks."},
      {"float8", "Linear layers in 8 bits (docs/precision.md)."},
      {"lora", "Adapters in place of the model (docs/training.md)."},
      {"activation_checkpointing", "Memory for computation."},
      {"checkpoint", "Saving and resuming."},
      {"comm", "How ranks exchange tensors."},
      {"rendezvous", "How ranks find each other."},
      {"device", "What a rank computes on."},
      {"metrics", "What is written about the run."},
      {"sample", "Text sampled from the model before and after training."},
  };
  return list;
}

std::span<const Key> keys() {
  static const std::vector<Key> table = make_table();
  return table;
}

}  // namespace trainyard::config
