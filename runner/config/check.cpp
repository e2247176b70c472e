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
    {"parallel.strategy", "hybrid_shard", "use full_shard"},
    {"parallel.strategy", "hybrid_shard_zero2", "use shard_grad_op"},
    {"activation_checkpointing.mode", "selective", "use full"},
    {"activation_checkpointing.mode", "every_n", "use full"},
    {"checkpoint.async", "true", "leave it out"},
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
  // The shards of a smaller group would need copies of the model to be kept equal: that is hybrid sharding.
  if (loaded.config.parallel.replicate != 1)
    throw InputError(fmt::format("{}; this build does not offer replicas of a sharded model yet; use 1",
                                 is(loaded, "parallel.replicate")));
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
  if (parallel.shard == 0) throw InputError(is(loaded, "parallel.shard") + "; use 1 or more, or -1 for all");
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

std::string divisors(int world) {
  std::string list;
  for (int divisor = 1; divisor <= world; ++divisor)
    if (world % divisor == 0) list += fmt::format("{}, ", divisor);
  return list;
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

void check_world(const Loaded& loaded, int world) {
  const Parallel& parallel = loaded.config.parallel;
  if (parallel.shard == -1 || parallel.strategy == Strategy::NoShard) return;
  if (world % parallel.shard != 0)
    throw InputError(fmt::format("{}, but {} process{} started; use {}or -1 for all", is(loaded, "parallel.shard"),
                                 world, world == 1 ? " was" : "es were", divisors(world)));
  if (parallel.shard * parallel.replicate != world)
    throw InputError(
        fmt::format("{}, but {} processes were started, which makes {} copies of the model; this build offers one: use "
                    "{}, or -1 for all",
                    is(loaded, "parallel.shard"), world, world / parallel.shard, world));
}

}  // namespace trainyard::config
