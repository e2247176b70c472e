#include "data/prefetched.h"

#include <fmt/format.h>

#include <deque>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/condition_variable.h"
#include "common/mutex.h"
#include "data/loader_around.h"
#include "tensor/memory.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

/// Makes micro-batches first, first + step, … on a thread of its own, `ahead` of them at most before they are taken.
class Worker {
 public:
  struct Share {
    int64_t first = 0, step = 1;
  };
  Worker(std::unique_ptr<Loader> loader, Share share, size_t ahead)
      : loader_(std::move(loader)), share_(share), ahead_(ahead), ledger_(current_ledger()) {
    start();
  }

  /// Throws what its loader threw instead of a batch, and again whenever it is asked afterwards.
  Batch take() {
    Batch batch;
    {
      const MutexLock lock(mutex_);
      while (ready_.empty()) changed_.wait(mutex_);
      if (ready_.front().error) std::rethrow_exception(ready_.front().error);
      batch = std::move(ready_.front().batch);
      ready_.pop_front();
    }
    changed_.notify_all();
    return batch;
  }

  void restart_from(const json& state) {
    thread_ = {};  // asked to stop, and joined
    {
      const MutexLock lock(mutex_);
      ready_.clear();
    }
    loader_->load_state(state);
    start();
  }

 private:
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };

  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void run(const std::stop_token& stop) {
    const MemoryScope scope(ledger_);
    for (int64_t before = share_.first; has_room(stop); before = share_.step - 1) {
      Made made = make_after(before);
      const bool is_last = made.error != nullptr;
      {
        const MutexLock lock(mutex_);
        ready_.push_back(std::move(made));
      }
      changed_.notify_all();
      if (is_last) return;
    }
  }

  /// Waits for it; false where the thread is to end.
  bool has_room(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    return changed_.wait(mutex_, stop, [this]() REQUIRES(mutex_) { return ready_.size() < ahead_; });
  }

  Made make_after(int64_t others) {
    try {
      for (int64_t i = 0; i < others; ++i) loader_->skip();
      return {loader_->next(), nullptr};
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }

  std::unique_ptr<Loader> loader_;  // of the thread, while it runs
  Share share_;
  size_t ahead_;
  std::shared_ptr<MemoryLedger> ledger_;
  Mutex mutex_;
  StoppableConditionVariable changed_;
  std::deque<Made> ready_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it ends before what it uses
};

/// The loader that it is around reads nothing: it stands where the last batch given out ended.
class PrefetchedLoader final : public LoaderAround {
 public:
  PrefetchedLoader(const std::function<std::unique_ptr<Loader>()>& make, const Prefetched& options)
      : LoaderAround(make()) {
    for (int64_t first = 0; first < options.workers; ++first)
      workers_.push_back(
          std::make_unique<Worker>(make(), Worker::Share{first, options.workers}, static_cast<size_t>(options.ahead)));
  }

  Batch next() override {
    Batch batch = workers_[turn_]->take();
    turn_ = (turn_ + 1) % workers_.size();
    inner().skip();
    return batch;
  }

  void load_state(const json& state) override {
    inner().load_state(state);
    for (const auto& worker : workers_) worker->restart_from(state);
    turn_ = 0;
  }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Loader> prefetched(const std::function<std::unique_ptr<Loader>()>& make, const Prefetched& options) {
  if (options.workers < 1 || options.ahead < 1)
    throw std::invalid_argument(fmt::format("prefetched: workers {}, ahead {}", options.workers, options.ahead));
  return std::make_unique<PrefetchedLoader>(make, options);
}

}  // namespace trainyard::data
