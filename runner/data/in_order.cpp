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
    const MutexLock lock(mutex_);
    ending_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
}

void Workers::run(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Workers::work() {
  for (;;) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (!ending_ && tasks_.empty()) changed_.wait(mutex_);
      if (ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace trainyard::data
