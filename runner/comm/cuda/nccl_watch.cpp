#include "comm/cuda/nccl_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace trainyard::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How exact the times of records are. An event is asked for in about a microsecond.
constexpr std::chrono::microseconds kNcclLook = 1ms, kTracedLook = 50us;
// The store is asked who is lost only while something takes long.
constexpr std::chrono::milliseconds kQuestion = 1s;
// A broken connection is NCCL's first sign of a process that has ended; the master's count of heartbeats, which knows
// whose, follows within two beats.
constexpr std::chrono::milliseconds kNaming = 12s;
// cudaGetErrorString() of cudaErrorMemoryAllocation: NCCL has one code for whatever CUDA refuses.
constexpr const char* kNoRoom = "out of memory";
constexpr const char* kSharedMemory = "/dev/shm";  // in NCCL's words where it finds no room there

/// The pause between two looks at what should be there at once, and may take as long as a peer does.
class Pause {
 public:
  void operator()() {
    if (Clock::now() - begin_ < 100us) return std::this_thread::yield();
    std::this_thread::sleep_for(20us);
  }

 private:
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace

std::optional<Clock::time_point> NcclFlight::waits_since() const {
  if (!end) return seen.issued;
  return has_begun ? std::optional(seen.begun) : std::nullopt;
}

NcclWatch::NcclWatch(LostRanks lost_ranks, int device, std::chrono::milliseconds timeout, std::shared_ptr<Seen> seen)
    : lost_ranks_(std::move(lost_ranks)), device_(device), timeout_(timeout), seen_(std::move(seen)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

CollectiveObserver NcclWatch::on_collective(CollectiveObserver observer) {
  const MutexLock lock(mutex_);
  return std::exchange(seen_->observer, std::move(observer));
}

void NcclWatch::add(const std::shared_ptr<NcclGroup>& group) {
  const MutexLock lock(mutex_);
  std::erase_if(groups_, [](const auto& each) { return each.expired(); });
  groups_.push_back(group);
}

std::shared_ptr<NcclFlight> NcclWatch::begin(const std::shared_ptr<NcclGroup>& group, const char* name,
                                             std::string label, size_t bytes) {
  auto flight = std::make_shared<NcclFlight>();
  flight->group = group;
  flight->call = {.name = name, .label = Call::label_in(group->name(), label), .timeout = timeout_};
  flight->number = group->next_number();
  flight->seen = {
      .name = name, .label = std::move(label), .bytes = bytes, .issued = Clock::now(), .begun = {}, .ended = {}};
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  flight->record = seen_->record.issued(name, flight->seen.label, group->name(), bytes);
  flights_.push_back(flight);
  changed_.notify_all();
  return flight;
}

void NcclWatch::settle(NcclFlight& flight, NcclGroup& group, ncclResult_t result) {
  // Success is the state's to say: ncclCommSplit answers so while it has hardly begun.
  if (result == ncclSuccess) result = ncclInProgress;
  for (Pause pause; result != ncclSuccess; pause()) {
    if (result == ncclInProgress)
      result = group.state();
    else
      flight.refused = result;  // for the thread, which knows what it means
    throw_if_lost(flight);
  }
}

void NcclWatch::launched(NcclFlight& flight, Event start, Event end) {
  const MutexLock lock(mutex_);
  flight.start = std::move(start);
  flight.end = std::move(end);
}

void NcclWatch::ended(NcclFlight& flight) {
  const MutexLock lock(mutex_);
  flight.seen.begun = flight.seen.issued;
  retire(flight);
  std::erase_if(flights_, [](const auto& each) { return each->is_done; });
}

void NcclWatch::throw_if_lost(const NcclFlight& flight) const {
  const MutexLock lock(mutex_);
  if (flight.is_done) return;
  if (flight.lost) std::rethrow_exception(flight.lost);
  if (failure_) std::rethrow_exception(failure_);
}

void NcclWatch::await(NcclFlight& flight) {
  for (Pause pause; !flight.end->has_passed(); pause()) throw_if_lost(flight);
  // An abort lets the device's work end as well, and is noted before.
  throw_if_lost(flight);
  const MutexLock lock(mutex_);
  look();
}

bool NcclWatch::await_all(const NcclGroup& group, Clock::time_point deadline) {
  for (Pause pause;; pause()) {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    look();
    if (std::ranges::none_of(flights_, [&](const auto& flight) { return flight->group.get() == &group; })) return true;
    if (Clock::now() >= deadline) return false;
  }
}

void NcclWatch::abandon(NcclGroup& group) {
  {
    const MutexLock lock(mutex_);
    for (const auto& flight : flights_)
      if (flight->group.get() == &group)
        flight->lost = std::make_exception_ptr(PeerError(group.roster().abandoned(flight->call)));
    std::erase_if(flights_, [](const auto& flight) { return flight->lost != nullptr; });
  }
  group.abort();
}

// Records what has begun and ended on the device. What ends after a failure was aborted.
void NcclWatch::look() {
  if (failure_) return;
  for (const auto& flight : flights_) {
    if (!flight->end) continue;
    if (!flight->has_begun && flight->start->has_passed()) {
      flight->has_begun = true;
      flight->seen.begun = Clock::now();
      seen_->record.begun(flight->record);
    }
    if (flight->has_begun && flight->end->has_passed()) retire(*flight);
  }
  std::erase_if(flights_, [](const auto& flight) { return flight->is_done; });
}

void NcclWatch::retire(NcclFlight& flight) {
  flight.is_done = true;
  flight.seen.ended = Clock::now();
  seen_->record.ended(flight.record);
  if (seen_->observer) seen_->observer(flight.seen);
}

std::optional<NcclWatch::Stuck> NcclWatch::longest_wait() const {
  std::optional<Stuck> longest;
  for (const auto& flight : flights_)
    if (const auto since = flight->waits_since(); since && (!longest || *since < longest->since))
      longest = {flight, *since};
  return longest;
}

void NcclWatch::serve(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const auto has_work = [this]() REQUIRES(mutex_) { return !flights_.empty() && !failure_; };
  while (changed_.wait(mutex_, stop, has_work) && !stop.stop_requested()) {
    std::exception_ptr failure;
    try {
      look();
    } catch (...) {  // the device has failed
      failure = std::current_exception();
    }
    if (!failure) {
      const Flights flights = flights_;
      const auto stuck = longest_wait();
      const MutexUnlock unlocked(mutex_);
      failure = judge(flights, stuck, stop);
    }
    if (failure) {
      const MutexUnlock unlocked(mutex_);
      fail(failure);
    } else {
      changed_.wait_for(mutex_, stop, seen_->observer ? kTracedLook : kNcclLook, [] { return false; });
    }
  }
}

/// What has failed; null where nothing has.
std::exception_ptr NcclWatch::judge(const Flights& flights, const std::optional<Stuck>& stuck,
                                    const std::stop_token& stop) {
  try {
    for (const auto& flight : flights) {
      const ncclResult_t refused = flight->refused;
      const ncclResult_t result = refused == ncclSuccess ? flight->group->state() : refused;
      if (!is_under_way(result)) return failure_of(*flight, result, stop);
    }
    return stuck ? judge(*stuck) : nullptr;
  } catch (...) {  // the master is lost
    return std::current_exception();
  }
}

std::exception_ptr NcclWatch::judge(const Stuck& stuck) {
  const NcclFlight& flight = *stuck.flight;
  const auto now = Clock::now();
  const auto question = std::min(kQuestion, timeout_ / 4);
  if (now - stuck.since < question || now < next_question_) return nullptr;
  next_question_ = now + question;
  lost_ranks_.tell_stuck(*flight.group, flight.number);
  if (const auto lost = lost_ranks_.sentence(flight.call)) return std::make_exception_ptr(PeerError(*lost));
  if (now - stuck.since < timeout_) return nullptr;
  const Roster& roster = flight.group->roster();
  const std::vector<int> missing = lost_ranks_.not_stuck(*flight.group, flight.number);
  std::vector<int> numbers;
  for (const int rank : missing) numbers.push_back(roster.numbers[static_cast<size_t>(rank)]);
  lost_ranks_.leave_word(numbers);
  return std::make_exception_ptr(PeerError(roster.waited(flight.call, missing)));
}

std::exception_ptr NcclWatch::failure_of(const NcclFlight& flight, ncclResult_t result, const std::stop_token& stop) {
  const std::string text = fmt::format("{}: NCCL: {}", flight.call.text(), describe(result));
  if (result == ncclUnhandledCudaError) {
    const std::string of_device = fmt::format("cuda:{}: {}", device_, text);
    if (text.find(kNoRoom) == std::string::npos) return std::make_exception_ptr(DeviceError(of_device));
    return std::make_exception_ptr(OutOfMemoryError(
        of_device + "; its buffers need room beside what the run has taken: a smaller batch leaves more"));
  }
  const std::string ours = fmt::format("rank {}: {}", lost_ranks_.world().rank, text);
  if (result == ncclInvalidUsage) return std::make_exception_ptr(InputError(ours));  // two ranks on one device
  if (result == ncclSystemError && text.find(kSharedMemory) != std::string::npos)
    return std::make_exception_ptr(InputError(
        ours +
        "; it needs more of it than there is: docker run --shm-size 1g, of a pod a larger emptyDir on /dev/shm"));
  if (result == ncclInvalidArgument) return std::make_exception_ptr(std::logic_error(ours));
  if (const auto lost = lost_meanwhile(flight.call, stop)) return std::make_exception_ptr(PeerError(*lost));
  return std::make_exception_ptr(PeerError(ours + "; NCCL_DEBUG=WARN says more"));
}

std::optional<std::string> NcclWatch::lost_meanwhile(const Call& call, const std::stop_token& stop) {
  const auto deadline = Clock::now() + std::min(kNaming, timeout_);
  for (;;) {
    if (auto lost = lost_ranks_.sentence(call)) return lost;
    if (stop.stop_requested() || Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(kQuestion, timeout_) / 8);
  }
}

void NcclWatch::fail(const std::exception_ptr& failure) {
  std::vector<std::shared_ptr<NcclGroup>> groups;
  {
    const MutexLock lock(mutex_);
    failure_ = failure;
    for (const auto& group : groups_)
      if (auto there = group.lock()) groups.push_back(std::move(there));
  }
  // All at once: an abort frees memory, and CUDA may wait with that for the kernels of the others.
  std::vector<std::jthread> aborts;
  for (const auto& group : groups) aborts.emplace_back([&group] { group->abort(); });
}

}  // namespace trainyard::comm
