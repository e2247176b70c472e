#include "comm/checks.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trainyard::comm {
namespace {

std::string described(const Tensor& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype()), to_string(tensor.shape()));
}

bool overlap(const Tensor& a, const Tensor& b) {
  return a.bytes() > 0 && b.bytes() > 0 && a.raw() < b.raw() + b.bytes() && b.raw() < a.raw() + a.bytes();
}

bool is_whole_of(const Shape& whole, const Shape& part, int world) {
  if (whole.empty() || whole.size() != part.size() || whole[0] != part[0] * world) return false;
  return std::equal(whole.begin() + 1, whole.end(), part.begin() + 1);
}

}  // namespace

void check_usable(const char* collective, const Tensor& tensor) {
  if (!tensor.defined()) throw std::invalid_argument(fmt::format("{}: an undefined tensor", collective));
  if (tensor.device().kind != DeviceKind::Cpu)
    throw std::invalid_argument(
        fmt::format("{}: this communicator moves host memory, the tensor is on a device", collective));
  if (tensor.bytes() > 0 && !tensor.storage()->is_materialized())
    throw std::invalid_argument(fmt::format("{}: the storage of {} is released", collective, described(tensor)));
}

void check_part_and_whole(const char* collective, const Tensor& part, const Tensor& whole, int rank, int world) {
  check_usable(collective, part);
  check_usable(collective, whole);
  if (part.dtype() != whole.dtype() || !is_whole_of(whole.shape(), part.shape(), world))
    throw std::invalid_argument(
        fmt::format("{}: {} is not {} times the rows of {}", collective, described(whole), world, described(part)));
  const bool in_place = part.raw() == whole.raw() + static_cast<size_t>(rank) * part.bytes();
  if (overlap(part, whole) && !in_place)
    throw std::invalid_argument(fmt::format("{}: {} overlaps {} but is not slice {} of it", collective, described(part),
                                            described(whole), rank));
}

void check_exchange(const Tensor& input, const Tensor& output, int world) {
  check_usable("all_to_all", input);
  check_usable("all_to_all", output);
  if (input.dtype() != output.dtype() || input.shape() != output.shape())
    throw std::invalid_argument(fmt::format("all_to_all: {} and {} differ", described(input), described(output)));
  if (input.rank() == 0 || input.size(0) % world != 0)
    throw std::invalid_argument(
        fmt::format("all_to_all: the rows of {} do not split into {}", described(input), world));
  if (overlap(input, output)) throw std::invalid_argument("all_to_all: input and output overlap");
}

void check_root(int root, int world) {
  if (root < 0 || root >= world)
    throw std::invalid_argument(fmt::format("broadcast: root {} of {} ranks", root, world));
}

}  // namespace trainyard::comm
