#include <cuda_runtime.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <span>

#include "tensor/accelerator.h"
#include "tensor/cuda/activities.h"
#include "tensor/cuda/check.h"

namespace trainyard::cuda {
namespace {

constexpr int kMostDevices = 64;

std::string version_text(int version) {  // 13000
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

/// Blocks all signals of this thread while it lives. Threads that start meanwhile keep them blocked, and so take none
/// that the process waits for elsewhere.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// How many devices there are; else what is missing.
struct Devices {
  int count = 0;
  std::string missing;
};

Devices find_devices() {
  Devices found;
  const cudaError_t error = [&] {
    // The first call starts a thread of the driver's. On an H200 that thread took, now and then, the SIGCHLD which a
    // launcher waited for.
    const BlockedSignals blocked;
    return cudaGetDeviceCount(&found.count);
  }();
  if (error == cudaSuccess && found.count > 0) return found;
  found.count = 0;
  static_cast<void>(cudaGetLastError());  // it is told here, and not to whoever calls next
  if (error == cudaErrorInsufficientDriver && driver_version() == 0) {
    found.missing = "there is no NVIDIA driver on this machine (libcuda.so.1)";
  } else if (error == cudaErrorInsufficientDriver) {
    found.missing = fmt::format("the NVIDIA driver here is for CUDA {}, and this build needs one for {}",
                                version_text(driver_version()), version_text(CUDART_VERSION));
  } else if (error == cudaErrorNoDevice || error == cudaSuccess) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    found.missing = "the NVIDIA driver shows no device";
    if (visible) found.missing += fmt::format("; CUDA_VISIBLE_DEVICES is '{}'", visible);
  } else {
    found.missing =
        fmt::format("the NVIDIA driver does not work: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }
  return found;
}

class Runtime final : public Accelerator {
 public:
  int devices() override { return find_devices().count; }

  std::string what_is_missing(int index) override {
    if (index >= 0 && index < kMostDevices && is_usable_[static_cast<size_t>(index)]) return "";
    const Devices found = find_devices();
    if (!found.missing.empty()) return found.missing;
    if (index < 0 || index >= std::min(found.count, kMostDevices))
      return fmt::format("there is no cuda:{}: the NVIDIA driver shows {} device{}", index, found.count,
                         found.count == 1 ? "" : "s");
    const DeviceProperties seen = properties(index);
    if (!runs_on(TRAINYARD_CUDA_ARCHITECTURES, seen.major, seen.minor))
      return fmt::format("cuda:{}, {}, has compute capability {}.{}, and the kernels of this build are for {}", index,
                         seen.name, seen.major, seen.minor, TRAINYARD_CUDA_ARCHITECTURES);
    is_usable_[static_cast<size_t>(index)] = true;
    return "";
  }

  DeviceProperties properties(int index) override {
    cudaDeviceProp seen{};
    check(cudaGetDeviceProperties(&seen, index), "cudaGetDeviceProperties", index);
    return {.name = seen.name,
            .uuid = fmt::format("{:02x}", fmt::join(std::as_bytes(std::span(seen.uuid.bytes)), "")),
            .major = seen.major,
            .minor = seen.minor,
            .multiprocessors = seen.multiProcessorCount,
            .memory_bytes = seen.totalGlobalMem,
            .l2_bytes = static_cast<size_t>(seen.l2CacheSize),
            .shared_bytes = seen.sharedMemPerBlockOptin};
  }

  std::string describe() override {
    const int driver = driver_version();
    return fmt::format("{}{}", version_text(CUDART_VERSION),
                       driver == 0 ? "" : fmt::format(", driver for {}", version_text(driver)));
  }

  void use_device(int index) override { use_as_any(index); }

  MemoryRoom room(int index) override {
    use(index);
    MemoryRoom room;
    check(cudaMemGetInfo(&room.free, &room.total), "cudaMemGetInfo", index);
    return room;
  }
  void* take_memory(int index, size_t bytes) override {
    use(index);
    void* address = nullptr;
    return got(cudaMalloc(&address, bytes), "cudaMalloc", index) ? address : nullptr;
  }
  void give_memory_back(int index, void* address) noexcept override {
    if (try_to_use(index) == cudaSuccess) static_cast<void>(cudaFree(address));
  }
  void* take_pinned(size_t bytes) override {
    check(try_to_use_any(), "cudaSetDevice", 0);
    void* address = nullptr;
    return got(cudaHostAlloc(&address, bytes, cudaHostAllocPortable), "cudaHostAlloc", 0) ? address : nullptr;
  }
  void give_pinned_back(void* address) noexcept override {
    // Nothing is promised of copies that are under way in it.
    if (try_to_use_any() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess)
      static_cast<void>(cudaFreeHost(address));
  }

  void* make_stream(int index) override {
    use(index);
    cudaStream_t made = nullptr;
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange", index);
    // It has no order against the default stream, which would put both behind one another at every launch there; and
    // before it where a multiprocessor is free: a collective of few blocks must not queue behind a product of many.
    check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority", index);
    return made;
  }
  void synchronize(StreamId stream) override {
    use(stream.device);
    check(cudaStreamSynchronize(handle_of(stream)), "cudaStreamSynchronize", stream.device);
  }

  void* record(StreamId stream, Keeps keeps) override {
    use(stream.device);
    cudaEvent_t event = nullptr;
    const unsigned flags = keeps == Keeps::Time ? cudaEventDefault : cudaEventDisableTiming;
    check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags", stream.device);
    const cudaError_t error = cudaEventRecord(event, handle_of(stream));
    if (error != cudaSuccess) drop_event(stream.device, event);
    check(error, "cudaEventRecord", stream.device);
    return event;
  }
  void drop_event(int index, void* event) noexcept override {
    if (try_to_use(index) == cudaSuccess) static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
  }
  void gate(StreamId stream, void* event) override {
    use(stream.device);
    check(cudaStreamWaitEvent(handle_of(stream), static_cast<cudaEvent_t>(event), 0), "cudaStreamWaitEvent",
          stream.device);
  }
  bool has_passed(int index, void* event) override {
    use(index);
    const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (error == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // an answer, which the next who asks what has failed must not find
      return false;
    }
    check(error, "cudaEventQuery", index);
    return true;
  }
  void wait(int index, void* event) override {
    use(index);
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "cudaEventSynchronize", index);
  }
  double milliseconds_between(int index, void* begin, void* end) override {
    use(index);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(begin), static_cast<cudaEvent_t>(end)),
          "cudaEventElapsedTime", index);
    return milliseconds;
  }

  void copy(StreamId stream, void* to, const void* from, size_t bytes) override {
    use(stream.device);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_of(stream)), "cudaMemcpyAsync", stream.device);
  }
  void set_zero(StreamId stream, void* to, size_t bytes) override {
    use(stream.device);
    check(cudaMemsetAsync(to, 0, bytes, handle_of(stream)), "cudaMemsetAsync", stream.device);
  }

  void begin_capture(StreamId stream) override {
    use(stream.device);
    // Relaxed: this thread may take memory meanwhile, and others go on as if nothing were.
    check(cudaStreamBeginCapture(handle_of(stream), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture",
          stream.device);
  }
  Graph end_capture(StreamId stream) override {
    use(stream.device);
    cudaGraph_t written = nullptr;
    check(cudaStreamEndCapture(handle_of(stream), &written), "cudaStreamEndCapture", stream.device);
    size_t operations = 0;
    cudaGraphExec_t made = nullptr;
    cudaError_t error = cudaGraphGetNodes(written, nullptr, &operations);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&made, written, 0);
    static_cast<void>(cudaGraphDestroy(written));
    check(error, "cudaGraphInstantiate", stream.device);
    return {made, operations};
  }
  void abandon_capture(StreamId stream) noexcept override {
    cudaGraph_t written = nullptr;
    static_cast<void>(cudaStreamEndCapture(handle_of(stream), &written));
    if (written) static_cast<void>(cudaGraphDestroy(written));
    static_cast<void>(cudaGetLastError());  // what the capture failed of has been told
  }
  void launch(StreamId stream, void* graph) override {
    use(stream.device);
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), handle_of(stream)), "cudaGraphLaunch", stream.device);
  }
  void drop_graph(void* graph) noexcept override {
    static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
  }

  void begin_activities() override { cuda::begin_activities(); }
  void end_activities() noexcept override { cuda::end_activities(); }
  DeviceTrace::Seen activities(int index) override { return activities_of(index); }

 private:
  static cudaStream_t handle_of(StreamId stream) { return static_cast<cudaStream_t>(stream.handle); }

  /// Whether memory was given; false where there is no room.
  static bool got(cudaError_t error, const char* call, int index) {
    if (error == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // of no interest to the next call
      return false;
    }
    check(error, call, index);
    return true;
  }

  std::array<std::atomic<bool>, kMostDevices> is_usable_{};
};

}  // namespace
}  // namespace trainyard::cuda

namespace trainyard {

Accelerator* accelerator() {
  static cuda::Runtime runtime;
  return &runtime;
}

}  // namespace trainyard
