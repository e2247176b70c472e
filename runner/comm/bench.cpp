#include "comm/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace trainyard::comm {
namespace {

using Clock = std::chrono::steady_clock;

const char* name_of(Collective collective) {
  switch (collective) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::AllGather:
      return "all_gather";
    case Collective::ReduceScatter:
      return "reduce_scatter";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::AllToAll:
      return "all_to_all";
  }
  return "";
}

bool reduces(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::ReduceScatter;
}

/// A value of rank `rank`, small and whole, so that sums are exact in every dtype.
int value_at(int rank, int64_t index) {
  return static_cast<int>((rank + index) % 3);
}

void set(Tensor& tensor, int64_t index, int value) {
  if (tensor.dtype() == DType::BFloat16) {
    tensor.values<BFloat16>()[static_cast<size_t>(index)] = BFloat16(static_cast<float>(value));
  } else {
    tensor.values<float>()[static_cast<size_t>(index)] = static_cast<float>(value);
  }
}

bool is(const Tensor& tensor, int64_t index, int value) {
  const auto wanted = static_cast<float>(value);
  return tensor.dtype() == DType::BFloat16
             ? tensor.values<BFloat16>()[static_cast<size_t>(index)].bits == BFloat16(wanted).bits
             : tensor.values<float>()[static_cast<size_t>(index)] == wanted;
}

/// The tensor lies in the memory of what a training gathers and reduces.
Tensor filled(int rank, const BenchPlan& plan, int64_t elements) {
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor tensor = Tensor::empty({elements}, plan.dtype);
  for (int64_t i = 0; i < elements; ++i) set(tensor, i, value_at(rank, i));
  return on_device(tensor, plan.device);
}

/// One collective at one size: its tensors, how it is issued, and what must come out.
class Case {
 public:
  Case(Communicator& comm, const BenchPlan& plan, Collective collective, int64_t elements)
      : comm_(comm),
        collective_(collective),
        world_(comm.world()),
        part_(filled(comm.rank(), plan, elements)),
        whole_(has_one_side() ? Tensor() : filled(comm.rank(), plan, elements * world_)),
        other_(collective == Collective::AllToAll ? filled(comm.rank(), plan, elements * world_) : Tensor()) {}

  /// The whole side; of an all_reduce and a broadcast, which have but one, all of it.
  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(has_one_side() ? part_.bytes() : whole_.bytes()); }
  [[nodiscard]] int64_t elements() const { return part_.count(); }

  Work issue() {
    switch (collective_) {
      case Collective::AllReduce:
        return comm_.all_reduce(part_);
      case Collective::AllGather:
        return comm_.all_gather(part_, whole_);
      case Collective::ReduceScatter:
        return comm_.reduce_scatter(whole_, part_);
      case Collective::Broadcast:
        return comm_.broadcast(part_, 0);
      case Collective::AllToAll:
        return comm_.all_to_all(whole_, other_);
    }
    return {};
  }

  /// Elements that are not as the formula says, after one issue() since construction.
  [[nodiscard]] int64_t wrong() const {
    const Tensor result = on_device(collective_ == Collective::AllGather ? whole_
                                    : other_.defined()                   ? other_
                                                                         : part_,
                                    {});
    int64_t count = 0;
    for (int64_t i = 0; i < result.count(); ++i)
      if (!is(result, i, expected(i))) ++count;
    return count;
  }

 private:
  [[nodiscard]] bool has_one_side() const {
    return collective_ == Collective::AllReduce || collective_ == Collective::Broadcast;
  }

  [[nodiscard]] int expected(int64_t i) const {
    const auto sum_at = [&](int64_t index) {
      int sum = 0;
      for (int rank = 0; rank < world_; ++rank) sum += value_at(rank, index);
      return sum;
    };
    const int64_t slice = part_.count();
    switch (collective_) {
      case Collective::AllReduce:
        return sum_at(i);
      case Collective::AllGather:
        return value_at(static_cast<int>(i / slice), i % slice);
      case Collective::ReduceScatter:
        return sum_at(comm_.rank() * slice + i);
      case Collective::Broadcast:
        return value_at(0, i);
      case Collective::AllToAll:
        return value_at(static_cast<int>(i / slice), comm_.rank() * slice + i % slice);
    }
    return 0;
  }

  Communicator& comm_;
  Collective collective_;
  int world_;
  Tensor part_, whole_, other_;
};

double total(Communicator& comm, double own, ReduceOp op) {
  auto values = Tensor::from<double>(std::array{own}, {1});
  comm.all_reduce(values, op).wait();
  return values.data<double>()[0];
}

Measurement measure(Communicator& comm, const BenchPlan& plan, Collective collective, int64_t elements) {
  Case one(comm, plan, collective, elements);
  Measurement measured{.bytes = one.bytes(), .elements = one.elements()};
  one.issue().wait_on_host();
  if (plan.checks) measured.wrong = static_cast<int64_t>(total(comm, static_cast<double>(one.wrong()), ReduceOp::Sum));
  for (int i = 1; i < plan.warmup; ++i) one.issue().wait_on_host();
  comm.barrier();
  const auto begun = Clock::now();
  // They end in order of issue, so the last one's end is the end of all.
  Work last;
  for (int i = 0; i < plan.iterations; ++i) last = one.issue();
  last.wait_on_host();
  const double own = std::chrono::duration<double>(Clock::now() - begun).count() / plan.iterations;
  measured.seconds = total(comm, own, ReduceOp::Max);
  return measured;
}

void print_head(const BenchPlan& plan, Collective collective, const std::function<void(const std::string&)>& print) {
  print(fmt::format("#\n# {}: {} iterations after {}, time of the slowest rank, {}", name_of(collective),
                    plan.iterations, plan.warmup, plan.checks ? "every element checked" : "not checked"));
  print(fmt::format("# {:>12}  {:>12}  {:>8}  {:>6}  {:>4}  {:>10}  {:>7}  {:>7}  {:>6}", "size", "count", "type",
                    "redop", "root", "time", "algbw", "busbw", "#wrong"));
  print(fmt::format("# {:>12}  {:>12}  {:>8}  {:>6}  {:>4}  {:>10}  {:>7}  {:>7}", "(B)", "(elements)", "", "", "",
                    "(us)", "(GB/s)", "(GB/s)"));
}

std::string row(const BenchPlan& plan, Collective collective, const Measurement& measured, int world) {
  return fmt::format(
      "  {:>12}  {:>12}  {:>8}  {:>6}  {:>4}  {:>10.2f}  {:>7.3f}  {:>7.3f}  {:>6}", measured.bytes, measured.elements,
      plan.dtype == DType::BFloat16 ? "bfloat16" : "float", reduces(collective) ? "sum" : "none",
      collective == Collective::Broadcast ? 0 : -1, measured.seconds * 1e6, algorithm_bandwidth(measured) / 1e9,
      bus_bandwidth(collective, measured, world) / 1e9, plan.checks ? fmt::to_string(measured.wrong) : "N/A");
}

/// Elements of the part, for a whole side of about `bytes`, rounded down as nccl-tests does; none below one element.
int64_t elements_of(Collective collective, int64_t bytes, DType dtype, int world) {
  const bool one_side = collective == Collective::AllReduce || collective == Collective::Broadcast;
  return bytes / static_cast<int64_t>(size_of(dtype)) / (one_side ? 1 : world);
}

}  // namespace

void check_bench(const BenchPlan& plan) {
  if (plan.min_bytes < 1 || plan.max_bytes < plan.min_bytes)
    throw InputError(
        fmt::format("comm-bench: sizes from {} to {} bytes are none; the first must be at least 1 and the "
                    "last not below it",
                    plan.min_bytes, plan.max_bytes));
  if (plan.step_bytes == 0 && plan.factor < 2)
    throw InputError(
        fmt::format("comm-bench: --stepfactor {} does not reach the next size; use 2 or more", plan.factor));
}

double algorithm_bandwidth(const Measurement& measured) {
  return measured.seconds > 0 ? static_cast<double>(measured.bytes) / measured.seconds : 0;
}

double bus_bandwidth(Collective collective, const Measurement& measured, int world) {
  const double others = static_cast<double>(world - 1) / world;
  const double share = collective == Collective::AllReduce ? 2 * others : others;
  return algorithm_bandwidth(measured) * (collective == Collective::Broadcast ? 1 : share);
}

int64_t run_bench(Communicator& comm, const BenchPlan& plan, const std::function<void(const std::string&)>& print) {
  check_bench(plan);
  const bool says = comm.rank() == 0;
  int64_t wrong = 0, rows = 0;
  double bus = 0;
  for (const Collective collective : plan.collectives) {
    if (says) print_head(plan, collective, print);
    for (int64_t bytes = plan.min_bytes; bytes <= plan.max_bytes;
         bytes = plan.step_bytes > 0 ? bytes + plan.step_bytes : bytes * plan.factor) {
      const int64_t elements = elements_of(collective, bytes, plan.dtype, comm.world());
      if (elements == 0) continue;  // fewer elements than ranks
      const Measurement measured = measure(comm, plan, collective, elements);
      wrong += measured.wrong;
      bus += bus_bandwidth(collective, measured, comm.world());
      ++rows;
      if (says) print(row(plan, collective, measured, comm.world()));
    }
  }
  if (says && plan.checks) print(fmt::format("# Out of bounds values : {} {}", wrong, wrong == 0 ? "OK" : "FAILED"));
  if (says) print(fmt::format("# Avg bus bandwidth    : {:.6g}", rows > 0 ? bus / static_cast<double>(rows) / 1e9 : 0));
  return wrong;
}

}  // namespace trainyard::comm
