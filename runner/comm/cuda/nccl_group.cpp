#include "comm/cuda/nccl_group.h"

#include <future>
#include <memory>
#include <thread>

namespace trainyard::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kStuckCall = 2s;    // a thread that has not come out of NCCL by then waits for the device
constexpr auto kStuckAbort = 10s;  // an abort of a healthy driver takes milliseconds

ncclConfig_t never_blocking(const std::string& name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name.empty() ? "world" : name.c_str();
  return config;
}

/// NCCL's abort waits for threads of its own, which a broken driver or network may hold for ever; this process is to
/// end all the same. So a thread that nobody waits for long does it.
void abort_patiently(ncclComm_t handle) {
  const auto ended = std::make_shared<std::promise<void>>();
  std::thread([handle, ended] {
    static_cast<void>(nccl().comm_abort(handle));
    ended->set_value();
  }).detach();
  ended->get_future().wait_for(kStuckAbort);
}

}  // namespace

ncclResult_t NcclGroup::join(const ncclUniqueId& id) {
  const MutexLock lock(mutex_);
  ncclConfig_t config = never_blocking(name_);
  return nccl().comm_init_rank_config(&handle_, roster_.world(), id, roster_.rank, &config);
}

ncclResult_t NcclGroup::split(int color, NcclGroup& part) {
  ncclConfig_t config = never_blocking(part.name_);
  return call([&](ncclComm_t handle) { return nccl().comm_split(handle, color, roster_.rank, &part.split_, &config); });
}

void NcclGroup::adopt_split() {
  const MutexLock lock(mutex_);
  handle_ = std::exchange(split_, nullptr);
}

ncclResult_t NcclGroup::state() {
  if (!mutex_.try_lock()) return ncclInProgress;
  const MutexLock lock(mutex_, std::adopt_lock);
  // The watch looks as soon as a call is announced, before the thread that makes it is here.
  if (!handle_) return has_ended_ ? ncclInvalidUsage : ncclInProgress;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl().comm_get_async_error(handle_, &state);
  return asked == ncclSuccess ? state : asked;
}

bool NcclGroup::finish(std::chrono::steady_clock::time_point deadline) {
  ncclResult_t state = call([](ncclComm_t handle) { return nccl().comm_finalize(handle); });
  while (state == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(100us);
    state = this->state();
  }
  if (state != ncclSuccess) return false;
  const MutexLock lock(mutex_);
  has_ended_ = true;
  static_cast<void>(nccl().comm_destroy(std::exchange(handle_, nullptr)));
  return true;
}

void NcclGroup::abort() noexcept {
  // Who waits for room in the device's queue, which a lost peer keeps full, waits with the lock held, and what frees it
  // is the abort.
  std::unique_lock lock(mutex_, std::defer_lock);
  const auto deadline = std::chrono::steady_clock::now() + kStuckCall;
  while (!lock.try_lock() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(100us);
  has_ended_ = true;
  ncclComm_t const handle = std::exchange(handle_, nullptr);
  if (!handle) return;
  try {
    abort_patiently(handle);
  } catch (const std::exception&) {  // no thread to be had
    static_cast<void>(nccl().comm_abort(handle));
  }
}

}  // namespace trainyard::comm
