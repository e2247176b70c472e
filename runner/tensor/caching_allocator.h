#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/mutex.h"
#include "tensor/device.h"

namespace trainyard {

/// The end of what a stream had been given at some moment.
class Fence {
 public:
  virtual ~Fence() = default;
  [[nodiscard]] virtual bool has_passed() = 0;
  virtual void wait() = 0;
};

/// Where a CachingAllocator gets memory, and how it learns how far streams are.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// The memory is aligned to 512 bytes at least; null where there is no room.
  virtual void* take(size_t bytes) = 0;
  /// Returns once nobody works in it any more.
  virtual void give_back(void* segment) noexcept = 0;
  virtual std::unique_ptr<Fence> fence(StreamId stream) = 0;
  /// The room of all memory that there is; nothing where that is not known.
  virtual MemoryRoom room() { return {}; }
};

/// Work of another stream in a block.
class StreamUse {
 public:
  StreamUse(StreamId stream, StreamId owner) : stream_(stream), owner_(owner) {}
  /// `stream` has been gated behind that work: a block of its own serves its next request as if nobody else had used
  /// it, however far the host is ahead of the device.
  void is_behind(StreamId stream) {
    if (stream == owner_) is_over_ = true;
  }
  [[nodiscard]] StreamId stream() const { return stream_; }
  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  const StreamId stream_, owner_;
  std::atomic<bool> is_over_ = false;
};

/// How a CachingAllocator parts what it takes.
enum class Segments : uint8_t {
  Shared,
  /// Every block is a segment to itself, of a multiple of 2 MiB, and serves requests of its size alone: it begins where
  /// its segment does, whatever was asked for before it.
  Own,
};

/// Memory that is expensive to get, kept for reuse: segments of a source, split into blocks. A freed block is joined
/// with its free neighbours at once.
///   A block belongs to the stream for which it was allocated (kNoStream: to the host): freed, it serves that stream's
/// next request without waiting, since what still runs in it there comes before. Other streams that it was used_on(),
/// and whose use is not over, must first have passed the moment at which it was freed, as asked when memory is next
/// needed.
///   What a request takes, where segments are shared: a multiple of 512 bytes; up to 1 MiB from segments of 2 MiB,
/// below 10 MiB from segments of 20 MiB, so that the many sizes of a step share them; else a segment of its own,
/// rounded to 2 MiB, which smaller requests may split later. The smallest block that fits is taken (best fit). Any
/// thread may call any function.
class CachingAllocator {
 public:
  explicit CachingAllocator(MemorySource& source, Segments segments = Segments::Shared)
      : source_(source), has_own_segments_(segments == Segments::Own) {}
  /// Gives back everything, blocks in use too: as at the end of the process.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Null where the source has no room even after all that is unused was waited for and given back to it.
  /// Throws what the source's fences throw.
  void* allocate(size_t bytes, StreamId stream);
  /// `block` came from allocate() and was not freed since.
  void free(void* block) noexcept;
  /// The block is used by work that `stream` was given, which need not be done when the block is freed. Null where
  /// nothing has to be known of it: of the stream that the block belongs to.
  std::shared_ptr<StreamUse> used_on(void* block, StreamId stream);
  /// Whether `block` is one that came from allocate() and was not freed since.
  [[nodiscard]] bool owns(const void* block) const;
  /// Gives segments in which nothing is in use back to the source.
  void trim() noexcept;

  struct Statistics {
    size_t in_use = 0, most_in_use = 0;      ///< bytes of blocks that were allocated and not freed
    size_t reserved = 0, most_reserved = 0;  ///< bytes of segments
    size_t largest_free = 0;                 ///< bytes of the largest block that could be given out
    size_t segments = 0;
  };
  [[nodiscard]] Statistics statistics() const;
  /// The high-water marks begin again at what there is now.
  void restart_peak();

 private:
  struct Block {
    size_t bytes;
    const void* segment;  ///< its first byte
    StreamId stream;
    bool in_use = false;
    std::vector<std::shared_ptr<StreamUse>> uses{};  ///< by other streams; none twice that nobody else knows of
  };
  using Blocks = std::map<std::byte*, Block>;

  /// Free blocks in the order in which a request looks for one: of its kind and stream, the smallest that fits.
  struct FreeBlock {
    bool is_small;
    StreamId stream;
    size_t bytes;
    std::byte* address;
    auto operator<=>(const FreeBlock&) const = default;
  };

  /// A freed block that streams may still work in.
  struct Pending {
    std::byte* address;
    std::vector<std::unique_ptr<Fence>> fences;
  };

  enum class Wait : uint8_t { No, Yes };

  [[nodiscard]] std::byte* find(size_t bytes, StreamId stream) const REQUIRES(mutex_);
  [[nodiscard]] std::byte* grow(size_t bytes, StreamId stream) REQUIRES(mutex_);
  void* use(std::byte* address, size_t bytes) REQUIRES(mutex_);
  void make_free(Blocks::iterator block) REQUIRES(mutex_);
  void collect(Wait wait) REQUIRES(mutex_);
  void give_back_unused() noexcept REQUIRES(mutex_);
  [[nodiscard]] bool is_small(const Block& block) const REQUIRES(mutex_) {
    return segments_.at(block.segment).is_small;
  }
  [[nodiscard]] FreeBlock key_of(const Blocks::value_type& block) const REQUIRES(mutex_) {
    return {is_small(block.second), block.second.stream, block.second.bytes, block.first};
  }

  struct Segment {
    size_t bytes;
    bool is_small;
  };

  MemorySource& source_;
  const bool has_own_segments_;
  mutable Mutex mutex_;
  /// All of them, by address; those of a segment lie side by side and fill it.
  Blocks blocks_ GUARDED_BY(mutex_);
  std::map<const void*, Segment> segments_ GUARDED_BY(mutex_);
  std::set<FreeBlock> free_ GUARDED_BY(mutex_);
  std::vector<Pending> pending_ GUARDED_BY(mutex_);
  Statistics statistics_ GUARDED_BY(mutex_);
};

}  // namespace trainyard
