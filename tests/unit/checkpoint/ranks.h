#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/reader.h"
#include "checkpoint/saver.h"
#include "rendezvous/memory_store.h"

// Ranks as threads with a store in memory. They return what they saw; the main thread checks.
namespace trainyard::checkpoint {

using std::chrono::milliseconds;

/// Runs `body(rank)` on `world` threads and gives their results by rank. The first exception is thrown here.
template <typename Body>
auto run_ranks(int world, const Body& body) {
  using Seen = decltype(body(0));
  std::vector<std::optional<Seen>> seen(static_cast<size_t>(world));  // a vector of bool has no element a thread
  std::vector<std::exception_ptr> errors(static_cast<size_t>(world));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] {
        try {
          seen[static_cast<size_t>(rank)] = body(rank);
        } catch (...) {
          errors[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  std::vector<Seen> all;
  for (std::optional<Seen>& each : seen) all.push_back(std::move(*each));
  return all;
}

inline float element(const std::string& name, int64_t index, int64_t step) {
  return static_cast<float>(static_cast<double>(std::hash<std::string>{}(name) % 97) +
                            static_cast<double>(index) * 0.25 + static_cast<double>(step) * 1000);
}

/// This rank's rows as torch.chunk deals them: ceil(rows / world), the last ranks short or empty.
inline Shard shard_of(const std::string& name, const Shape& shape, int rank, int world, int64_t step) {
  const int64_t chunk = (shape[0] + world - 1) / world;
  const int64_t begin = std::min(shape[0], rank * chunk), end = std::min(shape[0], begin + chunk);
  Shape local = shape;
  local[0] = end - begin;
  Shard shard{name, shape, begin, Tensor::empty(local, DType::Float32)};
  const int64_t row = shape[0] == 0 ? 0 : count_of(shape) / shape[0];
  for (int64_t i = 0; i < shard.local.count(); ++i) shard.local.data<float>()[i] = element(name, begin * row + i, step);
  return shard;
}

struct Layer {
  const char* name;
  Shape shape;
};
inline const std::vector<Layer>& layers() {
  static const std::vector<Layer> kLayers{{"model.embed_tokens.weight", {7, 4}},
                                          {"model.norm.weight", {3}},
                                          {"one.weight", {1, 5}},
                                          {"empty.weight", {0, 2}}};
  return kLayers;
}

/// A model of odd sizes: rows that do not divide, one row, none.
inline Snapshot snapshot_of(int64_t step, int rank, int world) {
  Snapshot snapshot{.step = step,
                    .model = {},
                    .optimizer = {},
                    .state = {{"tokens", step * 100}, {"seed", 7}},
                    .rank_state = {{"random", rank + 10}}};
  for (const Layer& layer : layers()) {
    snapshot.model.push_back(shard_of(layer.name, layer.shape, rank, world, step));
    snapshot.optimizer.push_back(shard_of(std::string("adam.m.") + layer.name, layer.shape, rank, world, step));
  }
  return snapshot;
}

inline SaverOptions options_of(const std::filesystem::path& folder, int rank, int world) {
  SaverOptions options;
  options.folder = folder;
  options.timeout = std::chrono::seconds(20);
  options.rank = rank;
  options.world = world;
  options.sharing_patience = milliseconds(20);
  return options;
}

/// A world that saves `steps` and ends; every rank's results.
inline std::vector<std::vector<SaveResult>> save_steps(const std::filesystem::path& folder, int world,
                                                       const std::vector<int64_t>& steps, int64_t keep = 0) {
  rendezvous::MemoryStore store;
  return run_ranks(world, [&](int rank) {
    SaverOptions options = options_of(folder, rank, world);
    options.keep = keep;
    Saver saver(options, store);
    std::vector<SaveResult> results;
    for (const int64_t step : steps) results.push_back(saver.save(snapshot_of(step, rank, world)));
    return results;
  });
}

/// How many elements of what `checkpoint` gives for rank `rank` of `world` are not as they were saved.
inline int64_t wrong_elements(const Checkpoint& checkpoint, int rank, int world) {
  int64_t wrong = 0;
  const auto compare = [&](const std::vector<Shard>& expected) {
    for (const Shard& each : expected) {
      Shard read = each;
      read.local = Tensor::zeros(each.local.shape(), DType::Float32);
      checkpoint.read_into(read);
      for (int64_t i = 0; i < each.local.count(); ++i)
        wrong += read.local.data<float>()[i] != each.local.data<float>()[i];
    }
  };
  const Snapshot expected = snapshot_of(checkpoint.step(), rank, world);
  compare(expected.model);
  compare(expected.optimizer);
  return wrong;
}

/// The names in `folder` that are not of a finished checkpoint and not the fence's.
inline std::vector<std::string> leftovers_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (is_temporary(entry.path().filename().string())) names.push_back(entry.path().filename().string());
  return names;
}

/// The step that a world of one would resume from; -1: none.
inline int64_t latest_step(const std::filesystem::path& folder) {
  Agreement alone;
  const auto found = find_latest(folder, alone);
  return found ? found->step() : -1;
}

}  // namespace trainyard::checkpoint
