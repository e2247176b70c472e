#include "metrics/progress_post.h"

#include "metrics/progress_authorities.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/files.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// An HTTP server of a dozen lines that answers each request with the next of `statuses`, the last one for ever; 0:
/// never.
class Listener {
 public:
  explicit Listener(std::vector<int> statuses)
      : statuses_(std::move(statuses)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(socket_.get(), 16) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no port to listen on");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/progress/team/llama";
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }

  [[nodiscard]] const std::string& url() const { return url_; }
  /// The bodies so far, once there are `count`; or fewer after 20 s.
  std::vector<json> bodies(size_t count) {
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, seconds(20), [&] { return bodies_.size() >= count; });
    return bodies_;
  }
  std::string first_head() {
    const std::lock_guard lock(mutex_);
    return first_head_;
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{socket_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 10) != 1) continue;
      const UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      answer(connection, stop);
    }
  }

  /// One request a connection, or none.
  void answer(const UniqueFd& connection, const std::stop_token& stop) {
    const std::string head_and_body = request(connection);
    const auto end = head_and_body.find("\r\n\r\n");
    if (end == std::string::npos) return;  // on a busy machine the poster may give up before it has sent its request
    int status = 0;
    {
      const std::lock_guard lock(mutex_);
      if (first_head_.empty()) first_head_ = head_and_body.substr(0, end);
      bodies_.push_back(json::parse(head_and_body.substr(end + 4), nullptr, false));
      status = statuses_[std::min(bodies_.size(), statuses_.size()) - 1];
      more_.notify_all();
    }
    pollfd gone{connection.get(), POLLIN, 0};
    while (status == 0 && !stop.stop_requested() && ::poll(&gone, 1, 10) == 0) continue;
    if (status == 0) return;
    const std::string reply =
        "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    ::send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
  }

  /// A whole request; empty where the other end left before its end.
  static std::string request(const UniqueFd& connection) {
    std::string text;
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t n = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      if (n <= 0) return {};
      text.append(buffer.data(), static_cast<size_t>(n));
      const auto end = text.find("\r\n\r\n"), length = text.find("Content-Length: ");
      if (end != std::string::npos && length != std::string::npos &&
          text.size() >= end + 4 + std::stoul(text.substr(length + std::strlen("Content-Length: "))))
        return text;
    }
  }

  const std::vector<int> statuses_;
  const UniqueFd socket_;
  std::string url_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::string first_head_;
  std::vector<json> bodies_;
  std::jthread thread_;
};

/// `patience`: for one post, and for the last words; a server that answers is given long, for the machine may be busy.
ProgressTarget target(const std::string& url, milliseconds interval = milliseconds(20),
                      milliseconds patience = seconds(10)) {
  return {.url = url,
          .token = "secret",
          .generation = 2,
          .interval = interval,
          .timeout = patience,
          .last_words = patience};
}

}  // namespace

TEST_CASE("progress post: the body has the operator's keys", "[progress]") {
  CHECK(json::parse(to_json({.step = 7,
                             .total_steps = 9,
                             .loss = 2.5,
                             .tokens_per_second = 10,
                             .checkpoint_step = 5,
                             .silent_ranks = {3},
                             .checkpoint_error = "No space left on device",
                             .metrics_error = "m",
                             .config_changed = "train.yaml: gone"},
                            2, 8)) == json::parse(R"({"step": 7, "totalSteps": 9, "loss": 2.5, "tokensPerSecond": 10.0,
                                                      "checkpointStep": 5, "silentRanks": [3], "generation": 2,
                                                      "checkpointError": "No space left on device", "metricsError": "m",
                                                      "configChanged": "train.yaml: gone", "worldSize": 8})"));
  const json least = json::parse(to_json({}));
  CHECK_FALSE(least.contains("loss"));
  CHECK_FALSE(least.contains("tokensPerSecond"));
  CHECK_FALSE(least.contains("generation"));
  CHECK_FALSE(least.contains("configChanged"));
  CHECK(least["checkpointStep"] == -1);
}

TEST_CASE("progress post: authorities are believed that are proven with the job's token, and no others", "[progress]") {
  // printf 'trainyard-authorities-1%sPEM' "$NONCE" | openssl dgst -sha256 -hmac secret
  const std::string nonce = std::string(32, 'a') + std::string(32, 'b');
  const json answer = {{"authorities", "PEM"},
                       {"proof", "c49cb4842e3b1b1bdd31ad6d532a78e66b76cda70dfe623c70de66c73fa29fc3"}};
  CHECK(proven_authorities(answer.dump(), "secret", nonce) == "PEM");
  const auto is_refused = [&](const json& other, const std::string& token = "secret") {
    CHECK_THROWS_WITH(proven_authorities(other.dump(), token, nonce),
                      "it cannot prove by this job's token that it is the operator");
  };
  is_refused(answer, "another token");
  is_refused({{"authorities", "PEN"}, {"proof", answer["proof"]}});
  is_refused({{"authorities", "PEM"}});
  is_refused({{"authorities", 7}, {"proof", nullptr}});
  is_refused(nullptr);
  CHECK_THROWS_WITH(proven_authorities(answer.dump(), "secret", std::string(64, 'c')), Catch::Contains("cannot prove"));
  CHECK_THROWS_WITH(proven_authorities("", "secret", nonce), Catch::Contains("cannot prove"));
  CHECK(fresh_nonce().size() == 64);
  CHECK(fresh_nonce() != fresh_nonce());
}

TEST_CASE("progress post: the beginning at once, then the newest alone, with the token", "[progress]") {
  Listener listener({204});
  ProgressPoster poster(target(listener.url()), {.step = 3, .total_steps = 1000}, nullptr);
  CHECK(listener.bodies(1)[0]["step"] == 3);
  CHECK_THAT(listener.first_head(), Catch::StartsWith("POST /progress/team/llama HTTP/1.1\r\n") &&
                                        Catch::Contains("\r\nAuthorization: Bearer secret\r\n") &&
                                        Catch::Contains("\r\nContent-Type: application/json"));
  for (int step = 4; step <= 1000; ++step) poster.step(step, 0.5, 100);
  size_t count = 2;
  while (listener.bodies(count).back()["step"] != 1000 && count < 500) ++count;
  CHECK(listener.bodies(1).back()["step"] == 1000);
  CHECK(listener.bodies(1).back()["loss"] == 0.5);
  CHECK(listener.bodies(1).size() < 500);  // and not a thousand
}

TEST_CASE("progress post: the end says the last word", "[progress]") {
  Listener listener({204});
  {
    ProgressPoster poster(target(listener.url(), seconds(3600)), {}, nullptr);
    listener.bodies(1);
    poster.step(10, 1, 1);
  }
  CHECK(listener.bodies(2).back()["step"] == 10);
}

TEST_CASE("progress post: a checkpoint does not wait for the interval", "[progress]") {
  Listener listener({204});
  ProgressPoster poster(target(listener.url(), seconds(3600)), {}, nullptr);
  listener.bodies(1);
  poster.checkpoint(10);
  CHECK(listener.bodies(2).back()["checkpointStep"] == 10);
}

TEST_CASE("progress post: it is posted again where nothing is new, as who is silent is taken to hang", "[progress]") {
  Listener listener({500, 404, 204});
  const ProgressPoster poster(target(listener.url()), {.step = 3}, nullptr);
  CHECK(listener.bodies(5).size() >= 5);
}

TEST_CASE("progress post: a checkpoint that could not be saved does not wait for the interval, until one is saved",
          "[progress]") {
  Listener listener({204});
  ProgressPoster poster(target(listener.url(), seconds(3600)), {.checkpoint_step = 5}, nullptr);
  CHECK_FALSE(listener.bodies(1)[0].contains("checkpointError"));
  poster.metrics_file("metrics.jsonl: No space left on device");
  poster.checkpoint_failed("step 10: No space left on device");
  const json failed = listener.bodies(2).back();
  CHECK(failed["checkpointError"] == "step 10: No space left on device");
  CHECK(failed["metricsError"] == "metrics.jsonl: No space left on device");
  CHECK(failed["checkpointStep"] == 5);
  poster.metrics_file("");
  poster.checkpoint(15);
  const json saved = listener.bodies(3).back();
  CHECK_FALSE(saved.contains("checkpointError"));
  CHECK_FALSE(saved.contains("metricsError"));
  CHECK(saved["checkpointStep"] == 15);
}

TEST_CASE("progress post: a replica that does not lead is left for another at once", "[progress]") {
  Listener listener({503, 503, 204});
  const ProgressPoster poster(target(listener.url(), seconds(3600)), {.step = 3}, nullptr);
  CHECK(listener.bodies(3).size() == 3);
}

TEST_CASE("progress post: nobody waits for a server that hangs or refuses", "[progress]") {
  Listener hanging({0});
  const std::string url = GENERATE(true, false) ? hanging.url() : "http://127.0.0.1:1/progress/team/llama";
  const auto start = steady_clock::now();
  {
    ProgressPoster poster(target(url, milliseconds(20), milliseconds(200)), {}, nullptr);
    for (int step = 1; step <= 1000; ++step) poster.step(step, 1, 1);
    poster.checkpoint(1000);
  }
  CHECK(steady_clock::now() - start < seconds(15));
}

TEST_CASE("progress post: a configuration that has changed since the run read it is told, until it is as it was",
          "[progress]") {
  Listener listener({204});
  const test::TemporaryFolder folder;
  const std::string file = folder / "train.yaml";
  write_file_atomically(file, "training: {lr: 0.1}");
  const ProgressPoster poster(target(listener.url()), {.step = 3}, nullptr,
                              ConfigWatch({{file, "training: {lr: 0.1}"}}));
  const auto comes = [&](const auto& condition) {  // in one of the posts that follow, of which there is one each 20 ms
    for (size_t count = listener.bodies(1).size(); count < 1000; ++count)
      if (condition(listener.bodies(count + 1).back())) return true;
    return false;
  };
  CHECK_FALSE(listener.bodies(1)[0].contains("configChanged"));
  write_file_atomically(file, "training: {lr: 0.2}");
  CHECK(comes([&](const json& body) { return body.value("configChanged", "").starts_with(file + " (sha256 "); }));
  write_file_atomically(file, "training: {lr: 0.1}");
  CHECK(comes([](const json& body) { return !body.contains("configChanged"); }));
}

TEST_CASE("progress post: silent ranks are told, without a step, and a store that is lost changes nothing",
          "[progress]") {
  Listener listener({204});
  std::atomic<int> asked = 0;
  const ProgressPoster poster(target(listener.url()), {.step = 3}, [&]() -> std::vector<int> {
    const int n = ++asked;
    if (n == 2) throw std::runtime_error("the store is lost");
    return n < 4 ? std::vector<int>{} : std::vector<int>{5, 6};
  });
  const auto bodies = listener.bodies(4);
  CHECK(bodies[0]["silentRanks"] == json::array());
  CHECK(bodies[3]["silentRanks"] == json{5, 6});
  CHECK(bodies[3]["step"] == 3);
}

}  // namespace trainyard::metrics
