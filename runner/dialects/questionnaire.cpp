#include "dialects/questionnaire.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <istream>
#include <ostream>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/value.h"
#include "dialects/dialect.h"

namespace trainyard::dialects {
namespace {

using Words = std::vector<std::string>;

class Interview {
 public:
  Interview(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  /// The number of an answer, its word, or nothing for the first.
  std::string choose(const std::string& question, const Words& answers) {
    out_ << question << '\n';
    for (size_t i = 0; i < answers.size(); ++i) out_ << fmt::format("  [{}] {}\n", i, answers[i]);
    return until_it_fits(answers.front(), [&](const std::string& answer) -> std::string {
      const auto number = parse_int(answer);
      if (number && *number >= 0 && *number < static_cast<int64_t>(answers.size()))
        return answers[static_cast<size_t>(*number)];
      return std::ranges::find(answers, answer) == answers.end() ? "" : answer;
    });
  }

  std::string count(const std::string& question, int64_t least, int64_t otherwise) {
    out_ << question << '\n';
    return until_it_fits(fmt::format("{}", otherwise), [&](const std::string& answer) {
      const auto number = parse_int(answer);
      return number && *number >= least ? answer : "";
    });
  }

  bool confirm(const std::string& question, bool otherwise) {
    out_ << question << (otherwise ? " [YES/no]" : " [yes/NO]") << '\n';
    const std::string answer =
        until_it_fits(otherwise ? "yes" : "no", [](const std::string& word) { return truth_of(word) ? word : ""; });
    return *truth_of(answer);
  }

  std::string text(const std::string& question) {
    out_ << question << '\n';
    return until_it_fits("", [](const std::string& answer) {
      const bool is_plain = answer.find_first_of("\"\\'#:{}[]") == std::string::npos;
      return is_plain && !config::first_unreadable(answer) ? answer : "";
    });
  }

 private:
  /// `fit` gives what an answer means, "" where it means nothing.
  template <typename Fit>
  std::string until_it_fits(const std::string& otherwise, Fit fit) {
    for (;;) {
      out_ << "> " << std::flush;
      std::string line;
      if (!std::getline(in_, line)) throw InputError("config: the answers ended before the questions did");
      const std::string answer(trim(line));
      if (answer.empty() && !otherwise.empty()) return otherwise;
      if (const std::string fitting = answer.empty() ? "" : fit(answer); !fitting.empty()) return fitting;
      out_ << "That is no answer to it.\n";
    }
  }

  std::istream& in_;
  std::ostream& out_;
};

const char* word(bool truth) {
  return truth ? "true" : "false";
}

struct Machines {
  std::string count = "1", rank = "0", address, port;
};

Machines ask_machines(Interview& ask) {
  Machines machines;
  machines.count = ask.count("How many different machines will you use? [1]", 1, 1);
  if (machines.count == "1") return machines;
  machines.rank = ask.count("What is the rank of this machine? [0]", 0, 0);
  machines.address = ask.text("What is the address of the machine that hosts the main process?");
  machines.port = ask.count("What port of it will the machines meet at? [29500]", 1, 29500);
  return machines;
}

std::string wrapping(Interview& ask) {
  const std::string policy =
      ask.choose("What should be your auto wrap policy?", {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"});
  std::string yaml = fmt::format("  fsdp_auto_wrap_policy: {}\n", policy);
  if (policy == "SIZE_BASED_WRAP")
    yaml +=
        fmt::format("  fsdp_min_num_params: {}\n",
                    ask.count("What should be the least number of parameters of a unit? [100000000]", 1, 100'000'000));
  if (policy == "TRANSFORMER_BASED_WRAP" && !ask.confirm("Do you want to wrap the model's own blocks?", true))
    yaml += fmt::format("  fsdp_transformer_layer_cls_to_wrap: {}\n",
                        ask.text("Which classes of blocks are to be wrapped? (LlamaDecoderLayer,T5Block,…)"));
  return yaml;
}

std::string sharding(Interview& ask, const std::string& version) {
  if (version == "2")
    return fmt::format("  fsdp_reshard_after_forward: {}\n",
                       word(ask.confirm("Do you want to enable resharding after forward?", true)));
  return fmt::format("  fsdp_sharding_strategy: {}\n",
                     ask.choose("What should be your sharding strategy?",
                                {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"}));
}

/// What only FSDP1 has.
std::string prefetching(Interview& ask) {
  std::string yaml = fmt::format(
      "  fsdp_backward_prefetch: {}\n",
      ask.choose("What should be your backward prefetch policy?", {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}));
  return yaml + fmt::format("  fsdp_forward_prefetch: {}\n  fsdp_use_orig_params: true\n",
                            word(ask.confirm("Do you want to enable forward prefetch?", false)));
}

std::string loading(Interview& ask, const std::string& version) {
  const bool is_lean = ask.confirm("Do you want to enable CPU RAM efficient model loading?", true);
  std::string yaml = fmt::format("  fsdp_cpu_ram_efficient_loading: {}\n", word(is_lean));
  if (version == "1") {
    const bool sync =
        is_lean || ask.confirm("Shall each unit broadcast its parameters from rank 0 at the start?", true);
    yaml += fmt::format("  fsdp_sync_module_states: {}\n", word(sync));
  }
  return yaml;
}

std::string fsdp_part(Interview& ask) {
  const std::string version = ask.choose("What should be your FSDP version?", {"2", "1"});
  std::string yaml = fmt::format("fsdp_config:\n  fsdp_version: {}\n", version) + sharding(ask, version);
  yaml += fmt::format("  fsdp_offload_params: {}\n",
                      word(ask.confirm("Do you want to offload parameters and gradients to CPU?", false)));
  yaml += wrapping(ask);
  if (version == "1") yaml += prefetching(ask);
  yaml += fmt::format("  fsdp_state_dict_type: {}\n",
                      ask.choose("What should be your state dict type?", {"SHARDED_STATE_DICT", "FULL_STATE_DICT"}));
  yaml += loading(ask, version);
  return yaml + fmt::format("  fsdp_activation_checkpointing: {}\n",
                            word(ask.confirm("Do you want to enable activation checkpointing?", false)));
}

}  // namespace

std::string ask(std::istream& in, std::ostream& out) {
  Interview ask(in, out);
  const bool use_cpu = ask.choose("Which type of machine are you using?", {"multi-CPU", "multi-GPU"}) == "multi-CPU";
  const Machines machines = ask_machines(ask);
  const bool is_fsdp = ask.confirm("Do you want to use FullyShardedDataParallel?", true);
  const std::string fsdp = is_fsdp ? fsdp_part(ask) : "";
  const std::string processes = ask.count("How many processes should be used on all machines together? [1]", 1, 1);
  const std::string precision = ask.choose("Do you wish to use mixed precision?", {"no", "fp16", "bf16"});
  std::string yaml = fmt::format("compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: {}\n{}",
                                 is_fsdp ? "FSDP" : (use_cpu ? "MULTI_CPU" : "MULTI_GPU"), fsdp);
  yaml += fmt::format("machine_rank: {}\n", machines.rank);
  if (!machines.address.empty())
    yaml += fmt::format("main_process_ip: {}\nmain_process_port: {}\n", machines.address, machines.port);
  return yaml + fmt::format(
                    "main_training_function: main\nmixed_precision: '{}'\nnum_machines: {}\nnum_processes: {}\n"
                    "rdzv_backend: static\nsame_network: true\nuse_cpu: {}\n",
                    precision, machines.count, processes, word(use_cpu));
}

}  // namespace trainyard::dialects
