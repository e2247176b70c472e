#include "op_bench.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/matmul.h"
#include "ops/threads.h"
#include "plan/hardware.h"

namespace trainyard::bench {
namespace {

Tensor pattern(DType dtype, Device device) {
  constexpr int64_t kPeriod = 2001, kPeriods = 512;
  Tensor values = Tensor::empty({kPeriod * kPeriods}, DType::Float32), made = Tensor::empty(values.shape(), dtype);
  for (int64_t i = 0; i < values.count(); ++i)
    values.data<float>()[i] = static_cast<float>(i * 7919 % kPeriod - 1000) / 1000.0F;
  ops::cast(values, made);
  return on_device(made, device);
}

}  // namespace

OpBench::OpBench(Device device, DType dtype)
    : device_(device),
      dtype_(dtype),
      flops_unit_(is_cpu() ? "GFLOP/s" : "TFLOP/s"),
      flops_scale_(is_cpu() ? 1e-9 : 1e-12) {
  require_device(device);
  pattern_ = pattern(dtype_, device);
  float_pattern_ = pattern(DType::Float32, device);
  peak_ = measure_peak();
}

Tensor OpBench::filled(const Shape& shape, DType dtype) const {
  const Tensor& block = dtype == DType::Float32 ? float_pattern_ : pattern_;
  Tensor made = Tensor::empty({count_of(shape)}, dtype, device_);
  for (int64_t begin = 0; begin < made.count(); begin += block.count()) {
    const int64_t count = std::min(block.count(), made.count() - begin);
    Tensor part = made.rows(begin, count);
    copy(block.rows(0, count), part);
  }
  return made.reshape(shape);
}

double OpBench::now() const {
  timespec time{};
  clock_gettime(is_cpu() && ops::threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double OpBench::seconds_of(const Run& run) const {
  const auto seconds_of_each = [&](int launches) {
    const double start = now();
    for (int i = 0; i < launches; ++i) run();
    synchronize(device_);
    return (now() - start) / launches;
  };
  double best = seconds_of_each(1);  // warms up
  if (!is_cpu()) best = seconds_of_each(1);
  const int launches = is_cpu() ? 1 : std::clamp(static_cast<int>(0.02 / best), 1, 1000);
  best = 1e9;
  const double enough = now() + 0.1;
  for (int round = 0; round < 5 || now() < enough; ++round) best = std::min(best, seconds_of_each(launches));
  return best;
}

Peak OpBench::measure_peak() const {
  const int64_t size = is_cpu() ? 1024 : 8192, count = is_cpu() ? 8 << 20 : 256 << 20;
  const Tensor a = filled({size, size}), b = filled({size, size}), from = filled({count}), other = filled({count});
  Tensor c = filled({size, size}), to = filled({count});
  const auto cube = static_cast<double>(size * size * size);
  return {.flops = 2 * cube / seconds_of([&] { ops::matmul(a, b, c); }),
          .bytes = 3 * static_cast<double>(to.bytes()) / seconds_of([&] { ops::add(from, other, to); })};
}

void OpBench::products(const std::string& name, double flops, const Run& run) const {
  const double seconds = seconds_of(run);
  fmt::print("  {:<44} {:>9.1f} us {:>8.1f} {} {:>5.0f} % of peak\n", name, seconds * 1e6,
             flops / seconds * flops_scale_, flops_unit_, 100 * flops / seconds / peak_.flops);
}

void OpBench::stream(const std::string& name, double bytes, const std::function<Run()>& make) const {
  const double cache = is_cpu() ? 0 : static_cast<double>(properties_of(device_).l2_bytes);
  std::vector<Run> runs;
  do {
    runs.push_back(make());
  } while (static_cast<double>(runs.size()) * bytes < 2 * cache);
  size_t next = 0;
  const double seconds = seconds_of([&] { runs[next++ % runs.size()](); });
  fmt::print("  {:<44} {:>9.1f} us {:>8.1f} GB/s    {:>5.0f} % of sum\n", name, seconds * 1e6, bytes / seconds * 1e-9,
             100 * bytes / seconds / peak_.bytes);
}

void OpBench::print_peak() const {
  const std::string name = is_cpu() ? fmt::format("{} thread(s)", ops::threads()) : properties_of(device_).name;
  fmt::print("{}, {}: matrix peak {:.1f} {}, out of cache a = b + c at {:.1f} GB/s\n", name, name_of(dtype_),
             peak_.flops * flops_scale_, flops_unit_, peak_.bytes * 1e-9);
  if (is_cpu()) return;
  const train::Hardware sheet = train::this_device(device_, 1);
  if (sheet.is_known)
    fmt::print("its data sheet: {:.1f} TFLOP/s of bf16, {:.1f} GB/s\n", sheet.half_flops * 1e-12,
               sheet.memory_bandwidth * 1e-9);
}

}  // namespace trainyard::bench
