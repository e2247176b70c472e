#include "comm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace trainyard::comm {

void Doorbell::wait(uint32_t ticket, std::chrono::microseconds limit) {
  // Either ring() sees `sleeping_`, or its count came first and the kernel refuses to sleep: both are seq_cst.
  sleeping_.store(1, std::memory_order_seq_cst);
  const timespec time{.tv_sec = limit.count() / 1'000'000, .tv_nsec = limit.count() % 1'000'000 * 1000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rung_), FUTEX_WAIT, ticket, &time, nullptr, 0);
  sleeping_.store(0, std::memory_order_relaxed);
}

void Doorbell::ring() {
  rung_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rung_), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace trainyard::comm
