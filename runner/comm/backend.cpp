#include "comm/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace trainyard::comm {

std::string Call::label_in(const std::string& communicator, std::string label) {
  if (communicator.empty()) return label;
  return label.empty() ? communicator : fmt::format("{} ({})", label, communicator);
}

ElementRange chunk_of(size_t count, int index, int world) {
  const size_t chunk = (count + static_cast<size_t>(world) - 1) / static_cast<size_t>(world);
  const size_t begin = std::min(count, chunk * static_cast<size_t>(index));
  return {.begin = begin, .end = std::min(count, begin + chunk)};
}

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.data() != to.data() && !from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace trainyard::comm
