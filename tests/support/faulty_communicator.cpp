#include "support/faulty_communicator.h"

#include <fmt/format.h>

#include <thread>
#include <vector>

#include "base/error.h"

namespace trainyard::test {

using comm::Work;

namespace {

std::vector<Tensor> copied(std::span<const Tensor> tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

FaultyCommunicator::FaultyCommunicator(std::unique_ptr<comm::Communicator> inner, Fault fault)
    : inner_(std::move(inner)),
      fault_(fault),
      rank_(inner_->rank()),
      world_(inner_->world()),
      timeout_(inner_->timeout()) {}

comm::Communicator& FaultyCommunicator::present() {
  if (!inner_)
    throw PeerError(fmt::format("rank {} was lost at call {}, as the test wanted", rank_, fault_.lose_at_call));
  return *inner_;
}

Work FaultyCommunicator::later(std::function<Work()> collective) {
  const bool is_lost = calls_++ >= fault_.lose_at_call;
  return queue_.submit([this, is_lost, collective = std::move(collective)] {
    if (is_lost) inner_.reset();
    present();
    std::this_thread::sleep_for(fault_.delay);  // stands for the network's time, which is what the tests look at
    collective().wait();
  });
}

Work FaultyCommunicator::all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                              std::string label) {
  return later([=, this, from = copied(inputs), to = copied(outputs)]() mutable {
    return present().all_gather_coalesced(from, to, label);
  });
}

Work FaultyCommunicator::reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                  std::string label) {
  return later([=, this, from = copied(inputs), to = copied(outputs)]() mutable {
    return present().reduce_scatter_coalesced(from, to, label);
  });
}

Work FaultyCommunicator::all_reduce(Tensor& values, comm::ReduceOp op, std::string label) {
  return later([=, this]() mutable { return present().all_reduce(values, op, label); });
}

Work FaultyCommunicator::broadcast(Tensor& values, int root, std::string label) {
  return later([=, this]() mutable { return present().broadcast(values, root, label); });
}

Work FaultyCommunicator::all_to_all(const Tensor& input, Tensor& output, std::string label) {
  return later([=, this]() mutable { return present().all_to_all(input, output, label); });
}

Work FaultyCommunicator::shift(const Tensor& input, Tensor& output, std::string label) {
  return later([=, this]() mutable { return present().shift(input, output, label); });
}

void FaultyCommunicator::barrier() {
  later([this] {
    present().barrier();
    return Work();
  }).wait();
}

std::unique_ptr<comm::Communicator> FaultyCommunicator::split(int color, std::string name) {
  std::unique_ptr<comm::Communicator> part;
  later([&] {
    part = present().split(color, name);
    return Work();
  }).wait();
  return part;
}

void FaultyCommunicator::close(std::chrono::steady_clock::time_point deadline) {
  static_cast<void>(queue_.wait_idle(deadline));
  present().close(deadline);
}

std::shared_ptr<const comm::FlightRecord> FaultyCommunicator::flight_record() const {
  return inner_ ? inner_->flight_record() : nullptr;
}

comm::CollectiveObserver FaultyCommunicator::on_collective(comm::CollectiveObserver observer) {
  return present().on_collective(std::move(observer));
}

}  // namespace trainyard::test
