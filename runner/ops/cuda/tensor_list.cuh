#pragma once

#include <vector>

#include "ops/cuda/launch.cuh"
#include "tensor/stream_graph.h"

// One kernel for many tensors, of which most are too small to fill a device: each is cut into chunks, a block takes one
// chunk, and a table in the device's memory says whose it is.
namespace trainyard::ops::cuda {

constexpr int64_t kChunk = 16384;  ///< elements

/// What an entry of a table is derived from.
struct ListedTensor {
  int64_t count = 0;        ///< elements
  int64_t first_chunk = 0;  ///< so many chunks have the entries before
  bool is_wide = false;     ///< its addresses allow packs
};

/// The entries and where they lie on a device. Entry: ListedTensor, and what the kernel takes of a tensor.
template <typename Entry>
struct TensorList {
  Tensor bytes;
  int count = 0;
  int64_t chunks = 0;

  /// Fills in first_chunk.
  TensorList(std::vector<Entry> entries, Device device) : count(static_cast<int>(entries.size())) {
    for (Entry& entry : entries) {
      entry.first_chunk = chunks;
      chunks += (entry.count + kChunk - 1) / kChunk;
    }
    const auto host = std::as_bytes(std::span(entries));
    const Tensor table = Tensor::from_bytes(host, {static_cast<int64_t>(host.size())}, DType::UInt8);
    StreamGraph::outside([&] { bytes = on_device(table, device); });
    StreamGraph::keep(bytes);
  }
  [[nodiscard]] const Entry* entries() const { return reinterpret_cast<const Entry*>(bytes.raw()); }
};

/// Which of `count` entries has the chunk: the last that begins at or before it. Those without elements have none.
template <typename Entry>
__device__ const Entry& entry_of(const Entry* entries, int count, int64_t chunk) {
  int first = 0, last = count - 1;
  while (first < last) {
    const int middle = (first + last + 1) / 2;
    if (entries[middle].first_chunk <= chunk)
      first = middle;
    else
      last = middle - 1;
  }
  return entries[first];
}

/// Calls act(integral_constant<int, packed elements>, pack) for this thread's part of the block's chunk of `entry`.
template <int kWidth, typename Act>
__device__ void for_chunk(const ListedTensor& entry, int64_t chunk, const Act& act) {
  const int64_t begin = (chunk - entry.first_chunk) * kChunk;
  const int64_t end = entry.count - begin < kChunk ? entry.count : begin + kChunk;
  const int64_t packed = entry.is_wide ? end / kWidth * kWidth : begin;  // begin is a multiple of kWidth
  for (int64_t i = begin / kWidth + threadIdx.x; i < packed / kWidth; i += blockDim.x)
    act(std::integral_constant<int, kWidth>{}, i);
  for (int64_t i = packed + threadIdx.x; i < end; i += blockDim.x) act(std::integral_constant<int, 1>{}, i);
}

/// Whether all of the addresses are aligned for packs of so many elements.
template <int kWidth, typename... T>
bool are_wide(const T*... data) {
  return ((reinterpret_cast<uintptr_t>(data) % (sizeof(T) * kWidth) == 0) && ...);
}

}  // namespace trainyard::ops::cuda
