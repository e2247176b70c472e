#include "tensor/caching_allocator.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

namespace trainyard {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr StreamId kMain{0, nullptr};

StreamId stream(int number) {
  return {0, reinterpret_cast<void*>(static_cast<intptr_t>(number))};
}

/// Segments of a device of `room` bytes, none of which is ever touched, and streams that go on when told to.
class FakeSource final : public MemorySource {
 public:
  explicit FakeSource(size_t room) : room_(room) {}

  void* take(size_t bytes) override {
    if (taken_ + bytes > room_) return ++refusals, nullptr;
    taken_ += bytes;
    auto* const address = reinterpret_cast<std::byte*>(next_);
    next_ += bytes;  // side by side: blocks of two segments must not be joined
    segments_[address] = bytes;
    return address;
  }
  void give_back(void* segment) noexcept override {
    const auto found = segments_.find(static_cast<std::byte*>(segment));
    taken_ -= found->second;
    segments_.erase(found);
  }
  std::unique_ptr<Fence> fence(StreamId id) override { return std::make_unique<FakeFence>(*this, id, ++given_[id]); }

  void pass(StreamId id) { passed_[id] = given_[id]; }
  [[nodiscard]] bool is_idle(StreamId id) { return passed_[id] == given_[id]; }
  [[nodiscard]] size_t taken() const { return taken_; }
  [[nodiscard]] size_t segments() const { return segments_.size(); }
  /// The segment that holds all of a block; null: none does.
  [[nodiscard]] std::byte* segment_of(std::byte* block, size_t bytes) const {
    auto after = segments_.upper_bound(block);
    if (after == segments_.begin()) return nullptr;
    const auto& [address, size] = *--after;
    return block + bytes <= address + size ? address : nullptr;
  }

  int refusals = 0, waits = 0;

 private:
  class FakeFence final : public Fence {
   public:
    FakeFence(FakeSource& source, StreamId id, int64_t moment) : source_(source), id_(id), moment_(moment) {}
    bool has_passed() override { return source_.passed_[id_] >= moment_; }
    void wait() override {
      ++source_.waits;
      source_.passed_[id_] = std::max(source_.passed_[id_], moment_);
    }

   private:
    FakeSource& source_;
    StreamId id_;
    int64_t moment_;
  };

  size_t room_, taken_ = 0;
  uintptr_t next_ = uintptr_t{1} << 40;
  std::map<std::byte*, size_t> segments_;
  std::map<StreamId, int64_t> given_, passed_;
};

}  // namespace

TEST_CASE("CachingAllocator: sizes share segments by their kind, and blocks are split and joined again", "[tensor]") {
  FakeSource source(1024 * kMiB);
  CachingAllocator allocator(source);
  auto* const a = static_cast<std::byte*>(allocator.allocate(1000, kMain));
  auto* const b = static_cast<std::byte*>(allocator.allocate(1, kMain));
  CHECK(b == a + 1024);  // 1000 take two steps of 512
  CHECK(allocator.statistics().in_use == 1536);
  CHECK(source.taken() == 2 * kMiB);
  void* const large = allocator.allocate(3 * kMiB, kMain);
  CHECK(source.taken() == 22 * kMiB);
  CHECK(allocator.allocate(9 * kMiB, kMain) == static_cast<std::byte*>(large) + 3 * kMiB);
  CHECK(source.taken() == 22 * kMiB);
  void* const own = allocator.allocate(33 * kMiB, kMain);
  CHECK(source.taken() == 56 * kMiB);
  allocator.free(own);
  CHECK(allocator.allocate(33 * kMiB + 512 * kKiB, kMain) == own);  // what is left is less than a block of its own
  CHECK(source.taken() == 56 * kMiB);
  allocator.free(a);
  allocator.free(b);
  CHECK(allocator.statistics().largest_free == 8 * kMiB);
  CHECK(allocator.allocate(kMiB, kMain) == a);  // the whole segment's beginning: both were joined with the rest
}

TEST_CASE("CachingAllocator: a block with a segment of its own begins there, and serves its size alone", "[tensor]") {
  FakeSource source(64 * kMiB);
  CachingAllocator allocator(source, Segments::Own);
  auto* const small = static_cast<std::byte*>(allocator.allocate(1, kMain));
  auto* const large = static_cast<std::byte*>(allocator.allocate(3 * kMiB, kMain));
  CHECK(source.segments() == 2);
  CHECK(source.taken() == 6 * kMiB);  // multiples of 2 MiB
  CHECK(source.segment_of(small, 2 * kMiB) == small);
  CHECK(source.segment_of(large, 4 * kMiB) == large);
  allocator.free(small);
  allocator.free(large);
  CHECK(allocator.allocate(4 * kMiB, kMain) == large);
  CHECK(allocator.allocate(512 * kKiB, kMain) == small);
  allocator.free(large);
  CHECK(allocator.allocate(2 * kMiB, kMain) != large);  // it would fit
  CHECK(source.segments() == 3);
  CHECK(allocator.allocate(58 * kMiB, kMain) != nullptr);
  CHECK(source.taken() == 62 * kMiB);  // what was unused had to go
}

TEST_CASE("CachingAllocator: the smallest free block that fits is taken", "[tensor]") {
  FakeSource source(1024 * kMiB);
  CachingAllocator allocator(source);
  std::array<void*, 5> blocks{};
  const std::array<size_t, 5> sizes{64 * kKiB, 512, 16 * kKiB, 512, 32 * kKiB};
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = allocator.allocate(sizes[i], kMain);
  void* const end = allocator.allocate(512, kMain);
  for (const size_t i : {0U, 2U, 4U}) allocator.free(blocks[i]);
  CHECK(allocator.allocate(30 * kKiB, kMain) == blocks[4]);
  CHECK(allocator.allocate(10 * kKiB, kMain) == blocks[2]);
  CHECK(allocator.allocate(40 * kKiB, kMain) == blocks[0]);
  allocator.free(end);
}

TEST_CASE("CachingAllocator: a block stays with its stream, and with others until they have passed", "[tensor]") {
  FakeSource source(1024 * kMiB);
  CachingAllocator allocator(source);
  void* const block = allocator.allocate(2 * kMiB, stream(1));
  allocator.free(block);
  CHECK(allocator.allocate(2 * kMiB, stream(1)) == block);  // in order with what ran there
  allocator.free(block);
  CHECK(allocator.allocate(2 * kMiB, stream(2)) != block);

  CHECK(allocator.allocate(2 * kMiB, stream(1)) == block);
  allocator.used_on(block, stream(1));  // its own: nothing to wait for
  allocator.used_on(block, stream(2));
  allocator.used_on(block, stream(3));
  allocator.free(block);
  CHECK(allocator.statistics().in_use == 2 * kMiB);  // what stream 2 was given
  CHECK(allocator.allocate(2 * kMiB, stream(1)) != block);
  source.pass(stream(2));
  CHECK(allocator.allocate(2 * kMiB, stream(1)) != block);
  source.pass(stream(3));
  CHECK(allocator.allocate(2 * kMiB, stream(1)) == block);
  CHECK(source.waits == 0);
}

TEST_CASE("CachingAllocator: a use that its own stream is behind holds nothing back", "[tensor]") {
  FakeSource source(1024 * kMiB);
  CachingAllocator allocator(source);
  const auto block = [&] { return allocator.allocate(2 * kMiB, stream(1)); };
  void* const first = block();
  CHECK(allocator.used_on(first, stream(1)) == nullptr);
  // For ever, as of a parameter that is gathered every step.
  for (int step = 0; step < 100; ++step) allocator.used_on(first, stream(2))->is_behind(stream(1));
  allocator.free(first);
  CHECK(block() == first);

  allocator.used_on(first, stream(2))->is_behind(stream(3));  // a bystander's waiting says nothing
  allocator.free(first);
  void* const second = block();
  CHECK(second != first);

  const auto ended = allocator.used_on(second, stream(2));
  const auto forgotten = allocator.used_on(second, stream(2));
  ended->is_behind(stream(1));  // one of two
  allocator.free(second);
  CHECK(block() != second);
  source.pass(stream(2));
  CHECK(source.waits == 0);
}

TEST_CASE("CachingAllocator: before it gives up it waits for streams and gives back what nobody uses", "[tensor]") {
  FakeSource source(100 * kMiB);
  CachingAllocator allocator(source);
  void* const other = allocator.allocate(40 * kMiB, stream(2));
  void* const pending = allocator.allocate(40 * kMiB, stream(1));
  allocator.free(other);
  allocator.used_on(pending, stream(2));
  allocator.free(pending);
  CHECK(allocator.allocate(30 * kMiB, stream(1)) == pending);  // after a wait, without giving anything back
  CHECK(source.waits == 1);
  CHECK(source.taken() == 80 * kMiB);
  CHECK(allocator.allocate(50 * kMiB, stream(1)) != nullptr);  // stream 2's segment had to go
  CHECK(source.taken() == 90 * kMiB);
  CHECK(allocator.allocate(50 * kMiB, stream(1)) == nullptr);
  CHECK(allocator.allocate(9 * kMiB, stream(1)) != nullptr);  // a refusal breaks nothing
}

TEST_CASE("CachingAllocator: statistics know the most there was, and trim gives back what is whole", "[tensor]") {
  FakeSource source(1024 * kMiB);
  CachingAllocator allocator(source);
  void* const a = allocator.allocate(40 * kMiB, kMain);
  void* const b = allocator.allocate(60 * kMiB, kMain);
  allocator.free(a);
  CHECK(allocator.statistics().most_in_use == 100 * kMiB);
  CHECK(allocator.statistics().in_use == 60 * kMiB);
  allocator.trim();
  CHECK(allocator.statistics().reserved == 60 * kMiB);
  CHECK(allocator.statistics().most_reserved == 100 * kMiB);
  CHECK(allocator.statistics().segments == 1);
  allocator.restart_peak();
  CHECK(allocator.statistics().most_in_use == 60 * kMiB);
  CHECK(allocator.statistics().most_reserved == 60 * kMiB);
  allocator.free(b);
  allocator.trim();
  CHECK(source.segments() == 0);
}

namespace {

/// What is known of blocks from outside: whoever was given one, and which streams may still work in one.
class Model {
 public:
  struct Block {
    size_t bytes;
    StreamId owner;
    std::vector<StreamId> also_on;
  };

  std::map<std::byte*, Block> in_use;

  void freed(std::byte* address, FakeSource& source) {
    const Block block = in_use.at(address);
    in_use.erase(address);
    for (const StreamId id : block.also_on)
      if (id != block.owner) leaving_.push_back({address, block.bytes, id, source.fence(id)});
  }

  /// What is wrong with giving this block out; empty: nothing.
  std::string given(std::byte* address, size_t bytes, StreamId owner, FakeSource& source) {
    std::erase_if(leaving_, [](const Leaving& each) { return each.fence->has_passed(); });
    for (const Leaving& each : leaving_)
      if (overlap(address, bytes, each.address, each.bytes)) return "another stream may still work there";
    const auto after = in_use.lower_bound(address);
    if (after != in_use.end() && address + bytes > after->first) return "reaches into the next block";
    if (after != in_use.begin()) {
      const auto& [before, block] = *std::prev(after);
      if (before + block.bytes > address) return "lies in the block before it";
    }
    std::byte* const segment = source.segment_of(address, bytes);
    if (!segment) return "lies in no segment";
    if (reinterpret_cast<uintptr_t>(address) % 512 != 0) return "is not aligned";
    const auto [owner_of, is_new] = owners_.emplace(segment, owner);  // addresses of segments are not used twice
    if (owner_of->second != owner) return "is of another stream's segment";
    in_use[address] = {bytes, owner, {}};
    return "";
  }

 private:
  struct Leaving {
    std::byte* address;
    size_t bytes;
    StreamId id;
    std::unique_ptr<Fence> fence;
  };
  static bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  }

  std::vector<Leaving> leaving_;
  std::map<std::byte*, StreamId> owners_;
};

}  // namespace

TEST_CASE("CachingAllocator: whatever is asked in whatever order, no two users share a byte", "[tensor]") {
  const uint32_t seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U);
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
  FakeSource source(300 * kMiB);
  CachingAllocator allocator(source);
  Model model;
  size_t asked = 0, refused = 0;
  for (int move = 0; move < 20000; ++move) {
    const size_t what = below(100);
    const StreamId id = stream(static_cast<int>(below(3)));
    const auto any = [&] { return std::next(model.in_use.begin(), static_cast<int64_t>(below(model.in_use.size()))); };
    if (what < 48) {
      const size_t bytes = below(8) == 0 ? below(40 * kMiB) : size_t{1} << below(21);
      const int refusals = source.refusals;
      auto* const block = static_cast<std::byte*>(allocator.allocate(bytes, id));
      ++asked;
      if (!block) {
        REQUIRE(source.refusals >= refusals + 2);  // it tried again after giving back what it could
        ++refused;
        continue;
      }
      REQUIRE(model.given(block, std::max<size_t>(bytes, 1), id, source) == "");
    } else if (what < 90 && !model.in_use.empty()) {
      const auto victim = any();
      std::byte* const address = victim->first;
      model.freed(address, source);  // first: a fence of the allocator's is not before the model's
      allocator.free(address);
    } else if (what < 96 && !model.in_use.empty()) {
      const auto used = any();
      allocator.used_on(used->first, id);
      used->second.also_on.push_back(id);
    } else if (what < 99) {
      source.pass(id);
    } else {
      allocator.trim();
    }
    REQUIRE(allocator.statistics().reserved == source.taken());
    size_t in_use = 0;
    for (const auto& [_, block] : model.in_use) in_use += block.bytes;
    REQUIRE(allocator.statistics().in_use >= in_use);
    REQUIRE(allocator.statistics().in_use <= source.taken());
  }
  CHECK(asked > 5000);
  CHECK(refused > 10);  // the device was small enough to be full now and then
  while (!model.in_use.empty()) {
    std::byte* const address = model.in_use.begin()->first;
    allocator.free(address);
    model.in_use.erase(address);
  }
  CHECK(allocator.statistics().in_use == 0);
  allocator.trim();
  CHECK(source.taken() == 0);  // every block was joined with its neighbours
}

namespace {

class HostSource final : public MemorySource {
 public:
  void* take(size_t bytes) override { return std::aligned_alloc(512, bytes); }
  void give_back(void* segment) noexcept override { std::free(segment); }
  std::unique_ptr<Fence> fence(StreamId) override { return std::make_unique<Passed>(); }

 private:
  class Passed final : public Fence {
    bool has_passed() override { return true; }
    void wait() override {}
  };
};

}  // namespace

TEST_CASE("CachingAllocator: threads may use it at once", "[tensor]") {
  HostSource source;
  CachingAllocator allocator(source);
  std::array<int, 4> overwritten{};
  {
    std::vector<std::jthread> threads;
    for (size_t thread = 0; thread < overwritten.size(); ++thread)
      threads.emplace_back([&, thread] {
        std::mt19937 random(static_cast<uint32_t>(thread));
        const StreamId mine = stream(static_cast<int>(thread % 2));  // two threads share a stream
        std::vector<std::pair<unsigned char*, size_t>> held;
        for (int move = 0; move < 2000; ++move) {
          if (random() % 2 == 0 || held.empty()) {
            const size_t bytes = 1 + random() % (200 * kKiB);
            auto* const block = static_cast<unsigned char*>(allocator.allocate(bytes, mine));
            block[0] = block[bytes - 1] = static_cast<unsigned char>(thread);
            held.emplace_back(block, bytes);
          } else {
            const size_t which = random() % held.size();
            const auto [block, bytes] = held[which];
            if (block[0] != thread || block[bytes - 1] != thread) ++overwritten[thread];
            if (random() % 4 == 0) allocator.used_on(block, stream(7));
            allocator.free(block);
            held.erase(held.begin() + static_cast<int64_t>(which));
          }
          if (move % 500 == 0) allocator.trim();
        }
        for (const auto& [block, bytes] : held) allocator.free(block);
      });
  }
  CHECK(overwritten == std::array<int, 4>{});
  CHECK(allocator.statistics().in_use == 0);
}

}  // namespace trainyard
