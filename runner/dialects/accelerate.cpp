#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoTpu = "there is no backend for TPU and XLA here; leave it out or set it to false";

/// --nproc-per-node: num_processes counts the ranks of all machines.
std::string ranks_a_node(const Entry& entry, const Document& document) {
  const auto processes = parse_int(entry.value), machines = parse_int(value_of(document, "num_machines", "1"));
  if (!processes || !machines || *machines < 1 || *processes == 0 || *processes < -1)
    throw InputError(fmt::format("{}: num_processes is {}; it must be the number of ranks on all machines",
                                 entry.origin, config::shown(entry.value)));
  if (*processes == -1) return "";
  if (*processes % *machines != 0)
    throw InputError(fmt::format("{}: num_processes is {}, which does not divide among num_machines {} ({})",
                                 entry.origin, *processes, *machines, find(document, "num_machines")->origin));
  return fmt::format("{}", *processes / *machines);
}

std::string devices(const Entry& entry, const Document&) {
  return entry.value == "all" ? "" : entry.value;
}

constexpr std::string_view kBySize = "SIZE_BASED_WRAP", kByClass = "TRANSFORMER_BASED_WRAP";

bool says_nothing(const Entry& entry) {
  return entry.value == "null" || entry.value.empty() || entry.value == "[]";
}

/// "" where none is named.
std::string policy_of(const Document& document) {
  for (const char* const key : {"fsdp_auto_wrap_policy", "fsdp_wrap_policy"})
    if (const Entry* const entry = find(document, key); entry && !says_nothing(*entry)) return entry->value;
  return "";
}

/// Why a key says nothing beside the policy that is named; "" where that is the policy that it is for.
std::string for_another(std::string_view own, const Document& document) {
  const std::string policy = policy_of(document);
  if (policy.empty() || is_same_word(own, policy)) return "";
  return fmt::format("it is for {}, and the policy is {}", own, config::shown(policy));
}

std::vector<std::string> listed_classes(const Entry& entry) {
  std::string list = entry.value;
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  std::vector<std::string> classes = split(list, ',');
  for (std::string& each : classes) each = std::string(trim(each));
  return classes;
}

constexpr std::array<std::string_view, 6> kBlocks{"LlamaDecoderLayer",   "Qwen2DecoderLayer", "Qwen3DecoderLayer",
                                                  "MistralDecoderLayer", "T5Block",           "TransformerBlock"};
constexpr std::array<std::string_view, 6> kForeignBlocks{"BertLayer",    "GPT2Block",         "GPTJBlock",
                                                         "GPTNeoXLayer", "GemmaDecoderLayer", "PhiDecoderLayer"};

bool is_any_of(std::span<const std::string_view> known, const std::string& name) {
  return std::ranges::find(known, name) != known.end();
}

/// The class of a block of any model means the blocks of the one that is trained. Other classes are passed on: which of
/// them a model has, it knows itself.
std::string block_classes(const Entry& entry, const Document& document) {
  const std::vector<std::string> classes = listed_classes(entry);
  const auto is_block = [](const std::string& name) {
    return is_any_of(kBlocks, name) || is_any_of(kForeignBlocks, name);
  };
  const bool is_asked = for_another(kByClass, document).empty() && !std::ranges::all_of(classes, is_block);
  return is_asked ? fmt::format("{}", fmt::join(classes, ", ")) : "";
}

std::string why_no_classes(const Entry& entry, const Document& document) {
  if (says_nothing(entry)) return "";
  const auto is_foreign = [](const std::string& name) { return is_any_of(kForeignBlocks, name); };
  const std::string other = for_another(kByClass, document);
  const bool is_told = other.empty() && std::ranges::any_of(listed_classes(entry), is_foreign);
  return is_told ? "no model here has this class; the blocks of the one that is trained are wrapped" : other;
}

/// Where no policy is named each of the two keys names one; the Trainer refuses both, too.
void refuse_two_policies(const Entry& by_size, const Document& document) {
  const Entry* const by_class = find(document, "fsdp_transformer_layer_cls_to_wrap");
  if (!policy_of(document).empty() || !by_class || says_nothing(*by_class)) return;
  throw InputError(fmt::format("{}: {} {} contradicts {} {} ({}): one is for {}, the other for {}; keep one",
                               by_size.origin, by_size.key, config::shown(by_size.value), by_class->key,
                               config::shown(by_class->value), by_class->origin, kBySize, kByClass));
}

/// Written beside other policies too, where it means nothing; 0 is transformers' word for no such policy.
bool wraps_by_size(const Entry& entry, const Document& document) {
  if (entry.value == "0" || !for_another(kBySize, document).empty()) return false;
  refuse_two_policies(entry, document);
  return true;
}

std::string least_parameters(const Entry& entry, const Document& document) {
  return wraps_by_size(entry, document) ? entry.value : "";
}
std::string policy_by_size(const Entry& entry, const Document& document) {
  return wraps_by_size(entry, document) ? "size_based_wrap" : "";
}
std::string why_not_by_size(const Entry& entry, const Document& document) {
  return entry.value == "0" ? "" : for_another(kBySize, document);
}

const std::vector<Word> kAccelerateStrategies{
    {"FULL_SHARD", "full_shard"},     {"1", "full_shard"},      {"SHARD_GRAD_OP", "shard_grad_op"},
    {"2", "shard_grad_op"},           {"NO_SHARD", "no_shard"}, {"3", "no_shard"},
    {"HYBRID_SHARD", "hybrid_shard"}, {"4", "hybrid_shard"},    {"HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"},
    {"5", "hybrid_shard_zero2"}};

const std::vector<Row>& fsdp() {
  static const std::vector<Row> rows{
      only("fsdp_version", {"1", "2"}, "1 and 2 are known, and mean the same engine here"),
      maps("fsdp_sharding_strategy", "parallel.strategy", kAccelerateStrategies),
      maps("fsdp_reshard_after_forward", "parallel.strategy",
           {{"true", "full_shard"},
            {"false", "shard_grad_op"},
            {"FULL_SHARD", "full_shard"},
            {"SHARD_GRAD_OP", "shard_grad_op"},
            {"NO_SHARD", "no_shard"},
            {"HYBRID_SHARD", "hybrid_shard"},
            {"HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"}}),
      takes("fsdp_offload_params", "parallel.offload"),
      takes("fsdp_cpu_offload", "parallel.offload"),
      takes("fsdp_auto_wrap_policy", "parallel.wrap"),
      takes("fsdp_wrap_policy", "parallel.wrap"),
      because(follows("fsdp_min_num_params", "parallel.min_num_params", least_parameters,
                      "counts with SIZE_BASED_WRAP alone"),
              why_not_by_size),
      follows("fsdp_min_num_params", "parallel.wrap", policy_by_size, "`size_based_wrap`, where no policy is named"),
      because(follows("fsdp_min_num_param", "parallel.min_num_params", least_parameters,
                      "counts with SIZE_BASED_WRAP alone"),
              why_not_by_size),
      follows("fsdp_min_num_param", "parallel.wrap", policy_by_size, "`size_based_wrap`, where no policy is named"),
      because(follows("fsdp_transformer_layer_cls_to_wrap", "parallel.transformer_layer_cls_to_wrap", block_classes,
                      "counts with TRANSFORMER_BASED_WRAP alone; the block of any known model means those of the one "
                      "that is trained"),
              why_no_classes),
      takes("fsdp_backward_prefetch", "parallel.backward_prefetch"),
      takes("fsdp_backward_prefetch_policy", "parallel.backward_prefetch"),
      maps("fsdp_forward_prefetch", "parallel.forward_prefetch", {{"true", "1"}, {"false", "-1"}}),
      takes("fsdp_limit_all_gathers", "parallel.limit_all_gathers"),
      maps("fsdp_state_dict_type", "checkpoint.state_dict",
           {{"SHARDED_STATE_DICT", "sharded"}, {"FULL_STATE_DICT", "full"}}),
      only("fsdp_ignored_modules", {""}, "every module is sharded; leave it out"),
      no_op("fsdp_use_orig_params", "parameters keep their names and shapes in any case"),
      takes("fsdp_cpu_ram_efficient_loading", "parallel.cpu_ram_efficient_loading"),
      takes("fsdp_sync_module_states", "parallel.sync_module_states"),
      maps("fsdp_activation_checkpointing", "activation_checkpointing.mode", {{"true", "full"}, {"false", "none"}}),
      only("xla", {"false"}, kNoTpu),
      only("xla_fsdp_v2", {"false"}, kNoTpu),
      only("xla_fsdp_settings", {"{}"}, kNoTpu),
      refused("xla_fsdp_settings.*", kNoTpu),
      maps("xla_fsdp_grad_ckpt", "activation_checkpointing.mode", {{"true", "full"}, {"false", ""}}),
  };
  return rows;
}

std::string usual_stage(const Entry&, const Document& document) {
  const Entry* const file = find(document, "deepspeed_config_file");
  return (file && !says_nothing(*file)) || find(document, "zero_stage") ? "" : "shard_grad_op";
}

/// It is a document of its own.
std::string reads_file(const Entry&, const Document&) {
  return "";
}

std::vector<Row> with_plugins(std::vector<Row> rows) {
  rows.insert(rows.end(), fsdp().begin(), fsdp().end());
  rows.insert(rows.end(), deepspeed_plugin_rows().begin(), deepspeed_plugin_rows().end());
  return rows;
}

const std::vector<Row>& all() {
  static const std::vector<Row> rows = with_plugins({
      only("compute_environment", {"LOCAL_MACHINE"},
           "only LOCAL_MACHINE: on a cluster the operator starts the ranks (docs/operator.md)"),
      Row{.theirs = "distributed_type",
          .ours = "parallel.strategy",
          .compute = usual_stage,
          .remark = "`DEEPSPEED`: `shard_grad_op`, which is stage 2",
          .when = "DEEPSPEED"},
      Row{.theirs = "distributed_type",
          .ours = "parallel.strategy",
          .words = {{"FSDP", ""},
                    {"NO", "no_shard"},
                    {"MULTI_CPU", "no_shard"},
                    {"MULTI_GPU", "no_shard"},
                    {"TP", "no_shard"}},
          .why = "FSDP, DEEPSPEED, MULTI_GPU, MULTI_CPU and NO are offered here"},
      maps("mixed_precision", "parallel.param_dtype", {{"no", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}),
      no_op("downcast_bf16", "it is for TPUs alone", {"false"}),
      maps("use_cpu", "device.kind", {{"true", "cpu"}, {"false", ""}}),
      takes("num_machines", "--nnodes"),
      follows("num_processes", "--nproc-per-node", ranks_a_node, "theirs counts all machines'"),
      takes("machine_rank", "--node-rank"),
      takes("main_process_ip", "--master-addr"),
      takes("main_process_port", "--master-port"),
      takes("rdzv_backend", "--rdzv-backend"),
      only("same_network", {"true", "false"}, ""),
      follows("gpu_ids", "CUDA_VISIBLE_DEVICES", devices, "`all`: nothing to set"),
      only("debug", {"true", "false"}, ""),
      no_op("main_training_function", "the training loop is built in", {"main"}),
      only("enable_cpu_affinity", {"true", "false"}, ""),
      no_op("dynamo_backend", "kernels are fused and compiled already", {"no"}),
      compile_mode("dynamo_config.dynamo_mode"),
      no_op("dynamo_config.*", "kernels are fused and compiled already"),
      takes("parallelism_config_dp_replicate_size", "parallel.replicate"),
      takes("parallelism_config_dp_shard_size", "parallel.shard"),
      takes("parallelism_config_tp_size", "parallel.tensor"),
      takes("parallelism_config_cp_size", "parallel.context"),
      only("parallelism_config_sp_size", {"1"}, "sequence parallelism is not offered; use 1"),
      maps("parallelism_config_cp_comm_strategy", "parallel.context_method",
           {{"allgather", "all_gather"}, {"alltoall", "ring"}}),
      only("tpu_env", {"[]"}, kNoTpu),
      only("tpu_vm", {"[]"}, kNoTpu),
      only("tpu_name", {""}, kNoTpu),
      only("tpu_zone", {""}, kNoTpu),
      only("tpu_use_cluster", {"false"}, kNoTpu),
      only("tpu_use_sudo", {"false"}, kNoTpu),
      only("commands", {"[]"}, kNoTpu),
      only("command_file", {""}, kNoTpu),
      no_op("ipex_config.*", "kernels are chosen by the CPU that is there", {"false"}),
      takes("tp_config.tp_size", "parallel.tensor"),
      automatic(takes("gradient_accumulation_steps", "training.accumulation_steps"), "1"),
      follows("deepspeed_config_file", "", reads_file, "the json is read: [below](#deepspeed)"),
      refused("megatron_lm_config.*", "Megatron-LM is not offered; use FSDP"),
      refused("fp8_config.*", "training in 8 bits is float8.recipe here; use mixed_precision bf16 with it"),
      refused("mpirun_config.*", "mpirun is started by yourself: docs/launching.md"),
  });
  return rows;
}

/// Accelerate refuses it too: all ranks but the first would begin with weights of their own.
void check_loading(const Document& document) {
  const Entry* const load = find(document, "fsdp_cpu_ram_efficient_loading");
  const Entry* const sync = find(document, "fsdp_sync_module_states");
  if (load && sync && truth_of(load->value) == true && truth_of(sync->value) == false)
    throw InputError(
        fmt::format("{}: fsdp_sync_module_states false contradicts fsdp_cpu_ram_efficient_loading true ({})",
                    sync->origin, load->origin));
}

/// Accelerate refuses it too: beside a json its own words would be passed over. `mixed_precision: no` asks for nothing.
void check_deepspeed(const Document& document) {
  const Entry* const file = find(document, "deepspeed_config_file");
  if (!file || says_nothing(*file)) return;
  for (const char* const key : {"gradient_accumulation_steps", "gradient_clipping", "zero_stage",
                                "offload_optimizer_device", "offload_param_device", "offload_param_nvme_path",
                                "offload_optimizer_nvme_path", "zero3_save_16bit_model", "mixed_precision"})
    if (const Entry* const entry = find(document, key); entry && !is_same_word("no", entry->value))
      throw InputError(fmt::format("{}: {} {} would be passed over, as deepspeed_config_file {} ({}) says it; write "
                                   "it there",
                                   entry->origin, key, config::shown(entry->value), config::shown(file->value),
                                   file->origin));
}

void check_plugins(const Document& document) {
  check_loading(document);
  check_deepspeed(document);
}

}  // namespace

std::span<const Row> fsdp_rows() {
  return fsdp();
}

const Dialect& accelerate() {
  static const Dialect dialect{
      "accelerate",
      "The YAML of `accelerate config`. The keys of `fsdp_config` are [below](#fsdp_), and so are those of "
      "[`deepspeed_config`](#deepspeed_config).",
      all(), check_plugins};
  return dialect;
}

bool is_accelerate(const config::YamlText& source) {
  return has_key(source, "distributed_type") || has_key(source, "compute_environment");
}

namespace {

/// Pages leave fsdp_ out in fsdp_config too, as the Trainer's json may: min_num_param.
std::string in_section(std::string_view section, std::string key) {
  const auto is_row = [](const std::string& name) {
    return std::ranges::find(fsdp_rows(), name, &Row::theirs) != fsdp_rows().end();
  };
  return section == "fsdp_config." && !is_row(key) && is_row("fsdp_" + key) ? "fsdp_" + key : key;
}

}  // namespace

Document read_accelerate(const config::YamlText& source) {
  Document document = read_document(source);
  for (Entry& entry : document) {
    for (const std::string_view section : {"fsdp_config.", "parallelism_config.", "deepspeed_config."})
      if (entry.key.starts_with(section)) entry.key = in_section(section, entry.key.substr(section.size()));
  }
  // A section without keys: nothing is asked of it.
  std::erase_if(document, [](const Entry& entry) {
    return (entry.key == "fsdp_config" || entry.key == "parallelism_config" || entry.key == "deepspeed_config") &&
           (entry.value == "{}" || entry.value == "null");
  });
  return document;
}

}  // namespace trainyard::dialects
