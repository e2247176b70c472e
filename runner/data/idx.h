#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

// The files of MNIST and its kin (yann.lecun.com/exdb/mnist): big-endian, a magic number 0, 0, type, dimensions, then
// the sizes, then the values.
namespace trainyard::data {

/// Unsigned bytes of any number of dimensions: images are [images, height, width], labels [labels].
struct IdxArray {
  Shape shape;
  std::string values;  ///< count_of(shape) bytes
};

/// The content of an idx file of unsigned bytes; `name` is what messages call it. Throws InputError, naming the byte,
/// where it is of another type or number of dimensions, or not as long as its sizes say.
IdxArray parse_idx(std::string_view content, int dimensions, const std::string& name);

/// parse_idx() of a file, which gzip may have packed, of 1 GiB at most. Throws InputError where it cannot be read, or
/// what gzip packed is damaged.
IdxArray read_idx(const std::filesystem::path& path, int dimensions);

}  // namespace trainyard::data
