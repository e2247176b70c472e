#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <tuple>

// As much of the CUDA runtime as Trainyard uses, on the host: the sources of tensor/cuda/ and ops/cuda/ are compiled
// against this instead, as C++, so that their tests run where no device and no compiler for one is. Memory is the
// host's, streams are done at once (but for begin_work()), and a kernel's threads take turns (grid.cpp). What it
// cannot show: speed, real races between blocks, the limits of a real device.

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorContained = 226,
  cudaErrorOperatingSystem = 304,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorTensorMemoryLeak = 721,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorMpsClientTerminated = 810,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorIllegalState = 401,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorExternalDevice = 911,
  cudaErrorUnknown = 999,
};

struct HostCudaStream;
struct HostCudaEvent;
struct HostCudaGraph;
using cudaStream_t = HostCudaStream*;
using cudaEvent_t = HostCudaEvent*;
using cudaGraph_t = HostCudaGraph*;
using cudaGraphExec_t = HostCudaGraph*;
using cudaGraphNode_t = void*;

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem, sharedMemPerBlockOptin;
  int major, minor, multiProcessorCount, l2CacheSize;
};

#define CUDART_VERSION 13000
enum { cudaHostAllocPortable = 1, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int* version);
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMalloc(void** address, size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

// ---- kernels

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local  // blocks run one after the other on a thread

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace host_cuda {

/// Runs `thread` once for each thread of each block, with threadIdx and blockIdx set.
cudaError_t run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

/// What a stream is given; of a graph the parts count.
struct Work {
  enum Kind { Kernel, Copy, Fill, Graph } kind = Kernel;
  size_t bytes = 0;
};

/// The stream's next work: done at once, or written down where the stream is being captured. Refused where the thread's
/// device is not the stream's.
cudaError_t submit(cudaStream_t stream, std::function<cudaError_t()> work, Work what = {});

/// Work that was done, by the system's clock in nanoseconds.
struct Done : Work {
  int device;
  uint32_t stream;
  uint64_t begin, end;
};
/// `look` is called for all work from now on; null: nobody looks on. Any thread.
void look_on(std::function<void(const Done&)> look);

/// Waits until all threads of the block are here.
void meet_block();
/// Leaves `bits` at this lane, waits for the lanes of the warp, and returns those of `lane`.
uint32_t exchange(uint32_t bits, unsigned lane);
/// For which lanes of the warp, from the lowest bit on, `is_set`.
uint32_t ballot(bool is_set);

// What a test makes of the machine.
void set_devices(int count);   ///< those that there were before go on to serve what was begun on them
void set_driver(int version);  ///< 0: none
void set_capability(int major, int minor);
void set_memory(size_t bytes);
size_t taken_bytes();
void set_others(size_t bytes);  ///< that other processes hold
/// The next call of that name fails so.
void fail_next(const char* call, cudaError_t error);
/// The failure that a test ordered for this call; else success.
cudaError_t ordered(const char* call);
/// Events of `stream` recorded from now on have not passed until release(), or until somebody waits for them.
void hold(cudaStream_t stream);
void release(cudaStream_t stream);
/// The same of every stream, until it is called with false.
void hold_all(bool hold);
/// The number of `device` on the machine: CUDA_VISIBLE_DEVICES says that of this process's first one.
int number_of(int device);
/// The devices on which calls have made a context since the last forget_contexts().
std::set<int> contexts();
void forget_contexts();
/// How often threads have waited for a stream, cudaStreamSynchronize's way, since the process began.
size_t waits();

/// Streams other than the default one do what they are given when another stream, or the host, waits for the stream,
/// and at the latest when this is called with false. Who waits for an event on the host waits for one of these.
void delay(bool delay);

/// Work of `stream` that is done by somebody else, later: what comes after it there, or waits for an event after it,
/// waits on the host until end_work().
void begin_work(cudaStream_t stream);
void end_work(cudaStream_t stream);

}  // namespace host_cuda

template <typename... Wanted, typename... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Wanted...), Given&&... given) {
  const std::tuple<Wanted...> arguments(std::forward<Given>(given)...);
  return host_cuda::submit(config->stream, [kernel, arguments, grid = config->gridDim, block = config->blockDim] {
    return host_cuda::run_grid(grid, block, [&] { std::apply(kernel, arguments); });
  });
}

inline void __syncthreads() {
  host_cuda::meet_block();
}
inline unsigned __ballot_sync(unsigned, bool is_set) {
  return host_cuda::ballot(is_set);
}
inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned lanes) {
  static_assert(sizeof(T) % 4 == 0);
  auto words = std::bit_cast<std::array<uint32_t, sizeof(T) / 4>>(value);
  for (uint32_t& word : words) word = host_cuda::exchange(word, (threadIdx.x % 32) ^ lanes);
  return std::bit_cast<T>(words);
}
