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

void check_usable(const char* collective, const Tensor& tensor, Device device) {
  if (!tensor.defined()) throw std::invalid_argument(fmt::format("{}: an undefined tensor", collective));
  if (tensor.device() != device)
    throw std::invalid_argument(fmt::format("{}: this communicator moves memory of {}, the tensor is on {}", collective,
                                            to_string(device), to_string(tensor.device())));
  if (tensor.bytes() > 0 && !tensor.storage()->is_materialized())
    throw std::invalid_argument(fmt::format("{}: the storage of {} is released", collective, described(tensor)));
}

void check_part_and_whole(const char* collective, const Tensor& part, const Tensor& whole, const Seat& seat) {
  const auto [rank, world, device] = seat;
  check_usable(collective, part, device);
  check_usable(collective, whole, device);
  if (part.dtype() != whole.dtype() || !is_whole_of(whole.shape(), part.shape(), world))
    throw std::invalid_argument(
        fmt::format("{}: {} is not {} times the rows of {}", collective, described(whole), world, described(part)));
  const bool in_place = part.raw() == whole.raw() + static_cast<size_t>(rank) * part.bytes();
  if (overlap(part, whole) && !in_place)
    throw std::invalid_argument(fmt::format("{}: {} overlaps {} but is not slice {} of it", collective, described(part),
                                            described(whole), rank));
}

size_t check_parts_and_wholes(const char* collective, std::span<const Tensor> parts, std::span<const Tensor> wholes,
                              const Seat& seat) {
  if (parts.empty() || parts.size() != wholes.size())
    throw std::invalid_argument(fmt::format("{}: {} parts of {} tensors", collective, parts.size(), wholes.size()));
  size_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    check_part_and_whole(collective, parts[i], wholes[i], seat);
    bytes += wholes[i].bytes();
  }
  return bytes;
}

namespace {

/// It checks a collective whose output is shaped as its input.
void check_alike(const char* collective, const Tensor& input, const Tensor& output, const Seat& seat) {
  check_usable(collective, input, seat.device);
  check_usable(collective, output, seat.device);
  if (input.dtype() != output.dtype() || input.shape() != output.shape())
    throw std::invalid_argument(fmt::format("{}: {} and {} differ", collective, described(input), described(output)));
  if (overlap(input, output)) throw std::invalid_argument(fmt::format("{}: input and output overlap", collective));
}

}  // namespace

void check_exchange(const Tensor& input, const Tensor& output, const Seat& seat) {
  check_alike("all_to_all", input, output, seat);
  if (input.rank() == 0 || input.size(0) % seat.world != 0)
    throw std::invalid_argument(
        fmt::format("all_to_all: the rows of {} do not split into {}", described(input), seat.world));
}

void check_shift(const Tensor& input, const Tensor& output, const Seat& seat) {
  check_alike("shift", input, output, seat);
}

void check_summed(const char* collective, const Tensor& tensor) {
  if (is_float8(tensor.dtype()))
    throw std::invalid_argument(
        fmt::format("{}: {} is moved and not summed; convert it first", collective, name_of(tensor.dtype())));
}

void check_root(int root, int world) {
  if (root < 0 || root >= world)
    throw std::invalid_argument(fmt::format("broadcast: root {} of {} ranks", root, world));
}

}  // namespace trainyard::comm
