// Work beside a stream, on the stand-in of tests/support/host_cuda, whose streams can be late.
#include "tensor/side_work.h"

#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include <stdexcept>

#include "tensor/tensor.h"

namespace trainyard {
namespace {

constexpr Device kBeside{DeviceKind::Cuda, 0};
constexpr int64_t kLarge = 3 << 20;  // has no segment with others
using Direction = SideWork::Direction;

/// While it lives streams are late: their work is done when somebody waits for it.
struct LateStreams {
  LateStreams() { host_cuda::delay(true); }
  ~LateStreams() { host_cuda::delay(false); }
};
/// While it lives the host is ahead: no event has passed.
struct AheadHost {
  AheadHost() { host_cuda::hold_all(true); }
  ~AheadHost() { host_cuda::hold_all(false); }
};

StreamId stream_of(Direction direction) {
  StreamId id;
  SideWork(direction, kBeside, {}, [&id] { id = current_stream(kBeside); });
  return id;
}

SideWork leave(const Tensor& from, Tensor to) {
  return SideWork(Direction::ToHost, kBeside, {from, to}, [&] { copy_async(from, to); });
}

}  // namespace

TEST_CASE("side work: each direction has a stream of its own, and the current one is as it was", "[cuda]") {
  const StreamId own = current_stream(kBeside);
  const StreamId to_host = stream_of(Direction::ToHost), to_device = stream_of(Direction::ToDevice);
  CHECK(to_host != own);
  CHECK(to_device != own);
  CHECK(to_host != to_device);
  CHECK(stream_of(Direction::ToHost) == to_host);
  CHECK_THROWS_AS(SideWork(Direction::ToHost, kBeside, {}, [] { throw std::logic_error("of the test"); }),
                  std::logic_error);
  CHECK(current_stream(kBeside) == own);
}

TEST_CASE("side work: what comes after wait() finds it done, what comes before does not wait for it", "[cuda]") {
  const Tensor there = on_device(Tensor::from<int32_t>(std::vector{7}, {1}), kBeside);
  Tensor host = Tensor::pinned({1}, DType::Int32, kBeside);
  host.values<int32_t>()[0] = 0;
  const LateStreams late;
  SideWork work = leave(there, host);
  CHECK(work.is_under_way());
  Tensor other = Tensor::zeros({1}, DType::Int32, kBeside);
  synchronize(kBeside);
  CHECK(host.values<int32_t>()[0] == 0);
  work.wait();
  CHECK_FALSE(work.is_under_way());
  CHECK(host.values<int32_t>()[0] == 7);
  CHECK_NOTHROW(work.wait());
}

TEST_CASE("side work: memory is the current stream's again after wait(), however far the host is ahead", "[cuda]") {
  const AheadHost ahead;
  Tensor there = Tensor::empty({kLarge}, DType::UInt8, kBeside), host = Tensor::pinned({kLarge}, DType::UInt8, kBeside);
  const std::byte *const address = there.raw(), *const host_address = host.raw();
  SideWork work = leave(there, host);
  there = host = {};
  CHECK(Tensor::empty({kLarge}, DType::UInt8, kBeside).raw() != address);  // the work has it still
  work.wait();
  CHECK(Tensor::empty({kLarge}, DType::UInt8, kBeside).raw() == address);
  CHECK(Tensor::pinned({kLarge}, DType::UInt8, kBeside).raw() == host_address);
}

TEST_CASE("side work: memory of what nobody waited for is nobody's before it is done", "[cuda]") {
  Tensor there = Tensor::empty({kLarge}, DType::UInt8, kBeside);
  const std::byte* const address = there.raw();
  {
    const AheadHost ahead;
    leave(there, Tensor::pinned({kLarge}, DType::UInt8, kBeside));
    there = {};
    CHECK(Tensor::empty({kLarge}, DType::UInt8, kBeside).raw() != address);
  }
  CHECK(Tensor::empty({kLarge}, DType::UInt8, kBeside).raw() == address);
}

}  // namespace trainyard
