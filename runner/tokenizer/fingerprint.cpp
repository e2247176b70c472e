#include "tokenizer/fingerprint.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>

namespace trainyard::tokenizer {
namespace {

constexpr size_t kAtOnce = size_t{8} << 20;

}  // namespace

struct Fingerprint::State {
  XXH3_state_t hash;
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}
Fingerprint::~Fingerprint() = default;

Fingerprint& Fingerprint::add(std::string_view part) {
  return add(part, [] {});
}

Fingerprint& Fingerprint::add(std::string_view part, const std::function<void()>& between) {
  const uint64_t size = part.size();
  XXH3_128bits_update(&state_->hash, &size, sizeof(size));
  for (size_t at = 0; at < part.size(); at += kAtOnce) {
    const std::string_view some = part.substr(at, kAtOnce);
    XXH3_128bits_update(&state_->hash, some.data(), some.size());
    between();
  }
  return *this;
}

std::string Fingerprint::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace trainyard::tokenizer
