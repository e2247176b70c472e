#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

// What the ranks of a group bring to one operation, and what it makes of that.
namespace host_nccl {

enum class Kind { AllGather, ReduceScatter, AllReduce, Broadcast, Exchange, Split };

/// One message of an exchange; of a send the memory is only read.
struct Message {
  void* memory;
  size_t bytes;
  int peer;
};

/// Where a buffer lies in the registration that holds it; none: it is not registered.
using Place = std::optional<ptrdiff_t>;

/// What one rank brings to an operation.
struct Part {
  Kind kind;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  cudaStream_t stream = nullptr;
  Place from_place{}, to_place{};
  std::vector<Message> sends, receives;
  int color = 0, key = 0;  ///< of a split, and where its communicator goes
  ncclComm_t* split = nullptr;
  std::shared_ptr<const std::vector<std::byte>> letter{};  ///< of another process's: `from` and the sends lie in it
};

size_t size_of(ncclDataType_t type);

/// Carries an operation out for all ranks at once: `parts` by rank. A split makes communicators and is none of these.
void carry_out(const std::vector<Part>& parts);

/// Ranks bring registered buffers all or none, and at the same place from where they begin; the slice of each in that
/// of all is elsewhere, of course.
bool are_registered_alike(const std::vector<Part>& parts);

/// A part as bytes for another process, and back.
std::vector<std::byte> letter_of(const Part& part, size_t ranks);
Part part_of(const std::shared_ptr<const std::vector<std::byte>>& letter);

}  // namespace host_nccl
