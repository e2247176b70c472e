#include <catch2/catch.hpp>

#include "metrics/trace.h"
#include "ops/add.h"
#include "ops/matmul.h"

using namespace trainyard;

TEST_CASE("ops leave spans on the trace of their thread, and none without one") {
  const Tensor a = Tensor::zeros({2, 2}, DType::Float32);
  Tensor out = Tensor::zeros({2, 2}, DType::Float32);
  metrics::Trace trace(0);
  {
    const metrics::AttachTrace attach(&trace, "compute");
    ops::matmul(a, a, out);
    ops::add(a, a, out);
  }
  ops::add(a, a, out);

  const auto spans = trace.spans();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].name == "matmul");
  CHECK(spans[1].name == "add");
  CHECK(spans[1].category == std::string("op"));
}
