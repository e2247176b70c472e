#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// The two formats inside TensorBoard's event files. Of the protocol buffer `Event` these files need two shapes of one
// message, three levels deep; libprotobuf-lite would be half a megabyte in the image and a compiler in the build to
// write them. So they are written here, by the rules of protobuf.dev/programming-guides/encoding.
namespace trainyard::metrics {

struct Scalar {
  std::string_view tag;
  float value = 0;
};

/// The first event of a file: Event {wall_time = 1, file_version = 3: "brain.Event:2"}.
std::string version_event(double wall_time);

/// Event {wall_time = 1, step = 2, summary = 5 {value = 1 {tag = 1, simple_value = 2} …}}.
std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars);

/// An event as a record of TensorFlow: length (8 bytes), masked CRC32C of it, the event, masked CRC32C of that; numbers
/// little-endian.
std::string framed(std::string_view event);

/// The first record of a file's text.
struct EventRecord {
  int64_t step = 0;  ///< 0 where the event has none
  size_t bytes = 0;  ///< of the record with its frame
};
/// None where `text` does not begin with a whole, undamaged record. `text` may be anything.
std::optional<EventRecord> first_record(std::string_view text);

}  // namespace trainyard::metrics
