#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "rendezvous/store.h"

namespace trainyard::checkpoint {

/// Rounds in which every rank says something and every rank hears what rank 0 made of it. No tensor goes this way: a
/// round carries names, sizes and verdicts through the rendezvous store.
/// Every rank makes the same objects with the same name and the same rounds in the same order. One thread each.
class Agreement {
 public:
  using Said = std::vector<std::optional<nlohmann::json>>;  ///< by rank; none: it did not come within the time-out
  using Decide = std::function<nlohmann::json(const Said&)>;

  /// `store` must outlive this. Collective only through its name: nothing is waited for.
  Agreement(rendezvous::Store& store, std::string name, int rank, int world, std::chrono::milliseconds timeout);
  /// A world of one: needs no store.
  Agreement() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world() const { return world_; }

  /// Collective. Rank 0 waits for all up to the time-out and calls `decide`, whose answer every rank gets; where it
  /// throws, the answer is {"error": text}. `about` says in errors what the round was for.
  /// Throws PeerError where the store or a rank is lost or rank 0 does not answer.
  nlohmann::json round(const std::string& about, const nlohmann::json& say, const Decide& decide);

  /// The same, where it cannot go on without what each rank says: where one does not come within the time-out all
  /// others throw PeerError naming it, and `decide` is not asked.
  nlohmann::json round_of_all(const std::string& about, const nlohmann::json& say, const Decide& decide);

  /// Any thread may call it: whoever waits here, now or later, gets PeerError within a second. It is for when a rank is
  /// known to be lost.
  void give_up() { given_up_.request_stop(); }
  [[nodiscard]] bool is_given_up() const { return given_up_.stop_requested(); }

  /// What `ranks` said in the latest round; valid until the next. They must have spoken.
  [[nodiscard]] std::vector<nlohmann::json> said_by(std::span<const int> ranks);

  /// An answer for decide: the first error that someone reported under "error", or the ranks that did not come.
  [[nodiscard]] static std::optional<std::string> first_error(const Said& said);

 private:
  [[nodiscard]] std::string key(int64_t round, const std::string& who) const;
  [[nodiscard]] nlohmann::json hear(const std::string& about);
  [[nodiscard]] Said gather();
  [[nodiscard]] rendezvous::Waited wait_for(std::span<const std::string> keys, std::chrono::milliseconds timeout) const;
  void forget(int64_t round);

  rendezvous::Store* store_ = nullptr;
  std::string prefix_;
  int rank_ = 0, world_ = 1;
  std::chrono::milliseconds timeout_{0};
  int64_t round_ = 0;
  nlohmann::json own_;
  std::stop_source given_up_;
};

}  // namespace trainyard::checkpoint
