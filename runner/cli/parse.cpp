#include "cli/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/flags.h"
#include "base/text.h"

namespace trainyard::cli {

void refuse_unknown_subcommand(const CLI::App& app, const Arguments& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return;
  std::vector<std::string> known;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(each->get_name());
  if (known.empty() || std::ranges::find(known, arguments[0]) != known.end()) return;
  const auto near = nearest(arguments[0], known);
  throw InputError(fmt::format("{}: unknown command '{}'{}; known are {}", app.get_name(), arguments[0],
                               near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
}

CLI::Option* add_word(CLI::App& app, const std::string& name, const std::vector<std::string>& words,
                      const std::string& help, const std::function<void(size_t index)>& set) {
  const auto take = [name, words, set](const std::string& given) {
    const auto found = std::ranges::find(words, CLI::detail::to_lower(given));
    if (found == words.end())
      throw CLI::ValidationError(name, fmt::format("'{}' is none of {}", given, fmt::join(words, ", ")));
    set(static_cast<size_t>(found - words.begin()));
  };
  return app.add_option_function<std::string>(name, take, help)
      ->type_name(fmt::format("{}", fmt::join(words, "|")));
}

CLI::Option* add_word(CLI::App& app, const std::string& name, std::string& value,
                      const std::vector<std::string>& words, const std::string& help) {
  CLI::Option* const option = add_word(app, name, words, help, [&value, words](size_t index) { value = words[index]; });
  return value.empty() ? option : option->default_str(value);
}

void add_device(CLI::App& app, config::DeviceChoice& device) {
  using config::DeviceChoice;
  add_choice<DeviceChoice>(app, "--device", device,
                           {{"auto", DeviceChoice::Auto}, {"cpu", DeviceChoice::Cpu}, {"cuda", DeviceChoice::Cuda}},
                           "where to compute; auto: cuda where there is a GPU");
}

void add_param_dtype(CLI::App& app, config::Precision& precision) {
  using config::Precision;
  add_choice<Precision>(app, "--param-dtype", precision,
                        {{"fp32", Precision::Float32}, {"bf16", Precision::BFloat16}, {"fp16", Precision::Float16}},
                        "what the model computes in");
}

void add_model_source(CLI::App& app, train::ModelSource& source) {
  auto* const model =
      app.add_option("--model", source.model, "Hugging Face folder: config.json, safetensors, a tokenizer for texts");
  app.add_option("--checkpoint", source.checkpoint, "checkpoint of a training run, or a folder of them: the latest")
      ->excludes(model);
  app.add_option("--tensor", source.tensor, "ranks that split each layer")
      ->check(number_where([](double value) { return value >= 1; }, "a whole number from 1 on"))
      ->capture_default_str();
  add_param_dtype(app, source.param_dtype);
}

void require_model_source(const std::string& command, const train::ModelSource& source) {
  if (source.weights().empty()) throw InputError(command + ": one of --model and --checkpoint is needed");
}

void add_special_tokens(CLI::App& app, tokenizer::SpecialTokensAre& special) {
  using tokenizer::SpecialTokensAre;
  const std::string by_default = special == SpecialTokensAre::Parsed ? "parse" : "text";
  add_choice<SpecialTokensAre>(app, "--special-tokens", special,
                               {{"text", SpecialTokensAre::Text}, {"parse", SpecialTokensAre::Parsed}},
                               "what special tokens are in a text: the characters they are made of, or their ids")
      ->default_str(by_default);
}

CLI::Validator number_where(std::function<bool(double)> fits, const std::string& wanted) {
  const auto check = [fits = std::move(fits), wanted](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
    return is_number && fits(value) ? "" : fmt::format("'{}' is not {}", text, wanted);
  };
  return CLI::Validator(check, "");
}

CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, std::pair<int, int> least_and_most,
                       const std::string& help) {
  const auto [least, most] = least_and_most;
  const auto fits = [lowest = least, highest = most](double given) {
    return given >= lowest && given <= highest && given == std::floor(given);
  };
  return app.add_option(name, value, help)
      ->check(number_where(fits, fmt::format("a whole number from {} to {}", least, most)))
      ->type_name("N");
}

std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  refuse_unknown_subcommand(app, arguments);
  const Arguments spelt = spelt_flags(app, arguments);
  try {
    app.parse(Arguments(spelt.rbegin(), spelt.rend()));  // CLI11 takes a vector from its end
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    throw InputError(fmt::format("{}; {} --help tells more", error.what(), app.get_name()));
  }
  return std::nullopt;
}

}  // namespace trainyard::cli
