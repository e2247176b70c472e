#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/curl.h"
#include "kube/alive.h"
#include "kube/curl_transfer.h"
#include "kube/event_loop.h"

namespace trainyard::kube {

/// A set of connections and the transfers on them, driven by the loop. Callbacks run on its thread, never inside of
/// start() or cancel(). Transfers left when it ends are not heard of again.
class CurlMulti {
 public:
  explicit CurlMulti(EventLoop& loop);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  void start(std::unique_ptr<CurlTransfer> transfer);
  /// True where it was there; it is not heard of again.
  bool cancel(uint64_t id);
  /// Ends every transfer with Trouble::Broken and `why`.
  void abandon(const std::string& why);

  [[nodiscard]] bool is_idle() const { return transfers_.empty(); }
  /// When any transfer last had bytes of the server.
  [[nodiscard]] EventLoop::Clock::time_point last_heard() const { return last_heard_; }

  /// Called after the transfer's own `done`, with what it came to.
  std::function<void(Trouble, EventLoop::Clock::time_point started)> on_finished;

 private:
  void act(curl_socket_t socket, int bits);
  void deliver();
  void finish_completed();
  void finish(uint64_t id, CURLcode code);
  void watch_for_stall(uint64_t id, EventLoop::Clock::duration wait);
  static int socket_callback(CURL* easy, curl_socket_t socket, int what, void* self, void* assigned);
  static int timer_callback(CURLM* multi, long milliseconds, void* self);

  EventLoop& loop_;
  std::map<uint64_t, std::unique_ptr<CurlTransfer>> transfers_;
  std::vector<uint64_t> with_data_;
  std::set<curl_socket_t> sockets_;
  EventLoop::TimerId timer_ = EventLoop::TimerId::None;
  EventLoop::Clock::time_point last_heard_ = EventLoop::now();
  Alive alive_;
  std::unique_ptr<CURLM, CurlDestroyer<curl_multi_cleanup>> multi_;  ///< last: ends before what its callbacks touch
};

}  // namespace trainyard::kube
