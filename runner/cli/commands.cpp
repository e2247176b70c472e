#include "cli/command.h"

namespace trainyard::cli {

// One a subcommand, each in the file of its name.
int run_checkpoint(const Arguments& arguments);
int run_comm_bench(const Arguments& arguments, const Launched* launched);
int run_config(const Arguments& arguments);
int run_download(const Arguments& arguments);
int run_evaluate(const Arguments& arguments, const Launched* launched);
int run_generate(const Arguments& arguments, const Launched* launched);
int run_launch(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments, const Launched* launched);

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"train", "train a model, alone or as a rank of many", nullptr, run_train,
       "a smaller training.batch_size or training.sequence_length, activation_checkpointing.mode full, or more ranks"},
      {"launch", "start the ranks of this machine, as torchrun does", run_launch},
      {"plan", "memory, traffic and time of a training run before anything starts", run_plan},
      {"download", "fetch a model or a data set from the Hugging Face hub", run_download},
      {"evaluate", "loss and perplexity of a model on a file of tokens", nullptr, run_evaluate,
       "--param-dtype bf16, shorter rows of --tokens, or more ranks"},
      {"generate", "continue a text with a trained model", nullptr, run_generate,
       "--param-dtype bf16, fewer --max-new-tokens, or more ranks"},
      {"checkpoint", "inspect, verify and export checkpoints", run_checkpoint},
      {"comm-bench", "how fast the ranks exchange tensors: nccl-tests' table", nullptr, run_comm_bench},
      {"config", "check, show and document a configuration", run_config},
      {"tokenizer", "encode, decode, and train a small tokenizer", run_tokenizer},
  };
  return kCommands;
}

}  // namespace trainyard::cli
