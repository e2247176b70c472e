#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "cli/session.h"
#include "dialects/launcher.h"
#include "dialects/load.h"
#include "launch/agent.h"
#include "launch/options.h"

namespace trainyard::cli {
namespace {

/// The subcommand of this name that runs on ranks. Throws InputError, with what is meant, where there is none.
const Command& command_of_ranks(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    known.emplace_back(command.name);
    if (name != command.name) continue;
    if (command.run_on_ranks) return command;
    throw InputError(fmt::format("launch: `{0}` runs once and not on every rank: write trainyard {0}{1}", name,
                                 name == "plan" ? " --config FILE, which takes the ranks from a file of `accelerate "
                                                  "config`, or --world N"
                                                : ""));
  }
  if (name.ends_with(".py"))
    throw InputError(
        fmt::format("launch: {} is a Python script: write -- python {}; the trainer here is `train`, which "
                    "takes the flags of many scripts (docs/coming-from-pytorch.md)",
                    name, name));
  const auto near = nearest(name, known);
  throw InputError(fmt::format("launch: unknown command '{}'{}; for another program write -- {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", name));
}

/// What of the launcher's own flags says what is in a file, or is for training.
struct Taken {
  std::string file;         ///< of `accelerate config`; "": none
  bool is_default = false;  ///< nobody named it
  Arguments training;       ///< such as --fsdp and --fsdp_config, as flags of train
};

/// Flags with a value that are for training: of the Trainer, and of `accelerate launch` for DeepSpeed.
constexpr std::array<std::string_view, 18> kForTraining{"--fsdp",
                                                        "--fsdp-config",
                                                        "--deepspeed",
                                                        "--deepspeed-config",
                                                        "--deepspeed-config-file",
                                                        "--zero-stage",
                                                        "--offload-optimizer-device",
                                                        "--offload-param-device",
                                                        "--offload-optimizer-nvme-path",
                                                        "--offload-param-nvme-path",
                                                        "--gradient-clipping",
                                                        "--gradient-accumulation-steps",
                                                        "--zero3-init-flag",
                                                        "--zero3-save-16bit-model",
                                                        "--deepspeed-hostfile",
                                                        "--deepspeed-multinode-launcher",
                                                        "--deepspeed-exclusion-filter",
                                                        "--deepspeed-inclusion-filter"};

/// The command of the launcher is the trainer here; where its arguments begin, else none.
std::optional<size_t> training_begin(const Arguments& arguments) {
  const size_t command = launch::command_begin(arguments);
  if (command >= arguments.size()) return std::nullopt;
  const bool is_training = arguments[command] == "train" || arguments[command] == "torchtitan.train";
  return is_training ? std::optional(command + 1) : std::nullopt;
}

/// Takes those flags out of `arguments`.
class Taker {
 public:
  Taker(Arguments& arguments, const rendezvous::Environment& environment)
      : arguments_(arguments), default_(dialects::default_accelerate_path(environment)) {}

  Taken take() {
    for (size_t at = 0; at < launch::command_begin(arguments_);)
      if (!takes(at)) at += has_value(at) ? 2 : 1;
    if (taken_.file.empty() && !is_left_out_ && !names_another() && has_default())
      taken_.file = default_, taken_.is_default = true;
    return std::move(taken_);
  }

 private:
  /// Whether the flag at `at` has its value behind it.
  [[nodiscard]] bool has_value(size_t at) const {
    return launch::command_begin({arguments_[at], "value", "command"}) == 2;
  }

  /// Whether it was one of them, and so is gone.
  bool takes(size_t at) {
    const std::string name = replaced(arguments_[at].substr(0, arguments_[at].find('=')), "_", "-");
    if (name == "--accelerate" || name == "--no-accelerate") {
      arguments_.erase(arguments_.begin() + static_cast<ptrdiff_t>(at));
      if (name == "--accelerate") take_default();
      is_left_out_ = name == "--no-accelerate";
    } else if (name == "--config-file") {
      taken_.file = take_value(at);
    } else if (name == "--use-deepspeed") {
      arguments_.erase(arguments_.begin() + static_cast<ptrdiff_t>(at));
      taken_.training.push_back(name);
    } else if (std::ranges::find(kForTraining, name) != kForTraining.end()) {
      const std::string value = take_value(at);
      taken_.training.insert(taken_.training.end(), {name, value});
    } else {
      return false;
    }
    return true;
  }

  /// Whether the file is there. A folder that this user may not look into holds nothing for them.
  [[nodiscard]] bool has_default() const {
    std::error_code ignored;
    return std::filesystem::exists(default_, ignored);
  }

  void take_default() {
    if (!has_default())
      throw InputError(
          fmt::format("launch: --accelerate: there is no {}; `trainyard config` asks and writes it", default_));
    taken_.file = default_;
  }

  std::string take_value(size_t at) {
    const std::string flag = arguments_[at];
    const size_t equals = flag.find('=');
    const auto begin = arguments_.begin() + static_cast<ptrdiff_t>(at);
    if (equals == std::string::npos && at + 1 == launch::command_begin(arguments_))
      throw InputError(fmt::format("launch: {} needs a value after it", flag));
    const std::string value = equals == std::string::npos ? *(begin + 1) : flag.substr(equals + 1);
    arguments_.erase(begin, begin + (equals == std::string::npos ? 2 : 1));
    return value;
  }

  /// Whether training is told of a file by itself: ours, Accelerate's, torchtitan's or DeepSpeed's.
  [[nodiscard]] bool names_another() const {
    const auto begin = training_begin(arguments_);
    if (!begin) return false;
    if (dialects::names_file(taken_.training)) return true;
    return dialects::names_file({arguments_.begin() + static_cast<ptrdiff_t>(*begin), arguments_.end()});
  }

  Arguments& arguments_;
  const std::string default_;
  bool is_left_out_ = false;
  Taken taken_;
};

/// What the file says to the launcher goes before the flags, which win; what it says to training is read there.
void follow(const std::string& file, Arguments& arguments, rendezvous::Environment& environment) {
  const dialects::LauncherAdvice advice = dialects::advice_of(file, environment);
  for (const std::string& note : advice.notes) spdlog::warn(note);
  environment.insert(advice.environment.begin(), advice.environment.end());
  arguments.insert(arguments.begin(), advice.flags.begin(), advice.flags.end());
  if (const auto begin = training_begin(arguments))
    arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(*begin), {"--config", file});
}

/// The same of a file that nobody named: whoever does not know of it is told.
void follow_default(const std::string& file, Arguments& arguments, rendezvous::Environment& environment) {
  try {
    follow(file, arguments, environment);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}; this file is taken as no --config_file is given, --no-accelerate leaves it out",
                                 error.what()));
  }
  spdlog::info("{} is taken, as no --config_file is given; --no-accelerate leaves it out", file);
}

void pass_to_training(const Arguments& flags, Arguments& arguments) {
  if (flags.empty()) return;
  const auto begin = training_begin(arguments);
  if (!begin) throw InputError(fmt::format("launch: {} is for train, which is not what is started", flags.front()));
  arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(*begin), flags.begin(), flags.end());
}

}  // namespace

int run_launch(const Arguments& given) {
  Arguments arguments = given;
  rendezvous::Environment environment = rendezvous::process_environment();
  const Taken taken = Taker(arguments, environment).take();
  const std::string& file = taken.file;
  const Arguments flags(arguments.begin(),
                        arguments.begin() + static_cast<ptrdiff_t>(launch::command_begin(arguments)));
  pass_to_training(taken.training, arguments);
  if (!file.empty()) (taken.is_default ? follow_default : follow)(file, arguments, environment);
  std::optional<launch::LaunchOptions> options;
  try {
    options = launch::parse_launch(arguments, environment);
  } catch (const InputError& error) {
    if (file.empty()) throw;
    throw InputError(dialects::in_words_of(file, error.what(), flags, environment));
  }
  if (!options) return 0;  // --help
  if (!options->is_trainyard) return launch::launch_ranks(*options, environment);
  const Launched launched{*options, environment};
  return command_of_ranks(options->command.front())
      .run_on_ranks({options->command.begin() + 1, options->command.end()}, &launched);
}

}  // namespace trainyard::cli
