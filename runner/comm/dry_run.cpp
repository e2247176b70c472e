#include "comm/dry_run.h"

#include <utility>

#include "comm/checks.h"

namespace trainyard::comm {
namespace {

class DryWork final : public Work::State {
 public:
  DryWork(DryNetwork& network, int64_t number) : network_(network), number_(number) {}
  void wait() override { network_.wait(number_); }

 private:
  DryNetwork& network_;
  int64_t number_;
};

class DryCommunicator final : public Communicator {
 public:
  DryCommunicator(int world, std::string dimension, DryNetwork& network)
      : world_(world), dimension_(std::move(dimension)), network_(network) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world() const override { return world_; }

  [[nodiscard]] Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                          std::string label) override {
    const size_t bytes = check_parts_and_wholes("all_gather", inputs, outputs, seat_for(inputs));
    return issue("all_gather", bytes, std::move(label));
  }
  [[nodiscard]] Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                              std::string label) override {
    const size_t bytes = check_parts_and_wholes("reduce_scatter", outputs, inputs, seat_for(inputs));
    return issue("reduce_scatter", bytes, std::move(label));
  }
  [[nodiscard]] Work all_reduce(Tensor& values, ReduceOp, std::string label) override {
    check_usable("all_reduce", values, values.device());
    return issue("all_reduce", values.bytes(), std::move(label));
  }
  [[nodiscard]] Work broadcast(Tensor& values, int, std::string label) override {
    check_usable("broadcast", values, values.device());
    return issue("broadcast", values.bytes(), std::move(label));
  }
  [[nodiscard]] Work all_to_all(const Tensor&, Tensor& output, std::string label) override {
    check_usable("all_to_all", output, output.device());
    return issue("all_to_all", output.bytes(), std::move(label));
  }
  void name_ranks(std::vector<std::string>) override {}
  [[nodiscard]] Work shift(const Tensor&, Tensor& output, std::string label) override {
    check_usable("shift", output, output.device());
    return issue("shift", output.bytes(), std::move(label));
  }
  void barrier() override { issue("barrier", 0, {}).wait(); }

  [[nodiscard]] std::unique_ptr<Communicator> split(int, std::string name) override {
    const int size = network_.size_of(name);
    return std::make_unique<DryCommunicator>(size, std::move(name), network_);
  }
  [[nodiscard]] std::string transport() const override { return "nobody: a dry run"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return std::chrono::minutes(1); }
  void close(std::chrono::steady_clock::time_point) override {}
  CollectiveObserver on_collective(CollectiveObserver) override { return nullptr; }
  [[nodiscard]] std::shared_ptr<const FlightRecord> flight_record() const override { return nullptr; }

 private:
  [[nodiscard]] Seat seat_for(std::span<const Tensor> tensors) const {
    return {rank(), world_, tensors.empty() ? Device{} : tensors.front().device()};
  }
  Work issue(const char* name, size_t bytes, std::string label) {
    const int64_t number = network_.issue(
        {.name = name, .label = std::move(label), .dimension = dimension_, .world = world_, .bytes = bytes});
    return Work(std::make_shared<DryWork>(network_, number));
  }

  const int world_;
  const std::string dimension_;
  DryNetwork& network_;
};

}  // namespace

std::unique_ptr<Communicator> make_dry_run(int world, DryNetwork& network) {
  return std::make_unique<DryCommunicator>(world, "", network);
}

}  // namespace trainyard::comm
