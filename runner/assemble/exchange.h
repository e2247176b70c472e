#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "assemble/world.h"
#include "base/error.h"
#include "comm/communicator.h"

namespace trainyard::train {

/// A few numbers of every rank, all-gathered: every rank gives its own and gets those of all, by rank. Collective.
class GatheredScalars {
 public:
  GatheredScalars(comm::Communicator& world, std::span<const double> own, const char* label)
      : GatheredScalars(world, Tensor::from<double>(own, {static_cast<int64_t>(own.size())}), label) {}
  /// `own` float64 [numbers]. Where it lies on a device nothing waits for that before the first question.
  GatheredScalars(comm::Communicator& world, const Tensor& own, const char* label);

  /// Float64 [ranks, numbers], where `own` lies: for what is computed there.
  [[nodiscard]] const Tensor& all() const { return all_; }

  [[nodiscard]] int ranks() const { return static_cast<int>(all_.size(0)); }
  [[nodiscard]] size_t count() const { return count_; }  ///< of each rank's numbers

  // The questions. They throw what the collective threw, and DeviceError.
  [[nodiscard]] double at(int rank, size_t index) const { return read()[static_cast<size_t>(rank) * count_ + index]; }
  /// The total is added up in rank order, so every rank gets the same bits.
  [[nodiscard]] double sum(size_t index) const;
  [[nodiscard]] double max(size_t index) const;
  [[nodiscard]] double min(size_t index) const;
  /// What every rank gave there, by rank.
  [[nodiscard]] std::vector<double> column(size_t index) const;

 private:
  [[nodiscard]] std::span<const double> read() const;

  size_t count_;
  comm::Work gathering_;
  Tensor all_, on_host_;
  mutable std::optional<Event> copied_;  ///< to the host; none: it is there
};

/// What act() throws that ends with ExitCode::Input, but for want of memory; "" where it does not.
std::string input_error_of(const std::function<void()>& act);

/// Every rank throws VerdictError in the words of the first that has any, which prints them; they are preceded by that
/// rank's name where others have none. Where none has any, none throws. Collective.
void throw_first(comm::Communicator& world, std::string own);

/// Gives rank 0's `bytes` to all. Collective.
void share_from_rank_0(comm::Communicator& world, std::string& bytes, const char* label);

/// Rank 0 does what only it can; where that throws InputError every rank throws it, in the same words, instead of
/// waiting for rank 0. Collective.
void on_rank_0(comm::Communicator& world, const std::function<void()>& act);

/// The same of what each rank does for itself: the first rank that fails speaks for all.
void on_every_rank(comm::Communicator& world, const std::function<void()>& act);

/// The same of what may take one rank far longer than another, as tokenising a corpus that others have tokenised: who
/// is done waits in the store for up to `patience`, and not in a collective for comm.timeout. Who fails waits for
/// seconds, and then ends all with its words. `about`: what is waited for, once a run. Throws PeerError naming the
/// ranks that did not come. A rank that is asked to stop ends all: act() asks, on this thread, what it is given, and
/// throws TerminatedError then, as this does on those that wait.
using AskedToStop = std::function<bool()>;
void on_every_rank(const World& world, const std::string& about, std::chrono::milliseconds patience,
                   const std::function<void(const AskedToStop& asked_to_stop)>& act);

/// What `make` returns on each.
template <typename Make>
auto made_on_every_rank(comm::Communicator& world, const Make& make) {
  std::optional<std::invoke_result_t<Make>> made;
  on_every_rank(world, [&] { made.emplace(make()); });
  return *std::move(made);
}
template <typename Make>
auto made_on_every_rank(const World& world, const std::string& about, std::chrono::milliseconds patience,
                        const Make& make) {
  std::optional<std::invoke_result_t<Make, const AskedToStop&>> made;
  on_every_rank(world, about, patience, [&](const AskedToStop& asked_to_stop) { made.emplace(make(asked_to_stop)); });
  return *std::move(made);
}

}  // namespace trainyard::train
