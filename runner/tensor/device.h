#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/device_types.h"

// Devices, without their headers: what is above ops/ and comm/ knows them by these names only.
namespace trainyard {

/// "cpu", "cuda:0".
std::string to_string(Device device);

/// How many CUDA devices this process may use: 0 where the build, the driver or the device is missing.
int cuda_devices();

/// Throws InputError where `device` cannot be computed on, saying what is missing: in this build, of the driver, or of
/// the device. The CPU always can.
void require_device(Device device);

/// What is wrong where `local_world` ranks of a node see `devices`.
std::string too_few_devices(int local_world, int devices);

/// Throws InputError where `local_world` ranks that see the devices that this process sees cannot have one each.
void require_devices(DeviceKind kind, int local_world);

/// That of rank `local_rank` of the `local_world` ranks of a node, each of which has one to itself, and the one that
/// this process uses from now on, also where it needs any. The only one that a process sees is its own: SLURM's
/// --gpus-per-task and device plugins show each rank another; that they do, ranks find out as they connect. Throws
/// InputError where the node has fewer, and as require_device().
Device device_of_rank(DeviceKind kind, int local_rank, int local_world);

/// The properties of a CUDA device. Throws as require_device() does.
DeviceProperties properties_of(Device device);

/// Throws as require_device() does.
MemoryRoom room_on(Device device);

/// "13.0, driver for 13.1, NVIDIA H200"; "none in this build"; "13.0, " and why there is no device.
std::string describe_cuda();

/// A queue of work on a device. Work on one stream runs in the order in which it was given, by any threads; work on
/// two has no order but by events. A thread gives work to its current stream; outside a StreamScope that is
/// the device's default stream.
class Stream {
 public:
  /// A stream of `device` that no other Stream has. Throws InputError where there is no such device.
  explicit Stream(Device device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] StreamId id() const { return id_; }

 private:
  StreamId id_;
};

/// While it lives, this thread's work for the stream's device goes to that stream. Scopes nest.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) : StreamScope(stream.id()) {}
  explicit StreamScope(StreamId stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  StreamId outer_;
};

/// This thread's current stream of `device`; kNoStream of the CPU.
StreamId current_stream(Device device);

/// A point in a stream: all that the thread's current stream of `device` had been given when the event was made.
class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// What is given to the current stream of the device from now on runs after this point. Does not wait.
  void gate() const;
  [[nodiscard]] bool has_passed() const;
  /// Waits, on the host. Throws DeviceError where the device has failed.
  void wait() const;

 private:
  Device device_;
  void* handle_;
};

/// Waits until this thread's current stream of `device` is done; the CPU is at once. Throws DeviceError where the
/// device has failed: errors of kernels show here, or at any later call.
void synchronize(Device device);

}  // namespace trainyard
