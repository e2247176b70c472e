#include "nccl_operation.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "mailbox.h"
#include "tensor/half.h"

namespace host_nccl {
namespace {

using trainyard::BFloat16;
using trainyard::Float16;

template <typename T>
T folded(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_class_v<T>) {
    return T(folded(op, static_cast<float>(a), static_cast<float>(b)));
  } else {
    return op == ncclSum ? static_cast<T>(a + b) : op == ncclMax ? std::max(a, b) : std::min(a, b);
  }
}

/// As a ring does it: each part of the elements begins at another rank, and every rank rounds what it passes on.
template <typename T>
void fold(const std::vector<Part>& parts, size_t total, std::byte* to) {
  const size_t ranks = parts.size();
  for (size_t i = 0; i < total; ++i) {
    const auto value = [&](size_t rank) {
      T element;
      std::memcpy(&element, parts[rank % ranks].from + i * sizeof(T), sizeof(T));
      return element;
    };
    const size_t first = i * ranks / total + 1;
    T sum = value(first);
    for (size_t step = 1; step < ranks; ++step) sum = folded(parts[0].op, sum, value(first + step));
    std::memcpy(to + i * sizeof(T), &sum, sizeof(T));
  }
}

std::vector<std::byte> reduced(const std::vector<Part>& parts, size_t total) {
  std::vector<std::byte> result(total * size_of(parts[0].type));
  switch (parts[0].type) {
    case ncclFloat32:
      fold<float>(parts, total, result.data());
      break;
    case ncclFloat64:
      fold<double>(parts, total, result.data());
      break;
    case ncclBfloat16:
      fold<BFloat16>(parts, total, result.data());
      break;
    case ncclFloat16:
      fold<Float16>(parts, total, result.data());
      break;
    case ncclInt32:
      fold<int32_t>(parts, total, result.data());
      break;
    case ncclInt64:
      fold<int64_t>(parts, total, result.data());
      break;
    default:
      fold<uint8_t>(parts, total, result.data());
  }
  return result;
}

/// Nowhere: to a rank of another process, which does it for itself.
void put(const std::byte* from, std::byte* to, size_t bytes) {
  if (bytes > 0 && to) std::memcpy(to, from, bytes);
}

void all_gather(const std::vector<Part>& parts) {
  const size_t bytes = parts[0].count * size_of(parts[0].type);
  std::vector<std::byte> whole(bytes * parts.size());
  for (size_t rank = 0; rank < parts.size(); ++rank) put(parts[rank].from, whole.data() + rank * bytes, bytes);
  for (const Part& part : parts) put(whole.data(), part.to, whole.size());
}

void reduce(const std::vector<Part>& parts, bool is_scattered) {
  const size_t slices = is_scattered ? parts.size() : 1, slice = parts[0].count * size_of(parts[0].type);
  const auto whole = reduced(parts, parts[0].count * slices);
  for (size_t rank = 0; rank < parts.size(); ++rank)
    put(whole.data() + (is_scattered ? rank * slice : 0), parts[rank].to, slice);
}

void broadcast(const std::vector<Part>& parts) {
  const Part& root = parts[static_cast<size_t>(parts[0].root)];
  for (const Part& part : parts)
    if (part.to != root.from) put(root.from, part.to, root.count * size_of(root.type));
}

void exchange(const std::vector<Part>& parts) {
  for (size_t rank = 0; rank < parts.size(); ++rank)
    for (const Message& received : parts[rank].receives)
      for (const Message& sent : parts[static_cast<size_t>(received.peer)].sends)
        if (sent.peer == static_cast<int>(rank))
          put(static_cast<const std::byte*>(sent.memory), static_cast<std::byte*>(received.memory), sent.bytes);
}

size_t bytes_given(const Part& part, size_t ranks) {
  if (!part.from) return 0;
  return part.count * size_of(part.type) * (part.kind == Kind::ReduceScatter ? ranks : 1);
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

void carry_out(const std::vector<Part>& parts) {
  switch (parts[0].kind) {
    case Kind::AllGather:
      return all_gather(parts);
    case Kind::ReduceScatter:
      return reduce(parts, true);
    case Kind::AllReduce:
      return reduce(parts, false);
    case Kind::Broadcast:
      return broadcast(parts);
    case Kind::Exchange:
      return exchange(parts);
    case Kind::Split:
      return;
  }
}

bool are_registered_alike(const std::vector<Part>& parts) {
  const auto is_slice_of_output = [](const Part& part) { return part.kind == Kind::AllGather; };
  const auto is_slice_of_input = [](const Part& part) { return part.kind == Kind::ReduceScatter; };
  const auto are_alike = [](const Place& a, const Place& b, bool is_slice) {
    return a.has_value() == b.has_value() && (is_slice || a == b);
  };
  return std::ranges::all_of(parts, [&](const Part& part) {
    return are_alike(part.from_place, parts[0].from_place, is_slice_of_output(part)) &&
           are_alike(part.to_place, parts[0].to_place, is_slice_of_input(part));
  });
}

std::vector<std::byte> letter_of(const Part& part, size_t ranks) {
  Writer letter;
  letter.add(part.kind), letter.add(part.count), letter.add(part.type), letter.add(part.op), letter.add(part.root);
  letter.add(part.color), letter.add(part.key), letter.add(part.from_place), letter.add(part.to_place);
  letter.add(bytes_given(part, ranks));
  letter.add_bytes(part.from, bytes_given(part, ranks));
  letter.add(part.sends.size());
  for (const Message& sent : part.sends) {
    letter.add(sent.peer), letter.add(sent.bytes);
    letter.add_bytes(sent.memory, sent.bytes);
  }
  return letter.bytes();
}

Part part_of(const std::shared_ptr<const std::vector<std::byte>>& letter) {
  Reader reader(*letter);
  Part part{.kind = reader.next<Kind>(), .letter = letter};
  part.count = reader.next<size_t>(), part.type = reader.next<ncclDataType_t>(), part.op = reader.next<ncclRedOp_t>();
  part.root = reader.next<int>(), part.color = reader.next<int>(), part.key = reader.next<int>();
  part.from_place = reader.next<Place>(), part.to_place = reader.next<Place>();
  part.from = reader.next_bytes(reader.next<size_t>());
  for (auto left = reader.next<size_t>(); left > 0; --left) {
    const int peer = reader.next<int>();
    const auto size = reader.next<size_t>();
    part.sends.push_back({const_cast<std::byte*>(reader.next_bytes(size)), size, peer});
  }
  return part;
}

}  // namespace host_nccl
