#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/byte_io.h"

struct XXH3_state_s;

namespace trainyard::checkpoint {

/// XXH3, 128 bits: finds every accident of a disk or a network at the speed of memory. It does not protect from someone
/// who wants to forge a checkpoint.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) = delete;

  void add(std::span<const std::byte> bytes);
  /// "xxh3-128:" and 32 hexadecimal digits, of everything added so far.
  [[nodiscard]] std::string text() const;

 private:
  XXH3_state_s* state_;
};

std::string checksum_of(std::string_view text);
/// Reads the whole file, a piece at a time. Throws InputError where it cannot.
std::string checksum_of_file(const std::filesystem::path& path);

/// What is written goes on to another sink and into a checksum and a count.
class ChecksumSink : public ByteSink {
 public:
  struct Seen {
    Checksum checksum;
    uint64_t bytes = 0;
  };
  /// `seen` belongs to the caller and must outlive this.
  ChecksumSink(std::unique_ptr<ByteSink> next, Seen& seen) : next_(std::move(next)), seen_(seen) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override;
  void finish() override { next_->finish(); }

 private:
  std::unique_ptr<ByteSink> next_;
  Seen& seen_;
};

}  // namespace trainyard::checkpoint
