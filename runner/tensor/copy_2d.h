#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trainyard {

/// Copies `width` bytes of each of `rows` rows on the host, as cudaMemcpy2D does on a device. A row begins `pitch`
/// bytes after the one before. The two do not overlap.
inline void copy_2d(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch, int64_t width,
                    int64_t rows) {
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * to_pitch, from + row * from_pitch, static_cast<size_t>(width));
}

}  // namespace trainyard
