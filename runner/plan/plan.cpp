#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/schema.h"
#include "config/value.h"
#include "metrics/mfu.h"
#include "plan/environment.h"

namespace trainyard::train {
namespace {

using metrics::TableRow;

constexpr double kMilli = 1e3;

uint64_t needed_bytes(const Job& job, const Simulation& simulation) {
  return simulation.device_bytes() + job.hardware.fixed_memory;
}

std::string counted(int64_t value, const char* unit) {
  return with_thousands(value) + " " + unit;
}

std::string mesh_text(const Simulation& simulation, int world) {
  const MeshSize& mesh = simulation.spec.sharding.mesh;
  const int copies = mesh.of(shard::Dimension::Replicate);
  if (world == 1) return "1 rank";
  const int shards = mesh.of(shard::Dimension::Shard);
  std::string text = fmt::format("{} ranks, each parameter ", world);
  text += copies * mesh.tensor == world ? "replicated" : shards > 1 ? fmt::format("split over {}", shards) : "whole";
  if (copies > 1 && copies * mesh.tensor < world) text += fmt::format(", {} copies", copies);
  if (mesh.tensor > 1) text += fmt::format("; each layer split over {}", mesh.tensor);
  if (mesh.context > 1) text += fmt::format("; each row's tokens split over {}", mesh.context);
  return text;
}

std::string groups_text(const std::vector<std::string>& labels) {
  if (labels.size() == 1) return "1: the whole model";
  const std::string &first = labels.front(), &last = labels[labels.size() - 2];
  return fmt::format("{}: {}{}, and the rest", labels.size(), first, first == last ? "" : " … " + last);
}

std::string hardware_text(const Job& job, const Simulation& simulation) {
  const Hardware& hardware = job.hardware;
  std::string text = fmt::format("{}: {:.0f} TFLOP/s at the precision used, {:.0f} GB/s of memory", hardware.name,
                                 simulation.peak_flops / 1e12, hardware.memory_bandwidth / 1e9);
  if (hardware.is_cpu)
    text = fmt::format("cpu: {:.0f} GFLOP/s in large products, measured now; {:.0f} GB/s of memory taken on",
                       simulation.peak_flops / 1e9, hardware.memory_bandwidth / 1e9);
  return text;
}

/// A line about what is offloaded; nothing where nothing is.
std::string bus_text(const Job& job, const RunSpec& spec) {
  if (job.hardware.is_cpu || !spec.offloads()) return "";
  return fmt::format(
      "  {:.0f} GB/s between host and device each way, beside the computation; {:.0f} GB/s of the host's memory a "
      "rank\n",
      job.hardware.bus_bandwidth / 1e9, job.hardware.host_bandwidth / 1e9);
}

std::string assumptions_text(const Job& job, const RunSpec& spec) {
  const Hardware& hardware = job.hardware;
  return fmt::format(
      "assumed: {:.0f} % of the peak in products, {:.0f} % of the memory's rate elsewhere, {:.0f} % of links;\n"
      "  {:.0f} GB/s between ranks of a node ({} a node), {:.1f} GB/s a rank between nodes, at least {:.0f} us an\n"
      "  operation and {:.0f} us a collective. An operation takes the longer of its products and its bytes; a\n"
      "  collective bytes x (n-1)/n over its link, twice that for an all-reduce, beside the computation until waited "
      "for.\n{}",
      hardware.matrix_fraction * 100, hardware.memory_fraction * 100, hardware.link_fraction * 100,
      hardware.link_bandwidth / 1e9, job.placement.ranks_per_node, hardware.network_bandwidth / 1e9,
      hardware.operation_seconds * 1e6, hardware.collective_seconds * 1e6, bus_text(job, spec));
}

/// What a batch is counted in.
std::string unit_of(const Job& job) {
  return job.batch.image_size > 0 ? "images" : "tokens";
}

std::string passes_text(const data::Loader& loader, int64_t total_steps) {
  if (loader.sequences_per_epoch() == data::Loader::kEndless) return "";
  const auto rows = static_cast<double>(total_steps * loader.sequences_per_step());
  return fmt::format(" ({:.2f} passes over the data)", rows / static_cast<double>(loader.rows_per_epoch()));
}

std::string batch_text(const Job& job, const Simulation& simulation) {
  const std::string row = job.batch.image_size > 0 ? "images" : fmt::format("x {} tokens", job.batch.tokens);
  return fmt::format("{} {} a rank and micro-batch, {} {} a step", job.batch.rows, row,
                     with_thousands(simulation.tokens_per_step), unit_of(job));
}

std::vector<TableRow> model_rows(const Job& job, const Simulation& simulation) {
  const models::ModelConfig& model = job.model;
  std::vector<TableRow> rows{{"model", fmt::format("{}, {} layers, hidden {}, {}", model.family, model.layers,
                                                   model.hidden_size, counted(simulation.parameters, "parameters"))},
                             {"ranks", mesh_text(simulation, job.placement.world)},
                             {"sharding groups", groups_text(simulation.groups)}};
  if (simulation.frozen > 0) rows.push_back({"frozen", counted(simulation.frozen, "parameters")});
  if (!simulation.adapters.empty()) rows.push_back({"adapters", "LoRA, " + simulation.adapters});
  if (!simulation.float8.empty())
    rows.push_back(
        {"float8", fmt::format("{}, {}", config::format_value(config::find_key("float8.recipe")->get(job.config())),
                               simulation.float8)});
  return rows;
}

/// "parameters 1.0 MiB, gradients 1.0 MiB", of those that are there.
std::string kinds_text(const MemoryUse& use, std::initializer_list<MemoryKind> kinds) {
  std::string text;
  for (const MemoryKind kind : kinds)
    if (use[kind] > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(kind), human_bytes(use[kind]));
  return text.empty() ? "nothing" : text;
}

std::vector<TableRow> memory_rows(const Job& job, const Simulation& simulation) {
  using enum MemoryKind;
  std::vector<TableRow> rows{
      {"memory a rank", fmt::format("{} at most, {} with libraries", human_bytes(simulation.device_bytes()),
                                    human_bytes(needed_bytes(job, simulation)))},
      {"  of its shards", kinds_text(simulation.at_peak, {Parameters, Gradients, Optimizer})},
      {"  beside them", kinds_text(simulation.at_peak, {Gathered, Activations, Offloaded, Other})}};
  if (simulation.spec.sharding.policy.offload)
    rows.push_back({"offload", job.hardware.is_cpu
                                   ? "nothing to do: on a CPU shards and optimizer state are in host memory"
                                   : "shards, their gradients and the optimizer in host memory, where it steps"});
  if (simulation.spec.recompute.retention.offload)
    rows.push_back(
        {"offload", job.hardware.is_cpu
                        ? std::string("activations are in host memory already, as everything of a CPU")
                        : fmt::format("{} of activations in host memory", human_bytes(simulation.most[Offloaded]))});
  if (const uint64_t host = simulation.host_bytes(); host > 0) rows.push_back({"host memory a rank", human_bytes(host)});
  return rows;
}

/// Memory and time of each way to checkpoint activations, everything else as it is.
std::string modes_text(const Job& job) {
  using config::CheckpointingMode;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, mode] : {std::pair{"none", CheckpointingMode::None},
                                   {"selective", CheckpointingMode::Selective},
                                   {"full", CheckpointingMode::Full}}) {
    Job other = job;
    other.config().activation_checkpointing.mode = mode;
    const Simulation seen = simulate(other);
    rows.push_back({name, human_bytes(seen.most[MemoryKind::Activations]), human_bytes(needed_bytes(other, seen)),
                    fmt::format("{:.1f}", seen.seconds * kMilli)});
  }
  return metrics::format_columns({"activation_checkpointing.mode", "activations", "in all", "ms a step"}, rows);
}

std::string traffic_text(const Simulation& simulation) {
  if (simulation.traffic.empty()) return "collectives a step: none\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, traffic] : simulation.traffic)
    rows.push_back({name, with_thousands(traffic.messages), human_bytes(static_cast<uint64_t>(traffic.bytes))});
  return metrics::format_columns({"collectives a step", "messages", "bytes"}, rows);
}

std::string time_text(const Job& job, const Simulation& simulation) {
  return fmt::format(
      "step {:.1f} ms, {:.1f} ms of it waiting for ranks; {} {}/s in all; {:.1f} TFLOP/s a rank; MFU {:.1f} %",
      simulation.seconds * kMilli, simulation.waited_seconds * kMilli,
      with_thousands(static_cast<int64_t>(simulation.tokens_per_second())), unit_of(job),
      simulation.model_flops / simulation.seconds / 1e12, simulation.mfu() * 100);
}

std::string fit_text(const Job& job, const Simulation& simulation) {
  const uint64_t needed = needed_bytes(job, simulation), memory = job.hardware.memory;
  if (memory == 0) return "";
  if (needed <= memory) return fmt::format("fits: {} of {} a rank\n", human_bytes(needed), human_bytes(memory));
  std::string text =
      fmt::format("does not fit: {} are needed and a rank has {}\n", human_bytes(needed), human_bytes(memory));
  const auto suggestions = suggest(job, memory);
  if (suggestions.empty())
    return text + "nothing tried fits; trainyard plan --suggest tries other layouts\n";
  for (const Suggestion& each : suggestions)
    text += fmt::format("  would fit, with {} and {:.1f} ms a step: {}\n", human_bytes(each.bytes),
                        each.seconds * kMilli, each.switches);
  return text;
}

}  // namespace

std::string memory_text(size_t peak, const MemoryUse& use) {
  using enum MemoryKind;
  return fmt::format("peak {}: {}", human_bytes(peak),
                     kinds_text(use, {Parameters, Gradients, Optimizer, Gathered, Activations, Offloaded, Other}));
}

std::string plan_text(const Job& job) {
  const Simulation simulation = simulate(job);
  std::vector<TableRow> rows = model_rows(job, simulation);
  const auto memory = memory_rows(job, simulation);
  rows.insert(rows.end(), memory.begin(), memory.end());
  rows.push_back({"batch", batch_text(job, simulation)});
  rows.push_back({"hardware", hardware_text(job, simulation)});
  rows.push_back({"time", time_text(job, simulation)});
  return metrics::format_table("plan", rows, 160) + "\n" + modes_text(job) + "\n" + traffic_text(simulation) + "\n" +
         fit_text(job, simulation) + assumptions_text(job, simulation.spec) + fmt::format("mfu: {}\n", metrics::kMfuFormula);
}

nlohmann::json plan_json(const Job& job) {
  const Simulation seen = simulate(job);
  nlohmann::json plan{{"parameters", seen.parameters},
                      {"groups", seen.groups.size()},
                      {"group_labels", seen.groups},
                      {"world", job.placement.world},
                      {"replicate", seen.spec.sharding.mesh.replicate},
                      {"shard", seen.spec.sharding.mesh.shard},
                      {"context", seen.spec.sharding.mesh.context},
                      {"device", job.hardware.name},
                      {"device_memory_bytes", job.hardware.memory},
                      {"tokens_per_step", seen.tokens_per_step},
                      {"step_seconds", seen.seconds},
                      {"waited_seconds", seen.waited_seconds},
                      {"tokens_per_second", seen.tokens_per_second()},
                      {"mfu", seen.mfu()},
                      {"computed_flops", seen.computed_flops},
                      {"model_flops", seen.model_flops}};
  nlohmann::json& memory = plan["memory"];
  memory = {{"peak_bytes", seen.device_bytes()},
            {"fixed_bytes", job.hardware.fixed_memory},
            {"needed_bytes", needed_bytes(job, seen)},
            {"host_bytes", seen.host_bytes()}};
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    const std::string name(name_of(static_cast<MemoryKind>(kind)));
    memory["at_peak"][name] = seen.at_peak.of[kind];
    memory["most"][name] = seen.most.of[kind];
  }
  plan["collectives"] = nlohmann::json::object();
  for (const auto& [name, traffic] : seen.traffic)
    plan["collectives"][name] = {{"messages", traffic.messages}, {"bytes", traffic.bytes}};
  plan["fits"] = job.hardware.memory == 0 || needed_bytes(job, seen) <= job.hardware.memory;
  plan["suggestions"] = nlohmann::json::array();
  if (!plan["fits"].get<bool>())
    for (const Suggestion& each : suggest(job, job.hardware.memory))
      plan["suggestions"].push_back(
          {{"switches", each.switches}, {"needed_bytes", each.bytes}, {"step_seconds", each.seconds}});
  return plan;
}

std::vector<TableRow> plan_rows(const Job& job, const Simulation& simulation, const data::Loader& loader,
                                int64_t total_steps) {
  const int64_t tokens_per_step = loader.sequences_per_step() * loader.sequence_length();
  std::vector<TableRow> rows = environment_rows();
  for (const auto& part : {model_rows(job, simulation), memory_rows(job, simulation)})
    rows.insert(rows.end(), part.begin(), part.end());
  rows.push_back({unit_of(job), fmt::format("{} a step, {} in {} steps{}", with_thousands(tokens_per_step),
                                            with_thousands(tokens_per_step * total_steps), with_thousands(total_steps),
                                            passes_text(loader, total_steps))});
  rows.push_back({"metrics", job.config().metrics.dir + "/metrics.jsonl"});
  if (job.config().checkpoint.enabled) rows.push_back({"checkpoints", job.config().checkpoint.dir});
  return rows;
}

std::optional<std::string> memory_refusal(const Job& job, const Simulation& simulation) {
  const uint64_t there = job.hardware.machine_memory;
  const uint64_t needed = job.hardware.is_cpu ? needed_bytes(job, simulation) : simulation.host_bytes();
  if (there == 0 || needed <= there) return std::nullopt;
  const auto fitting = job.hardware.is_cpu ? suggest(job, there, 1) : std::vector<Suggestion>{};
  return fmt::format("this run needs {} of memory a rank, and this host has {} for each, swap included{}",
                     human_bytes(needed), human_bytes(there),
                     fitting.empty() ? "; take a smaller batch, a smaller model, or more hosts"
                                     : "; it fits with " + fitting.front().switches);
}

std::optional<std::string> memory_warning(const Job& job, const Simulation& simulation) {
  const uint64_t on_host = simulation.host_bytes(), host_memory = job.hardware.host_memory;
  if (host_memory > 0 && on_host > host_memory)
    return fmt::format("this run will offload {} a rank, and the host has {} for each; offload less, or use more ranks",
                       human_bytes(on_host), human_bytes(host_memory));
  const uint64_t needed = needed_bytes(job, simulation), others = job.hardware.others_hold;
  const uint64_t memory = job.hardware.memory - std::min(others, job.hardware.memory);
  if (job.hardware.memory == 0 || needed <= memory) return std::nullopt;
  const auto suggestions = suggest(job, memory, 1);
  return fmt::format("this run will need {} a rank and may hold {}{}; {}", human_bytes(needed), human_bytes(memory),
                     others > 0 ? fmt::format(", as other processes hold {}", human_bytes(others)) : "",
                     suggestions.empty() ? "nothing tried makes it fit: more memory a rank, or a smaller model"
                                         : "it would fit with " + suggestions.front().switches);
}

}  // namespace trainyard::train
