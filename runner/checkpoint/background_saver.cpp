#include "checkpoint/background_saver.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::checkpoint {
namespace {

constexpr std::chrono::milliseconds kUnsaid{500};  // a wait shorter than this is not worth a line
constexpr std::chrono::seconds kCommitGrace{60};   // beyond the time-out, which is for the writing

bool holds_like(const Tensor& tensor, const Tensor& other) {
  return tensor.defined() == other.defined() && tensor.shape() == other.shape() && tensor.dtype() == other.dtype();
}

}  // namespace

void BackgroundSaver::reserve(const Snapshot& snapshot) {
  const Snapshot own = saver_.own_part(snapshot);
  for (const std::vector<Shard>* const shards : {&own.model, &own.optimizer})
    for (const Shard& shard : *shards)
      if (shard.local.defined() && shard.local.device().kind != DeviceKind::Cpu) device_ = shard.local.device();
  if (device_.kind == DeviceKind::Cpu) return stage(own);
  if (!copies_) copies_.emplace(device_);
  const Event ready(device_);  // what the caller's stream has been given
  const StreamScope scope(*copies_);
  ready.gate();
  stage(own);
  copied_.emplace(device_);
}

void BackgroundSaver::behind_copies() const {
  if (copied_) copied_->gate();
}

void BackgroundSaver::start(const Snapshot& snapshot) {
  {
    const MutexLock lock(mutex_);
    if (is_writing_) throw std::logic_error("BackgroundSaver: a save is under way");
  }
  reserve(snapshot);
  staged_.step = snapshot.step;
  staged_.state = snapshot.state;
  staged_.rank_state = snapshot.rank_state;
  staged_.files = snapshot.files;
  thread_ = {};  // joins the one before, which has ended
  {
    const MutexLock lock(mutex_);
    is_writing_ = true;
  }
  thread_ = std::jthread([this] { write(); });
}

std::optional<SaveResult> BackgroundSaver::poll() {
  const MutexLock lock(mutex_);
  return is_writing_ ? std::nullopt : take();
}

std::optional<SaveResult> BackgroundSaver::wait() {
  const auto patience = saver_.options().timeout + kCommitGrace;
  const auto has_ended = [this]() REQUIRES(mutex_) { return !is_writing_; };
  const MutexLock lock(mutex_);
  if (!ended_.wait_for(mutex_, kUnsaid, has_ended)) {
    if (saver_.options().rank == 0)
      spdlog::info("Waiting for the checkpoint of step {}, which is still being written", staged_.step);
    if (!ended_.wait_for(mutex_, patience, has_ended)) {
      const std::string text = fmt::format(
          "rank {}: the checkpoint of step {} was not written within {}; is the disk of {} gone? See "
          "checkpoint.timeout",
          saver_.options().rank, staged_.step, human_duration(patience), saver_.options().folder.string());
      spdlog::error(text);  // before it ends: that takes as long as the disk holds the thread that writes
      throw PeerError(text);
    }
  }
  return take();
}

void BackgroundSaver::write() {
  std::optional<SaveResult> result;
  std::exception_ptr error;
  try {
    if (copied_) copied_->wait();
    result = saver_.save(staged_);
  } catch (...) {  // for whoever waits
    error = std::current_exception();
  }
  const MutexLock lock(mutex_);
  result_ = std::move(result);
  error_ = std::move(error);  // whoever waits is its only holder then, and ends it
  is_writing_ = false;
  ended_.notify_all();
}

namespace {

/// Pinned where a device writes there: to pin is to use a device, which a run on the CPU must not.
Tensor place_for(const Tensor& tensor) {
  const bool is_of_device = tensor.device().kind != DeviceKind::Cpu;
  return is_of_device ? Tensor::pinned(tensor.shape(), tensor.dtype()) : Tensor::empty(tensor.shape(), tensor.dtype());
}

}  // namespace

void BackgroundSaver::stage(const Snapshot& own) {
  stage(own.model, staged_.model);
  stage(own.optimizer, staged_.optimizer);
}

void BackgroundSaver::stage(const std::vector<Shard>& from, std::vector<Shard>& to) {
  const MemoryKindScope scope(MemoryKind::Offloaded);
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    Tensor kept = std::move(to[i].local);
    to[i] = from[i];
    if (from[i].local.defined()) {
      if (!holds_like(kept, from[i].local)) kept = place_for(from[i].local);
      copy_async(from[i].local, kept);
      to[i].local = std::move(kept);
    }
  }
}

/// Nothing is under way.
std::optional<SaveResult> BackgroundSaver::take() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::exchange(result_, std::nullopt);
}

}  // namespace trainyard::checkpoint
