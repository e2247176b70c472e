#include "comm/queued_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/host_view.h"
#include "comm/roster.h"

namespace trainyard::comm {
namespace {

using Clock = std::chrono::steady_clock;

using Use = HostView::Use;

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

Seat QueuedCommunicator::seat_for(std::span<const Tensor> tensors) const {
  return {.rank = rank_, .world = world_, .device = tensors.empty() ? Device{} : tensors.front().device()};
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

Work QueuedCommunicator::all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                              std::string label) {
  const size_t bytes = check_parts_and_wholes("all_gather", inputs, outputs, seat_for(inputs));
  return exchange("all_gather", std::move(label), bytes, inputs, outputs,
                  [this](const Call& call, DType, std::span<const std::byte> from, std::span<std::byte> to) {
                    backend_->all_gather(call, from, to);
                  });
}

Work QueuedCommunicator::reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                  std::string label) {
  const size_t bytes = check_parts_and_wholes("reduce_scatter", outputs, inputs, seat_for(inputs));
  for (const Tensor& input : inputs) check_summed("reduce_scatter", input);
  return exchange("reduce_scatter", std::move(label), bytes, inputs, outputs,
                  [this](const Call& call, DType dtype, std::span<const std::byte> from, std::span<std::byte> to) {
                    backend_->reduce_scatter(call, dtype, from, to);
                  });
}

Work QueuedCommunicator::all_to_all(const Tensor& input, Tensor& output, std::string label) {
  check_exchange(input, output, seat_for({&input, 1}));
  return exchange("all_to_all", std::move(label), input.bytes(), {&input, 1}, {&output, 1},
                  [this](const Call& call, DType, std::span<const std::byte> from, std::span<std::byte> to) {
                    backend_->all_to_all(call, from, to);
                  });
}

Work QueuedCommunicator::shift(const Tensor& input, Tensor& output, std::string label) {
  check_shift(input, output, seat_for({&input, 1}));
  return exchange("shift", std::move(label), input.bytes(), {&input, 1}, {&output, 1},
                  [this](const Call& call, DType, std::span<const std::byte> from, std::span<std::byte> to) {
                    backend_->shift(call, from, to);
                  });
}

Work QueuedCommunicator::all_reduce(Tensor& values, ReduceOp op, std::string label) {
  check_usable("all_reduce", values, values.device());
  check_summed("all_reduce", values);
  return change("all_reduce", std::move(label), values,
                [this, dtype = values.dtype(), op](const Call& call, std::span<std::byte> bytes) {
                  backend_->all_reduce(call, dtype, op, bytes);
                });
}

Work QueuedCommunicator::broadcast(Tensor& values, int root, std::string label) {
  check_usable("broadcast", values, values.device());
  check_root(root, world_);
  return change("broadcast", std::move(label), values,
                [this, root](const Call& call, std::span<std::byte> bytes) { backend_->broadcast(call, bytes, root); });
}

Work QueuedCommunicator::exchange(const char* name, std::string label, size_t bytes, std::span<const Tensor> inputs,
                                  std::span<Tensor> outputs, Exchange run) {
  if (world_ == 1)
    return issue(name, std::move(label), bytes, [inputs, outputs](const Call&) {
      for (size_t i = 0; i < inputs.size(); ++i) keep(inputs[i], outputs[i]);
    });
  struct Pair {
    DType dtype;
    HostView from, to;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < inputs.size(); ++i)
    pairs.push_back({inputs[i].dtype(), HostView(inputs[i], Use::Read), HostView(outputs[i], Use::Written)});
  const auto shared = std::make_shared<std::vector<Pair>>(std::move(pairs));  // jobs are copied, views are not
  return issue(name, std::move(label), bytes, [shared, run = std::move(run)](Call call) {
    call.buffers = shared;
    for (auto& [dtype, from, to] : *shared) {
      run(call, dtype, from.bytes(), to.bytes());
      to.give_back();
    }
  });
}

Work QueuedCommunicator::change(const char* name, std::string label, Tensor& values, Change run) {
  if (world_ == 1) return issue(name, std::move(label), values.bytes(), [](const Call&) {});
  const auto view = std::make_shared<HostView>(values, Use::Both);
  return issue(name, std::move(label), values.bytes(), [view, run = std::move(run)](Call call) {
    call.buffers = view;
    run(call, view->bytes());
    view->give_back();
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

void QueuedCommunicator::name_ranks(std::vector<std::string> places) {
  backend_->roster().places->set(std::move(places));
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
