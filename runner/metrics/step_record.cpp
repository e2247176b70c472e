#include "metrics/step_record.h"

#include <nlohmann/json.hpp>

namespace trainyard::metrics {

std::string to_json_line(const StepRecord& record) {
  const nlohmann::ordered_json line{
      {"step", record.step},
      {"loss", record.loss},
      {"grad_norm", record.grad_norm},
      {"lr", record.lr},
      {"tokens", record.tokens},
      {"tokens_per_second", record.tokens_per_second},
      {"samples_per_second", record.samples_per_second},
      {"mfu", record.mfu ? nlohmann::ordered_json(*record.mfu) : nlohmann::ordered_json()},
      {"memory_bytes", record.memory_bytes},
      {"time", record.time},
  };
  return line.dump();
}

std::optional<int64_t> step_of_json_line(std::string_view line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

}  // namespace trainyard::metrics
