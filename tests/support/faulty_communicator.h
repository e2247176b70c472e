#pragma once

#include <chrono>
#include <limits>
#include <memory>

#include "comm/communicator.h"
#include "comm/job_queue.h"

namespace trainyard::test {

struct Fault {
  /// Each collective takes this much longer, on the communicator's thread: what a slow network does to prefetch.
  std::chrono::milliseconds delay{0};
  /// At this collective (the first is 0) the rank is lost: its inner communicator is dropped, so that its peers get
  /// PeerError, and the call and all after it throw PeerError here.
  int lose_at_call = std::numeric_limits<int>::max();
};

/// A communicator that behaves like `inner` with a fault. Splits of it are without.
class FaultyCommunicator final : public comm::Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<comm::Communicator> inner, Fault fault);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world() const override { return world_; }
  [[nodiscard]] comm::Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                std::string label) override;
  [[nodiscard]] comm::Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                                    std::string label) override;
  [[nodiscard]] comm::Work all_reduce(Tensor& values, comm::ReduceOp op, std::string label) override;
  [[nodiscard]] comm::Work broadcast(Tensor& values, int root, std::string label) override;
  [[nodiscard]] comm::Work all_to_all(const Tensor& input, Tensor& output, std::string label) override;
  void name_ranks(std::vector<std::string> places) override { inner_->name_ranks(std::move(places)); }
  [[nodiscard]] comm::Work shift(const Tensor& input, Tensor& output, std::string label) override;
  void barrier() override;
  [[nodiscard]] std::unique_ptr<comm::Communicator> split(int color, std::string name) override;
  [[nodiscard]] std::string transport() const override { return inner_ ? inner_->transport() : "none: lost"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return timeout_; }
  void close(std::chrono::steady_clock::time_point deadline) override;
  comm::CollectiveObserver on_collective(comm::CollectiveObserver observer) override;
  [[nodiscard]] std::shared_ptr<const comm::FlightRecord> flight_record() const override;

 private:
  comm::Work later(std::function<comm::Work()> collective);
  comm::Communicator& present();

  std::unique_ptr<comm::Communicator> inner_;
  const Fault fault_;
  const int rank_, world_;
  const std::chrono::milliseconds timeout_;
  int calls_ = 0;
  comm::JobQueue queue_;
};

}  // namespace trainyard::test
