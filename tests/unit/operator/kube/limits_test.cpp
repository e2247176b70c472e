#include <catch2/catch.hpp>

#include "kube/concurrency.h"
#include "kube/event_recorder.h"
#include "kube/token_bucket.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const Clock::time_point kStart = Clock::time_point{} + 1h;

/// As many requests as may be on their way at once, `rounds` times, each answered after `latency`.
void run(Concurrency& limiter, Clock::time_point& now, int rounds, std::chrono::milliseconds latency) {
  for (int round = 0; round < rounds; ++round) {
    const auto began = now;
    while (limiter.has_room()) limiter.begin();
    now += latency;
    for (size_t left = limiter.in_flight(); left > 0; --left) limiter.end(Concurrency::Answer::Served, began, now);
  }
}

TEST_CASE("the limit begins at 64, grows while answers come quickly, and stays below its most", "[kube]") {
  Concurrency limiter;
  CHECK(limiter.limit() == 64);
  auto now = kStart;
  run(limiter, now, 20, 10ms);
  CHECK(limiter.limit() > 64);
  run(limiter, now, 2000, 10ms);
  CHECK(limiter.limit() <= 400);
  CHECK(limiter.limit() >= 390);
}

TEST_CASE("a limit that is not used does not grow", "[kube]") {
  Concurrency limiter;
  auto now = kStart;
  for (int number = 0; number < 1000; ++number) {
    limiter.begin();
    limiter.end(Concurrency::Answer::Served, now, now + 1ms);
    now += 1ms;
  }
  CHECK(limiter.limit() == 64);
}

TEST_CASE("many refusals of one round count once, rounds of them lead down to one", "[kube]") {
  Concurrency limiter;
  auto now = kStart;
  const auto began = now;
  for (int number = 0; number < 64; ++number) limiter.begin();
  now += 5ms;
  for (int number = 0; number < 64; ++number) limiter.end(Concurrency::Answer::Overloaded, began, now);
  CHECK(limiter.limit() == 42);
  for (int round = 0; round < 30; ++round) {
    limiter.begin();
    const auto sent = now;
    now += 5ms;
    limiter.end(Concurrency::Answer::Overloaded, sent, now);
  }
  CHECK(limiter.limit() == 1);
  CHECK(limiter.has_room());
}

TEST_CASE("answers that take several times their usual time shrink it gently, and lost ones say nothing", "[kube]") {
  Concurrency limiter;
  auto now = kStart;
  run(limiter, now, 3, 20ms);
  const size_t before = limiter.limit();
  for (int number = 0; number < 50; ++number) {
    limiter.begin();
    const auto sent = now;
    now += 900ms;
    limiter.end(Concurrency::Answer::Served, sent, now);
  }
  CHECK(limiter.limit() < before);
  const size_t shrunk = limiter.limit();
  limiter.begin();
  limiter.end(Concurrency::Answer::Lost, now, now + 30s);
  CHECK(limiter.limit() == shrunk);
}

TEST_CASE("a bucket gives its burst at once and then its rate", "[kube]") {
  auto now = kStart;
  TokenBucket bucket(10, 3, now);
  for (int number = 0; number < 3; ++number) CHECK(bucket.take(now) == 0s);
  const auto wait = bucket.take(now);
  CHECK((wait > 99ms && wait < 101ms));
  now += wait;
  CHECK(bucket.take(now) == 0s);
  CHECK(bucket.take(now) > 0s);
  now += 1h;
  for (int number = 0; number < 3; ++number) CHECK(bucket.take(now) == 0s);
  CHECK(bucket.take(now) > 0s);
}

TEST_CASE("an event said once has the same name with every operator, and others have names of their own", "[kube]") {
  const InvolvedObject about{"kubeflow.org/v1", "PyTorchJob", "ns", "llama", "uid-1", "5"};
  const EventDetails once{.reason = "R", .message = "m", .once = "text"};
  CHECK(once_name(about, once) == once_name(about, once));
  EventDetails warning = once;
  warning.is_warning = true;
  InvolvedObject successor = about;
  successor.uid = "uid-2";
  CHECK(once_name(about, once) != once_name(about, warning));
  CHECK(once_name(about, once) != once_name(successor, once));
  CHECK(event_name(about, 255) == "llama.00000000000000ff");
  InvolvedObject long_name = about;
  long_name.name = std::string(253, 'x');
  CHECK(event_name(long_name, 1).size() == 253);
}

TEST_CASE("an event's message is cut between characters", "[kube]") {
  const InvolvedObject about{"kubeflow.org/v1", "PyTorchJob", "ns", "llama", "uid-1", "5"};
  std::string message;
  while (message.size() < 2000) message += "\xc3\xa4";
  const Json event = event_object(about, {.reason = "R", .message = message}, "e", {}, {}, 3);
  const std::string cut = text_at(event, "/message");
  CHECK(cut.size() <= 1024);
  CHECK(cut.ends_with("\xc3\xa4..."));
  CHECK(int_at(event, "/count") == 3);
  CHECK(text_at(event, "/involvedObject/uid") == "uid-1");
}

}  // namespace
}  // namespace trainyard::kube
