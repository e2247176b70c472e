#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard::comm {

/// The last collectives of a rank, over all its communicators: issued, begun, ended. For whoever asks which one does
/// not come to its end. Memory is fixed, and there is no lock, so that a signal handler may write it out at any moment.
/// Any thread may call.
class FlightRecord {
 public:
  static constexpr size_t kKept = 256;  // a step of a 28-block model makes about a hundred

  /// A collective is queued. Texts are cut to what an entry holds. Returns its number, from 1.
  uint64_t issued(std::string_view name, std::string_view label, std::string_view group, size_t bytes) noexcept;
  void begun(uint64_t number) noexcept;
  /// One that fails never ends.
  void ended(uint64_t number) noexcept;

  /// Writes the entries as a JSON array, oldest first, times in seconds since 1970. Async-signal-safe. One that is
  /// being overwritten meanwhile is left out.
  void write(int fd) const noexcept;

 private:
  struct Entry {
    std::atomic<uint64_t> number = 0;  ///< 0 while the rest changes
    std::array<char, 16> name{};
    std::array<char, 64> label{};
    std::array<char, 24> group{};
    size_t bytes = 0;
    std::atomic<int64_t> issued = 0, begun = 0, ended = 0;  ///< nanoseconds since 1970; 0: not yet
  };
  Entry& entry_of(uint64_t number) { return entries_[number % kKept]; }

  std::atomic<uint64_t> last_ = 0;
  std::array<Entry, kKept> entries_;
};

}  // namespace trainyard::comm
