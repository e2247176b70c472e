#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/load.h"
#include "data/loader.h"
#include "metrics/table.h"
#include "models/config.h"
#include "plan/simulation.h"

namespace trainyard::train {

/// What is to be planned. Its settings may be changed on the way to a suggestion, so they are a copy.
struct Job {
  config::Loaded loaded;
  models::ModelConfig model;
  Placement placement;
  Hardware hardware;
  BatchShape batch;

  [[nodiscard]] config::Config& config() { return loaded.config; }
  [[nodiscard]] const config::Config& config() const { return loaded.config; }
};

inline Simulation simulate(const Job& job) {
  return simulate(job.loaded, job.model, job.placement, job.hardware, job.batch);
}

/// One way to take less memory: the switches to add, and what the run would take then.
struct Suggestion {
  std::string switches;  ///< "--activation_checkpointing.mode full"
  uint64_t bytes = 0;    ///< of device memory, the fixed part included
  double seconds = 0;    ///< of a step
};

/// What fits `bytes` a rank, the least change of what was asked for first; empty where nothing tried does. Tried are
/// recomputation, sharding, bf16, smaller micro-batches, all of these, and more ranks.
std::vector<Suggestion> suggest(const Job& job, uint64_t bytes, size_t most = 3);

/// The whole plan for people, and for programs.
std::string plan_text(const Job& job);
nlohmann::json plan_json(const Job& job);

/// What a run is going to do, for people to read before its first step: what runs and where, model, memory a rank as
/// `simulation` has it, data, where things go.
std::vector<metrics::TableRow> plan_rows(const Job& job, const Simulation& simulation, const data::Loader& loader,
                                         int64_t total_steps);

/// Why a run cannot be on this machine, whatever is cleared away or allowed: it needs more host memory than there is, with
/// both sizes; none where it can. A kernel that finds no memory kills without a word.
std::optional<std::string> memory_refusal(const Job& job, const Simulation& simulation);

/// Why a run does not fit what it may hold and which switch would make it; none where it fits. For before the start.
std::optional<std::string> memory_warning(const Job& job, const Simulation& simulation);

/// The message of a run that got no memory: what it held, what it would need, and the switch that fits.
std::string out_of_memory_text(const config::Loaded& loaded, const Placement& placement);

/// "peak 1.20 GiB: parameters 0.3 GiB, …".
std::string memory_text(size_t peak, const MemoryUse& use);

}  // namespace trainyard::train
