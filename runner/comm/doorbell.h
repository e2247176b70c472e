#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trainyard::comm {

/// Wakes the one thread of a rank that waits for its peers: whatever concerns it rings. Works in memory shared between
/// processes too. Waiting and ringing cost no system call while nobody sleeps.
class Doorbell {
 public:
  /// Take one before looking for work; wait() returns at once if the bell was rung since.
  [[nodiscard]] uint32_t ticket() const { return rung_.load(std::memory_order_seq_cst); }
  void wait(uint32_t ticket, std::chrono::microseconds limit);
  void ring();

 private:
  std::atomic<uint32_t> rung_{0};
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace trainyard::comm
