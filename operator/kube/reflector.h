#pragma once

#include <functional>
#include <string>

#include "kube/client.h"
#include "kube/list_watch.h"
#include "kube/resources.h"
#include "kube/store.h"

namespace trainyard::kube {

/// Which objects of a kind.
struct Selection {
  Resource resource;
  std::string ns{};  ///< "": all
  std::string label_selector{}, field_selector{};
};

/// Keeps a target at the server's state: a list, a watch, and again what breaks. Ends with its destructor.
class Reflector {
 public:
  static constexpr int kPageSize = 500;
  /// Each time that something fails, before the next attempt; whether to say it is the receiver's decision.
  using OnTrouble = std::function<void(const ApiError&)>;

  Reflector(Client& client, Selection selection, WatchTarget& target);
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start();
  /// Lists anew, whatever is under way.
  void restart();
  /// A list has been taken that was asked for after the last start() or restart(): the target is no older than that.
  [[nodiscard]] bool has_listed() const { return has_listed_; }
  void set_on_trouble(OnTrouble on_trouble) { on_trouble_ = std::move(on_trouble); }
  /// Called after each list that was taken, the first included.
  void set_on_listed(std::function<void()> on_listed) { on_listed_ = std::move(on_listed); }

 private:
  void carry_out(const ListWatchAction& action);
  void ask_page(const std::string& continue_token);
  void read_page(const std::string& body, bool is_first);
  void fail_page(const ApiError& error);
  void open_watch();
  void read_event(const WatchEvent& event);
  void end_watch(const std::optional<ApiError>& error);

  Client& client_;
  Selection selection_;
  WatchTarget& target_;
  ListWatch list_watch_;
  Watch watch_;
  EventLoop::Clock::time_point opened_{};
  bool had_events_ = false, has_listed_ = false;
  OnTrouble on_trouble_;
  std::function<void()> on_listed_;
  Alive alive_;
};

}  // namespace trainyard::kube
