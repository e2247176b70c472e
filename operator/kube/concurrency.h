#pragma once

#include <chrono>
#include <cstddef>

namespace trainyard::kube {

/// How many requests may be on their way at once: grows by one per round of answers while they come quickly, shrinks by
/// a third when the server says that it has enough, by a tenth when answers take several times their usual time. Pure.
class Concurrency {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kStart = 64, kMost = 400, kLeast = 1;

  enum class Answer { Served, Overloaded, Lost };  ///< Lost: no answer; says nothing about the server's load

  [[nodiscard]] bool has_room() const { return in_flight_ < limit(); }
  [[nodiscard]] size_t limit() const { return static_cast<size_t>(limit_); }
  [[nodiscard]] size_t in_flight() const { return in_flight_; }

  void begin() { ++in_flight_; }
  void end(Answer answer, Clock::time_point began, Clock::time_point now);

 private:
  void observe(Clock::duration latency, Clock::time_point now);
  void shrink(double factor, Clock::time_point began, Clock::time_point now);

  double limit_ = kStart;
  size_t in_flight_ = 0;
  Clock::time_point shrunk_{};      ///< what began before it was sent under the old limit, and counts once
  double latency_ = 0, usual_ = 0;  ///< seconds; smoothed, and the least of it lately
  Clock::time_point usual_since_{};
};

}  // namespace trainyard::kube
