// How cuDNN is opened and what it refuses, on the stand-in of tests/support/host_cuda.
#include "ops/cuda/cudnn.h"

#include <dlfcn.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <catch2/catch.hpp>

#include <set>
#include <sstream>

#include "base/error.h"
#include "metrics/trace.h"
#include "ops/cuda/attention_cudnn.h"
#include "ops/cuda/cudnn_graph.h"
#include "ops/cuda_info.h"
#include "ops/determinism.h"
#include "ops_support.h"
#include "support/captured_log.h"

namespace trainyard {
using namespace test;
using namespace ops::cuda;
namespace {

constexpr Device kCuda{DeviceKind::Cuda, 0};

std::string error_of(const std::string& file) {
  try {
    static_cast<void>(open_cudnn(file));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct Attention {
  ops::AttentionShape shape;
  ops::AttentionOptions options = {.scale = 0.25F};
  DType dtype = DType::BFloat16;
  Device device = kCuda;

  /// Whether cuDNN computes both ways.
  [[nodiscard]] std::pair<bool, bool> is_by_cudnn() const {
    std::vector<Tensor> results;
    return this->results(0, results);
  }

  std::pair<bool, bool> results(int64_t most_bytes, std::vector<Tensor>& results) const {
    const int64_t q_rows = shape.batch * shape.q_tokens, kv_rows = shape.batch * shape.kv_tokens;
    const Tensor q = random_tensor({q_rows, shape.heads * shape.head_dim}, dtype, 1, device);
    const Tensor k = random_tensor({kv_rows, shape.kv_heads * shape.head_dim}, dtype, 2, device);
    Tensor out = Tensor::empty(q.shape(), dtype, device);
    Tensor lse = Tensor::empty({shape.batch, shape.heads, shape.q_tokens}, DType::Float32, device);
    const bool forward = attention_by_cudnn(q, k, k, shape, options, out, lse, most_bytes);
    if (!forward) lse = random_tensor(lse.shape(), DType::Float32, 3, device);
    ops::AttentionGradients gradients{Tensor::empty(q.shape(), dtype, device),
                                      Tensor::empty(k.shape(), dtype, device),
                                      Tensor::empty(k.shape(), dtype, device),
                                      {}};
    if (options.bias.defined()) gradients.dbias = Tensor::empty(options.bias.shape(), DType::Float32, device);
    const bool backward = attention_backward_by_cudnn(q, {q, k, k, out, lse}, shape, options, gradients, most_bytes);
    results = {out, lse, gradients.dq, gradients.dk, gradients.dv};
    if (options.bias.defined()) results.push_back(gradients.dbias);
    return {forward, backward};
  }
};

/// Of the stand-in, which is opened and not linked.
void refuse_backward(bool refuse) {
  void* const library = dlopen("libcudnn.so.0", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library);
  const auto function =
      reinterpret_cast<decltype(&host_cudnn_refuse_backward)>(dlsym(library, "host_cudnn_refuse_backward"));
  REQUIRE(function);
  function(refuse);
  dlclose(library);
}

using Both = std::pair<bool, bool>;
constexpr Both kTaken{true, true}, kLeft{false, false};

}  // namespace

TEST_CASE("cudnn: a library that is missing or another is named", "[ops]") {
  CHECK_THAT(error_of("libcudnn.so.none"), Catch::Contains("libcudnn.so.none: cannot open shared object file"));
  CHECK_THAT(error_of("libm.so.6"), Catch::Contains("undefined symbol: cudnnGetVersion"));
  CHECK(ops::describe_cudnn() == "9.19.0");
}

TEST_CASE("cudnn: a status becomes the exception of its meaning, with the library's own words", "[ops]") {
  const Cudnn& library = *cudnn();
  CHECK_NOTHROW(check(library, CUDNN_STATUS_SUCCESS, "cudnnCreate", 1));
  CHECK_THROWS_AS(check(library, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "cudnnCreate", 1),
                  OutOfMemoryError);
  CHECK_THROWS_AS(check(library, CUDNN_STATUS_EXECUTION_FAILED, "cudnnBackendExecute", 1), DeviceError);
  CHECK_THROWS_AS(check(library, CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize", 1), CudnnRefusal);
  const CudnnDevice on{library, 1, nullptr};
  Graph graph(on);
  CHECK_THROWS_WITH(graph.temporary(Layout::packed({1, 1, 0, 8})),
                    "cuda:1: cudnnBackendFinalize: bad parameter: a size that is not above 0");
}

TEST_CASE("cudnn: takes attention in 16 bits with the masks that it has", "[ops]") {
  CHECK(Attention{{2, 64, 64, 4, 2, 64}}.is_by_cudnn() == kTaken);
  CHECK(Attention{{2, 64, 64, 4, 2, 64}, {.window = 9}, DType::Float16}.is_by_cudnn() == kTaken);
  CHECK(Attention{{1, 64, 128, 2, 2, 256}, {.causal = false}}.is_by_cudnn() == kTaken);
  CHECK(Attention{{2, 64, 64, 2, 2, 8}, {.bias = random_tensor({2, 127}, DType::Float32, 4, kCuda)}}.is_by_cudnn() ==
        kTaken);
  CHECK(Attention{{2, 64, 64, 2, 2, 8}, {.key_lengths = int_tensor({4, 9}, kCuda)}}.is_by_cudnn() == kTaken);
}

TEST_CASE("cudnn: leaves to the other kernels what it has not, or not as promised", "[ops]") {
  CHECK(Attention{{2, 64, 64, 4, 2, 64}, {}, DType::Float32}.is_by_cudnn() == kLeft);
  CHECK(Attention{{2, 64, 64, 4, 2, 20}}.is_by_cudnn() == kLeft);
  CHECK(Attention{{2, 64, 64, 4, 2, 264}}.is_by_cudnn() == kLeft);
  CHECK(Attention{{1, 1, 64, 4, 2, 64}, {.q_offset = 63}}.is_by_cudnn() == kLeft);
  CHECK(Attention{{1, 64, 128, 4, 2, 64}, {.q_offset = 64}}.is_by_cudnn() == kLeft);
  CHECK(Attention{{1, 100, 100, 4, 2, 64}}.is_by_cudnn() == kLeft);
  const ops::Dropout dropout{0.1F, 7, on_device(Tensor::from<int64_t>({{0}}, {1}), kCuda)};
  CHECK(Attention{{1, 64, 64, 4, 2, 64}, {.dropout = dropout}}.is_by_cudnn() == kLeft);
}

TEST_CASE("cudnn: where training cannot have it, a warning says once what keeps it away and what would be right",
          "[ops]") {
  const CapturedLog log;
  const ops::Dropout dropout{0.1F, 7, on_device(Tensor::from<int64_t>({{0}}, {1}), kCuda)};
  const Attention in_float32{{1, 64, 128, 4, 2, 20}, {.dropout = dropout}, DType::Float32};
  CHECK(in_float32.is_by_cudnn() == kLeft);
  CHECK(log.text().empty());
  const Attention dropped{{1, 64, 128, 4, 2, 20}, {.dropout = dropout}};
  CHECK(dropped.is_by_cudnn() == kLeft);
  CHECK_THAT(log.text(), Catch::Contains("attention of 64 tokens by 128, 4 heads by 2 of size 20 takes kernels that "
                                         "are slower: cuDNN's have no dropout (in a model's config.json: dropout_rate: "
                                         "0), and take head sizes that are multiples of 8 up to 256\n"));
  const std::string once = log.text();
  CHECK(dropped.is_by_cudnn() == kLeft);
  CHECK(log.text() == once);
}

TEST_CASE("cudnn: a prompt of any length is not warned of", "[ops]") {
  const CapturedLog log;
  const Tensor q = random_tensor({37, 64}, DType::BFloat16, 1, kCuda);
  Tensor out = Tensor::empty(q.shape(), DType::BFloat16, kCuda);
  Tensor lse = Tensor::empty({1, 4, 37}, DType::Float32, kCuda);
  CHECK_FALSE(attention_by_cudnn(q, q, q, {1, 37, 37, 4, 4, 16}, {.scale = 0.25F}, out, lse));
  CHECK(log.text().empty());
}

TEST_CASE("cudnn: what it computes says so in a trace", "[ops]") {
  metrics::Trace trace(0);
  {
    const metrics::AttachTrace attach(&trace, "compute");
    CHECK(Attention{{1, 100, 100, 4, 2, 64}}.is_by_cudnn() == kLeft);
    CHECK(trace.spans().empty());
    CHECK(Attention{{1, 64, 64, 4, 2, 64}}.is_by_cudnn() == kTaken);
  }
  const auto spans = trace.spans();
  REQUIRE(spans.size() == 2);  // one each way
  for (const auto& span : spans) CHECK(span.name == "cudnn attention");
}

TEST_CASE("cudnn: what it refuses is told once, on the first device of a node", "[ops]") {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  host_cuda::set_devices(3);  // a later test wants to be the first on the second one
  const auto refused = [&](int device, int head_dim) {
    const Both both =
        Attention{.shape = {1, 64, 64, 4, 2, head_dim}, .device = {DeviceKind::Cuda, device}}.is_by_cudnn();
    CHECK(both == Both{true, false});
    return std::exchange(log, std::ostringstream()).str();
  };
  CHECK(Attention{{1, 64, 64, 4, 2, 64}}.is_by_cudnn() == kTaken);
  refuse_backward(true);
  CHECK(refused(2, 48) == "");
  CHECK_THAT(refused(0, 48), Catch::Contains("attention's backward of 64 tokens by 64, 4 heads by 2 of size 48 takes"));
  CHECK(refused(0, 56) == "");
  refuse_backward(false);
  host_cuda::set_devices(1);
  spdlog::set_default_logger(before);
}

TEST_CASE("cudnn: where it has no deterministic backward, our own kernels compute it", "[ops]") {
  const bool is_by_capability = GENERATE(true, false);
  const ops::AttentionShape shape{2, 64, 64, 2, 2, 24};
  Device device = kCuda;
  if (is_by_capability) {
    host_cuda::set_devices(2), host_cuda::set_capability(10, 0);
    device.index = 1;  // of which nothing is remembered yet
  } else {
    refuse_backward(true);
  }
  CHECK(Attention{.shape = shape, .device = device}.is_by_cudnn() == Both{true, false});
  const auto gradients_on = [&](Device on) {
    const auto tensor = [&](uint32_t seed) { return random_tensor({128, 48}, DType::BFloat16, seed, on); };
    const Tensor q = tensor(1), k = tensor(2), v = tensor(3), dout = tensor(4);
    Tensor out = tensor(5), lse = Tensor::empty({2, 2, 64}, DType::Float32, on);
    ops::attention(q, k, v, shape, {.scale = 0.25F}, out, lse);
    const ops::AttentionGradients made{tensor(6), tensor(7), tensor(8), {}};
    ops::attention_backward(dout, {q, k, v, out, lse}, shape, {.scale = 0.25F}, made);
    return std::vector{made.dq, made.dk, made.dv};
  };
  const auto expected = gradients_on({}), first = gradients_on(device), second = gradients_on(device);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(relative_error(first[i], in_double(expected[i])) < 2 * tolerance(DType::BFloat16));
    CHECK(same_bits(first[i], second[i]));
  }
  refuse_backward(false);
  host_cuda::set_devices(1), host_cuda::set_capability(9, 0);
}

TEST_CASE("cudnn: backward that may add in any order gives the same but for rounding, and is not cut", "[ops]") {
  const DType dtype = GENERATE(DType::BFloat16, DType::Float16);
  const ops::AttentionShape shape{3, 64, 128, 4, 2, 24};
  ops::AttentionOptions options{.scale = 0.25F, .causal = GENERATE(true, false)};
  if (options.causal)
    options.document_starts = int_tensor(std::vector<int32_t>(192, 5), kCuda);
  else
    options.key_lengths = int_tensor({128, 0, 77}, kCuda);
  std::vector<Tensor> in_order, in_any_order;
  const Attention attention{shape, options, dtype};
  CHECK(attention.results(0, in_order) == kTaken);
  const ops::DeterminismScope scope(false);
  CHECK(attention.results(0, in_any_order) == kTaken);
  for (size_t i = 0; i < in_order.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_error(in_any_order[i], in_double(in_order[i])) < tolerance(dtype));
  }
  const auto kept = ops::attention_matrices(ops::AttentionPass::Backward, shape, options);
  CHECK(kept.of_kv_head == 0);
  CHECK(kept.of_row == (options.causal ? 64 * 128 * 2 : 0));
}

TEST_CASE("cudnn: where no backward of it is deterministic, one that need not be is taken, but with a bias", "[ops]") {
  host_cuda::set_devices(5), host_cuda::set_capability(10, 0);
  const Device device{DeviceKind::Cuda, 4};  // of which nothing is remembered yet
  const ops::DeterminismScope in_any_order(false);
  const ops::AttentionShape shape{2, 64, 64, 2, 2, 24};
  CHECK(Attention{.shape = shape, .device = device}.is_by_cudnn() == kTaken);
  const ops::AttentionOptions biased{.bias = random_tensor({2, 127}, DType::Float32, 4, device)};
  CHECK(Attention{.shape = shape, .options = biased, .device = device}.is_by_cudnn() == Both{true, false});
  host_cuda::set_devices(1), host_cuda::set_capability(9, 0);
  refuse_backward(true);
  CHECK(Attention{{2, 64, 64, 2, 2, 40}}.is_by_cudnn() == kTaken);
  refuse_backward(false);
}

TEST_CASE("cudnn: slices give what the whole gives", "[ops]") {
  const ops::AttentionShape shape =
      GENERATE(ops::AttentionShape{3, 64, 64, 4, 2, 16}, ops::AttentionShape{3, 64, 128, 3, 3, 8});
  const bool is_biased = shape.heads == shape.kv_heads;
  ops::AttentionOptions options{.scale = 0.25F, .causal = !is_biased};
  if (is_biased) {
    options.bias = random_tensor({3, 191}, DType::Float32, 9, kCuda);
    options.key_lengths = int_tensor({128, 0, 77}, kCuda);
  } else {
    std::vector<int32_t> starts(192, 0);
    for (size_t row = 0; row < 3; ++row) std::fill_n(starts.begin() + 64 * row + 20 * row, 64 - 20 * row, 20 * row);
    options.document_starts = int_tensor(starts, kCuda);
  }
  const int64_t head_bytes = shape.heads / shape.kv_heads * 64 * shape.kv_tokens * 2;
  std::vector<std::vector<Tensor>> results;
  for (const int64_t heads : {100, 4, 2, 1}) {
    const Both by_cudnn = Attention{shape, options}.results(head_bytes * heads, results.emplace_back());
    CHECK(by_cudnn == kTaken);
    for (size_t i = 0; i < results[0].size(); ++i) {
      CAPTURE(heads, i);
      const bool is_dbias = i == 5;  // rows are rounded to 16 bits before they are added
      if (is_dbias)
        CHECK(relative_error(results.back()[i], in_double(results[0][i])) < tolerance(DType::BFloat16));
      else
        CHECK(same_bits(results.back()[i], results[0][i]));
    }
  }
}

TEST_CASE("cudnn: slices hold every head of every row once, row after row, and no more than they may", "[ops]") {
  const ops::AttentionShape shape{5, 100, 60, 12, 4, 8};
  constexpr int64_t kHeadBytes = 3 * 100 * 60 * 2;
  const ops::AttentionMatrices matrices{.of_kv_head = GENERATE_COPY(0, kHeadBytes),
                                        .of_row = GENERATE_COPY(0, kHeadBytes / 3),
                                        .of_kv_head_of_all_rows = GENERATE_COPY(0, kHeadBytes / 2)};
  const int64_t most_bytes = GENERATE_COPY(1, kHeadBytes, 3 * kHeadBytes, 4 * kHeadBytes, 11 * kHeadBytes, 1 << 30);
  const ops::AttentionSlice least{0, 1, 0, 1};
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const ops::AttentionSlice& slice : ops::attention_slices(shape, matrices, most_bytes)) {
    CHECK(matrices.of(slice) <= std::max(most_bytes, matrices.of(least)));
    CHECK((slice.rows == 1 || slice.kv_heads == shape.kv_heads));
    CHECK((seen.empty() || seen.rbegin()->first < slice.first_row || slice.first_kv_head > 0));
    for (int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row)
      for (int64_t head = slice.first_kv_head; head < slice.first_kv_head + slice.kv_heads; ++head)
        CHECK(seen.emplace(row, head).second);
  }
  CHECK(seen.size() == 5 * 4);
}

TEST_CASE("cudnn: a backward that has too much in memory for one KV head is left to our own kernels", "[ops]") {
  const Attention attention{{2, 64, 128, 4, 2, 8}};
  constexpr int64_t kHeadBytes = 2 * 64 * 128 * 2;
  std::vector<Tensor> results;
  CHECK(attention.results(kHeadBytes / 8, results) == kTaken);
  CHECK(attention.results(kHeadBytes / 8 - 1, results) == Both{true, false});
  const ops::DeterminismScope in_any_order(false);
  CHECK(attention.results(kHeadBytes / 8 - 1, results) == kTaken);
}

TEST_CASE("cudnn: forward is cut for what it has in memory alone", "[ops]") {
  const ops::AttentionShape shape{4, 64, 128, 6, 3, 8}, as_many{4, 64, 128, 3, 3, 8};
  constexpr int64_t kMatrix = 64 * 128 * 2;
  const ops::AttentionOptions documents{.document_starts = int_tensor({0})};
  const ops::AttentionOptions bias{.bias = random_tensor({3, 191}, DType::Float32, 1)};
  const auto slices = [](ops::AttentionPass pass, const ops::AttentionShape& of, const ops::AttentionOptions& options) {
    return ops::attention_slices(of, ops::attention_matrices(pass, of, options), 6 * kMatrix).size();
  };
  using enum ops::AttentionPass;
  CHECK(slices(Forward, shape, {}) == 1);
  CHECK(slices(Forward, shape, documents) == 1);
  CHECK(slices(Forward, as_many, bias) == 1);  // all rows have the same
  CHECK(slices(Backward, shape, {}) == 4);
  CHECK(slices(Backward, shape, documents) == 8);
  CHECK(slices(Backward, as_many, bias) == 8);
}

}  // namespace trainyard
