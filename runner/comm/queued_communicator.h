#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/backend.h"
#include "comm/checks.h"
#include "comm/communicator.h"
#include "comm/job_queue.h"
#include "comm/seen.h"

namespace trainyard::comm {

/// The Communicator of every host backend: checks the tensors, queues the collective, records it. Tensors of a device
/// go by way of pinned memory. In a world of one it has no thread and runs everything at once.
class QueuedCommunicator final : public Communicator {
 public:
  /// `name` marks it in messages; empty for the world.
  QueuedCommunicator(std::unique_ptr<Backend> backend, std::chrono::milliseconds timeout, std::string name = {},
                     std::shared_ptr<Seen> seen = std::make_shared<Seen>());
  ~QueuedCommunicator() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world() const override { return world_; }
  [[nodiscard]] Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                          std::string label) override;
  [[nodiscard]] Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                              std::string label) override;
  [[nodiscard]] Work all_reduce(Tensor& values, ReduceOp op, std::string label) override;
  [[nodiscard]] Work broadcast(Tensor& values, int root, std::string label) override;
  [[nodiscard]] Work all_to_all(const Tensor& input, Tensor& output, std::string label) override;
  void name_ranks(std::vector<std::string> places) override;
  [[nodiscard]] Work shift(const Tensor& input, Tensor& output, std::string label) override;
  void barrier() override;
  [[nodiscard]] std::unique_ptr<Communicator> split(int color, std::string name) override;
  [[nodiscard]] std::string transport() const override { return backend_->transport(); }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return timeout_; }
  void close(std::chrono::steady_clock::time_point deadline) override;
  CollectiveObserver on_collective(CollectiveObserver observer) override {
    return std::exchange(seen_->observer, std::move(observer));
  }
  [[nodiscard]] std::shared_ptr<const FlightRecord> flight_record() const override { return {seen_, &seen_->record}; }

 private:
  using Run = std::function<void(const Call&)>;
  /// The seat on the device of the first.
  [[nodiscard]] Seat seat_for(std::span<const Tensor> tensors) const;
  using Exchange = std::function<void(const Call&, DType, std::span<const std::byte> from, std::span<std::byte> to)>;
  using Change = std::function<void(const Call&, std::span<std::byte> values)>;
  Work issue(const char* name, std::string label, size_t bytes, Run run);
  /// Those of inputs and their outputs, and those of one tensor, in host memory wherever the tensors lie.
  Work exchange(const char* name, std::string label, size_t bytes, std::span<const Tensor> inputs,
                std::span<Tensor> outputs, Exchange run);
  Work change(const char* name, std::string label, Tensor& values, Change run);
  [[nodiscard]] Call call(const char* name, std::string label) const;
  [[nodiscard]] std::vector<int> members_of(int color, const std::string& name);

  std::unique_ptr<Backend> backend_;
  const int rank_, world_;
  const std::chrono::milliseconds timeout_;
  const std::string name_;
  bool closed_ = false;
  const std::shared_ptr<Seen> seen_;
  std::optional<JobQueue> queue_;  // none in a world of one; last: its thread uses all above
};

}  // namespace trainyard::comm
