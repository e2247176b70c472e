#include "comm/bench.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "support/ranks.h"

namespace trainyard::comm {
namespace {

/// Adds one to the first element of every sum.
class Lying final : public Communicator {
 public:
  explicit Lying(Communicator& inner) : inner_(inner) {}
  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int world() const override { return inner_.world(); }
  [[nodiscard]] Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                          std::string label) override {
    return inner_.all_gather_coalesced(inputs, outputs, std::move(label));
  }
  [[nodiscard]] Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                              std::string label) override {
    return inner_.reduce_scatter_coalesced(inputs, outputs, std::move(label));
  }
  [[nodiscard]] Work all_reduce(Tensor& values, ReduceOp op, std::string label) override {
    inner_.all_reduce(values, op, std::move(label)).wait();
    if (values.dtype() == DType::Float32) values.data<float>()[0] += 1;
    return {};
  }
  [[nodiscard]] Work broadcast(Tensor& values, int root, std::string label) override {
    return inner_.broadcast(values, root, std::move(label));
  }
  [[nodiscard]] Work all_to_all(const Tensor& input, Tensor& output, std::string label) override {
    return inner_.all_to_all(input, output, std::move(label));
  }
  void name_ranks(std::vector<std::string> places) override { inner_.name_ranks(std::move(places)); }
  [[nodiscard]] Work shift(const Tensor& input, Tensor& output, std::string label) override {
    return inner_.shift(input, output, std::move(label));
  }
  void barrier() override { inner_.barrier(); }
  [[nodiscard]] std::unique_ptr<Communicator> split(int color, std::string name) override {
    return inner_.split(color, std::move(name));
  }
  [[nodiscard]] std::string transport() const override { return inner_.transport(); }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return inner_.timeout(); }
  void close(std::chrono::steady_clock::time_point deadline) override { inner_.close(deadline); }
  CollectiveObserver on_collective(CollectiveObserver observer) override {
    return inner_.on_collective(std::move(observer));
  }
  [[nodiscard]] std::shared_ptr<const FlightRecord> flight_record() const override { return inner_.flight_record(); }

 private:
  Communicator& inner_;
};

const std::vector<Collective> kAll{Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                                   Collective::Broadcast, Collective::AllToAll};

BenchPlan small_plan() {
  return {.collectives = kAll, .min_bytes = 8, .max_bytes = 512, .factor = 8, .iterations = 2, .warmup = 1};
}

TEST_CASE("comm-bench: a row for each size of each collective, and every element is right", "[comm]") {
  const int world = GENERATE(1, 2, 3);
  const DType dtype = GENERATE(DType::Float32, DType::BFloat16);
  BenchPlan plan = small_plan();
  plan.dtype = dtype;
  std::vector<std::string> lines;
  const auto wrong = test::run_ranks(world, [&](Communicator& comm) {
    return run_bench(comm, plan, [&](const std::string& line) { lines.push_back(line); });
  });
  CHECK(wrong == std::vector<int64_t>(static_cast<size_t>(world), 0));
  // 8 bytes are two floats: with three ranks no part has one.
  const size_t without = world == 3 && dtype == DType::Float32 ? 3 : 0;
  CHECK(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("  "); }) ==
        static_cast<int64_t>(kAll.size() * 3 - without));
  CHECK(lines.at(lines.size() - 2) == "# Out of bounds values : 0 OK");
}

TEST_CASE("comm-bench: an element that is wrong is counted on every rank", "[comm]") {
  BenchPlan plan = small_plan();
  plan.collectives = {Collective::AllReduce};
  plan.max_bytes = 8;
  const auto wrong = test::run_ranks(2, [&](Communicator& comm) {
    Lying lying(comm);
    return run_bench(lying, plan, [](const std::string&) {});
  });
  CHECK(wrong == std::vector<int64_t>{2, 2});  // one on each of two ranks
}

TEST_CASE("comm-bench: bus bandwidth is what nccl-tests makes of it", "[comm]") {
  const Measurement measured{.bytes = 4'000'000'000, .elements = 1, .seconds = 2};
  CHECK(algorithm_bandwidth(measured) == 2e9);
  CHECK(bus_bandwidth(Collective::AllReduce, measured, 4) == Approx(3e9));
  CHECK(bus_bandwidth(Collective::AllGather, measured, 4) == Approx(1.5e9));
  CHECK(bus_bandwidth(Collective::ReduceScatter, measured, 4) == Approx(1.5e9));
  CHECK(bus_bandwidth(Collective::AllToAll, measured, 4) == Approx(1.5e9));
  CHECK(bus_bandwidth(Collective::Broadcast, measured, 4) == 2e9);
}

TEST_CASE("comm-bench: sizes that never end, or are none, are refused", "[comm]") {
  BenchPlan plan = small_plan();
  plan.factor = 1;
  CHECK_THROWS_AS(check_bench(plan), InputError);
  plan = small_plan();
  plan.min_bytes = 1024;
  CHECK_THROWS_AS(check_bench(plan), InputError);
  plan = small_plan();
  plan.min_bytes = 0;
  CHECK_THROWS_AS(check_bench(plan), InputError);
}

}  // namespace
}  // namespace trainyard::comm
