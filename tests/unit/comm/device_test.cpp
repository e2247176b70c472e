// Collectives of a backend that moves host memory, on tensors of a device.
#include <catch2/catch.hpp>

#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

#include "support/devices.h"
#include "support/ranks.h"
#include "support/support.h"

namespace trainyard::comm {
namespace {

constexpr Device kCuda{DeviceKind::Cuda, 0};
constexpr int64_t kRows = 3, kWidth = 5;

/// Different on each rank.
Tensor counted(int rank, int64_t rows, Device device) {
  Tensor made = Tensor::empty({rows, kWidth}, DType::Float32);
  std::iota(made.values<float>().begin(), made.values<float>().end(), static_cast<float>(100 * rank));
  return on_device(made, device);
}

using RunCollective = std::function<Tensor(Communicator& comm, Device device)>;

/// What each rank has afterwards.
std::vector<std::vector<float>> outcome(int world, Device device, const RunCollective& collective) {
  return test::run_ranks(world, [&](Communicator& comm) {
    const Tensor here = on_device(collective(comm, device), {});
    return std::vector<float>(here.values<float>().begin(), here.values<float>().end());
  });
}

const std::vector<std::pair<const char*, RunCollective>>& collectives() {
  static const std::vector<std::pair<const char*, RunCollective>> all{
      {"all_gather",
       [](Communicator& comm, Device device) {
         Tensor whole = Tensor::empty({comm.world() * kRows, kWidth}, DType::Float32, device);
         comm.all_gather(counted(comm.rank(), kRows, device), whole).wait();
         return whole;
       }},
      {"all_gather in place",
       [](Communicator& comm, Device device) {
         Tensor whole = counted(comm.rank(), comm.world() * kRows, device);
         comm.all_gather(whole.rows(comm.rank() * kRows, kRows), whole).wait();
         return whole;
       }},
      {"reduce_scatter",
       [](Communicator& comm, Device device) {
         Tensor part = Tensor::empty({kRows, kWidth}, DType::Float32, device);
         comm.reduce_scatter(counted(comm.rank(), comm.world() * kRows, device), part).wait();
         return part;
       }},
      {"all_reduce",
       [](Communicator& comm, Device device) {
         Tensor values = counted(comm.rank(), kRows, device);
         comm.all_reduce(values, ReduceOp::Max).wait();
         return values;
       }},
      {"broadcast",
       [](Communicator& comm, Device device) {
         Tensor values = counted(comm.rank(), kRows, device);
         comm.broadcast(values, comm.world() - 1).wait();
         return values;
       }},
      {"all_to_all",
       [](Communicator& comm, Device device) {
         Tensor to = Tensor::empty({comm.world() * kRows, kWidth}, DType::Float32, device);
         comm.all_to_all(counted(comm.rank(), comm.world() * kRows, device), to).wait();
         return to;
       }},
      {"two under way", [](Communicator& comm, Device device) {
         Tensor first = counted(comm.rank(), kRows, device), second = counted(comm.rank() + 7, kRows, device);
         const Work one = comm.all_reduce(first), two = comm.all_reduce(second);
         two.wait(), one.wait();
         comm.all_reduce(first).wait();
         return first;
       }}};
  return all;
}

}  // namespace

TEST_CASE("comm: collectives on tensors of a device give what they give on the host", "[comm]") {
  if (cuda_devices() == 0) return test::skip("no CUDA device");
  const int world = GENERATE(1, 2, 3);
  for (const auto& [name, collective] : collectives()) {
    CAPTURE(name, world);
    CHECK(outcome(world, kCuda, collective) == outcome(world, {}, collective));
  }
}

TEST_CASE("comm: an input and an output on two devices are refused", "[comm]") {
  if (cuda_devices() == 0) return test::skip("no CUDA device");
  const auto refused = test::run_ranks(2, [](Communicator& comm) -> std::string {
    Tensor whole = Tensor::empty({2 * kRows, kWidth}, DType::Float32);
    try {
      comm.all_gather(counted(comm.rank(), kRows, kCuda), whole).wait();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  });
  for (const std::string& error : refused)
    CHECK(error == "all_gather: this communicator moves memory of cuda:0, the tensor is on cpu");
}

}  // namespace trainyard::comm
