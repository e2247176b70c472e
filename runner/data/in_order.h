#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "common/condition_variable.h"
#include "common/mutex.h"
#include "data/corpus_files.h"

namespace trainyard::data {

/// How a corpus is read and tokenised. What comes out does not depend on it.
struct Tokenising {
  int threads = 1;
  std::function<bool()> asked_to_stop = [] { return false; };  ///< asked on the calling thread, often
  Notes notes = Notes::Logged;
};

/// Throws TerminatedError, naming what was under way, where it has been asked to stop.
void stop_if_asked(const Tokenising& how, const std::string& under_way);

/// Threads that carry out tasks. The destructor drops the tasks that wait and joins.
class Workers {
 public:
  /// Fewer threads than asked for where the system has no more; throws std::system_error where it has none.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(std::function<void()> task);
  /// Whether nobody wants the results any more: a long task then throws.
  [[nodiscard]] bool are_ending() const { return ending_; }
  [[nodiscard]] size_t count() const { return threads_.size(); }

 private:
  void work();

  std::atomic<bool> ending_ = false;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  ///< last: they use all above
};

/// Lets threads do work of many pieces and hands the results on in the order of the pieces, on the thread that calls:
/// so they are the same with any number of threads. At most two pieces a thread are under way or wait to be taken.
template <typename Result>
class InOrder {
 public:
  /// Throws what it likes; of several that throw, the first in order counts.
  using Make = std::function<Result(const Workers& workers)>;
  using Take = std::function<void(Result result)>;

  /// `under_way` is what messages call the whole.
  InOrder(const Tokenising& how, std::string under_way, Take take)
      : how_(how), under_way_(std::move(under_way)), take_(std::move(take)), workers_(how.threads) {}

  /// Throws TerminatedError where that has been asked for, and what take() and earlier pieces throw.
  void add(Make make) {
    while (results_.size() >= 2 * workers_.count()) take_first();
    const auto task = std::make_shared<std::packaged_task<Result()>>(
        [this, make = std::move(make)] { return make(workers_); });
    results_.push_back(task->get_future());
    workers_.run([task] { (*task)(); });
  }
  /// Waits for all that were added.
  void finish() {
    while (!results_.empty()) take_first();
  }

 private:
  static constexpr std::chrono::milliseconds kLook{50};

  void take_first() {
    do stop_if_asked(how_, under_way_);
    while (results_.front().wait_for(kLook) != std::future_status::ready);
    std::future<Result> first = std::move(results_.front());
    results_.pop_front();
    take_(first.get());
  }

  const Tokenising& how_;
  const std::string under_way_;
  const Take take_;
  std::deque<std::future<Result>> results_;
  Workers workers_;  ///< last: its threads use all above
};

}  // namespace trainyard::data
