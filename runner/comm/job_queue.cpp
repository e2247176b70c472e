#include "comm/job_queue.h"

#include <deque>
#include <exception>
#include <stop_token>

#include "base/error.h"
#include "common/condition_variable.h"
#include "common/mutex.h"

namespace trainyard::comm {

// Outlives the JobQueue as long as somebody holds a Work of it.
class JobQueue::Shared {
 public:
  /// Runs the first job of the queue if nothing runs. The mutex is given up meanwhile. False: nothing to do here.
  bool run_next() REQUIRES(mutex);
  void finish(Job& job, const std::exception_ptr& error) REQUIRES(mutex);
  void serve(const std::stop_token& stop);

  Mutex mutex;
  StoppableConditionVariable work_there;
  ConditionVariable changed;
  std::deque<std::shared_ptr<Job>> jobs GUARDED_BY(mutex);
  std::exception_ptr poison GUARDED_BY(mutex);
  bool running GUARDED_BY(mutex) = false;
};

class JobQueue::Job final : public Work::State {
 public:
  Job(std::shared_ptr<Shared> its_queue, std::function<void()> work)
      : queue(std::move(its_queue)), run(std::move(work)) {}
  void wait() override;
  /// It tells clang that the mutex is held: clang does not see that the queue which holds a job is the job's own.
  void is_of_a_held_queue() const ASSERT_HELD(queue->mutex) {}

  const std::shared_ptr<Shared> queue;
  std::function<void()> run;  // emptied as soon as it ran: it holds tensors
  bool done GUARDED_BY(queue->mutex) = false;
  std::exception_ptr error GUARDED_BY(queue->mutex);
};

bool JobQueue::Shared::run_next() {
  if (running || jobs.empty()) return false;
  const std::shared_ptr<Job> job = std::move(jobs.front());
  jobs.pop_front();
  running = true;
  std::exception_ptr error = poison;
  {
    const MutexUnlock unlocked(mutex);
    if (!error) {
      try {
        job->run();
      } catch (...) {
        error = std::current_exception();
      }
    }
    job->run = nullptr;
  }
  finish(*job, error);
  running = false;
  if (!jobs.empty()) work_there.notify_one();
  return true;
}

void JobQueue::Shared::finish(Job& job, const std::exception_ptr& error) {
  job.is_of_a_held_queue();
  if (!poison) poison = error;
  job.error = error;
  job.done = true;
  changed.notify_all();
}

void JobQueue::Shared::serve(const std::stop_token& stop) {
  const MutexLock lock(mutex);
  const auto has_work = [this]() REQUIRES(mutex) { return !running && !jobs.empty(); };
  while (!stop.stop_requested()) {
    if (!run_next()) work_there.wait(mutex, stop, has_work);
  }
}

void JobQueue::Job::wait() {
  const MutexLock lock(queue->mutex);
  while (!done) {
    if (!queue->run_next()) queue->changed.wait(queue->mutex);
  }
  if (error) std::rethrow_exception(error);
}

JobQueue::JobQueue() : shared_(std::make_shared<Shared>()) {
  thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { shared->serve(stop); });
}

JobQueue::~JobQueue() {
  std::deque<std::shared_ptr<Job>> dropped;
  thread_.request_stop();
  const MutexLock lock(shared_->mutex);
  shared_->jobs.swap(dropped);
  const auto closed = std::make_exception_ptr(PeerError("this rank closed its communicator before the collective ran"));
  for (const auto& job : dropped) shared_->finish(*job, closed);
  while (shared_->running) shared_->changed.wait(shared_->mutex);
}

Work JobQueue::submit(std::function<void()> job) {
  auto state = std::make_shared<Job>(shared_, std::move(job));
  const MutexLock lock(shared_->mutex);
  while (shared_->jobs.size() >= kCapacity) {
    if (!shared_->run_next()) shared_->changed.wait(shared_->mutex);
  }
  shared_->jobs.push_back(state);
  if (!shared_->running) shared_->work_there.notify_one();
  return Work(std::move(state));
}

bool JobQueue::wait_idle(std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(shared_->mutex);
  const auto is_idle = [this]() REQUIRES(shared_->mutex) { return shared_->jobs.empty() && !shared_->running; };
  return shared_->changed.wait_until(shared_->mutex, deadline, is_idle);
}

void JobQueue::throw_if_poisoned() const {
  const MutexLock lock(shared_->mutex);
  if (shared_->poison) std::rethrow_exception(shared_->poison);
}

}  // namespace trainyard::comm
