#pragma once

#include <cstddef>
#include <string>

#include "tensor/device_activity.h"
#include "tensor/device_types.h"

// What devices with memory of their own provide to this floor; the one implementation is tensor/cuda/. Failures throw:
// OutOfMemoryError, DeviceError where the device is at fault, std::runtime_error for a call of ours that it refuses.
namespace trainyard {

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  [[nodiscard]] virtual int devices() = 0;
  /// Empty: the device can be used. Else what is missing.
  [[nodiscard]] virtual std::string what_is_missing(int index) = 0;
  [[nodiscard]] virtual DeviceProperties properties(int index) = 0;
  /// Versions, of the runtime and the driver.
  [[nodiscard]] virtual std::string describe() = 0;

  /// The calling thread uses this device, and so do threads that have used none yet where any will do, as for pinned
  /// memory: whichever it is then holds half a GiB for the process.
  virtual void use_device(int index) = 0;
  /// The room in the device's memory.
  [[nodiscard]] virtual MemoryRoom room(int index) = 0;
  /// Memory of the device, at least 512-byte aligned; null where it has no room.
  virtual void* take_memory(int index, size_t bytes) = 0;
  /// Waits for what still works in it.
  virtual void give_memory_back(int index, void* address) noexcept = 0;
  /// Host memory that copies to and from a device run over without a stop in between; null where there is no room.
  virtual void* take_pinned(size_t bytes) = 0;
  /// It does what give_memory_back() does, of the device that this thread uses.
  virtual void give_pinned_back(void* address) noexcept = 0;

  /// Its kernels go before those of default streams. It lasts until the process ends.
  virtual void* make_stream(int index) = 0;
  virtual void synchronize(StreamId stream) = 0;
  /// A new event at the stream's present end.
  enum class Keeps { Order, Time };
  virtual void* record(StreamId stream, Keeps keeps = Keeps::Order) = 0;
  virtual void drop_event(int index, void* event) noexcept = 0;
  /// What the stream is given from now on comes after the event.
  virtual void gate(StreamId stream, void* event) = 0;
  virtual bool has_passed(int index, void* event) = 0;
  virtual void wait(int index, void* event) = 0;
  /// Both events keep their time and have passed.
  virtual double milliseconds_between(int index, void* begin, void* end) = 0;

  /// Copies between host and the stream's device, or within it. Host memory may be reused when the stream has come
  /// past.
  virtual void copy(StreamId stream, void* to, const void* from, size_t bytes) = 0;
  virtual void set_zero(StreamId stream, void* to, size_t bytes) = 0;

  /// Work that was written down.
  struct Graph {
    void* handle;
    size_t operations;
  };
  /// What this thread gives the stream from now on is written down instead of done. Not of a default stream.
  virtual void begin_capture(StreamId stream) = 0;
  /// All of it. Throws where something was asked for that cannot be written down.
  virtual Graph end_capture(StreamId stream) = 0;
  /// Ends a capture of which nothing is wanted.
  virtual void abandon_capture(StreamId stream) noexcept = 0;
  virtual void launch(StreamId stream, void* graph) = 0;
  /// May still be under way.
  virtual void drop_graph(void* graph) noexcept = 0;

  /// What devices do from now on is written down, until as many calls of end_activities(). Throws InputError where
  /// nothing can look on.
  virtual void begin_activities() = 0;
  virtual void end_activities() noexcept = 0;
  /// The activities of one device that are over.
  [[nodiscard]] virtual DeviceActivities activities(int index) = 0;
};

/// That of this build; null where it has none.
Accelerator* accelerator();

}  // namespace trainyard
