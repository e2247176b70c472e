#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/cuda/convert.cuh"
#include "tensor/cuda/check.h"
#include "tensor/tensor.h"

// How kernels are launched and how they read and write elements. Every kernel computes in float32 and rounds once, at
// the store: the same bits as on the CPU.
namespace trainyard::ops::cuda {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 4096;  ///< of a kernel that strides over its grid: enough to fill any device

/// The elements, for a kernel. T must be that of the tensor's dtype.
template <typename T>
T* elements(Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.raw());
}
template <typename T>
const T* elements(const Tensor& tensor) {
  return reinterpret_cast<const T*>(tensor.raw());
}

struct Grid {
  int64_t blocks = 1, rows = 1;  ///< of x and y
  int threads = kThreads;
};

/// So many blocks that each of `count` has a thread, or that threads go round.
inline Grid grid_for(int64_t count) {
  return {.blocks = std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks)};
}

/// A block a row, of which a thread takes `packs` in turn: no more warps than find one.
inline Grid grid_of_rows(int64_t rows, int64_t packs) {
  return {.blocks = rows, .threads = static_cast<int>(std::clamp<int64_t>((packs + 31) / 32 * 32, 32, kThreads))};
}

/// Queues a kernel on the thread's current stream of the device. Throws DeviceError where the device has failed.
template <typename... Wanted, typename... Given>
void launch(const char* name, Device device, const Grid& grid, void (*kernel)(Wanted...), Given... given) {
  trainyard::cuda::use(device.index);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.rows), 1};
  config.blockDim = dim3{static_cast<unsigned>(grid.threads), 1, 1};
  config.stream = static_cast<cudaStream_t>(current_stream(device).handle);
  trainyard::cuda::check(cudaLaunchKernelEx(&config, kernel, static_cast<Wanted>(given)...), name, device.index);
}

/// The threads of a grid of one dimension, and this one among them.
struct Stride {
  int64_t first, step;
};
__device__ inline Stride grid_stride() {
  return {int64_t{blockIdx.x} * blockDim.x + threadIdx.x, int64_t{gridDim.x} * blockDim.x};
}

template <typename T>
__device__ inline float rounded_to(float value) {
  return to_float(from_float<T>(value));
}

/// So many elements side by side that a thread reads or writes at once: 16 bytes where they are aligned.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
};
template <int kCount, typename T>
__device__ inline Pack<T, kCount> load(const T* from, int64_t pack) {
  return reinterpret_cast<const Pack<T, kCount>*>(from)[pack];
}
template <int kCount, typename T>
__device__ inline void store(T* to, int64_t pack, const Pack<T, kCount>& values) {
  reinterpret_cast<Pack<T, kCount>*>(to)[pack] = values;
}

/// Elements of the widest of the types in 16 bytes.
template <typename... T>
constexpr int kWide = static_cast<int>(16 / std::max({sizeof(T)...}));

/// Calls body with std::integral_constant<int, kWide<T…>>, or with 1 where `is_wide` is false or a pointer is not
/// aligned.
template <typename... T, typename Body>
void with_packs(bool is_wide, const Body& body, const T*... data) {
  const bool is_aligned = ((reinterpret_cast<uintptr_t>(data) % (sizeof(T) * kWide<T...>) == 0) && ...);
  if (is_wide && is_aligned)
    body(std::integral_constant<int, kWide<T...>>{});
  else
    body(std::integral_constant<int, 1>{});
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Most {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// All values of kLanes threads side by side, a warp at most, combined: the same bits on each of them. Each thread of
/// the warp calls it.
template <int kLanes, typename T, typename F>
__device__ T among(T value, const F& combine) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, lanes));
  return value;
}

/// All threads' values combined, the same bits on each, in an order of its own: warps first. blockDim.x is a multiple
/// of 32. Each thread of the block calls it.
template <typename T, typename F>
__device__ T among_block(T value, const F& combine) {
  __shared__ T of_warp[32];
  value = among<32>(value, combine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  T all = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) all = combine(all, of_warp[warp]);
  __syncthreads();  // the next values are written there
  return all;
}

template <typename T>
__device__ T block_sum(T value) {
  return among_block(value, Sum{});
}

}  // namespace trainyard::ops::cuda
