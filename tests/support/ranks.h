#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "comm/in_process.h"

namespace trainyard::test {

/// Runs `rank(r)` for r = 0 … world-1, each on a thread of its own, and returns what they return, by rank.
/// Rethrows the first error (by time) once all have ended: later ones are mostly its consequences.
template <typename Rank>
auto run_threads(int world, Rank&& rank) {
  using Result = std::invoke_result_t<Rank&, int>;
  using Kept = std::conditional_t<std::is_void_v<Result>, char, Result>;
  std::vector<std::optional<Kept>> results(static_cast<size_t>(world));
  std::exception_ptr first;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < world; ++r) {
      threads.emplace_back([&, r] {
        try {
          if constexpr (std::is_void_v<Result>) {
            rank(r);
          } else {
            results[static_cast<size_t>(r)].emplace(rank(r));
          }
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
  if constexpr (!std::is_void_v<Result>) {
    std::vector<Kept> all;
    for (auto& result : results) all.push_back(std::move(*result));
    return all;
  }
}

/// The same with a communicator for each rank. A rank that throws drops its communicator, so that the others fail too.
template <typename Rank>
auto run_ranks(std::vector<std::unique_ptr<comm::Communicator>> communicators, Rank&& rank) {
  return run_threads(static_cast<int>(communicators.size()), [&](int r) {
    const std::unique_ptr<comm::Communicator> mine = std::move(communicators[static_cast<size_t>(r)]);
    return rank(*mine);
  });
}

/// run_ranks(4, [](comm::Communicator& comm) { … return what the rank saw; }) on in-process communicators.
template <typename Rank>
auto run_ranks(int world, Rank&& rank) {
  return run_ranks(comm::make_in_process(world, std::chrono::seconds(60)), std::forward<Rank>(rank));
}

}  // namespace trainyard::test
