#pragma once

#include <functional>

#include "kube/client.h"
#include "kube/election.h"
#include "kube/resources.h"

namespace trainyard::kube {

/// Carries an Election out against the API server. One thread: the loop's; `is_leader` too.
class Elector {
 public:
  /// Called with true when this process begins to lead and with false when it no longer does.
  using OnChange = std::function<void(bool leads)>;
  /// Each failed request; whether to say it is the receiver's decision.
  using OnTrouble = std::function<void(const ApiError&)>;

  Elector(Client& client, ElectionSettings settings, OnChange on_change, OnTrouble on_trouble = {});
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  void start();
  /// Gives the lease back where this process has it, so that another need not wait, and takes no part any more.
  /// `done` is called within five seconds, whatever comes of it. No write may follow.
  void release(std::function<void()> done);

  /// Now: strict, also right after this process has slept.
  [[nodiscard]] bool is_leader() const { return election_.is_leader_at(EventLoop::now()); }
  [[nodiscard]] const Election& election() const { return election_; }

 private:
  void turn();
  void carry_out(const Election::Action& action);
  void observe();
  void write(const Election::Write& write);
  void tell();
  void set_deadline();

  Client& client_;
  Election election_;
  OnChange on_change_;
  OnTrouble on_trouble_;
  bool told_ = false;  ///< what on_change_ was last called with
  EventLoop::TimerId deadline_ = EventLoop::TimerId::None;
  Alive alive_;
};

}  // namespace trainyard::kube
