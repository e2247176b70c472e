#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trainyard {

enum class DeviceKind : uint8_t { Cpu, Cuda };

struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

struct DeviceProperties {
  std::string name;
  std::string uuid;          ///< tells it from any other, whatever its index: 32 hexadecimal digits
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
  size_t shared_bytes = 0;  ///< that a block may be given
};

/// Whether a CUDA device has units for products of float8 values: from Ada (compute capability 8.9) on.
inline bool multiplies_float8(const DeviceProperties& device) {
  return device.major > 8 || (device.major == 8 && device.minor >= 9);
}

/// Bytes of a device's memory. What nobody here has taken and is not free is the driver's or other processes'.
struct MemoryRoom {
  size_t free = 0, total = 0;
};

/// A stream by its device and its handle, a cudaStream_t; null: the device's default stream.
struct StreamId {
  int device = -1;
  void* handle = nullptr;
  auto operator<=>(const StreamId&) const = default;
};
constexpr StreamId kNoStream{};

}  // namespace trainyard
