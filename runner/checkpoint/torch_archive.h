#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_io.h"
#include "tensor/safetensors_header.h"

namespace trainyard::checkpoint {

/// Bytes of a file.
struct ByteRange {
  uint64_t begin = 0, bytes = 0;
};

/// The tensors of what torch.save wrote to these bytes of a file: a zip archive with a pickle of where the tensors are
/// (pickle.h, nothing of it is run) and their bytes, uncompressed. Their begins and ends count from the file's
/// beginning. A tensor that was saved alone has no name. Throws InputError, beginning with `where`: no such archive, or
/// its pickle holds something other than tensors.
std::vector<SafetensorsEntry> tensors_in_archive(const FileSource& file, ByteRange range, const std::string& where);

}  // namespace trainyard::checkpoint
