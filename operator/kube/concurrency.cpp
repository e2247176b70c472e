#include "kube/concurrency.h"

#include <algorithm>

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

constexpr double kSmoothing = 0.1;
// Slow is several times the usual, and slow enough to matter: below a fifth of a second a queue in the server is what
// keeps it busy.
constexpr double kSlowFactor = 5, kSlowSeconds = 0.2;
constexpr auto kUsualFor = 60s;

}  // namespace

void Concurrency::end(Answer answer, Clock::time_point began, Clock::time_point now) {
  // Answers come in batches, and the room is filled again after one: so half full is in use.
  const bool is_used = 2 * in_flight_ >= limit();
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  if (answer == Answer::Overloaded) return shrink(2.0 / 3, began, now);
  if (answer == Answer::Lost) return;
  observe(now - began, now);
  if (latency_ > std::max(kSlowSeconds, kSlowFactor * usual_)) return shrink(0.9, began, now);
  if (is_used) limit_ = std::min(kMost, limit_ + 1 / limit_);
}

void Concurrency::observe(Clock::duration latency, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(latency).count();
  latency_ = latency_ == 0 ? seconds : latency_ + kSmoothing * (seconds - latency_);
  if (usual_ == 0 || latency_ < usual_ || now - usual_since_ > kUsualFor) {
    usual_ = latency_;
    usual_since_ = now;
  }
}

void Concurrency::shrink(double factor, Clock::time_point began, Clock::time_point now) {
  if (began < shrunk_) return;
  limit_ = std::max(kLeast, limit_ * factor);
  shrunk_ = now;
}

}  // namespace trainyard::kube
