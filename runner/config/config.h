#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The one schema of a training run. Every field here is a key of the YAML (section.field), a flag (--section.field) and
// a row of docs/configuration.md; schema.cpp gives each its text, range and default.
namespace trainyard::config {

enum class Strategy { FullShard, ShardGradOp, NoShard, HybridShard, HybridShardZero2 };
enum class Wrap { TransformerBased, SizeBased, None };
enum class ContextMethod { Ring, AllGather, Ulysses };
enum class ContextBalance { HeadTail, None };
enum class BackwardPrefetch { Pre, Post, None };
enum class Decay { Cosine, Linear, Sqrt, Constant, ClampedCosine, ClampedLinear };
enum class WarmupShape { Linear, Logarithm };
enum class DecayedParameters { Matrices, All };
enum class StateDict { Sharded, Full };
enum class FinalStateDict { Same, Sharded, Full };
enum class SpecialTokens { Text, Parse };
enum class LossOn { Answers, All };
enum class Padding { Bucket, Longest, MaxLength };
enum class CheckpointingMode { None, Full, Selective, EveryN };
enum class Backend { Auto, Nccl, Gloo, Mpi, InProcess };
enum class DeviceChoice { Auto, Cpu, Cuda };
enum class CudaGraphs { Never, Auto, Always };
enum class Precision { Float32, BFloat16, Float16 };
enum class OutputPrecision { Float32, BFloat16, Float16, AsComputed };  ///< begins as Precision

enum class StatePrecision { Float32, BFloat16 };
enum class BaseDType { Auto, BFloat16, Float16, Nf4 };
enum class Float8Recipe { None, Tensorwise, Rowwise, RowwiseWithGwHp };

struct Model {
  std::string preset;     ///< a named model (docs/models.md); one of preset, config, init_from
  std::string config;     ///< a Hugging Face config.json: that model with random weights
  std::string init_from;  ///< a Hugging Face folder: config.json and safetensors
  std::string name_map;   ///< how init_from's names become the model's (checkpoint/name_map.h)
  uint64_t seed = 0;      ///< of the random weights
  // Sizes in place of the model's own; 0 = as it says.
  int64_t hidden_size = 0, intermediate_size = 0, layers = 0, heads = 0, kv_heads = 0, vocab_size = 0;
};

struct Data {
  std::string path;  ///< .txt, .jsonl, or a folder of them; "embedded" = the corpus that ships with the program,
                     ///< "random" = ids drawn at random
  std::string mix;   ///< several corpora with weights (config/mix.h), in place of path
  std::string config;           ///< of a data set on the hub, which path names; "" = the one that it has or prefers
  std::string split = "train";  ///< of the same
  std::string field = "text";   ///< of each JSON line
  std::string tokenizer;       ///< file or folder; "bytes" = byte-level without files
  std::string tokens;          ///< safetensors of pre-tokenised batches, in place of path
  std::string images;          ///< folder of MNIST's idx files, in place of path
  bool append_eos = true;      ///< after each document
  SpecialTokens special_tokens = SpecialTokens::Text;  ///< what they are where they stand in a text
  uint64_t seed = 0;           ///< of the order of sequences
  bool shuffle = true;
  std::string
      cache_dir;  ///< of tokenised corpora; "" = beside the corpus, or the user's cache folder where that is read-only
  // Conversations, which the tokenizer's chat template prints.
  std::string messages_field;        ///< of each line or row: lists of messages; "" = the data is none of them
  LossOn loss_on = LossOn::Answers;  ///< of a conversation
  std::string chat_template;         ///< a file; "" = that of the tokenizer
  std::string chat_template_kwargs;  ///< a JSON object: further variables of the template
  std::string input_ids_field;       ///< of each line or row: lists of ids; "" = the data is none of them
  // Pairs of a source and a target, for encoder-decoders.
  std::string source_field, target_field;  ///< of each line or row; the first of several with commas between
  std::string prefix;                      ///< before each source
  int64_t max_source_length = 512, max_target_length = 128;  ///< tokens
  bool truncate = true;                                      ///< what is longer; else that is an error
  Padding padding = Padding::Bucket;
  int64_t pad_to_multiple_of = 1;  ///< rows of pairs, to lengths that this divides
  int64_t max_samples = 0;         ///< pairs from the beginning; 0 = all
  int64_t num_workers = 0;         ///< threads that make batches ahead; 0 = the training thread makes them
  int64_t prefetch_factor = 2;     ///< batches that each has ready at most
};

/// Held-out data. Empty path, tokens and images: no validation.
struct Validation {
  int64_t interval = 0;        ///< steps; 0 = only at the end
  int64_t epoch_interval = 0;  ///< passes over the training data; 0 = none
  std::string path;            ///< as data.path, or
  std::string tokens;          ///< as data.tokens, or
  std::string images;          ///< a folder as data.images, of which the t10k files are taken; or
  double split = 0;            ///< this share of data.path or data.images; one of the four
  int64_t steps = 0;           ///< batches a validation; 0 = all the data holds
  int64_t batch_size = 0;      ///< rows a rank; 0 = as training
};

struct Training {
  int64_t steps = 0;  ///< 0: as `epochs` says
  double epochs = 1;
  int64_t batch_size = 8;  ///< rows a rank and micro-batch; 0: as global_batch_size says
  int64_t sequence_length = 512;
  int64_t accumulation_steps = 1;
  std::string freeze;                   ///< comma list of globs over parameter names
  int64_t global_batch_size = 0;        ///< rows a step over all ranks, from which what is left open follows; 0 = none
  bool sync_every_micro_batch = false;  ///< reduce-scatter at each micro-batch: less memory, more traffic
  double clip_grad_norm = 1.0;          ///< 0: no clipping
  std::string loss_scale = "auto";      ///< auto, none, or a number
  double loss_scale_init = 65536, loss_scale_growth_factor = 2, loss_scale_backoff_factor = 0.5;
  int64_t loss_scale_growth_interval = 2000;  ///< steps
  uint64_t seed = 0;
  bool deterministic = true;
};

struct Optimizer {
  double lr = 3e-4;
  int64_t warmup_steps = 0;
  double warmup_ratio = 0;        ///< in place of warmup_steps: a share of all steps, rounded up
  bool warmup_from_zero = false;  ///< its first step has the rate 0, and the peak comes after its last
  WarmupShape warmup_shape = WarmupShape::Linear;
  double warmup_min_ratio = 0;  ///< where it begins, as a part of the peak
  bool schedule_lags = false;   ///< DeepSpeed's schedulers: each step has the rate of the one before
  int64_t stable_steps = 0;
  Decay decay = Decay::Cosine;
  double min_lr_ratio = 0.1;
  std::vector<double> betas{0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  DecayedParameters decayed_parameters = DecayedParameters::Matrices;
  StatePrecision state_dtype = StatePrecision::Float32;
};

struct Parallel {
  Strategy strategy = Strategy::FullShard;
  int64_t shard = -1;      ///< ranks that share one copy; -1 = the rest
  int64_t replicate = -1;  ///< copies; both -1: as the strategy says
  int64_t context = 1;     ///< ranks that share the tokens of a row
  ContextMethod context_method = ContextMethod::Ring;
  ContextBalance context_balance = ContextBalance::HeadTail;
  int64_t tensor = 1;  ///< ranks that split each layer
  bool sequence_parallel = true;
  bool loss_parallel = true;
  bool async_tensor = false;  ///< exchanges in parts beside products
  Precision param_dtype = Precision::Float32;
  Precision reduce_dtype = Precision::Float32;
  OutputPrecision output_dtype = OutputPrecision::AsComputed;
  bool cast_forward_inputs = true;
  std::string precision;              ///< rules for groups of their own (config/precision.h)
  std::string reshard_after_forward;  ///< true, false or ranks; "" = as the strategy says
  Wrap wrap = Wrap::TransformerBased;
  std::string transformer_layer_cls_to_wrap;  ///< comma list; "" = the model's blocks
  int64_t min_num_params = 100'000'000;       ///< for size_based_wrap
  int64_t prefetch = 1;                       ///< groups gathered ahead; 0 = none
  int64_t forward_prefetch = -1;              ///< the same in forward alone; -1 = prefetch
  BackwardPrefetch backward_prefetch = BackwardPrefetch::Pre;
  bool unshard_early = false;     ///< the first gather of a step before its data is loaded
  bool limit_all_gathers = true;  ///< at most two under way
  int64_t bucket_cap_mb = 25;     ///< of a gradient sum of no_shard
  bool sync_module_states = false;
  bool cpu_ram_efficient_loading = false;
  bool offload = false;  ///< shards and optimizer state in host memory

  /// Ranks that work on the same rows together.
  [[nodiscard]] int64_t ranks_sharing_rows() const { return context * tensor; }
};

/// Linear layers in 8 bits.
struct Float8 {
  Float8Recipe recipe = Float8Recipe::None;
  std::string filter_fqns;  ///< comma list of parts of the names of layers that are left as they are
  bool all_gather = false;  ///< their weights are gathered in 8 bits too
};

/// Adapters beside linear layers, which alone are trained.
struct Lora {
  int64_t rank = 0;  ///< 0: the model itself is trained
  double alpha = 8;
  double dropout = 0;
  std::string target_modules;  ///< comma list of ends of the names of layers; "": the query and value projections
  std::string init_from;       ///< a folder as PEFT writes it, whose adapters these begin as; "": B is zero
  BaseDType base_dtype = BaseDType::Auto;  ///< in what the weights that stay are kept and gathered
};

struct ActivationCheckpointing {
  CheckpointingMode mode = CheckpointingMode::None;
  int64_t n = 1;         ///< every n-th block, for every_n
  bool offload = false;  ///< what recomputed blocks keep waits in host memory
};

struct Checkpoint {
  bool enabled = true;
  std::string dir = "checkpoints";
  std::string name;            ///< of the checkpoints; "" = step-N; {strategy} stands for parallel.strategy
  bool overwrite = false;      ///< one folder of that name, which each save replaces
  int64_t interval = 0;        ///< steps; 0 = only at the end and on SIGTERM
  int64_t epoch_interval = 0;  ///< passes over the data; 0 = none
  int64_t keep = 2;
  std::string resume = "auto";  ///< auto, never, or a path
  bool async = false;
  bool broadcast_from_rank0 = false;  ///< rank 0 alone reads what is resumed or begun from, and shares it
  StateDict state_dict = StateDict::Sharded;
  FinalStateDict final_state_dict = FinalStateDict::Same;  ///< of the last step's
  bool final_model_only = false;                           ///< the last step's without the optimizer
  std::string exclude;                  ///< what resuming leaves: optimizer, data, progress, commas between
  bool create_seed_checkpoint = false;  ///< step-0 and nothing more
  std::string initial_load_path;        ///< another run's checkpoint, to begin from where `dir` has none
  bool initial_load_model_only = true;  ///< of that one
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};
};

struct Comm {
  Backend backend = Backend::Auto;
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};
  bool shared_memory = true;  ///< between ranks of one host, inside gloo
  bool user_buffers = false;  ///< NCCL's: what collectives gather to and reduce from is registered with it
};

struct Rendezvous {
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};
};

struct DeviceSection {
  DeviceChoice kind = DeviceChoice::Auto;
  int64_t threads = 0;  ///< CPU threads a rank; 0 = OMP_NUM_THREADS, else the cores divided by this host's ranks
  CudaGraphs cuda_graphs = CudaGraphs::Never;  ///< forward and backward of steps that are alike as one graph
};

struct Metrics {
  std::string dir = "metrics";
  int64_t interval = 10;
  std::string line;              ///< a pattern of one's own; "" = the standard line
  std::string validation_line;   ///< the same for the line of a validation
  std::string tensorboard;       ///< folder of event files; "true" = <dir>/tensorboard, "" = none
  int64_t port = 0;              ///< rank 0 serves Prometheus there; 0 = no
  int64_t profile_interval = 0;  ///< steps; 0 = no traces
  int64_t profile_steps = 1;     ///< that each trace holds
  int64_t profile_keep = 4;      ///< newest traces of a rank
};

struct Sample {
  std::string prompt;  ///< sampled before and after training where not empty
  int64_t max_new_tokens = 120;
  double temperature = 0.8;
  double top_p = 0.95;
  std::string path;    ///< pairs that are answered after training; "" = none
  int64_t count = 32;  ///< of them
};

struct Config {
  Model model;
  Data data;
  Validation validation;
  Training training;
  Optimizer optimizer;
  Parallel parallel;
  Float8 float8;
  Lora lora;
  ActivationCheckpointing activation_checkpointing;
  Checkpoint checkpoint;
  Comm comm;
  Rendezvous rendezvous;
  DeviceSection device;
  Metrics metrics;
  Sample sample;
};

}  // namespace trainyard::config
