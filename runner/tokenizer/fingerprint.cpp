#include "tokenizer/fingerprint.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>

namespace trainyard::tokenizer {

struct Fingerprint::State {
  XXH3_state_t hash;
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}
Fingerprint::~Fingerprint() = default;

Fingerprint& Fingerprint::add(std::string_view part) {
  const uint64_t size = part.size();
  XXH3_128bits_update(&state_->hash, &size, sizeof(size));
  XXH3_128bits_update(&state_->hash, part.data(), part.size());
  return *this;
}

std::string Fingerprint::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace trainyard::tokenizer
