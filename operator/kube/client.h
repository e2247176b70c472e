#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kube/alive.h"
#include "kube/concurrency.h"
#include "kube/credentials.h"
#include "kube/event_loop.h"
#include "kube/kubeconfig.h"
#include "kube/result.h"
#include "kube/retry.h"
#include "kube/token_bucket.h"
#include "kube/transfers.h"
#include "kube/watch.h"

namespace trainyard::kube {

enum class Priority {
  Urgent,  ///< the lease: neither limits nor the queue hold it up, and it is tried once
  Small,   ///< writes and single objects
  Bulk,    ///< lists and events: after the others, and few at once while there are others
};

struct Request {
  Method method = Method::Get;
  std::string path;  ///< with its query: kube/resources.h
  std::string body;
  std::string content_type = "application/json";
  Priority priority = Priority::Small;
  std::chrono::milliseconds timeout{30'000};  ///< of one attempt
  bool needs_lease = true;                    ///< of writes: sent only while may_write() says so
};

[[nodiscard]] Request get(std::string path);
[[nodiscard]] Request create(std::string path, const Json& object);
[[nodiscard]] Request replace(std::string path, const Json& object);
/// RFC 7386. A "resourceVersion" in the patch's metadata guards it.
[[nodiscard]] Request merge_patch(std::string path, const Json& patch);
struct DeleteOptions {
  std::string uid{};               ///< guard; "" for none
  std::string resource_version{};  ///< guard; "" for none
  std::optional<int64_t> grace_seconds{};
  std::string propagation{};  ///< "Background", "Foreground", "Orphan"; "": the resource's default
};
[[nodiscard]] Request remove(std::string path, const DeleteOptions& options = {});

struct ClientSettings {
  double qps = 0;  ///< --kube-api-qps; 0: the server's answers are the limit
  double burst = 0;
  size_t queue_limit = 32768;  ///< requests; beyond, calls end with NotSent
  size_t queue_bytes_limit = 128 << 20;
  size_t body_limit = 64 << 20;
  size_t watch_line_limit = 16 << 20;
  std::chrono::milliseconds watch_stall{150'000};  ///< bookmarks come about once a minute
  std::string user_agent = "trainyard-operator";
};

/// What went over the wire.
struct ClientCounts {
  uint64_t requests = 0, retries = 0, throttled = 0, failed = 0;
};

/// A request that has ended: with an answer, without one (status 0), or a watch.
struct Exchange {
  Method method;
  std::string_view path;
  int status = 0;
  std::chrono::duration<double> duration{};  ///< from sending it to the end of its answer
};

/// The API server. One thread: the loop's, where all callbacks run, never inside of call() or watch(). Callbacks left
/// when the client ends are not called; none of them may end it.
class Client {
 public:
  using Callback = std::function<void(Result<Json>)>;
  using BodyCallback = std::function<void(Result<std::string>)>;

  Client(EventLoop& loop, Config config, ClientSettings settings = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends `request` when its turn comes, again where that is safe, and calls `done` once.
  void call(Request request, Callback done);
  /// The same with the answer as it is: lists are parsed item by item.
  void fetch(Request request, BodyCallback done);

  /// Streams the events of a watch's path: {"type": …, "object": …} each. Ends when the handle does, or with `on_end`:
  /// no error where the server ended it in order. Handles may outlive the client.
  [[nodiscard]] Watch watch(std::string path, Watch::OnEvent on_event, Watch::OnEnd on_end);

  /// Asked before each write that needs the lease is begun, retries included, and again as its body leaves: a process
  /// that was stopped in between may have lost the lease. Unset: every write may leave.
  void set_write_guard(std::function<bool()> may_write) { may_write_ = std::move(may_write); }

  /// Told of each attempt, retries included.
  void set_observer(std::function<void(const Exchange&)> observer) { observer_ = std::move(observer); }

  [[nodiscard]] EventLoop& loop() const { return loop_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] size_t queued() const { return small_.size() + bulk_.size(); }
  [[nodiscard]] size_t in_flight() const { return concurrency_.in_flight(); }
  [[nodiscard]] size_t limit() const { return concurrency_.limit(); }
  [[nodiscard]] const ClientCounts& counts() const { return counts_; }
  /// The generator of the jitter.
  [[nodiscard]] std::mt19937_64& random() { return random_; }

 private:
  struct Call;
  using CallPointer = std::shared_ptr<Call>;

  void enqueue(const CallPointer& call);
  void pump();
  [[nodiscard]] bool may_send_next() const;
  [[nodiscard]] CallPointer take_next();
  [[nodiscard]] bool take_token();
  void dispatch(const CallPointer& call);
  void send(const CallPointer& call, const Credential& credential);
  void leave_flight(const CallPointer& call, Concurrency::Answer answer);
  void receive(const CallPointer& call, Outcome outcome);
  void handle_error(const CallPointer& call, const ApiError& error, bool is_final);
  void finish(const CallPointer& call, Result<std::string> result);
  void start_watch(const std::shared_ptr<Watch::State>& state, const Credential& credential);
  void observe(Method method, std::string_view path, int status, EventLoop::Clock::time_point sent) const;
  [[nodiscard]] std::vector<std::string> headers_of(const Credential& credential) const;

  EventLoop& loop_;
  Config config_;
  ClientSettings settings_;
  std::mt19937_64 random_{std::random_device{}()};
  Credentials credentials_;
  Transfers transfers_;
  Concurrency concurrency_;
  std::optional<TokenBucket> bucket_;
  std::deque<CallPointer> small_, bulk_;
  size_t bulk_in_flight_ = 0;
  size_t queued_bytes_ = 0;
  size_t pending_ = 0;  ///< calls that have not ended
  bool is_pumping_ = false, waits_for_token_ = false;
  std::function<bool()> may_write_;
  std::function<void(const Exchange&)> observer_;
  ClientCounts counts_;
  Alive alive_;
};

}  // namespace trainyard::kube
