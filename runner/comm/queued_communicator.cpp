#include "comm/queued_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace trainyard::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.raw(), tensor.bytes()};
}
std::span<std::byte> bytes_of(Tensor& tensor) {
  return {tensor.raw(), tensor.bytes()};
}

/// What a collective of one rank is, on any device.
void keep(const Tensor& input, Tensor& output) {
  if (input.raw() != output.raw()) copy(input, output);
}

}  // namespace

QueuedCommunicator::QueuedCommunicator(std::unique_ptr<Backend> backend, std::chrono::milliseconds timeout,
                                       std::string name, std::shared_ptr<Seen> seen)
    : backend_(std::move(backend)),
      rank_(backend_->rank()),
      world_(backend_->world()),
      timeout_(timeout),
      name_(std::move(name)),
      seen_(std::move(seen)) {
  if (world_ > 1) queue_.emplace();
}

QueuedCommunicator::~QueuedCommunicator() {
  if (!closed_) backend_->abort();
}

Seat QueuedCommunicator::seat_for(const Tensor& tensor) const {
  return {.rank = rank_, .world = world_, .device = world_ == 1 ? tensor.device() : Device{}};
}

Call QueuedCommunicator::call(const char* name, std::string label) const {
  return {.name = name, .label = Call::label_in(name_, std::move(label)), .timeout = timeout_};
}

Work QueuedCommunicator::issue(const char* name, std::string label, size_t bytes, Run run) {
  if (closed_) throw std::logic_error(fmt::format("{} on a closed communicator", name));
  const auto issued = Clock::now();
  const uint64_t number = seen_->record.issued(name, label, name_, bytes);
  auto job = [this, name, label = std::move(label), bytes, run = std::move(run), issued, number] {
    const auto begun = Clock::now();
    seen_->record.begun(number);
    run(call(name, label));
    seen_->record.ended(number);
    if (seen_->observer)
      seen_->observer(
          {.name = name, .label = label, .bytes = bytes, .issued = issued, .begun = begun, .ended = Clock::now()});
  };
  if (queue_) return queue_->submit(std::move(job));
  job();
  return Work();
}

Work QueuedCommunicator::all_gather(const Tensor& input, Tensor& output, std::string label) {
  check_part_and_whole("all_gather", input, output, seat_for(input));
  return issue("all_gather", std::move(label), output.bytes(), [this, input, output](const Call& call) mutable {
    if (world_ == 1) return keep(input, output);
    backend_->all_gather(call, bytes_of(input), bytes_of(output));
  });
}

Work QueuedCommunicator::reduce_scatter(const Tensor& input, Tensor& output, std::string label) {
  check_part_and_whole("reduce_scatter", output, input, seat_for(input));
  return issue("reduce_scatter", std::move(label), input.bytes(), [this, input, output](const Call& call) mutable {
    if (world_ == 1) return keep(input, output);
    backend_->reduce_scatter(call, input.dtype(), bytes_of(input), bytes_of(output));
  });
}

Work QueuedCommunicator::all_reduce(Tensor& values, ReduceOp op, std::string label) {
  check_usable("all_reduce", values, seat_for(values).device);
  return issue("all_reduce", std::move(label), values.bytes(), [this, values, op](const Call& call) mutable {
    if (world_ > 1) backend_->all_reduce(call, values.dtype(), op, bytes_of(values));
  });
}

Work QueuedCommunicator::broadcast(Tensor& values, int root, std::string label) {
  check_usable("broadcast", values, seat_for(values).device);
  check_root(root, world_);
  return issue("broadcast", std::move(label), values.bytes(), [this, values, root](const Call& call) mutable {
    if (world_ > 1) backend_->broadcast(call, bytes_of(values), root);
  });
}

Work QueuedCommunicator::all_to_all(const Tensor& input, Tensor& output, std::string label) {
  check_exchange(input, output, seat_for(input));
  return issue("all_to_all", std::move(label), input.bytes(), [this, input, output](const Call& call) mutable {
    if (world_ == 1) return keep(input, output);
    backend_->all_to_all(call, bytes_of(input), bytes_of(output));
  });
}

void QueuedCommunicator::barrier() {
  issue("barrier", {}, 0, [this](const Call& call) {
    if (world_ > 1) backend_->barrier(call);
  }).wait();
}

std::vector<int> QueuedCommunicator::members_of(int color, const std::string& name) {
  auto colors = Tensor::empty({world_}, DType::Int32);
  Tensor mine = colors.rows(rank_, 1);
  mine.data<int32_t>()[0] = color;
  all_gather(mine, colors, "the colors of " + name).wait();
  std::vector<int> members;
  for (int rank = 0; rank < world_; ++rank)
    if (colors.data<int32_t>()[rank] == color) members.push_back(rank);
  return members;
}

std::unique_ptr<Communicator> QueuedCommunicator::split(int color, std::string name) {
  const std::vector<int> members = members_of(color, name);
  std::unique_ptr<Backend> part;
  issue("split", name, 0, [&](const Call& call) { part = backend_->split(call, members, name); }).wait();
  return std::make_unique<QueuedCommunicator>(std::move(part), timeout_, std::move(name), seen_);
}

void QueuedCommunicator::close(Clock::time_point deadline) {
  if (closed_) return;
  if (queue_) {
    queue_->throw_if_poisoned();
    // Nobody leaves before all have come: a rank that closes its connections early can cut off what a slower one has
    // not read yet.
    auto last = call("close", {});
    last.timeout = std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()),
                              std::chrono::milliseconds(1), timeout_);
    Work farewell = queue_->submit([this, last] { backend_->barrier(last); });
    if (!queue_->wait_idle(deadline)) {
      backend_->abort();
      throw PeerError(
          fmt::format("rank {}: the communicator did not come to its end in time; a peer has not finished "
                      "its collectives",
                      rank_));
    }
    farewell.wait();
  }
  closed_ = true;
}

}  // namespace trainyard::comm
