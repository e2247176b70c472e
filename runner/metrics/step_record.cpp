#include "metrics/step_record.h"

#include <nlohmann/json.hpp>

namespace trainyard::metrics {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const StepRecord& record) {
  nlohmann::ordered_json line{
      {"step", record.step},
      {"loss", record.loss},
      {"grad_norm", number_or_null(record.grad_norm)},
      {"lr", record.lr},
      {"tokens", record.tokens},
      {"tokens_per_second", record.tokens_per_second},
      {"samples_per_second", record.samples_per_second},
      {"mfu", number_or_null(record.mfu)},
      {"memory_bytes", record.memory_bytes},
      {"data_wait_ms", record.data_wait_ms},
      {"compute_ms", record.compute_ms},
      {"communication_wait_ms", record.communication_wait_ms},
      {"optimizer_ms", record.optimizer_ms},
      {"checkpoint_ms", record.checkpoint_ms},
      {"time", record.time},
  };
  if (record.slow_rank) line["slow_rank"] = *record.slow_rank;
  if (record.validation_loss) line["validation_loss"] = *record.validation_loss;
  if (record.validation_accuracy) line["validation_accuracy"] = *record.validation_accuracy;
  if (record.loss_scale) line["loss_scale"] = *record.loss_scale, line["skipped"] = record.skipped;
  return line;
}

}  // namespace

std::string to_json_line(const StepRecord& record) {
  return to_json(record).dump();
}

std::vector<std::pair<std::string, double>> scalars_of(const StepRecord& record) {
  std::vector<std::pair<std::string, double>> scalars;
  const nlohmann::ordered_json line = to_json(record);
  for (const auto& [name, value] : line.items())
    if (name != "step" && name != "time" && value.is_number()) scalars.emplace_back(name, value.get<double>());
  return scalars;
}

std::optional<int64_t> step_of_json_line(std::string_view line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

}  // namespace trainyard::metrics
