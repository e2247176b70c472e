#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "config/config.h"
#include "run/loaded_model.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::cli {

/// Throws InputError, with the nearest, where the first argument is a word but no subcommand of `app`: CLI11 would only
/// say that one is missing.
void refuse_unknown_subcommand(const CLI::App& app, const Arguments& arguments);

/// Hands the number of the word that is given to `set`.
CLI::Option* add_word(CLI::App& app, const std::string& name, const std::vector<std::string>& words,
                      const std::string& help, const std::function<void(size_t index)>& set);

/// An option that takes one of `words`, in any case; --help shows them: "fp32|bf16|fp16".
CLI::Option* add_word(CLI::App& app, const std::string& name, std::string& value,
                      const std::vector<std::string>& words, const std::string& help);

/// The same, with what each word stands for.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& value,
                        const std::vector<std::pair<std::string, T>>& words, const std::string& help) {
  std::vector<std::string> known;
  for (const auto& word : words) known.push_back(word.first);
  return add_word(app, name, known, help, [&value, words](size_t index) { value = words[index].second; });
}

/// --device, the short form of the configuration's device.kind.
void add_device(CLI::App& app, config::DeviceChoice& device);

/// --param-dtype, the short form of parallel.param_dtype.
void add_param_dtype(CLI::App& app, config::Precision& precision);

/// --model, --checkpoint, --tensor and --param-dtype.
void add_model_source(CLI::App& app, train::ModelSource& source);

/// Throws InputError where neither a model nor a checkpoint was given to `command`.
void require_model_source(const std::string& command, const train::ModelSource& source);

/// --special-tokens, as the configuration's data.special_tokens.
void add_special_tokens(CLI::App& app, tokenizer::SpecialTokensAre& special);

/// Admits finite numbers for which `fits`; `wanted` completes "VALUE is not …" for all others.
CLI::Validator number_where(std::function<bool(double)> fits, const std::string& wanted);

/// An option that takes a whole number from `least` to `most`; --help shows "N".
CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, std::pair<int, int> least_and_most,
                       const std::string& help);

/// Reads the arguments into `app`'s options. Returns an exit code where --help was asked for and printed, so that there
/// is nothing more to do. Throws InputError for arguments that do not fit.
std::optional<int> parse(CLI::App& app, const Arguments& arguments);

}  // namespace trainyard::cli
