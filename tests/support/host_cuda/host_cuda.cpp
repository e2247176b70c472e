#include <cuda_runtime.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct HostCudaGraph {
  std::vector<std::function<cudaError_t()>> work;
  bool is_broken = false;
};
struct HostCudaStream {
  int device = 0;
  uint32_t number = 0;
  HostCudaGraph* captured = nullptr;  ///< what its work is written down in; none: it is done
  std::vector<std::function<cudaError_t()>> delayed;
  bool is_held = false;
  uint64_t begun = 0, ended = 0;  ///< work of others
};
struct HostCudaEvent {
  int device = 0;
  HostCudaStream* of = nullptr;
  uint64_t after = 0;  ///< so much of its stream's work
  bool is_captured = false, keeps_time = false;
  uint64_t at = 0;  ///< nanoseconds
};

namespace {

HostCudaStream g_default_stream;
thread_local int t_device = 0;
thread_local cudaError_t t_last_error = cudaSuccess;

struct Machine {
  std::mutex mutex;  // guards streams, too
  std::condition_variable work_ended;
  std::atomic<bool> all_are_held = false, delays = false;
  int devices = 1, most_devices = 1, driver = 13010, major = 9, minor = 0;
  size_t memory = size_t{1} << 30, taken = 0, others = 0;
  std::map<void*, size_t> allocations;
  std::vector<HostCudaStream*> streams;  ///< all but the default one
  std::map<std::string, cudaError_t> failures;
  std::shared_ptr<const std::function<void(const host_cuda::Done&)>> look;  ///< null: nobody looks on
  std::atomic<size_t> waits = 0;
  std::set<int> contexts;
};

Machine& machine() {
  static Machine machine;
  return machine;
}

/// What each failure leaves behind for cudaGetLastError(), "not ready" too.
cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) t_last_error = error;
  return error;
}

/// Nearly every call makes a context on the thread's device if there is none.
void make_context() {
  const std::lock_guard lock(machine().mutex);
  machine().contexts.insert(t_device);
}

}  // namespace

cudaError_t host_cuda::ordered(const char* call) {
  const std::lock_guard lock(machine().mutex);
  const auto found = machine().failures.find(call);
  if (found == machine().failures.end()) return cudaSuccess;
  const cudaError_t error = found->second;
  machine().failures.erase(found);
  return noted(error);
}

using host_cuda::ordered;

namespace {

HostCudaStream* stream_of(cudaStream_t stream) {
  return stream ? stream : &g_default_stream;
}
int device_of(cudaStream_t stream) {
  return stream ? stream->device : t_device;
}

/// Waits on the host, where a device's stream would, for so much of the stream's work.
void wait_for_work(const HostCudaStream& stream, uint64_t after) {
  std::unique_lock lock(machine().mutex);
  machine().work_ended.wait(lock, [&] { return stream.ended >= after && stream.delayed.empty(); });
}
void wait_for_all_work(cudaStream_t stream) {
  uint64_t after = 0;
  {
    const std::lock_guard lock(machine().mutex);
    after = stream_of(stream)->begun;
  }
  wait_for_work(*stream_of(stream), after);
}

/// Does what was put off, and then lets those go on who wait for it.
cudaError_t catch_up(HostCudaStream& stream) {
  std::vector<std::function<cudaError_t()>> work;
  {
    const std::lock_guard lock(machine().mutex);
    work = stream.delayed;
  }
  cudaError_t error = cudaSuccess;
  for (const auto& each : work)
    if (error == cudaSuccess) error = each();
  const std::lock_guard lock(machine().mutex);
  stream.delayed.clear();
  machine().work_ended.notify_all();
  return error;
}

/// What cannot be part of a capture breaks it.
bool breaks_capture(cudaStream_t stream) {
  HostCudaGraph* const graph = stream_of(stream)->captured;
  if (graph) graph->is_broken = true;
  return graph != nullptr;
}

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

/// `work`, of which those who look on are told.
std::function<cudaError_t()> told_of(cudaStream_t stream, host_cuda::Work what, std::function<cudaError_t()> work) {
  if (what.kind == host_cuda::Work::Graph) return work;
  return [device = device_of(stream), number = stream_of(stream)->number, what, work = std::move(work)] {
    const uint64_t begin = now();
    const cudaError_t error = work();
    std::unique_lock lock(machine().mutex);
    const auto look = machine().look;
    lock.unlock();
    if (look) (*look)({what, device, number, begin, now()});
    return error;
  };
}

void set_held(cudaStream_t stream, bool is_held) {
  const std::lock_guard lock(machine().mutex);
  stream_of(stream)->is_held = is_held;
}

cudaError_t take(void** address, size_t bytes, bool is_counted) {
  make_context();
  const std::lock_guard lock(machine().mutex);
  if (is_counted && machine().taken + machine().others + bytes > machine().memory)
    return noted(cudaErrorMemoryAllocation);
  *address = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (!*address) return cudaErrorMemoryAllocation;
  std::memset(*address, 0xCB, bytes);  // what nobody has written is not zero
  machine().allocations[*address] = is_counted ? bytes : 0;
  if (is_counted) machine().taken += bytes;
  return cudaSuccess;
}

cudaError_t give_back(void* address) {
  const std::lock_guard lock(machine().mutex);
  const auto found = machine().allocations.find(address);
  if (found == machine().allocations.end()) return cudaErrorInvalidValue;
  machine().taken -= found->second;
  machine().allocations.erase(found);
  std::free(address);
  return cudaSuccess;
}

}  // namespace

namespace host_cuda {

void set_devices(int count) {
  machine().devices = count;
  machine().most_devices = std::max(machine().most_devices, count);
}
void set_driver(int version) {
  machine().driver = version;
}
void set_capability(int major, int minor) {
  machine().major = major, machine().minor = minor;
}
void set_memory(size_t bytes) {
  machine().memory = bytes;
}
size_t taken_bytes() {
  return machine().taken;
}
void set_others(size_t bytes) {
  machine().others = bytes;
}
void fail_next(const char* call, cudaError_t error) {
  machine().failures[call] = error;
}
void hold(cudaStream_t stream) {
  set_held(stream, true);
}
void release(cudaStream_t stream) {
  set_held(stream, false);
}
void hold_all(bool hold) {
  machine().all_are_held = hold;
}
void look_on(std::function<void(const Done&)> look) {
  const std::lock_guard lock(machine().mutex);
  machine().look = look ? std::make_shared<const std::function<void(const Done&)>>(std::move(look)) : nullptr;
}
cudaError_t submit(cudaStream_t stream, std::function<cudaError_t()> work, Work what) {
  make_context();
  if (device_of(stream) != t_device) return noted(cudaErrorInvalidResourceHandle);
  work = told_of(stream, what, std::move(work));
  if (HostCudaGraph* const graph = stream_of(stream)->captured) {
    graph->work.push_back(std::move(work));
    return cudaSuccess;
  }
  if (stream && machine().delays) {
    const std::lock_guard lock(machine().mutex);
    stream->delayed.push_back(std::move(work));
    return cudaSuccess;
  }
  wait_for_all_work(stream);
  return work();
}
void delay(bool delay) {
  machine().delays = delay;
  if (delay) return;
  for (HostCudaStream* const stream : machine().streams) static_cast<void>(catch_up(*stream));
}
std::set<int> contexts() {
  const std::lock_guard lock(machine().mutex);
  return machine().contexts;
}
void forget_contexts() {
  const std::lock_guard lock(machine().mutex);
  machine().contexts.clear();
}
int number_of(int device) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return (visible ? std::atoi(visible) : 0) + device;
}

size_t waits() {
  return machine().waits;
}

void begin_work(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  ++stream_of(stream)->begun;
}
void end_work(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  ++stream_of(stream)->ended;
  machine().work_ended.notify_all();
}

}  // namespace host_cuda

namespace {

/// A driver's thread stays until the process ends, with the signal mask of the thread that first asked for devices.
void start_thread_of_driver() {
  std::thread thread([] {
    while (true) ::pause();
  });
  ::pthread_setname_np(thread.native_handle(), "cuda driver");
  thread.detach();
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  static const bool has_begun = (start_thread_of_driver(), true);
  static_cast<void>(has_begun);
  *count = 0;
  if (const cudaError_t error = ordered("cudaGetDeviceCount")) return error;
  if (machine().driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  if (machine().devices == 0) return cudaErrorNoDevice;
  *count = machine().devices;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(t_last_error, cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorECCUncorrectable ? "uncorrectable ECC error encountered" : "an error of the test";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorECCUncorrectable ? "cudaErrorECCUncorrectable" : "cudaErrorOfTest";
}
cudaError_t cudaSetDevice(int device) {
  if (device >= machine().most_devices) return noted(cudaErrorInvalidDevice);
  t_device = device;
  make_context();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = t_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  std::unique_lock lock(machine().mutex);
  machine().work_ended.wait(lock, [] {
    return std::ranges::all_of(machine().streams, [](const HostCudaStream* stream) {
      return stream->device != t_device || stream->ended == stream->begun;
    });
  });
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {"host",
                 {{static_cast<char>(host_cuda::number_of(device))}},
                 machine().memory,
                 size_t{48} << 10,
                 machine().major,
                 machine().minor,
                 4,
                 1 << 20};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  make_context();
  const std::lock_guard lock(machine().mutex);
  *total = machine().memory;
  *free = *total - std::min(*total, machine().taken + machine().others);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (const cudaError_t error = ordered("cudaMalloc")) return error;
  return take(address, bytes, true);
}
cudaError_t cudaFree(void* address) {
  make_context();
  return give_back(address);
}
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  if (const cudaError_t error = ordered("cudaHostAlloc")) return error;
  return take(address, bytes, false);
}
cudaError_t cudaFreeHost(void* address) {
  make_context();
  return give_back(address);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  make_context();
  const std::lock_guard lock(machine().mutex);
  *stream = new HostCudaStream{.device = t_device, .number = static_cast<uint32_t>(machine().streams.size() + 1)};
  machine().streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  make_context();
  if (breaks_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  ++machine().waits;
  set_held(stream, false);
  if (const cudaError_t error = catch_up(*stream_of(stream))) return error;
  wait_for_all_work(stream);
  return ordered("cudaStreamSynchronize");
}
// Of captures the stand-in knows those of one stream.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  make_context();
  if (event->is_captured || breaks_capture(stream)) return cudaErrorStreamCaptureIsolation;
  if (const cudaError_t error = catch_up(*event->of)) return error;
  wait_for_work(*event->of, event->after);
  return ordered("cudaStreamWaitEvent");
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  make_context();
  *event = new HostCudaEvent{.device = t_device, .keeps_time = flags == cudaEventDefault};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  make_context();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  make_context();
  if (device_of(stream) != event->device) return noted(cudaErrorInvalidResourceHandle);
  const cudaError_t error = ordered("cudaEventRecord");
  const std::lock_guard lock(machine().mutex);
  event->of = stream_of(stream);
  event->after = event->of->begun;
  event->is_captured = event->of->captured != nullptr;
  event->at = now();
  return error;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  make_context();
  if (event->is_captured) return cudaErrorCapturedEvent;
  {
    const std::lock_guard lock(machine().mutex);
    if (machine().all_are_held || event->of->is_held || !event->of->delayed.empty() || event->of->ended < event->after)
      return noted(cudaErrorNotReady);
  }
  return ordered("cudaEventQuery");
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  make_context();
  if (event->is_captured) return cudaErrorCapturedEvent;
  set_held(event->of, false);
  wait_for_work(*event->of, event->after);
  return ordered("cudaEventSynchronize");
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->keeps_time || !end->keeps_time || begin->device != end->device)
    return noted(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = cudaEventQuery(begin)) return error;
  if (const cudaError_t error = cudaEventQuery(end)) return error;
  *milliseconds = static_cast<float>(static_cast<double>(end->at - begin->at) / 1e6);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const auto work = [=] {
    if (const cudaError_t error = ordered("cudaMemcpyAsync")) return error;
    std::memmove(to, from, bytes);
    return cudaSuccess;
  };
  return host_cuda::submit(stream, work, {host_cuda::Work::Copy, bytes});
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  const auto work = [=] {
    std::memset(to, value, bytes);
    return cudaSuccess;
  };
  return host_cuda::submit(stream, work, {host_cuda::Work::Fill, bytes});
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream) return cudaErrorStreamCaptureUnsupported;
  if (stream->captured) return cudaErrorIllegalState;
  stream->captured = new HostCudaGraph;
  return ordered("cudaStreamBeginCapture");
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->captured, nullptr);
  if (!*graph) return cudaErrorIllegalState;
  if (!(*graph)->is_broken) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new HostCudaGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (const cudaError_t error = ordered("cudaGraphLaunch")) return error;
  const auto work = [graph] {
    for (const auto& each : graph->work)
      if (const cudaError_t error = each()) return error;
    return cudaSuccess;
  };
  return host_cuda::submit(stream, work, {host_cuda::Work::Graph});
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
