#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dialects/dialect.h"

// What torchtitan's keys become where that is no word of a table, and its rows by file.
namespace trainyard::dialects::titan {

inline constexpr std::string_view kNoPipeline = "pipeline parallelism is not offered; use 1";
inline constexpr std::string_view kNoExperts = "models with experts are not offered; use 1";
inline constexpr std::string_view kPython = "Python modules are not loaded here; leave it out";
inline constexpr std::string_view kNoSuchQuantizing = "it is for a converter that is not offered";
inline constexpr std::string_view kScalesOnce = "scales of all weights are agreed on at once in any case";
inline constexpr std::string_view kWandb =
    "no service is contacted; docs/observability.md has the lines that give metrics.jsonl to wandb.log";
inline constexpr std::string_view kCompiled = "kernels are fused and compiled already";

std::string model_of(const Entry& entry, const Document& document);
/// A warm-up longer than the run is the run, as there; where data ends the run, nobody knows yet how long it is.
std::string warmup(const Entry& entry, const Document&, const config::Loaded& run);
/// The peak lasts until the last decay_ratio of the steps. torchtitan's stable phase counts a step more and its decay
/// one less far, which comes to the same factors.
std::string stable_steps(const Entry& entry, const Document&, const config::Loaded& run);
std::string total_steps(const Entry& entry, const Document&, const config::Loaded& run);
std::string betas(const Entry&, const Document& document);
/// Below dump_folder, as there.
std::string checkpoint_folder(const Entry& entry, const Document& document);
std::string load_step(const Entry& entry, const Document&, const config::Loaded& run);
/// Another run's checkpoint, or a folder of Hugging Face's, which says what model it is.
std::string initial_checkpoint(const Entry& entry, const Document& document);
std::string of_initial_checkpoint(const Entry& entry, const Document& document);
std::string initial_weights(const Entry& entry, const Document& document);
/// Their parts of a checkpoint by ours.
std::string exclusion(const Entry& entry, const Document&);
/// 0 keeps all.
std::string keep(const Entry& entry, const Document&);
/// A path of one's own goes before the name of a data set.
std::string data_path(const Entry& entry, const Document& document);
std::string checkpointing_mode(const Entry& entry, const Document& document);
std::string every_n(const Entry& entry, const Document& document);
std::string with_tensor(const Entry& entry, const Document& document);
std::string with_tensor_turned(const Entry& entry, const Document& document);
/// Its default where there is a context at all.
std::string context_method(const Entry& entry, const Document& document);
std::string context_balance(const Entry& entry, const Document& document);
/// never keeps the parameters from forward to backward; default and always free them after forward.
std::string strategy(const Entry& entry, const Document& document);
std::string degree(const Entry& entry, const Document& document);
std::string global_batch(const Entry& entry, const Document&);
std::string seconds(const Entry& entry, const Document&);
std::string profile_interval(const Entry&, const Document& document);
std::string profile_steps(const Entry& entry, const Document& document);
std::string tensorboard(const Entry&, const Document& document);
/// A path of one's own goes before the name of a data set.
std::string validation_path(const Entry& entry, const Document& document);
std::string validation_number(const Entry& entry, const Document& document);
std::string validation_length(const Entry& entry, const Document& document, const config::Loaded& run);
std::string converted(const Entry&, const Document& document);
std::string if_converted(const Entry& entry, const Document& document);
/// Their names of layers by ours; the head is left as it is anyway, and no model here has a router.
std::string filtered_layers(const Entry& entry, const Document& document);

/// Keys that releases before 0.2.2 had, from 2024 on, and some that guides use though they never existed.
std::vector<Row> older_rows();
/// The releases that differ in what they take where a key is left out, the oldest first.
std::span<const Variant> releases();

}  // namespace trainyard::dialects::titan
