#include "comm/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tensor/chunk.h"

namespace trainyard::comm {

std::string Call::label_in(const std::string& communicator, std::string label) {
  if (communicator.empty()) return label;
  return label.empty() ? communicator : fmt::format("{} ({})", label, communicator);
}

std::span<std::byte> chunk_bytes(std::span<std::byte> values, size_t element_bytes, int world, int rank) {
  const Rows rows = chunk_of(static_cast<int64_t>(values.size() / element_bytes), world, rank);
  return values.subspan(static_cast<size_t>(rows.begin) * element_bytes,
                        static_cast<size_t>(rows.count) * element_bytes);
}

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.data() != to.data() && !from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace trainyard::comm
