// Attention of rows that are split among ranks, held against that of whole rows on one.
#include "context_parallel/attention.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "data/split_rows.h"
#include "support/ranks.h"

namespace trainyard::context_parallel {
namespace {

using Balance = data::RowParts::Balance;

struct Case {
  int ranks = 2;
  Method method = Method::Ring;
  Balance balance = Balance::HeadTail;
  int64_t rows = 1, tokens = 24;
  nn::Heads heads{4, 2, 6, 0};
  std::vector<int32_t> documents = {};  ///< lengths, the same in each row; empty: a row is one
  DType dtype = DType::Float32;
};

/// Values in [-1, 1) by the row, token and column.
float value_of(int64_t row, int64_t token, int64_t column, int64_t kind) {
  const int64_t place = row * 7919 + token * 104729 + column * 1299709 + kind * 15485863;
  const auto mixed = static_cast<uint32_t>(place) * 2654435761U;
  return static_cast<float>(mixed >> 8U) / 8388608.0F - 1;
}

/// [rows, tokens] of positions that begin again with each document.
Tensor positions_of(const Case& c) {
  Tensor positions = Tensor::empty({c.rows, c.tokens}, DType::Int32);
  for (int64_t row = 0; row < c.rows; ++row) {
    int64_t token = 0;
    for (const int32_t length : c.documents)
      for (int32_t i = 0; i < length; ++i)
        positions.values<int32_t>()[static_cast<size_t>(row * c.tokens + token++)] = i;
  }
  return positions;
}

/// input_ids is the number of the token in its batch, by which its values are known again.
data::Batch whole_batch(const Case& c) {
  data::Batch batch{.input_ids = Tensor::empty({c.rows, c.tokens}, DType::Int32),
                    .targets = Tensor::zeros({c.rows, c.tokens}, DType::Int32)};
  for (int64_t i = 0; i < c.rows * c.tokens; ++i)
    batch.input_ids.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  if (!c.documents.empty()) batch.position_ids = positions_of(c);
  batch.sequences.assign(static_cast<size_t>(c.rows), 0);
  return batch;
}

/// What tokens of these numbers have; -1 is padding.
Tensor tensor_of(const Case& c, std::span<const int32_t> numbers, int64_t width, int64_t kind) {
  std::vector<float> values;
  for (const int32_t number : numbers)
    for (int64_t column = 0; column < width; ++column)
      values.push_back(number < 0 ? 0 : value_of(number / c.tokens, number % c.tokens, column, kind));
  Tensor tensor = Tensor::from<float>(values, {std::ssize(numbers), width});
  if (c.dtype == DType::Float32) return tensor;
  return autograd::cast(nn::Variable(tensor), c.dtype).value();
}

struct Result {
  std::map<int32_t, std::vector<float>> out, dq, dk, dv;  ///< by the token's number
};

std::map<int32_t, std::vector<float>> by_token(std::span<const int32_t> numbers, const Tensor& tensor) {
  const Tensor floats = autograd::cast(nn::Variable(tensor), DType::Float32).value();
  std::map<int32_t, std::vector<float>> rows;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) continue;
    const auto row = floats.rows(static_cast<int64_t>(i), 1);
    rows[numbers[i]] = {row.values<float>().begin(), row.values<float>().end()};
  }
  return rows;
}

/// Forward and backward of what `context` says, on tokens of these numbers.
Result attend(const Case& c, std::span<const int32_t> numbers, const nn::DecoderContext& context) {
  nn::Tape tape;
  const int64_t q_width = c.heads.query * c.heads.dim, kv_width = c.heads.key_value * c.heads.dim;
  const nn::Variable q(tensor_of(c, numbers, q_width, 1), &tape), k(tensor_of(c, numbers, kv_width, 2), &tape),
      v(tensor_of(c, numbers, kv_width, 3), &tape);
  const nn::Variable y = nn::causal_attention(q, k, v, c.heads, 0, context);
  y.gradient()->add(tensor_of(c, numbers, q_width, 4));
  tape.backward();
  return {by_token(numbers, y.value()), by_token(numbers, q.gradient()->take()),
          by_token(numbers, k.gradient()->take()), by_token(numbers, v.gradient()->take())};
}

Result of_one_rank(const Case& c) {
  const data::Batch batch = whole_batch(c);
  nn::DecoderContext context{.rows = c.rows, .tokens = c.tokens};
  if (!c.documents.empty())
    context.document_starts = data::document_starts(batch.position_ids).reshape({c.rows * c.tokens});
  return attend(c, batch.input_ids.values<int32_t>(), context);
}

/// Of all ranks together, and how many exchanges of each kind rank 0 saw.
std::pair<Result, std::map<std::string, int>> of_ranks(const Case& c) {
  const data::RowParts parts(c.ranks, c.balance);
  std::map<std::string, int> exchanges;
  const auto results = test::run_ranks(c.ranks, [&](comm::Communicator& comm) {
    std::mutex mutex;
    if (comm.rank() == 0)
      comm.on_collective([&](const comm::CollectiveRecord& record) {
        const std::lock_guard lock(mutex);
        ++exchanges[record.name];
      });
    data::Batch part = data::part_of(whole_batch(c), parts, comm.rank());
    const auto attention = make_attention(comm, c.method, parts);
    const nn::DecoderContext context{.rows = part.input_ids.size(0),
                                     .tokens = part.input_ids.size(1),
                                     .document_starts = part.whole.own_document_starts,
                                     .split = attention.get(),
                                     .whole_tokens = part.whole.tokens,
                                     .whole_document_starts = part.whole.document_starts};
    std::vector<int32_t> numbers(part.input_ids.values<int32_t>().begin(), part.input_ids.values<int32_t>().end());
    for (size_t i = 0; i < numbers.size(); ++i)
      if (part.targets.values<int32_t>()[i] == data::kIgnored) numbers[i] = -1;
    Result result = attend(c, numbers, context);
    comm.barrier();
    return result;
  });
  Result all;
  for (Result result : results) {
    all.out.merge(result.out);
    all.dq.merge(result.dq), all.dk.merge(result.dk), all.dv.merge(result.dv);
  }
  exchanges.erase("barrier");
  return {all, exchanges};
}

/// The largest difference, as a share of the largest value, or of a tenth where all are smaller: a window of one key
/// has no gradients of keys.
double difference(const std::map<int32_t, std::vector<float>>& a, const std::map<int32_t, std::vector<float>>& b) {
  if (a.size() != b.size()) return 1e9;
  double most = 0, largest = 0.1;
  for (const auto& [number, row] : b)
    for (size_t i = 0; i < row.size(); ++i) {
      most = std::max(most, static_cast<double>(std::abs(a.at(number).at(i) - row[i])));
      largest = std::max(largest, static_cast<double>(std::abs(row[i])));
    }
  return most / largest;
}

void check_same(const Case& c, double tolerance) {
  CAPTURE(c.ranks, static_cast<int>(c.method), static_cast<int>(c.balance), c.rows, c.tokens, c.heads.window,
          c.documents);
  const Result one = of_one_rank(c), ranks = of_ranks(c).first;
  CHECK(difference(ranks.out, one.out) <= tolerance);
  CHECK(difference(ranks.dq, one.dq) <= tolerance);
  CHECK(difference(ranks.dk, one.dk) <= tolerance);
  CHECK(difference(ranks.dv, one.dv) <= tolerance);
}

const auto kMethods = {Method::Ring, Method::AllGather, Method::Ulysses};
const auto kBalances = {Balance::HeadTail, Balance::None};

}  // namespace

TEST_CASE("context parallel: attention and its gradients are those of whole rows", "[context_parallel]") {
  const Method method = GENERATE(values(kMethods));
  const Balance balance = GENERATE(values(kBalances));
  const int ranks = GENERATE(1, 2, 4);
  for (const int64_t rows : {1, 3})
    for (const int64_t tokens : {16, 21, 3})  // 21 and 3 are padded
      check_same({.ranks = ranks, .method = method, .balance = balance, .rows = rows, .tokens = tokens}, 2e-6);
}

TEST_CASE("context parallel: windows and documents that cross the ranks' borders stay as they are",
          "[context_parallel]") {
  const Method method = GENERATE(values(kMethods));
  const Balance balance = GENERATE(values(kBalances));
  for (const int64_t window : {0, 1, 5, 19})
    for (const std::vector<int32_t>& documents : {std::vector<int32_t>{}, {24}, {3, 1, 13, 7}, {12, 12}})
      check_same({.ranks = 4,
                  .method = method,
                  .balance = balance,
                  .rows = 2,
                  .heads = {4, 2, 6, window},
                  .documents = documents},
                 2e-6);
}

TEST_CASE("context parallel: three ranks and heads of every grouping", "[context_parallel]") {
  const Method method = GENERATE(values(kMethods));
  for (const nn::Heads& heads :
       {nn::Heads{3, 3, 4, 0}, nn::Heads{6, 2, 4, 0}, nn::Heads{6, 1, 4, 0}, nn::Heads{12, 4, 4, 3}})
    check_same({.ranks = 3, .method = method, .rows = 2, .tokens = 17, .heads = heads}, 2e-6);
}

TEST_CASE("context parallel: half types differ by their rounding", "[context_parallel]") {
  const Method method = GENERATE(values(kMethods));
  check_same({.ranks = 2, .method = method, .dtype = DType::BFloat16}, 2e-2);
  check_same({.ranks = 2, .method = method, .dtype = DType::Float16}, 4e-3);
}

TEST_CASE("context parallel: ulysses computes a row's attention bit for bit as one rank", "[context_parallel][bit_equal]") {
  const Case c{.ranks = 2, .method = Method::Ulysses, .rows = 2, .tokens = 32};
  const Result one = of_one_rank(c), ranks = of_ranks(c).first;
  CHECK(ranks.out == one.out);
  CHECK(ranks.dq == one.dq);
}

TEST_CASE("context parallel: no more exchanges than each method says", "[context_parallel]") {
  const int ranks = GENERATE(2, 4);
  CHECK(of_ranks({.ranks = ranks, .method = Method::Ring}).second ==
        std::map<std::string, int>{{"shift", (ranks - 1) + (2 * ranks - 1)}});
  CHECK(of_ranks({.ranks = ranks, .method = Method::AllGather}).second ==
        std::map<std::string, int>{{"all_gather", 2}, {"reduce_scatter", 1}});
  CHECK(of_ranks({.ranks = ranks, .method = Method::Ulysses}).second == std::map<std::string, int>{{"all_to_all", 8}});
}

}  // namespace trainyard::context_parallel
