#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/heartbeat.h"
#include "rendezvous/last_words.h"
#include "rendezvous/member.h"
#include "rendezvous/place.h"
#include "rendezvous/store.h"
#include "rendezvous/store_server.h"

namespace trainyard::rendezvous {

struct JoinSettings {
  std::chrono::milliseconds timeout = std::chrono::minutes(30);        ///< rendezvous.timeout: until all are there
  std::chrono::milliseconds refusal_grace = std::chrono::seconds(30);  ///< ClientSettings::refusal_grace
  std::chrono::milliseconds reply_timeout = std::chrono::seconds(60);  ///< ClientSettings::reply_timeout
  std::string token;                                                   ///< job_token()
  std::string config;                                                  ///< hash; all ranks must have the same
  std::string config_text;            ///< "training.steps = 100", a line a setting: those that differ are said
  Environment environment;            ///< for the interface rule and an inherited listener
  std::function<bool()> interrupted;  ///< SIGTERM while waiting ends it with TerminatedError
  Heartbeat::Settings heartbeat;
  /// For ranks that can reach each other already (MPI) and have no master: collective; gives rank 0's text to all.
  std::function<std::string(const std::string&)> share_from_rank_0;
};

/// A rank's membership of its world: the store, who the others are, and this rank's beat. On rank 0 also the server.
class Membership {
 public:
  Membership(Place place, std::unique_ptr<StoreServer> server, std::unique_ptr<Store> store,
             std::vector<Member> members, const Heartbeat::Settings& heartbeat);
  Membership(Membership&&) = default;
  ~Membership();  ///< does not wait for others: see leave()

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] int rank() const { return place_.rank; }
  [[nodiscard]] int world() const { return place_.world; }
  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }  ///< by rank
  [[nodiscard]] const Member& self() const { return members_[place_.rank]; }

  /// Who has gone or has not beaten for a while, by the master's count. Throws PeerError where the master is lost.
  [[nodiscard]] std::vector<SilentRank> silent_ranks() const { return silent_in(*store_); }
  /// "rank 3 (llama-worker-2) silent for 17 s, rank 5 (…) gone"; "" where nobody is. Never throws: it is for messages.
  [[nodiscard]] std::string describe_silent() const;

  /// The orderly end, called by every rank: rank 0 keeps the store open until all have left, or `patience` is over.
  /// Never throws: at the end of a job a lost peer changes nothing more.
  void leave(std::chrono::milliseconds patience);

  /// What this rank ends with of its own fault, which the others then look for: to be left before they can miss it.
  /// Neither throws: at such an end a lost master changes nothing more.
  void leave_last_words(const std::string& text, ExitCode code = ExitCode::Input) noexcept;
  [[nodiscard]] std::optional<LastWords> last_words() const noexcept;

  /// Before this rank ends with an error that others learn from the store too: with rank 0 the store would end, and who
  /// has not asked yet would call rank 0 lost. Rank 0 waits until they have hung up, or `patience` is over.
  void let_others_hear(std::chrono::milliseconds patience = kHearing) const;
  static constexpr std::chrono::seconds kHearing{2};  ///< who waits asks the store every second who is lost

 private:
  Place place_;
  std::unique_ptr<StoreServer> server_;  ///< rank 0's
  std::unique_ptr<Store> store_;
  std::vector<Member> members_;
  std::unique_ptr<Heartbeat> heartbeat_;  ///< ends before the store does
};

/// Meets all ranks of the world and checks that they fit together.
/// Throws InputError, on every rank alike, where two have one number (naming both hosts), where WORLD_SIZE or the
/// configurations differ (naming two that differ), where the port is in use; PeerError where the master or a rank did
/// not come in time, naming them; TerminatedError where interrupted.
Membership join(const Place& place, const JoinSettings& settings);

}  // namespace trainyard::rendezvous
