#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "comm/doorbell.h"

namespace trainyard::comm {

/// One direction between two ranks of a host: a ring of bytes in the receiver's segment, 64-byte lines throughout.
struct Ring {
  alignas(64) std::atomic<uint64_t> written{0};       ///< bytes that the sender has put in, ever
  alignas(64) std::atomic<uint64_t> consumed{0};      ///< bytes that the receiver has given back, ever
  alignas(64) std::atomic<uint32_t> sender_waits{0};  ///< for room
};

/// The memory that the ranks of one host share with one of them, its owner: a page of state, then a ring for each
/// peer that sends to it. The owner holds a lock on the file as long as it lives, which the kernel drops with the
/// process, however that ends. The file's name is gone as soon as the peers have opened it, so nothing stays behind.
class SharedSegment {
 public:
  struct Head {
    uint8_t nonce[16];
    std::atomic<int32_t> culprit;    ///< of the owner's Notice
    std::atomic<uint32_t> has_left;  ///< the notice is there
    alignas(64) Doorbell doorbell;
  };

  /// A new file in the folder, one page long, locked. Throws std::system_error.
  explicit SharedSegment(const std::string& folder);
  /// A peer's, by its identity(); none if there is no such file here, or another: the peer is on another host.
  static std::optional<SharedSegment> open(const std::string& folder, const std::string& identity);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment();

  /// Name and nonce, for the peers.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  /// The owner: takes the file's name away.
  void unlink() noexcept;
  /// The owner: reserves room for `rings` of `ring_bytes` each; false where the folder has none left. Reserved pages
  /// cannot fail later: a full /dev/shm would else end the process by SIGBUS.
  [[nodiscard]] bool reserve(int rings, size_t ring_bytes);
  /// Maps what the owner reserved. Throws std::system_error.
  void map(int rings, size_t ring_bytes);

  [[nodiscard]] Head& head() const { return *static_cast<Head*>(base_); }
  [[nodiscard]] Ring& ring(int index) const;
  [[nodiscard]] std::byte* ring_data(int index) const;
  [[nodiscard]] size_t ring_bytes() const { return ring_bytes_; }
  /// A peer: false once the owner's process, or the owner, is gone.
  [[nodiscard]] bool is_owner_alive() const;

 private:
  SharedSegment() = default;
  void unmap() noexcept;

  std::string path_;  ///< empty once unlinked, and for peers
  std::string identity_;
  UniqueFd file_;
  void* base_ = nullptr;
  int rings_ = 0;
  size_t ring_bytes_ = 0;
};

}  // namespace trainyard::comm
