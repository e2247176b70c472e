#include <catch2/catch.hpp>

#include "base/error.h"
#include "comm/in_process.h"
#include "support/faulty_communicator.h"
#include "support/ranks.h"

namespace trainyard::comm {
namespace {

using namespace std::chrono_literals;

TEST_CASE("in_process: a rank that leaves is named to the others at once", "[comm]") {
  auto communicators = make_in_process(3, 60s);
  const auto seen = test::run_threads(3, [&](int rank) -> std::string {
    const auto mine = std::move(communicators[rank]);
    if (rank == 1) return {};
    auto values = Tensor::zeros({4}, DType::Float32);
    try {
      mine->all_reduce(values, ReduceOp::Sum, "grad_norm").wait();
    } catch (const PeerError& error) {
      return error.what();
    }
    return "nothing";
  });
  CHECK(seen[0] == "rank 0: all_reduce of grad_norm lost rank 1: its thread is gone; see that pod's log");
}

TEST_CASE("in_process: a rank that does not come is named after the time-out", "[comm]") {
  auto communicators = make_in_process(2, 20ms);
  auto part = Tensor::zeros({1}, DType::Float32), whole = Tensor::zeros({2}, DType::Float32);
  const Work work = communicators[0]->all_gather(part, whole, "layers.17");
  CHECK_THROWS_WITH(
      work.wait(),
      "rank 0: all_gather of layers.17 waited 20 ms for rank 1; see that pod's log, or raise comm.timeout");
  CHECK_THROWS_WITH(
      communicators[0]->barrier(),
      "rank 0: all_gather of layers.17 waited 20 ms for rank 1; see that pod's log, or raise comm.timeout");
}

TEST_CASE("in_process: numbers of 8 bits are gathered and not summed", "[comm]") {
  const auto seen = test::run_ranks(2, [](Communicator& comm) {
    Tensor part = Tensor::empty({1}, DType::Float8E4M3), whole = Tensor::empty({2}, DType::Float8E4M3);
    part.values<Float8E4M3>()[0] = Float8E4M3(comm.rank() == 0 ? 1.5F : -448.0F);
    comm.all_gather(part, whole).wait();
    const auto values = whole.values<Float8E4M3>();
    return std::vector{float(values[0]), float(values[1])};
  });
  CHECK(seen == std::vector(2, std::vector{1.5F, -448.0F}));
  auto alone = std::move(make_in_process(1, 60s).front());
  Tensor values = Tensor::zeros({2}, DType::Float8E5M2);
  CHECK_THROWS_WITH(alone->all_reduce(values), "all_reduce: float8_e5m2 is moved and not summed; convert it first");
}

TEST_CASE("in_process: ranks that issue different collectives are told so", "[comm]") {
  CHECK_THROWS_WITH(
      test::run_ranks(2,
                      [](Communicator& comm) {
                        auto values = Tensor::zeros({comm.rank() + 1}, DType::Float32);
                        comm.all_reduce(values, ReduceOp::Sum, "loss").wait();
                      }),
      Catch::Contains("ranks issue different collectives") && Catch::Contains("4 bytes") && Catch::Contains("8 bytes"));
}

TEST_CASE("a faulty communicator: its rank is lost at the call that was said, and the others name it", "[comm]") {
  auto communicators = make_in_process(2, 60s);
  communicators[1] =
      std::make_unique<test::FaultyCommunicator>(std::move(communicators[1]), test::Fault{.lose_at_call = 2});
  const auto seen = test::run_threads(2, [&](int rank) {
    std::vector<std::string> errors;
    auto part = Tensor::zeros({1}, DType::Float32), whole = Tensor::zeros({2}, DType::Float32);
    for (int call = 0; call < 4; ++call) {
      try {
        communicators[rank]->all_gather(part, whole, "layers.0").wait();
        errors.emplace_back();
      } catch (const PeerError& error) {
        errors.emplace_back(error.what());
      }
    }
    return errors;
  });
  const std::string lost = "rank 0: all_gather of layers.0 lost rank 1: its thread is gone; see that pod's log";
  CHECK(seen[0] == std::vector<std::string>{"", "", lost, lost});
  CHECK_THAT(seen[1][2], Catch::Contains("rank 1 was lost at call 2"));
}

}  // namespace
}  // namespace trainyard::comm
