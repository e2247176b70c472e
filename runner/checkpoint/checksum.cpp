#include "checkpoint/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace trainyard::checkpoint {
namespace {

constexpr uint64_t kHashedAtOnce = uint64_t{1} << 20;

}  // namespace

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_);
}

Checksum::Checksum(Checksum&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Checksum::~Checksum() {
  XXH3_freeState(state_);
}

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_, bytes.data(), bytes.size());
}

std::string Checksum::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return fmt::format("xxh3-128:{:016x}{:016x}", hash.high64, hash.low64);
}

std::string checksum_of(std::string_view text) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(text)));
  return checksum.text();
}

std::string checksum_of_file(const std::filesystem::path& path) {
  const FileSource source(path);
  std::vector<std::byte> piece(std::min(kHashedAtOnce, source.size()));
  Checksum checksum;
  for (uint64_t at = 0; at < source.size(); at += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), source.size() - at));
    source.read(at, part);
    checksum.add(part);
  }
  return checksum.text();
}

void ChecksumSink::write(std::span<const std::byte> bytes) {
  next_->write(bytes);
  seen_.checksum.add(bytes);
  seen_.bytes += bytes.size();
}

}  // namespace trainyard::checkpoint
