#include "config/check.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "metrics/line.h"

namespace trainyard::config {
namespace {

// What the schema knows and this build does not do yet. A line leaves with the change that makes its value work.
struct NotOffered {
  const char* key;
  const char* value;
  const char* instead;
};
constexpr NotOffered kNotOffered[] = {
    {"activation_checkpointing.mode", "selective", "use full"},
    {"activation_checkpointing.mode", "every_n", "use full"},
    {"comm.backend", "nccl", "use gloo or mpi"},
    {"device.kind", "cuda", "use cpu"},
};

std::string is(const Loaded& loaded, const std::string& key) {
  return fmt::format("{} is {}", loaded.subject(key), shown(format_value(find_key(key)->get(loaded.config))));
}

void check_offered(const Loaded& loaded) {
  for (const NotOffered& each : kNotOffered)
    if (format_value(find_key(each.key)->get(loaded.config)) == each.value)
      throw InputError(fmt::format("{}, which this build does not offer yet; {}", is(loaded, each.key), each.instead));
}

std::vector<std::string> given(const Loaded& loaded, std::initializer_list<const char*> text_keys) {
  std::vector<std::string> found;
  for (const char* const key : text_keys)
    if (!std::get<std::string>(find_key(key)->get(loaded.config)).empty()) found.emplace_back(key);
  return found;
}

/// Exactly one of `text_keys`: two are an error that shows both places.
void check_one_of(const Loaded& loaded, std::initializer_list<const char*> text_keys, std::string_view if_none) {
  const auto found = given(loaded, text_keys);
  if (found.empty()) throw InputError(std::string(if_none));
  if (found.size() < 2) return;
  throw InputError(fmt::format("{} and {} ({}) are both given; keep one", loaded.subject(found[1]), found[0],
                               loaded.origin(found[0])));
}

void check_data(const Loaded& loaded) {
  check_one_of(loaded, {"data.path", "data.tokens"},
               "no data is given; set data.path (a .txt or .jsonl file, a folder, or embedded) or data.tokens");
  if (!loaded.config.data.path.empty() && loaded.config.data.tokenizer.empty())
    throw InputError(
        fmt::format("{}, but no data.tokenizer is given; name a tokenizer's file or folder, or bytes for byte-level",
                    is(loaded, "data.path")));
}

void check_parallel(const Loaded& loaded) {
  const Parallel& parallel = loaded.config.parallel;
  for (const char* const key : {"parallel.shard", "parallel.replicate"})
    if (std::get<int64_t>(find_key(key)->get(loaded.config)) == 0)
      throw InputError(is(loaded, key) + "; use 1 or more, or -1 for the rest");
  if (parallel.strategy == Strategy::NoShard && parallel.shard > 1)
    throw InputError(
        fmt::format("{}, but parallel.strategy is no_shard ({}); leave parallel.shard out, or use full_shard",
                    is(loaded, "parallel.shard"), loaded.origin("parallel.strategy")));
}

void check_checkpoint(const Loaded& loaded) {
  const Checkpoint& checkpoint = loaded.config.checkpoint;
  if (checkpoint.enabled && checkpoint.interval > 0 && checkpoint.keep < 2)
    throw InputError(fmt::format(
        "{}, but checkpoint.interval is {} ({}); use 2 or more, so that a damaged checkpoint has one before it",
        is(loaded, "checkpoint.keep"), checkpoint.interval, loaded.origin("checkpoint.interval")));
}

void check_line(const Loaded& loaded) {
  try {
    metrics::LineFormat{loaded.config.metrics.line};
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", loaded.subject("metrics.line"), error.what()));
  }
}

}  // namespace

void check(const Loaded& loaded) {
  check_one_of(
      loaded, {"model.preset", "model.config", "model.init_from"},
      "no model is given; set one of model.preset, model.config and model.init_from (in a file: --config FILE)");
  check_data(loaded);
  check_parallel(loaded);
  check_checkpoint(loaded);
  check_line(loaded);
  check_offered(loaded);
}

}  // namespace trainyard::config
