#include "cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "assemble/device.h"
#include "assemble/threads.h"
#include "base/error.h"
#include "cli/hub_names.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "ops/threads.h"
#include "run/evaluate.h"

namespace trainyard::cli {
int run_evaluate(const Arguments& arguments, const Launched* launched) {
  CLI::App app("Loss and perplexity of a model over the rows of a file.", "trainyard evaluate");
  train::Evaluation evaluation;
  std::filesystem::path dump;
  add_model_source(app, evaluation.source);
  app.add_option("--tokens", evaluation.tokens,
                 "safetensors file with input_ids [rows, tokens], labels and position_ids if any")
      ->required();
  app.add_option("--dump", dump, "safetensors file to write: logits [rows, tokens, vocab]");
  app.add_flag("--gradients", evaluation.gradients, "grad.<name> of every parameter in the dump, too")->needs("--dump");
  config::DeviceChoice device = config::DeviceChoice::Auto;
  add_device(app, device);
  if (const auto code = parse(app, arguments)) return *code;
  require_model_source("evaluate", evaluation.source);
  refuse_name("evaluate: --model", evaluation.source.model.string());
  if (!dump.empty()) evaluation.dump = dump;

  const SessionSettings session{
      .device = train::device_kind_of(device), .config_text = "evaluate", .launched = launched};
  return run_in_world(with_name("evaluate", arguments), session, [&](const train::World& world) {
    ops::set_threads(train::threads_of({}, world.local_world));
    const train::Evaluated result = train::evaluate(evaluation, world);
    if (!world.is_main()) return;
    const std::string perplexity = result.perplexity ? fmt::format("perplexity: {:.9g} ", *result.perplexity) : "";
    fmt::print("loss: {:.9g} {}tokens: {}\n", result.loss, perplexity, result.tokens);
  });
}

}  // namespace trainyard::cli
