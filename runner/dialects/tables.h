#pragma once

#include <span>

#include "dialects/dialect.h"

// The dialects, each in the file of its name.
namespace trainyard::dialects {

/// The YAML that `accelerate config` writes, with fsdp_version 1 or 2.
const Dialect& accelerate();
/// Its file as a document: fsdp_config's keys stand without the section's name.
Document read_accelerate(const config::YamlText& source);
/// Whether a file is one, by its keys.
bool is_accelerate(const config::YamlText& source);
/// The rows of fsdp_config alone, which other dialects share.
std::span<const Row> fsdp_rows();

/// transformers' Trainer: --fsdp "full_shard auto_wrap offload" and --fsdp_config x.json.
const Dialect& trainer();
Document read_trainer_words(const std::string& words);
Document read_trainer_config(const config::YamlText& source);

/// DeepSpeed's json, of which Accelerate and the Trainer fill in what is "auto".
const Dialect& deepspeed();
Document read_deepspeed(const config::YamlText& source);
/// Whether a file is one, by its keys.
bool is_deepspeed(const config::YamlText& source);
std::vector<Row> deepspeed_optimizer();
void check_deepspeed_scheduler(const Document& document);
std::vector<Row> deepspeed_surroundings();
/// What Accelerate says of it itself, in deepspeed_config of its file and as flags: the rows that both share.
std::span<const Row> deepspeed_plugin_rows();
/// Flags of the Trainer that it passes over beside a json with a scheduler.
const Dialect& beside_a_scheduler();

/// torchtitan's TOML as of v0.2.2, older names of its keys, and --section.key flags by these names.
const Dialect& torchtitan();

/// Flags of training scripts: the HyperPod FSDP example, the FSDP2 tutorial, the T5 example, Accelerate's --fsdp_*.
const Dialect& scripts();
/// Those of them that are transformers' TrainingArguments, what these are where they are left out, and what
/// contradicts.
std::vector<Row> trainer_arguments();
std::vector<Row> trainer_surroundings();
Variant trainer_variant();
void check_trainer_arguments(const Document& document);

}  // namespace trainyard::dialects
