#include "tensor/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "common/mutex.h"
#include "tensor/accelerator.h"

namespace trainyard {
namespace {

thread_local std::vector<void*> t_streams;  // the current one, by index of the device; null or absent: the default

Accelerator& accelerator_of(Device device) {
  require_device(device);
  if (device.kind == DeviceKind::Cpu) throw std::invalid_argument("the CPU has no streams, events or properties");
  return *accelerator();
}

/// The one before it.
StreamId set_current_stream(StreamId stream) {
  const auto index = static_cast<size_t>(stream.device);
  if (t_streams.size() <= index) t_streams.resize(index + 1);
  return {stream.device, std::exchange(t_streams[index], stream.handle)};
}

/// Streams are lent and never end: memory that was used on one may be freed, and the stream asked how far it is, at any
/// later time.
class IdleStreams {
 public:
  StreamId take(Device device) {
    Accelerator& provider = accelerator_of(device);
    const MutexLock lock(mutex_);
    const auto idle = std::ranges::find(idle_, device.index, &StreamId::device);
    if (idle == idle_.end()) return {device.index, provider.make_stream(device.index)};
    const StreamId taken = *idle;
    idle_.erase(idle);
    return taken;
  }
  void give_back(StreamId stream) {
    const MutexLock lock(mutex_);
    idle_.push_back(stream);
  }

 private:
  Mutex mutex_;
  std::vector<StreamId> idle_ GUARDED_BY(mutex_);
};

IdleStreams& idle_streams() {
  static auto& streams = *new IdleStreams;  // never destroyed, as they are not
  return streams;
}

}  // namespace

std::string to_string(Device device) {
  return device.kind == DeviceKind::Cpu ? "cpu" : fmt::format("cuda:{}", device.index);
}

int cuda_devices() {
  return accelerator() ? accelerator()->devices() : 0;
}

void require_device(Device device) {
  if (device.kind == DeviceKind::Cpu) return;
  if (!accelerator()) throw InputError("this build has no CUDA (docs/gpu.md tells how to make one that has)");
  if (const std::string missing = accelerator()->what_is_missing(device.index); !missing.empty())
    throw InputError(missing);
}

std::string too_few_devices(int local_world, int devices) {
  return fmt::format(
      "LOCAL_WORLD_SIZE is {}, but the ranks of this node see {} GPU{}, and each needs one to itself; start "
      "at most {} here (launch: --nproc-per-node gpu), or show them more with CUDA_VISIBLE_DEVICES",
      local_world, devices, devices == 1 ? "" : "s", devices);
}

void require_devices(DeviceKind kind, int local_world) {
  require_device({kind, 0});
  if (kind == DeviceKind::Cpu) return;
  if (const int devices = cuda_devices(); local_world > devices)
    throw InputError(too_few_devices(local_world, devices));
}

Device device_of_rank(DeviceKind kind, int local_rank, int local_world) {
  if (kind == DeviceKind::Cpu) return {};
  const bool is_its_own = cuda_devices() == 1;
  require_devices(kind, is_its_own ? 1 : local_world);
  const Device device{kind, is_its_own ? 0 : local_rank};
  require_device(device);
  accelerator()->use_device(device.index);
  return device;
}

DeviceProperties properties_of(Device device) {
  return accelerator_of(device).properties(device.index);
}

MemoryRoom room_on(Device device) {
  return accelerator_of(device).room(device.index);
}

std::string describe_cuda() {
  if (!accelerator()) return "none in this build";
  const std::string missing = accelerator()->what_is_missing(0);
  return fmt::format("{}, {}", accelerator()->describe(),
                     missing.empty() ? properties_of({DeviceKind::Cuda, 0}).name : missing);
}

Stream::Stream(Device device) : id_(idle_streams().take(device)) {}
Stream::~Stream() {
  idle_streams().give_back(id_);
}

StreamScope::StreamScope(StreamId stream) : outer_(set_current_stream(stream)) {}
StreamScope::~StreamScope() {
  set_current_stream(outer_);
}

StreamId current_stream(Device device) {
  if (device.kind == DeviceKind::Cpu) return kNoStream;
  const auto index = static_cast<size_t>(device.index);
  return {device.index, index < t_streams.size() ? t_streams[index] : nullptr};
}

Event::Event(Device device) : device_(device), handle_(accelerator_of(device).record(current_stream(device))) {}
Event::~Event() {
  if (handle_) accelerator()->drop_event(device_.index, handle_);
}
Event::Event(Event&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::gate() const {
  accelerator()->gate(current_stream(device_), handle_);
}
bool Event::has_passed() const {
  return accelerator()->has_passed(device_.index, handle_);
}
void Event::wait() const {
  accelerator()->wait(device_.index, handle_);
}

void synchronize(Device device) {
  if (device.kind == DeviceKind::Cuda) accelerator_of(device).synchronize(current_stream(device));
}

}  // namespace trainyard
