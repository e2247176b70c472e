#include "data/in_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace trainyard::data {

void stop_if_asked(const Tokenising& how, const std::string& under_way) {
  if (how.asked_to_stop()) throw TerminatedError(fmt::format("asked to stop: {} was under way", under_way));
}

Workers::Workers(int threads) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      return;
    }
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
}

void Workers::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Workers::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (ending_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace trainyard::data
