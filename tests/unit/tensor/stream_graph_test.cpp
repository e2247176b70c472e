// Graphs on the stand-in of tests/support/host_cuda, which writes down what a stream is given while it is captured, and
// refuses what CUDA refuses then.
#include "tensor/stream_graph.h"

#include <cuda_runtime.h>

#include <array>
#include <catch2/catch.hpp>

#include "base/error.h"

namespace trainyard {
namespace {

constexpr Device kDevice{DeviceKind::Cuda, 0};
constexpr int64_t kMany = 3 << 20;

Tensor bytes_of(uint8_t value, int64_t count = 4) {
  const std::vector<uint8_t> values(static_cast<size_t>(count), value);
  return on_device(Tensor::from<uint8_t>(values, {count}), kDevice);
}

int first_of(const Tensor& tensor) {
  return on_device(tensor, {}).values<uint8_t>()[0];
}

size_t bytes_in_use() {
  return memory_of(kDevice).allocator().statistics().in_use;
}

}  // namespace

TEST_CASE("stream graph: work is written down, and done at each launch on what is there then", "[cuda]") {
  Tensor from = bytes_of(1), to = bytes_of(0);
  StreamGraph graph(kDevice,
                    [&] {
                      Tensor between = Tensor::empty({4}, DType::UInt8, kDevice);
                      copy(from, between);
                      copy(between, to);
                    },
                    {});
  CHECK(graph.operations() == 2);
  CHECK_FALSE(StreamGraph::is_capturing());
  CHECK(first_of(to) == 0);
  graph.launch();
  CHECK(first_of(to) == 1);
  copy(bytes_of(7), from);
  graph.launch();
  CHECK(first_of(to) == 7);
}

TEST_CASE("stream graph: its memory is its own until it ends, whatever was freed in between", "[cuda]") {
  const size_t before = bytes_in_use();
  const std::byte* scratch = nullptr;
  {
    StreamGraph graph(kDevice, [&] { scratch = Tensor::zeros({kMany}, DType::UInt8, kDevice).raw(); }, {});
    CHECK(bytes_in_use() >= before + kMany);
    std::vector<Tensor> others;
    for (int i = 0; i < 8; ++i) others.push_back(bytes_of(9, kMany));
    graph.launch();
    for (const Tensor& other : others) {
      CHECK((other.raw() >= scratch + kMany || other.raw() + kMany <= scratch));
      CHECK(first_of(other) == 9);
    }
  }
  CHECK(bytes_in_use() == before);
}

TEST_CASE("stream graph: within it memory that is freed serves again", "[cuda]") {
  std::vector<const std::byte*> places;
  const StreamGraph graph(kDevice,
                          [&] {
                            for (int i = 0; i < 3; ++i)
                              places.push_back(Tensor::zeros({kMany}, DType::UInt8, kDevice).raw());
                          },
                          {});
  CHECK(places == std::vector(3, places[0]));
}

TEST_CASE("stream graph: results have their memory again after each launch", "[cuda]") {
  const Tensor source = bytes_of(5);
  Tensor result = bytes_of(0), kept = bytes_of(0);
  result.storage()->release();
  const size_t before = bytes_in_use();
  const auto work = [&] {
    result.storage()->materialize();
    copy(source, result);
    copy(source, kept);
  };
  auto graph = std::make_unique<StreamGraph>(kDevice, work, std::vector{result.storage(), kept.storage()});
  const std::byte* const place = result.raw();
  for (int step = 0; step < 2; ++step) {
    result.storage()->release();
    graph->launch();
    CHECK(result.raw() == place);
    CHECK(first_of(result) == 5);
    CHECK(first_of(kept) == 5);
  }
  graph.reset();
  CHECK(first_of(result) == 5);  // it holds the memory by itself
  result.storage()->release();
  CHECK(bytes_in_use() == before);  // and no longer than that
  result.storage()->materialize();
  copy(bytes_of(6), result);
  CHECK(first_of(result) == 6);
}

TEST_CASE("stream graph: what it reads stays, though its owner drops it", "[cuda]") {
  Tensor table = bytes_of(3, kMany), to = bytes_of(0, kMany);
  StreamGraph graph(kDevice,
                    [&] {
                      StreamGraph::keep(table);
                      copy(table, to);
                    },
                    {});
  table = Tensor();
  const Tensor another = bytes_of(8, kMany);
  graph.launch();
  CHECK(first_of(to) == 3);
  StreamGraph::keep(another);  // outside of any it means nothing
}

TEST_CASE("stream graph: a table that is made on the way is made once, and is not the graph's memory", "[cuda]") {
  Tensor to = bytes_of(0);
  int made = 0;
  StreamGraph graph(kDevice,
                    [&] {
                      const Tensor scratch =
                          Tensor::zeros({4}, DType::UInt8, kDevice);  // where the next one shall not be
                      Tensor table;
                      StreamGraph::outside([&] {
                        CHECK_FALSE(StreamGraph::is_capturing());
                        table = bytes_of(4);
                        CHECK(first_of(table) == 4);
                        ++made;
                      });
                      CHECK(StreamGraph::is_capturing());
                      StreamGraph::keep(table);
                      copy(table, to);
                    },
                    {});
  for (int launch = 0; launch < 2; ++launch) {
    copy(bytes_of(0), to);
    graph.launch();
    CHECK(first_of(to) == 4);
  }
  CHECK(made == 1);
  StreamGraph::outside([&] { ++made; });
  CHECK(made == 2);
}

TEST_CASE("stream graph: what cannot be repeated is refused, and the device goes on", "[cuda]") {
  const size_t before = bytes_in_use();
  Tensor there = bytes_of(1);
  CHECK_THROWS_AS(StreamGraph(kDevice, [&] { copy(Tensor::from<uint8_t>(std::array<uint8_t, 4>{}, {4}), there); }, {}),
                  std::logic_error);
  CHECK_THROWS_AS(StreamGraph(kDevice, [&] { static_cast<void>(on_device(there, {})); }, {}), std::logic_error);
  CHECK_THROWS_AS(StreamGraph(kDevice, [&] { synchronize(kDevice); }, {}), std::runtime_error);
  CHECK_THROWS_AS(StreamGraph(kDevice,
                              [&] {
                                static_cast<void>(Tensor::zeros({kMany}, DType::UInt8, kDevice));
                                throw InputError("of the work");
                              },
                              {}),
                  InputError);
  CHECK_THROWS_AS(
      StreamGraph(kDevice, [&] { static_cast<void>(Tensor::zeros({int64_t{2} << 30}, DType::UInt8, kDevice)); }, {}),
      OutOfMemoryError);
  CHECK_FALSE(StreamGraph::is_capturing());
  CHECK(first_of(there) == 1);
  there = Tensor();
  CHECK(bytes_in_use() == before);
}

TEST_CASE("stream graph: a launch that fails is the device's error", "[cuda]") {
  const Tensor from = bytes_of(2);
  Tensor to = bytes_of(1);
  StreamGraph graph(kDevice, [&] { copy(from, to); }, {});
  host_cuda::fail_next("cudaGraphLaunch", cudaErrorIllegalAddress);
  CHECK_THROWS_AS(graph.launch(), DeviceError);
}

}  // namespace trainyard
