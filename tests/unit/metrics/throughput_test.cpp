#include "metrics/throughput.h"

#include <catch2/catch.hpp>

#include "metrics/mfu.h"

namespace trainyard::metrics {
namespace {
using namespace std::chrono_literals;
constexpr Clock::time_point kBegin{};

TEST_CASE("a step's rates are what was done over the time since the step before", "[metrics]") {
  ThroughputMeter meter(kBegin);
  const Rates first = meter.step(kBegin + 2s, 1000, 4);
  CHECK(first.tokens_per_second == 500);
  CHECK(first.samples_per_second == 2);
  CHECK(meter.step(kBegin + 3s, 1000, 4).tokens_per_second == 1000);
}

TEST_CASE("time that was no training is left out of the step in which it was spent", "[metrics]") {
  ThroughputMeter meter(kBegin);
  meter.exclude(3s);
  meter.exclude(1s);
  CHECK(meter.step(kBegin + 5s, 100, 1).tokens_per_second == 100);
  CHECK(meter.step(kBegin + 6s, 100, 1).tokens_per_second == 100);
}

TEST_CASE("the line's rates are the mean since the line before", "[metrics]") {
  ThroughputMeter meter(kBegin);
  meter.step(kBegin + 1s, 100, 1);
  meter.step(kBegin + 4s, 300, 7);
  const Rates line = meter.since_last_line();
  CHECK(line.tokens_per_second == 100);
  CHECK(line.samples_per_second == 2);
  meter.step(kBegin + 5s, 50, 1);
  CHECK(meter.since_last_line().tokens_per_second == 50);
  CHECK(meter.since_last_line().tokens_per_second == 0);
}

TEST_CASE("a step that took no time has no rate", "[metrics]") {
  ThroughputMeter meter(kBegin);
  CHECK(meter.step(kBegin, 100, 1).tokens_per_second == 0);
}

TEST_CASE("what is left is judged by the last steps, without the first", "[metrics]") {
  ThroughputMeter meter(kBegin);
  CHECK_FALSE(meter.remaining(10));
  meter.step(kBegin + 60s, 1, 1);
  CHECK_FALSE(meter.remaining(10));
  meter.step(kBegin + 62s, 1, 1);
  CHECK(meter.remaining(10) == 20s);
  CHECK(meter.remaining(0) == 0s);
  for (int i = 1; i <= 50; ++i) meter.step(kBegin + 62s + i * 1s, 1, 1);
  CHECK(meter.remaining(10) == 10s);
}

TEST_CASE("FLOPs a token are 6N plus the whole attention square", "[metrics]") {
  // The 29.4 M shape: 8 blocks of q, k, v, o (512 × 512, 2 × 512 × 256, 512 × 512), three 512 × 1536, and the tied
  // head.
  const int64_t block = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1536;
  const ModelWork work{
      .matmul_parameters = 8 * block + 8192 * 512, .layers = 8, .heads = 8, .head_dim = 64, .tokens = 512};
  CHECK(flops_per_token(work) == 6.0 * 29'360'128 + 6.0 * 8 * 8 * 2 * 64 * 512);
}

TEST_CASE("MFU is a fraction of the peak, and absent without one", "[metrics]") {
  CHECK(mfu(2e8, 1000, 1e12) == 0.2);
  CHECK_FALSE(mfu(2e8, 1000, std::nullopt));
  CHECK_FALSE(mfu(2e8, 1000, 0.0));
}

}  // namespace
}  // namespace trainyard::metrics
