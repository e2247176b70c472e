#include "comm/job_queue.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>

#include "base/error.h"

namespace trainyard::comm {

class JobQueue::Job final : public Work::State {
 public:
  Job(std::shared_ptr<Shared> its_queue, std::function<void()> work)
      : queue(std::move(its_queue)), run(std::move(work)) {}
  void wait() override;

  const std::shared_ptr<Shared> queue;
  std::function<void()> run;  // emptied as soon as it ran: it holds tensors
  bool done = false;          // this and error: guarded by the queue's mutex
  std::exception_ptr error;
};

// Outlives the JobQueue as long as somebody holds a Work of it.
class JobQueue::Shared {
 public:
  /// Runs the first job of the queue if nothing runs. `lock` is given up meanwhile. False: nothing to do here.
  bool run_next(std::unique_lock<std::mutex>& lock) {
    if (running || jobs.empty()) return false;
    const std::shared_ptr<Job> job = std::move(jobs.front());
    jobs.pop_front();
    running = true;
    const std::exception_ptr before = poison;
    lock.unlock();
    std::exception_ptr error = before;
    if (!before) {
      try {
        job->run();
      } catch (...) {
        error = std::current_exception();
      }
    }
    job->run = nullptr;
    lock.lock();
    finish(*job, error);
    running = false;
    if (!jobs.empty()) work_there.notify_one();
    return true;
  }

  void finish(Job& job, const std::exception_ptr& error) {
    if (!poison) poison = error;
    job.error = error;
    job.done = true;
    changed.notify_all();
  }

  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      if (!run_next(lock)) work_there.wait(lock, stop, [this] { return !running && !jobs.empty(); });
    }
  }

  std::mutex mutex;  // guards all below
  std::condition_variable_any work_there;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> jobs;
  std::exception_ptr poison;
  bool running = false;
};

void JobQueue::Job::wait() {
  std::unique_lock lock(queue->mutex);
  while (!done) {
    if (!queue->run_next(lock)) queue->changed.wait(lock);
  }
  if (error) std::rethrow_exception(error);
}

JobQueue::JobQueue() : shared_(std::make_shared<Shared>()) {
  thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { shared->serve(stop); });
}

JobQueue::~JobQueue() {
  std::deque<std::shared_ptr<Job>> dropped;
  thread_.request_stop();
  std::unique_lock lock(shared_->mutex);
  shared_->jobs.swap(dropped);
  const auto closed = std::make_exception_ptr(PeerError("this rank closed its communicator before the collective ran"));
  for (const auto& job : dropped) shared_->finish(*job, closed);
  shared_->changed.wait(lock, [this] { return !shared_->running; });
}

Work JobQueue::submit(std::function<void()> job) {
  auto state = std::make_shared<Job>(shared_, std::move(job));
  std::unique_lock lock(shared_->mutex);
  while (shared_->jobs.size() >= kCapacity) {
    if (!shared_->run_next(lock)) shared_->changed.wait(lock);
  }
  shared_->jobs.push_back(state);
  if (!shared_->running) shared_->work_there.notify_one();
  return Work(std::move(state));
}

bool JobQueue::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_until(lock, deadline, [this] { return shared_->jobs.empty() && !shared_->running; });
}

void JobQueue::throw_if_poisoned() const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->poison) std::rethrow_exception(shared_->poison);
}

}  // namespace trainyard::comm
