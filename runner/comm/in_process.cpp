#include "comm/in_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "comm/in_process_group.h"
#include "comm/ordered_fold.h"
#include "comm/queued_communicator.h"

namespace trainyard::comm {
namespace {

class InProcess final : public Backend {
 public:
  InProcess(std::shared_ptr<InProcessGroup> group, Roster roster)
      : group_(std::move(group)), roster_(std::move(roster)), rank_(roster_.rank) {}
  ~InProcess() override { abort(); }

  const Roster& roster() const override { return roster_; }
  int rank() const override { return rank_; }
  int world() const override { return group_->world(); }
  std::string transport() const override { return world() == 1 ? "none" : "the memory of one process"; }

  void all_gather(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    const auto posts = group_->meet(roster_, call, {.data = input.data(), .bytes = input.size()});
    for (int peer = 0; peer < world(); ++peer)
      copy_bytes({posts[peer].data, input.size()}, slice_of(output, peer, world()));
    group_->meet(roster_, call, {});
  }

  void reduce_scatter(const Call& call, DType dtype, std::span<const std::byte> input,
                      std::span<std::byte> output) override {
    const auto posts = group_->meet(roster_, call, {.data = input.data(), .bytes = input.size()});
    reduce(dtype, ReduceOp::Sum, posts, static_cast<size_t>(rank_) * output.size(), output);
    group_->meet(roster_, call, {});
  }

  void all_reduce(const Call& call, DType dtype, ReduceOp op, std::span<std::byte> values) override {
    const auto posts = group_->meet(roster_, call, {.data = values.data(), .bytes = values.size()});
    const auto chunk_of_rank = [&](int rank) { return chunk_bytes(values, size_of(dtype), world(), rank); };
    const std::span<std::byte> mine = chunk_of_rank(rank_);
    // Nobody else reads this rank's chunk of this rank's values until the second meeting, so it is reduced in place.
    reduce(dtype, op, posts, static_cast<size_t>(mine.data() - values.data()), mine);
    group_->meet(roster_, call, {});
    for (int peer = 0; peer < world(); ++peer) {
      const std::span<std::byte> theirs = chunk_of_rank(peer);
      copy_bytes({posts[peer].data + (theirs.data() - values.data()), theirs.size()}, theirs);
    }
    group_->meet(roster_, call, {});
  }

  void broadcast(const Call& call, std::span<std::byte> values, int root) override {
    const auto posts = group_->meet(roster_, call, {.data = values.data(), .bytes = values.size()});
    copy_bytes({posts[root].data, values.size()}, values);
    group_->meet(roster_, call, {});
  }

  void all_to_all(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    const auto posts = group_->meet(roster_, call, {.data = input.data(), .bytes = input.size()});
    for (int peer = 0; peer < world(); ++peer)
      copy_bytes(slice_of(std::span(posts[peer].data, input.size()), rank_, world()), slice_of(output, peer, world()));
    group_->meet(roster_, call, {});
  }

  void shift(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    const auto posts = group_->meet(roster_, call, {.data = input.data(), .bytes = input.size()});
    copy_bytes({posts[rank_before(rank_, world())].data, input.size()}, output);
    group_->meet(roster_, call, {});
  }

  void barrier(const Call& call) override { group_->meet(roster_, call, {}); }

  std::unique_ptr<Backend> split(const Call& call, std::span<const int> members, const std::string&) override {
    Roster chosen = roster_.of(members);
    auto offered = chosen.rank == 0 ? std::make_shared<InProcessGroup>(static_cast<int>(members.size())) : nullptr;
    const auto posts = group_->meet(roster_, call, {.offer = &offered});
    auto part = *posts[members.front()].offer;
    group_->meet(roster_, call, {});  // the offers may go out of scope
    return std::make_unique<InProcess>(std::move(part), std::move(chosen));
  }

  void abort() noexcept override { group_->leave(rank_); }

 private:
  static void reduce(DType dtype, ReduceOp op, const std::vector<Post>& posts, size_t offset,
                     std::span<std::byte> into) {
    std::vector<const std::byte*> from;
    for (const Post& post : posts) from.push_back(post.data + offset);
    fold(dtype, op, from, into.data(), into.size() / size_of(dtype));
  }

  const std::shared_ptr<InProcessGroup> group_;
  const Roster roster_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process(int world, std::chrono::milliseconds timeout) {
  const auto group = std::make_shared<InProcessGroup>(world);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(std::make_unique<QueuedCommunicator>(
        std::make_unique<InProcess>(group, roster_of_threads(rank, world)), timeout));
  return ranks;
}

}  // namespace trainyard::comm
