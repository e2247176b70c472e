#include <algorithm>
#include <cstring>

#include "comm/peer_exchange.h"

namespace trainyard::comm {

std::optional<size_t> CopySink::expected(int peer) const {
  if (!into_[peer]) return std::nullopt;
  return into_[peer]->size();
}

bool CopySink::take(int peer, Channel& channel) {
  const auto piece = channel.readable();
  if (piece.empty()) return false;
  auto& rest = *into_[peer];
  std::memcpy(rest.data(), piece.data(), piece.size());
  rest = rest.subspan(piece.size());
  channel.consume(piece.size());
  return true;
}

FoldSink::FoldSink(const Task& task)
    : task_(task),
      element_bytes_(size_of(task.dtype)),
      count_(task.own.size() / element_bytes_),
      fold_(task.dtype, task.op, task.world) {
  fold_own();
}

void FoldSink::add(const std::byte* from, size_t count) {
  fold_.add(turn_, done_, count, from, task_.result.data() + (block_ + done_) * element_bytes_);
}

void FoldSink::next_rank() {
  done_ = 0;
  if (++turn_ < task_.world) return;
  turn_ = 0;
  block_ += std::min(OrderedFold::kBlockElements, count_ - block_);
}

void FoldSink::fold_own() {
  if (turn_ != task_.rank || block_ == count_) return;
  add(task_.own.data() + block_ * element_bytes_, std::min(OrderedFold::kBlockElements, count_ - block_));
  next_rank();
}

bool FoldSink::take(int peer, Channel& channel) {
  if (peer != turn_) return false;
  const auto piece = channel.readable();
  if (piece.empty()) return false;
  const size_t block_left = std::min(OrderedFold::kBlockElements, count_ - block_) - done_;
  const size_t elements = std::min(block_left, piece.size() / element_bytes_);
  add(piece.data(), elements);
  channel.consume(elements * element_bytes_);
  done_ += elements;
  if (elements == block_left) {
    next_rank();
    fold_own();
  }
  return true;
}

}  // namespace trainyard::comm
