#include "metrics/line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::metrics {

const std::string_view kStandardLine =
    "step: {step}  loss: {loss}  grad_norm: {grad_norm}  lr: {lr}  tokens/s: {tokens_per_second}  mfu: {mfu}  memory: "
    "{memory}";
const std::string_view kImagesLine =
    "step: {step}  loss: {loss}  grad_norm: {grad_norm}  lr: {lr}  images/s: {samples_per_second}  mfu: {mfu}  memory: "
    "{memory}";
const std::string_view kValidationLine = "Batch {step} Validation loss: {validation_loss}";
const std::string_view kAccuracyLine =
    "Batch {step} Validation loss: {validation_loss}, accuracy: {validation_accuracy}";

namespace {

struct NamedLine {
  std::string_view name, pattern;
};
// Whose steps are an epoch's batches, the first of them number 0.
constexpr std::string_view kMnist = "mnist", kT5 = "t5";
constexpr NamedLine kNamedLines[] = {
    {"hyperpod", "Batch {step} Loss: {loss}, Speed: {samples_per_second:.2f} samples/sec, lr: {lr:.6f}"},
    {"torchtitan",
     "step: {step:2}  loss: {loss:8.5f}  grad_norm: {grad_norm:7.4f}  memory: {memory:5.2f}GiB  tps: {tps}  tflops: "
     "{tflops}  mfu: {mfu}"},
    {kT5, "Epoch {epoch} | Step {epoch_step} | Loss: {loss:.4f} | Strategy: {strategy}"},
    {kMnist, "Train Epoch: {epoch_number} [{epoch_samples}/{dataset_size} ({epoch_percent:.0f}%)]\tLoss: {loss:.6f}"},
};

using Number = std::variant<std::monostate, int64_t, double>;

struct Field {
  std::string_view name;
  Number (*value)(const StepRecord&);
  std::string (*standard)(const StepRecord&);
};

std::string rate(double per_second) {
  return per_second < 1000 ? fmt::format("{:.1f}", per_second) : with_thousands(static_cast<int64_t>(per_second + 0.5));
}
double in_gib(const StepRecord& record) {
  return static_cast<double>(record.memory_bytes) / (1024.0 * 1024 * 1024);
}

template <double StepRecord::*Part>
constexpr Field milliseconds(std::string_view name) {
  return {name, [](const StepRecord& r) { return Number(r.*Part); },
          [](const StepRecord& r) { return fmt::format("{:.1f}", r.*Part); }};
}

const Field kFields[] = {
    {"step", [](const StepRecord& r) { return Number(r.step); },
     [](const StepRecord& r) { return fmt::format("{}", r.step); }},
    {"loss", [](const StepRecord& r) { return Number(r.loss); },
     [](const StepRecord& r) { return fmt::format("{:.5f}", r.loss); }},
    {"grad_norm", [](const StepRecord& r) { return r.grad_norm ? Number(*r.grad_norm) : Number(); },
     [](const StepRecord& r) { return r.grad_norm ? fmt::format("{:.4f}", *r.grad_norm) : "n/a"; }},
    {"lr", [](const StepRecord& r) { return Number(r.lr); },
     [](const StepRecord& r) { return fmt::format("{:.1e}", r.lr); }},
    {"tokens", [](const StepRecord& r) { return Number(r.tokens); },
     [](const StepRecord& r) { return with_thousands(r.tokens); }},
    {"tokens_per_second", [](const StepRecord& r) { return Number(r.tokens_per_second); },
     [](const StepRecord& r) { return with_thousands(static_cast<int64_t>(r.tokens_per_second + 0.5)); }},
    {"samples_per_second", [](const StepRecord& r) { return Number(r.samples_per_second); },
     [](const StepRecord& r) { return rate(r.samples_per_second); }},
    {"mfu", [](const StepRecord& r) { return r.mfu ? Number(*r.mfu) : Number(); },
     [](const StepRecord& r) { return r.mfu ? fmt::format("{:.1f}%", *r.mfu * 100) : "n/a"; }},
    {"memory", [](const StepRecord& r) { return Number(in_gib(r)); },
     [](const StepRecord& r) { return fmt::format("{:.2f}GiB", in_gib(r)); }},
    {"memory_bytes", [](const StepRecord& r) { return Number(static_cast<int64_t>(r.memory_bytes)); },
     [](const StepRecord& r) { return fmt::format("{}", r.memory_bytes); }},
    milliseconds<&StepRecord::data_wait_ms>("data_wait_ms"),
    milliseconds<&StepRecord::compute_ms>("compute_ms"),
    milliseconds<&StepRecord::communication_wait_ms>("communication_wait_ms"),
    milliseconds<&StepRecord::optimizer_ms>("optimizer_ms"),
    milliseconds<&StepRecord::checkpoint_ms>("checkpoint_ms"),
    {"slow_rank", [](const StepRecord& r) { return r.slow_rank ? Number(int64_t{*r.slow_rank}) : Number(); },
     [](const StepRecord& r) { return r.slow_rank ? fmt::format("{}", *r.slow_rank) : "none"; }},
    {"epoch", [](const StepRecord& r) { return Number(r.epoch); },
     [](const StepRecord& r) { return fmt::format("{}", r.epoch); }},
    {"epoch_number", [](const StepRecord& r) { return Number(r.epoch + 1); },
     [](const StepRecord& r) { return fmt::format("{}", r.epoch + 1); }},
    {"epoch_step", [](const StepRecord& r) { return Number(r.step_of_epoch); },
     [](const StepRecord& r) { return fmt::format("{}", r.step_of_epoch); }},
    {"epoch_samples", [](const StepRecord& r) { return Number(r.epoch_samples); },
     [](const StepRecord& r) { return fmt::format("{}", r.epoch_samples); }},
    {"epoch_percent", [](const StepRecord& r) { return Number(r.epoch_percent); },
     [](const StepRecord& r) { return fmt::format("{:.0f}%", r.epoch_percent); }},
    {"dataset_size", [](const StepRecord& r) { return Number(r.dataset_size); },
     [](const StepRecord& r) { return fmt::format("{}", r.dataset_size); }},
    {"tps", [](const StepRecord& r) { return Number(r.tokens_per_second / r.ranks); },
     [](const StepRecord& r) { return with_thousands(static_cast<int64_t>(r.tokens_per_second / r.ranks + 0.5)); }},
    {"tflops", [](const StepRecord& r) { return Number(r.flops_per_second / r.ranks / 1e12); },
     [](const StepRecord& r) { return fmt::format("{:.2f}", r.flops_per_second / r.ranks / 1e12); }},
    {"time", [](const StepRecord& r) { return Number(r.time); },
     [](const StepRecord& r) { return fmt::format("{:.3f}", r.time); }},
    {"validation_loss", [](const StepRecord& r) { return r.validation_loss ? Number(*r.validation_loss) : Number(); },
     [](const StepRecord& r) { return r.validation_loss ? fmt::format("{:.5f}", *r.validation_loss) : "n/a"; }},
    {"validation_accuracy",
     [](const StepRecord& r) { return r.validation_accuracy ? Number(*r.validation_accuracy) : Number(); },
     [](const StepRecord& r) {
       return r.validation_accuracy ? fmt::format("{:.2f}%", *r.validation_accuracy * 100) : "n/a";
     }},
    {"loss_scale", [](const StepRecord& r) { return r.loss_scale ? Number(*r.loss_scale) : Number(); },
     [](const StepRecord& r) { return r.loss_scale ? fmt::format("{}", *r.loss_scale) : "n/a"; }},
};

const Field& find_field(std::string_view name) {
  const auto* const found = std::ranges::find(kFields, name, &Field::name);
  if (found != std::end(kFields)) return *found;
  std::vector<std::string> known;
  for (const Field& field : kFields) known.emplace_back(field.name);
  const auto near = nearest(name, known);
  throw InputError(
      fmt::format("unknown placeholder {{{}}}; {}", name,
                  near ? fmt::format("did you mean {{{}}}?", *near) : fmt::format("use {}", fmt::join(known, ", "))));
}

std::string by_spec(const std::string& spec, const Number& number) {
  if (const auto* const whole = std::get_if<int64_t>(&number)) return fmt::format(fmt::runtime(spec), *whole);
  if (const auto* const real = std::get_if<double>(&number)) return fmt::format(fmt::runtime(spec), *real);
  return "n/a";
}

/// fmt would pad to any width: three digits in a row could ask for more than a line.
bool is_modest(std::string_view spec) {
  size_t digits = 0;
  for (const char c : spec) {
    digits = std::isdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
    if (digits > 2 || c == '{' || c == '}') return false;
  }
  return true;
}

void check_printable(std::string_view pattern) {
  if (std::ranges::any_of(pattern, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    throw InputError("a control character, such as a line feed, cannot be part of the line");
}

/// A misspelt name would be a line that says the same at each step.
void check_meaning(std::string_view pattern) {
  if (pattern.empty() || pattern.find_first_of("{}") != std::string_view::npos) return;
  std::vector<std::string> names;
  for (const NamedLine& line : kNamedLines) names.emplace_back(line.name);
  if (std::ranges::find(names, pattern) != names.end()) return;
  const auto near = nearest(pattern, names);
  throw InputError(fmt::format("'{}' has no {{name}} in it and is none of {}{}", pattern, fmt::join(names, ", "),
                               near ? fmt::format("; did you mean {}?", *near) : ""));
}

}  // namespace

std::string_view line_of(std::string_view text) {
  const auto* const named = std::ranges::find(kNamedLines, text, &NamedLine::name);
  return named == std::end(kNamedLines) ? text : named->pattern;
}

LineFormat::LineFormat(std::string_view pattern, std::string_view strategy)
    : strategy_(strategy), counts_batches_(pattern == kMnist || pattern == kT5) {
  check_printable(pattern);
  check_meaning(pattern);
  std::string_view rest = pattern.empty() ? kStandardLine : line_of(pattern);
  std::string literal;
  while (!rest.empty()) {
    const bool doubled = rest.starts_with("{{") || rest.starts_with("}}");
    if (rest[0] == '}' && !doubled) throw InputError("a } without its {; write }} for the character itself");
    if (rest[0] != '{' || doubled) {
      literal += rest[0];
      rest.remove_prefix(doubled ? 2 : 1);
      continue;
    }
    const size_t end = rest.find('}');
    if (end == std::string_view::npos) throw InputError("a { without its }; write {{ for the character itself");
    parts_.push_back({std::exchange(literal, {}), {}, false});
    parts_.push_back(field(rest.substr(1, end - 1)));
    rest.remove_prefix(end + 1);
  }
  parts_.push_back({std::move(literal), {}, false});
}

LineFormat::Part LineFormat::field(std::string_view inside) const {
  if (inside == "strategy") return {strategy_, {}, false};
  const size_t colon = inside.find(':');
  const std::string name(inside.substr(0, colon));
  const Field& known = find_field(name);
  if (colon == std::string_view::npos) return {name, {}, true};
  const std::string spec = fmt::format("{{{}}}", inside.substr(colon));
  // What is absent would not try the specification.
  const StepRecord with_all{.grad_norm = 0.5,
                            .mfu = 0.5,
                            .slow_rank = 0,
                            .validation_loss = 0.5,
                            .validation_accuracy = 0.5,
                            .loss_scale = 1};
  const Number number = known.value(with_all);
  try {
    if (!is_modest(inside.substr(colon))) throw fmt::format_error("too wide, or a brace inside");
    static_cast<void>(by_spec(spec, number));
  } catch (const fmt::format_error& error) {
    const char* const good = std::holds_alternative<int64_t>(number) ? "6" : ".3f";
    throw InputError(
        fmt::format("{{{}}} cannot be formatted: {}; write it like {{{}:{}}}", inside, error.what(), name, good));
  }
  return {name, spec, true};
}

std::string LineFormat::format(const StepRecord& record) const {
  std::string line;
  for (const Part& part : parts_) {
    if (!part.is_field)
      line += part.text;
    else if (part.spec.empty())
      line += find_field(part.text).standard(record);
    else
      line += by_spec(part.spec, find_field(part.text).value(record));
  }
  return line;
}

}  // namespace trainyard::metrics
