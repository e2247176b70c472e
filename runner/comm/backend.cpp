#include "comm/backend.h"

#include <algorithm>
#include <cstring>

namespace trainyard::comm {

ElementRange chunk_of(size_t count, int index, int world) {
  const size_t chunk = (count + static_cast<size_t>(world) - 1) / static_cast<size_t>(world);
  const size_t begin = std::min(count, chunk * static_cast<size_t>(index));
  return {.begin = begin, .end = std::min(count, begin + chunk)};
}

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.data() != to.data() && !from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace trainyard::comm
