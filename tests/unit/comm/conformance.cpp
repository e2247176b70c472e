#include "conformance.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace trainyard::comm::conformance {
namespace {

// Odd, empty, past a cache line, past a block of the fold (4096 elements).
constexpr int64_t kRows[] = {0, 1, 7, 64, 2731};
// Past several pieces of a ring and chunks of TCP; once, as it takes its time.
constexpr int64_t kManyRows = 90'001;

/// Small enough for exact bfloat16 sums in float32, and with fractions whose float32 sum depends on the order.
double formula(int rank, int64_t index) {
  constexpr double kScale[] = {1.0 / 3.0, 10.0 / 3.0, 100.0 / 3.0};
  return static_cast<double>((index * 37 + rank * 101) % 251 - 125) * kScale[rank % 3];
}

template <typename T>
T value_of(int rank, int64_t index) {
  return T(static_cast<float>(formula(rank, index)));
}
template <>
double value_of(int rank, int64_t index) {
  return formula(rank, index);
}
template <>
int32_t value_of(int rank, int64_t index) {
  return static_cast<int32_t>(formula(rank, index));
}
template <>
int64_t value_of(int rank, int64_t index) {
  return static_cast<int64_t>(formula(rank, index));
}

template <typename T>
T folded(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::Sum:
      return a + b;
    case ReduceOp::Max:
      return a > b ? a : b;
    case ReduceOp::Min:
      return a < b ? a : b;
  }
  return a;
}

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;
template <typename T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

/// In rank order; 16-bit types kept in float32 and rounded once.
template <typename T>
T reduced(ReduceOp op, int world, int64_t index) {
  using Kept = Wide<T>;
  Kept sum = static_cast<Kept>(value_of<T>(0, index));
  for (int rank = 1; rank < world; ++rank) sum = folded(op, sum, static_cast<Kept>(value_of<T>(rank, index)));
  return T(sum);
}

class Checker {
 public:
  Checker(Communicator& comm, Promises promises) : comm_(comm), promises_(promises) {}

  std::vector<std::string> problems;

  template <typename T>
  void check_dtype() {
    for (const int64_t rows : kRows) check_rows<T>(rows);
  }

  template <typename T>
  void check_rows(int64_t rows) {
    all_gather<T>(rows, false);
    all_gather<T>(rows, true);
    reduce_scatter<T>(rows, false);
    reduce_scatter<T>(rows, true);
    all_to_all<T>(rows);
    shift<T>(rows);
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) all_reduce<T>(rows, op);
    for (int root = 0; root < comm_.world(); ++root) broadcast<T>(rows, root);
  }

  void many_rows() { check_rows<float>(kManyRows); }

  void several_under_way() {
    const int64_t rows = 3000;
    const int world = comm_.world();
    std::vector<Tensor> wholes;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      auto part = filled<float>(rows, comm_.rank(), i);
      wholes.push_back(Tensor::empty({rows * world, 2}, DType::Float32, device()));
      works.push_back(comm_.all_gather(part, wholes.back(), "layers." + std::to_string(i)));
    }
    for (int i = 19; i >= 0; --i) works[i].wait();  // the last first: nothing depends on who waits
    for (int i = 0; i < 20; ++i)
      expect<float>("all_gather under way", wholes[i],
                    [&](int64_t k) { return value_of<float>(static_cast<int>(k / (rows * 2)), k % (rows * 2) + i); });
  }

  /// Of several sizes and dtypes, an empty one among them, as one.
  void coalesced() {
    const int world = comm_.world();
    const std::vector<Tensor> parts{filled<float>(7, comm_.rank(), 0), filled<int32_t>(0, comm_.rank(), 0),
                                    filled<int32_t>(64, comm_.rank(), 3)};
    std::vector<Tensor> wholes;
    for (const Tensor& part : parts) wholes.push_back(Tensor::zeros({part.size(0) * world, 2}, part.dtype(), device()));
    comm_.all_gather_coalesced(parts, wholes, "gathered").wait();
    expect<float>("all_gather_coalesced", wholes[0],
                  [](int64_t i) { return value_of<float>(static_cast<int>(i / 14), i % 14); });
    expect<int32_t>("all_gather_coalesced", wholes[2],
                    [](int64_t i) { return value_of<int32_t>(static_cast<int>(i / 128), 3 + i % 128); });

    const std::vector<Tensor> inputs{filled<float>(7 * world, comm_.rank(), 0),
                                     filled<int64_t>(64 * world, comm_.rank(), 0)};
    std::vector<Tensor> sums{Tensor::zeros({7, 2}, DType::Float32, device()),
                             Tensor::zeros({64, 2}, DType::Int64, device())};
    comm_.reduce_scatter_coalesced(inputs, sums, "reduced").wait();
    expect<float>(
        "reduce_scatter_coalesced", sums[0],
        [&](int64_t i) { return reduced<float>(ReduceOp::Sum, world, 14 * comm_.rank() + i); }, promises_.rank_order);
    expect<int64_t>("reduce_scatter_coalesced", sums[1],
                    [&](int64_t i) { return reduced<int64_t>(ReduceOp::Sum, world, 128 * comm_.rank() + i); });
  }

  void split_in_two() {
    const auto half = comm_.split(comm_.rank() % 2, "parity");
    const int members = (comm_.world() + 1 - comm_.rank() % 2) / 2;
    if (half->world() != members || half->rank() != comm_.rank() / 2)
      problems.push_back(fmt::format("split: rank {} of {}", half->rank(), half->world()));
    auto values = on_device(Tensor::from<int64_t>(std::vector<int64_t>{comm_.rank()}, {1}), device());
    half->all_reduce(values).wait();
    const Tensor sum = on_device(values, {});
    int64_t expected = 0;
    for (int rank = comm_.rank() % 2; rank < comm_.world(); rank += 2) expected += rank;
    if (sum.data<int64_t>()[0] != expected) problems.push_back(fmt::format("split: sum {}", sum.data<int64_t>()[0]));
    half->close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  }

  void wrong_shapes_are_told_before_anything_is_sent() {
    auto a = Tensor::zeros({3, 2}, DType::Float32, device()),
         b = Tensor::zeros({3 * comm_.world() + 1, 2}, DType::Float32, device());
    auto c = Tensor::zeros({3 * comm_.world(), 2}, DType::BFloat16, device());
    const auto host = Tensor::zeros({3, 2}, DType::Float32);
    refuses("all_gather of other rows", [&] { return comm_.all_gather(a, b); });
    refuses("all_gather of another dtype", [&] { return comm_.all_gather(a, c); });
    refuses("reduce_scatter of other rows", [&] { return comm_.reduce_scatter(b, a); });
    refuses("broadcast from nowhere", [&] { return comm_.broadcast(a, comm_.world()); });
    refuses("all_to_all of two shapes", [&] { return comm_.all_to_all(a, b); });
    refuses("shift of two shapes", [&] { return comm_.shift(a, b); });
    refuses("shift onto itself", [&] { return comm_.shift(a, a); });
    refuses("all_gather of two parts of one", [&] { return comm_.all_gather_coalesced(std::vector{a, a}, {&b, 1}); });
    refuses("all_gather of no parts", [&] { return comm_.all_gather_coalesced({}, {}); });
    refuses("all_gather of nothing", [&] { return comm_.all_gather(Tensor(), b); });
    if (device() != Device{}) refuses("all_gather of two devices", [&] { return comm_.all_gather(host, b); });
    comm_.barrier();
  }

  void records_are_complete() {
    std::vector<CollectiveRecord> records;
    comm_.on_collective([&](const CollectiveRecord& record) { records.push_back(record); });
    auto part = filled<float>(5, comm_.rank(), 0);
    auto whole = Tensor::empty({5 * comm_.world(), 2}, DType::Float32, device());
    comm_.all_gather(part, whole, "layers.3").wait_on_host();
    comm_.on_collective(nullptr);
    if (records.size() != 1) return problems.push_back(fmt::format("{} records for one collective", records.size()));
    const auto& record = records.front();
    if (record.name != "all_gather" || record.label != "layers.3" || record.bytes != whole.bytes() ||
        record.issued > record.begun || record.begun > record.ended)
      problems.push_back(fmt::format("record: {} {} {}", record.name, record.label, record.bytes));
  }

 private:
  [[nodiscard]] Device device() const { return promises_.device; }

  template <typename T>
  Tensor filled(int64_t rows, int rank, int64_t first) const {
    auto tensor = Tensor::empty({rows, 2}, DTypeOf<T>::value);
    for (int64_t i = 0; i < tensor.count(); ++i) tensor.template data<T>()[i] = value_of<T>(rank, first + i);
    return on_device(tensor, device());
  }

  template <typename T, typename Expected>
  void expect(const std::string& what, const Tensor& result, Expected&& expected, bool exact = true) {
    const Tensor seen = on_device(result, {});
    for (int64_t i = 0; i < seen.count(); ++i) {
      const T wanted = expected(i), got = seen.data<T>()[i];
      if (std::memcmp(&wanted, &got, sizeof wanted) == 0) continue;
      const auto w = static_cast<double>(static_cast<Wide<T>>(wanted)),
                 g = static_cast<double>(static_cast<Wide<T>>(got));
      if (!exact && std::abs(w - g) <= tolerance<T>()) continue;
      return problems.push_back(fmt::format("rank {} of {}: {} {} {}: element {} is {}, not {}", comm_.rank(),
                                            comm_.world(), what, name_of(seen.dtype()), to_string(seen.shape()), i, g,
                                            w));
    }
  }
  /// Every sum of `world` terms of at most 4200 is rounded, in another order, maybe after every term.
  template <typename T>
  [[nodiscard]] double tolerance() const {
    const double half_a_unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : std::is_same_v<T, Float16> ? 0x1p-11 : 0x1p-24;
    return 4200.0 * comm_.world() * comm_.world() * half_a_unit;
  }

  template <typename T>
  void all_gather(int64_t rows, bool in_place) {
    auto whole = Tensor::zeros({rows * comm_.world(), 2}, DTypeOf<T>::value, device());
    auto part = filled<T>(rows, comm_.rank(), 0);
    if (in_place) {
      Tensor slice = whole.rows(rows * comm_.rank(), rows);
      copy(part, slice);
      part = slice;
    }
    comm_.all_gather(part, whole, "gathered").wait();
    const int64_t each = rows * 2;
    expect<T>("all_gather", whole, [&](int64_t i) { return value_of<T>(static_cast<int>(i / each), i % each); });
  }

  template <typename T>
  void reduce_scatter(int64_t rows, bool in_place) {
    auto whole = filled<T>(rows * comm_.world(), comm_.rank(), 0);
    auto part =
        in_place ? whole.rows(rows * comm_.rank(), rows) : Tensor::zeros({rows, 2}, DTypeOf<T>::value, device());
    comm_.reduce_scatter(whole, part, "reduced").wait();
    const int64_t first = rows * 2 * comm_.rank();
    expect<T>(
        "reduce_scatter", part, [&](int64_t i) { return reduced<T>(ReduceOp::Sum, comm_.world(), first + i); },
        promises_.rank_order);
  }

  template <typename T>
  void all_reduce(int64_t rows, ReduceOp op) {
    auto values = filled<T>(rows, comm_.rank(), 0);
    comm_.all_reduce(values, op, "reduced").wait();
    expect<T>(
        "all_reduce", values, [&](int64_t i) { return reduced<T>(op, comm_.world(), i); }, promises_.rank_order);
  }

  template <typename T>
  void broadcast(int64_t rows, int root) {
    auto values = filled<T>(rows, comm_.rank(), 0);
    comm_.broadcast(values, root, "sent").wait();
    expect<T>("broadcast", values, [&](int64_t i) { return value_of<T>(root, i); });
  }

  template <typename T>
  void all_to_all(int64_t rows) {
    const int64_t each = rows * 2;
    auto input = filled<T>(rows * comm_.world(), comm_.rank(), 0);
    auto output = Tensor::zeros({rows * comm_.world(), 2}, DTypeOf<T>::value, device());
    comm_.all_to_all(input, output, "dealt").wait();
    expect<T>("all_to_all", output,
              [&](int64_t i) { return value_of<T>(static_cast<int>(i / each), each * comm_.rank() + i % each); });
  }

  template <typename T>
  void shift(int64_t rows) {
    const int before = (comm_.rank() + comm_.world() - 1) % comm_.world();
    auto input = filled<T>(rows, comm_.rank(), 0);
    auto output = Tensor::zeros({rows, 2}, DTypeOf<T>::value, device());
    comm_.shift(input, output, "passed on").wait();
    expect<T>("shift", output, [&](int64_t i) { return value_of<T>(before, i); });
  }

  template <typename Issue>
  void refuses(const char* what, Issue&& issue) {
    try {
      issue().wait();
      problems.push_back(fmt::format("{} was not refused", what));
    } catch (const std::invalid_argument&) {  // as it should be
    }
  }

  Communicator& comm_;
  const Promises promises_;
};

}  // namespace

std::vector<std::string> check_all(Communicator& comm, Promises promises) {
  Checker checker(comm, promises);
  checker.check_dtype<float>();
  checker.check_dtype<BFloat16>();
  checker.check_dtype<Float16>();
  checker.check_dtype<double>();
  checker.check_dtype<int32_t>();
  checker.check_dtype<int64_t>();
  checker.many_rows();
  checker.several_under_way();
  checker.coalesced();
  checker.split_in_two();
  checker.wrong_shapes_are_told_before_anything_is_sent();
  checker.records_are_complete();
  return checker.problems;
}

}  // namespace trainyard::comm::conformance
