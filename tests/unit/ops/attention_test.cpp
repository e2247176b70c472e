#include "ops/attention.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops/determinism.h"
#include "ops_support.h"

namespace trainyard {
using namespace test;
using ops::AttentionOptions;
using ops::AttentionShape;
namespace {

using Values = std::vector<double>;

struct Inputs {
  Values q, k, v, bias = {};
};

struct Case {
  std::string name;
  AttentionShape shape;
  bool causal = true;
  int64_t q_offset = 0;
  std::vector<int32_t> document_starts = {};
  std::vector<int32_t> key_lengths = {};
  bool bias = false;
  float dropout = 0;
  int64_t window = 0;
};

/// Documents that begin at every multiple of `length` in each row.
std::vector<int32_t> documents(int64_t batch, int64_t tokens, int32_t length) {
  std::vector<int32_t> starts;
  for (int64_t token = 0; token < batch * tokens; ++token)
    starts.push_back(static_cast<int32_t>(token % tokens) / length * length);
  return starts;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"one token", {1, 1, 1, 1, 1, 1}},
      {"no token", {2, 0, 0, 2, 1, 8}},
      {"no key", {1, 3, 0, 2, 1, 8}},
      {"an odd head size", {2, 23, 23, 3, 1, 20}},
      {"GQA, past a tile's edge", {2, 65, 65, 4, 2, 16}},
      {"past a key block", {1, 300, 300, 2, 1, 32}},
      {"two whole key blocks", {1, 512, 512, 1, 1, 16}},
      {"a head size of one whole block", {1, 70, 70, 1, 1, 64}},
      {"no mask", {2, 70, 90, 2, 2, 24}, false},
      {"one query with a KV cache", {1, 1, 300, 4, 2, 16}, true, 299},
      {"some queries with a KV cache", {2, 7, 50, 2, 1, 16}, true, 43},
      {"more queries than keys", {1, 80, 30, 2, 1, 8}},
      {"short documents", {2, 150, 150, 2, 1, 16}, true, 0, documents(2, 150, 7)},
      {"documents longer than a key block", {1, 700, 700, 1, 1, 8}, true, 0, documents(1, 700, 290)},
      {"padded keys", {3, 70, 300, 2, 1, 16}, false, 0, {}, {300, 5, 0}},
      {"padded keys, causal", {2, 70, 70, 2, 2, 16}, true, 0, {}, {70, 9}},
      {"a bias, past a key block", {2, 90, 300, 3, 3, 12}, false, 0, {}, {300, 261}, true},
      {"a causal bias", {2, 70, 70, 2, 2, 16}, true, 0, {}, {}, true},
      {"a bias for one query with a KV cache", {1, 1, 300, 2, 2, 16}, true, 299, {}, {}, true},
      {"a bias and dropout, past a key block", {2, 70, 280, 2, 2, 16}, false, 0, {}, {280, 270}, true, 0.3F},
      {"causal dropout, GQA", {2, 70, 70, 4, 2, 8}, true, 0, {}, {}, false, 0.1F},
      {"a query that its document start hides from all", {1, 4, 4, 1, 1, 4}, true, 0, {0, 3, 2, 0}},
      {"a window of two", {1, 5, 5, 2, 1, 4}, true, 0, {}, {}, false, 0, 2},
      {"a window inside a block", {2, 70, 70, 4, 2, 16}, true, 0, {}, {}, false, 0, 9},
      {"a window across key blocks", {1, 700, 700, 1, 1, 8}, true, 0, {}, {}, false, 0, 300},
      {"a window longer than the row", {1, 40, 40, 1, 1, 8}, true, 0, {}, {}, false, 0, 64},
      {"a window in short documents", {1, 150, 150, 2, 1, 16}, true, 0, documents(1, 150, 31), {}, false, 0, 12},
      {"a window on a KV cache", {2, 7, 50, 2, 1, 16}, true, 43, {}, {}, false, 0, 20},
      {"a window past the last key", {1, 80, 30, 2, 1, 8}, true, 0, {}, {}, false, 0, 10},
      {"whole tiles, GQA", {2, 128, 128, 4, 2, 16}},
      {"whole tiles, no mask", {2, 64, 128, 2, 2, 24}, false},
      {"whole tiles, more queries than keys", {1, 192, 64, 2, 1, 8}},
      {"whole tiles, documents", {2, 128, 128, 2, 1, 16}, true, 0, documents(2, 128, 23)},
      {"whole tiles, documents in a window", {2, 128, 128, 2, 1, 16}, true, 0, documents(2, 128, 90), {}, false, 0, 40},
      {"whole tiles, starts that hide from all", {1, 64, 64, 1, 1, 8}, true, 0, std::vector<int32_t>(64, 5)},
      {"whole tiles, a window", {1, 192, 192, 4, 2, 16}, true, 0, {}, {}, false, 0, 70},
      {"whole tiles, padded keys", {3, 64, 128, 2, 1, 16}, false, 0, {}, {128, 5, 0}},
      {"whole tiles, padded keys in a window", {2, 128, 128, 2, 1, 16}, true, 0, {}, {128, 9}, false, 0, 20},
      {"whole tiles, a bias", {2, 64, 128, 3, 3, 16}, false, 0, {}, {128, 61}, true},
      {"whole tiles, a head size of 128", {1, 128, 128, 4, 2, 128}},
      {"whole tiles of no rows, a bias", {0, 64, 64, 2, 2, 16}, false, 0, {}, {}, true},
      {"whole tiles, a causal bias", {2, 64, 64, 2, 2, 16}, true, 0, {}, {}, true},
      {"a head size that fills no block", {1, 40, 40, 2, 1, 100}},
      {"a head size of more than a block", {2, 70, 70, 2, 1, 200}},
      {"a bias for heads of more than a block", {2, 40, 90, 2, 2, 140}, false, 0, {}, {}, true},
  };
  return all;
}

float scale_of(const Case& c) {
  return 1 / std::sqrt(static_cast<float>(c.shape.head_dim));
}

AttentionOptions options_of(const Case& c, Device device = {}) {
  AttentionOptions options{
      .scale = scale_of(c), .causal = c.causal, .q_offset = c.q_offset, .document_starts = {}, .window = c.window};
  if (!c.document_starts.empty()) options.document_starts = int_tensor(c.document_starts, device);
  if (!c.key_lengths.empty()) options.key_lengths = int_tensor(c.key_lengths, device);
  if (c.bias)
    options.bias = random_tensor({c.shape.heads, c.shape.q_tokens + c.shape.kv_tokens - 1}, DType::Float32, 9, device);
  std::vector<int64_t> sequences;
  for (int64_t row = 0; row < c.shape.batch; ++row) sequences.push_back(100 + 7 * row);
  if (c.dropout > 0)
    options.dropout = {c.dropout, 42, on_device(Tensor::from<int64_t>(sequences, {c.shape.batch}), device)};
  return options;
}

bool is_visible(const Case& c, int64_t row, int64_t query, int64_t key) {
  if (!c.key_lengths.empty() && key >= c.key_lengths[static_cast<size_t>(row)]) return false;
  if (!c.causal) return true;
  const int64_t start =
      c.document_starts.empty() ? 0 : c.document_starts[static_cast<size_t>(row * c.shape.q_tokens + query)];
  if (c.window > 0 && key + c.window <= c.q_offset + query) return false;
  return start <= key && key <= c.q_offset + query;
}

int64_t bias_index(const AttentionShape& s, int64_t head, int64_t query, int64_t key) {
  return head * (s.q_tokens + s.kv_tokens - 1) + key - query + s.q_tokens - 1;
}

/// What dropout multiplies a query's probabilities by: the mask of a tensor with one row for each (head, query).
Values kept(const Case& c, int64_t row, int64_t head, int64_t query) {
  Values factors(static_cast<size_t>(c.shape.kv_tokens), 1);
  if (c.dropout == 0) return factors;
  const uint64_t token = static_cast<uint64_t>(head) << 32U | static_cast<uint64_t>(c.q_offset + query);
  for (int64_t key = 0; key < c.shape.kv_tokens; ++key)
    factors[static_cast<size_t>(key)] = dropout_factor(c.dropout, {42, 100 + 7 * row, token, key});
  return factors;
}

/// Probabilities of one query over all keys, 0 where hidden; lse comes back in `lse`.
Values probabilities(const Case& c, const Inputs& in, int64_t row, int64_t head, int64_t query, double& lse) {
  const AttentionShape& s = c.shape;
  const int64_t kv_head = head / (s.heads / s.kv_heads);
  Values p(static_cast<size_t>(s.kv_tokens));
  double total = 0;
  for (int64_t key = 0; key < s.kv_tokens; ++key) {
    if (!is_visible(c, row, query, key)) continue;
    double dot = 0;
    for (int64_t i = 0; i < s.head_dim; ++i)
      dot += in.q[((row * s.q_tokens + query) * s.heads + head) * s.head_dim + i] *
             in.k[((row * s.kv_tokens + key) * s.kv_heads + kv_head) * s.head_dim + i];
    const double bias = in.bias.empty() ? 0 : in.bias[static_cast<size_t>(bias_index(s, head, query, key))];
    total += p[static_cast<size_t>(key)] = std::exp(dot * static_cast<double>(scale_of(c)) + bias);
  }
  lse = std::log(total);
  for (double& value : p) value = total == 0 ? 0 : value / total;
  return p;
}

struct Expected {
  Values out, lse, dq, dk, dv, dbias;
};

Expected reference(const Case& c, const Inputs& in, const Values& dout) {
  const AttentionShape& s = c.shape;
  const double scale = static_cast<double>(scale_of(c));
  Expected e{Values(in.q.size()),   {}, Values(in.q.size()), Values(in.k.size()), Values(in.v.size()),
             Values(in.bias.size())};
  for (int64_t row = 0; row < s.batch; ++row)
    for (int64_t head = 0; head < s.heads; ++head)
      for (int64_t query = 0; query < s.q_tokens; ++query) {
        e.lse.push_back(0);
        const Values p = probabilities(c, in, row, head, query, e.lse.back()), keep = kept(c, row, head, query);
        const int64_t q_at = ((row * s.q_tokens + query) * s.heads + head) * s.head_dim;
        const auto key_at = [&](int64_t key) {
          return ((row * s.kv_tokens + key) * s.kv_heads + head / (s.heads / s.kv_heads)) * s.head_dim;
        };
        Values dp(p.size());
        double delta = 0;
        for (int64_t key = 0; key < s.kv_tokens; ++key) {
          if (p[key] == 0) continue;  // hidden: it adds nothing below either
          for (int64_t i = 0; i < s.head_dim; ++i) {
            e.out[q_at + i] += p[key] * keep[key] * in.v[key_at(key) + i];
            e.dv[key_at(key) + i] += p[key] * keep[key] * dout[q_at + i];
            dp[key] += keep[key] * dout[q_at + i] * in.v[key_at(key) + i];
          }
          delta += p[key] * dp[key];
        }
        for (int64_t key = 0; key < s.kv_tokens && c.bias; ++key)
          e.dbias[bias_index(s, head, query, key)] += p[key] * (dp[key] - delta);
        for (int64_t key = 0; key < s.kv_tokens; ++key)
          for (int64_t i = 0; i < s.head_dim && p[key] != 0; ++i) {
            e.dq[q_at + i] += scale * p[key] * (dp[key] - delta) * in.k[key_at(key) + i];
            e.dk[key_at(key) + i] += scale * p[key] * (dp[key] - delta) * in.q[q_at + i];
          }
      }
  return e;
}

struct Tensors {
  Tensor q, k, v, dout, out, lse;

  Tensors(const AttentionShape& s, DType dtype, Device device = {})
      : q(random_tensor({s.batch * s.q_tokens, s.heads * s.head_dim}, dtype, 1, device)),
        k(random_tensor({s.batch * s.kv_tokens, s.kv_heads * s.head_dim}, dtype, 2, device)),
        v(random_tensor(k.shape(), dtype, 3, device)),
        dout(random_tensor(q.shape(), dtype, 4, device)),
        out(Tensor::empty(q.shape(), dtype, device)),
        lse(Tensor::empty({s.batch, s.heads, s.q_tokens}, DType::Float32, device)) {}

  [[nodiscard]] Inputs inputs() const { return {in_double(q), in_double(k), in_double(v)}; }
  [[nodiscard]] ops::AttentionSaved saved() const { return {q, k, v, out, lse}; }
};

ops::AttentionGradients gradients_like(const Tensors& t) {  // of another content than the right one
  return {.dq = random_tensor(t.q.shape(), t.q.dtype(), 5, t.q.device()),
          .dk = random_tensor(t.k.shape(), t.k.dtype(), 6, t.k.device()),
          .dv = random_tensor(t.v.shape(), t.v.dtype(), 7, t.v.device())};
}

}  // namespace

TEST_CASE("attention: output, lse and gradients equal the double-precision loop", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Case c = cases()[GENERATE(range(size_t{0}, cases().size()))];
  CAPTURE(c.name);
  Tensors t(c.shape, dtype, device);
  Inputs inputs = t.inputs();
  const AttentionOptions options = options_of(c, device);
  if (c.bias) inputs.bias = in_double(options.bias);
  const Expected expected = reference(c, inputs, in_double(t.dout));
  const auto compare = [&] {
    ops::attention(t.q, t.k, t.v, c.shape, options, t.out, t.lse);
    CHECK(relative_error(t.out, expected.out) < tolerance(dtype));
    CHECK(relative_error(t.lse, expected.lse) < tolerance(dtype));
    ops::AttentionGradients gradients = gradients_like(t);
    if (c.bias) gradients.dbias = random_tensor(options.bias.shape(), DType::Float32, 8, device);
    ops::attention_backward(t.dout, t.saved(), c.shape, options, gradients);
    if (c.bias) CHECK(relative_error(gradients.dbias, expected.dbias) < tolerance(dtype));
    CHECK(relative_error(gradients.dq, expected.dq) < tolerance(dtype));
    CHECK(relative_error(gradients.dk, expected.dk) < tolerance(dtype));
    CHECK(relative_error(gradients.dv, expected.dv) < tolerance(dtype));
  };
  if (device.kind == DeviceKind::Cpu) return for_thread_counts(compare);
  // On a device another kernel may serve where sums need not come in one order.
  for (const bool is_deterministic : {true, false}) {
    CAPTURE(is_deterministic);
    const ops::DeterminismScope scope(is_deterministic);
    compare();
  }
}

TEST_CASE("attention: the reference used here is the derivative of its output", "[ops]") {
  const Case c = GENERATE(Case{"GQA with documents", {1, 5, 5, 2, 1, 3}, true, 0, {0, 0, 2, 2, 2}},
                          Case{"bias and dropout", {1, 4, 5, 2, 2, 3}, false, 0, {}, {4}, true, 0.4F});
  const Tensors t(c.shape, DType::Float32);
  Inputs in = t.inputs();
  if (c.bias) in.bias = in_double(options_of(c).bias);
  const Values dout = in_double(t.dout);
  const auto objective = [&](const Inputs& at) {
    const Expected e = reference(c, at, dout);
    double sum = 0;
    for (size_t i = 0; i < dout.size(); ++i) sum += dout[i] * e.out[i];
    return sum;
  };
  const Expected e = reference(c, in, dout);
  for (size_t i = 0; i < in.q.size(); ++i)
    CHECK(e.dq[i] == Approx(difference_quotient(
                                [&](const Values& q) {
                                  return objective({q, in.k, in.v, in.bias});
                                },
                                in.q, i))
                         .margin(1e-8));
  for (size_t i = 0; i < in.bias.size(); ++i)
    CHECK(e.dbias[i] == Approx(difference_quotient(
                                   [&](const Values& bias) {
                                     return objective({in.q, in.k, in.v, bias});
                                   },
                                   in.bias, i))
                            .margin(1e-8));
  for (size_t i = 0; i < in.k.size(); ++i) {
    CHECK(e.dk[i] == Approx(difference_quotient(
                                [&](const Values& k) {
                                  return objective({in.q, k, in.v, in.bias});
                                },
                                in.k, i))
                         .margin(1e-8));
    CHECK(e.dv[i] == Approx(difference_quotient(
                                [&](const Values& v) {
                                  return objective({in.q, in.k, v, in.bias});
                                },
                                in.v, i))
                         .margin(1e-8));
  }
}

TEST_CASE("attention: any number of threads, and every run, gives the same bits", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Case c = GENERATE(Case{"GQA", {2, 200, 200, 4, 2, 32}}, Case{"whole tiles", {2, 128, 128, 4, 2, 32}},
                          Case{"bias and dropout", {2, 200, 200, 2, 2, 32}, true, 0, {}, {200, 77}, true, 0.1F});
  std::vector<Tensors> seen;
  std::vector<ops::AttentionGradients> gradients;
  for_thread_counts([&] {
    Tensors& t = seen.emplace_back(c.shape, dtype, device);
    ops::attention(t.q, t.k, t.v, c.shape, options_of(c, device), t.out, t.lse);
    gradients.push_back(gradients_like(t));
    gradients.back().dbias = Tensor::empty({c.shape.heads, 399}, DType::Float32, device);
    ops::attention_backward(t.dout, t.saved(), c.shape, options_of(c, device), gradients.back());
  });
  CHECK(same_bits(seen[0].out, seen[1].out));
  CHECK(same_bits(gradients[0].dq, gradients[1].dq));
  CHECK(same_bits(gradients[0].dk, gradients[1].dk));
  CHECK(same_bits(gradients[0].dv, gradients[1].dv));
  if (c.bias) CHECK(same_bits(gradients[0].dbias, gradients[1].dbias));
}

TEST_CASE("attention: large scores do not overflow, and a NaN key shows in the queries that see it", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const Case c{"", {1, 100, 100, 1, 1, 8}};
  Tensors t(c.shape, DType::Float32, device);
  AttentionOptions options = options_of(c);
  options.scale = 1000;
  ops::attention(t.q, t.k, t.v, c.shape, options, t.out, t.lse);
  CHECK(std::isfinite(in_double(t.out)[99 * 8]));
  Tensor k = on_device(t.k, {});
  k.data<float>()[70 * 8] = std::numeric_limits<float>::quiet_NaN();
  t.k = on_device(k, device);
  ops::attention(t.q, t.k, t.v, c.shape, options, t.out, t.lse);
  CHECK(std::isfinite(in_double(t.out)[69 * 8]));
  CHECK(std::isnan(in_double(t.out)[70 * 8]));
  CHECK(std::isnan(in_double(t.lse)[70]));
}

TEST_CASE("attention: heads that do not divide and starts without causality are refused", "[ops]") {
  Tensors t({1, 4, 4, 2, 1, 8}, DType::Float32);
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 3, 2, 8}, {}, t.out, t.lse),
                    Catch::Contains("heads 3, KV heads 2"));
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 5, 4, 2, 1, 8}, {}, t.out, t.lse),
                    "attention: q is float32 [4, 16], but float32 [5, 16] is needed");
  const AttentionOptions no_order{.causal = false, .document_starts = int_tensor({0, 0, 0, 0})};
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, no_order, t.out, t.lse),
                    Catch::Contains("causal attention only"));
  const AttentionOptions no_order_window{.causal = false, .window = 3};
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, no_order_window, t.out, t.lse),
                    Catch::Contains("a window is for causal attention only"));
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, {.window = -1}, t.out, t.lse),
                    Catch::Contains("window -1"));
  const AttentionOptions far{.document_starts = int_tensor({0, 0, 9, 0})};
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, far, t.out, t.lse),
                    Catch::Contains("document_starts[2] is 9"));
  const AttentionOptions biased{.bias = Tensor::zeros({2, 7}, DType::Float32)};
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, biased, t.out, t.lse),
                    Catch::Contains("as many KV heads as heads"));
  const AttentionOptions longer{.key_lengths = int_tensor({5})};
  CHECK_THROWS_WITH(ops::attention(t.q, t.k, t.v, {1, 4, 4, 2, 1, 8}, longer, t.out, t.lse),
                    Catch::Contains("key_lengths[0] is 5"));
}

}  // namespace trainyard
