#include "ops/cuda/scratch.h"

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/cuda/matmul_scratch.h"
#include "ops/determinism.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "support/devices.h"
#include "support/support.h"
#include "tensor/memory.h"

namespace trainyard::ops {
namespace {

constexpr Device kDevice{DeviceKind::Cuda, 0};

Tensor zeros(Shape shape, DType dtype) {
  return Tensor::zeros(std::move(shape), dtype, kDevice);
}

void multiply_matrices(DType inputs, DType output) {
  Tensor c = zeros({96, 48}, output);
  matmul(zeros({96, 64}, inputs), zeros({64, 48}, inputs), c);
}

constexpr AttentionShape kShort{.batch = 2,
                                .q_tokens = 128,
                                .kv_tokens = 128,
                                .heads = 2,
                                .kv_heads = 2,
                                .head_dim = 16};

void attend(DType dtype, AttentionOptions options, const AttentionShape& shape = kShort) {
  const auto vectors = [&] { return zeros({shape.batch * shape.q_tokens, shape.heads * shape.head_dim}, dtype); };
  const Tensor q = vectors(), k = vectors(), v = vectors(), dout = vectors();
  Tensor out = vectors(), lse = zeros({shape.batch, shape.heads, shape.q_tokens}, DType::Float32);
  attention(q, k, v, shape, options, out, lse);
  AttentionGradients gradients{.dq = vectors(), .dk = vectors(), .dv = vectors()};
  if (options.bias.defined()) gradients.dbias = zeros({2, 255}, DType::Float32);
  attention_backward(dout, {q, k, v, out, lse}, shape, options, gradients);
}

void go_back_through_norms() {
  const Tensor x = zeros({320, 64}, DType::BFloat16), weight = zeros({64}, DType::BFloat16);
  rms_norm_backward(x, x, weight, zeros({320}, DType::Float32),
                    {.dx = zeros({320, 64}, DType::BFloat16), .dweight = zeros({64}, DType::Float32)});
  const Tensor cosines = zeros({1, 8}, DType::Float32);
  rms_norm_rope_backward(x, x, zeros({16}, DType::BFloat16), zeros({320 * 4}, DType::Float32),
                         {zeros({320}, DType::Int32), {cosines, cosines}},
                         {.dx = zeros({320, 64}, DType::BFloat16), .dweight = zeros({16}, DType::Float32)});
  layer_norm_backward(x, x, weight, {zeros({320}, DType::Float32), zeros({320}, DType::Float32)},
                      {.dx = zeros({320, 64}, DType::BFloat16),
                       .dweight = zeros({64}, DType::Float32),
                       .dbias = zeros({64}, DType::Float32)});
  Tensor dbias = zeros({64}, DType::Float32);
  bias_backward(x, dbias);
}

struct Case {
  std::string name;
  size_t more;  ///< bytes that the library may have asked for and does not
  std::function<void()> work;
};

std::vector<Case> cases() {
  constexpr size_t kOfHeads = size_t{2} * 2 * 128 * 128 * 2;  // scores
  const auto attention_of = [](DType dtype, const auto& change) {
    return [dtype, change] {
      AttentionOptions options{.scale = 0.25F};
      change(options);
      attend(dtype, options);
    };
  };
  const auto causal = [](AttentionOptions&) {};
  const auto with_bias = [](AttentionOptions& options) { options.bias = zeros({2, 255}, DType::Float32); };
  return {
      {"bfloat16 product", cuda::kMostProductWorkspace, [] { multiply_matrices(DType::BFloat16, DType::BFloat16); }},
      {"float32 product", cuda::kMostProductWorkspace, [] { multiply_matrices(DType::Float32, DType::Float32); }},
      {"product by way of float32", cuda::kMostProductWorkspace,
       [] { multiply_matrices(DType::Float32, DType::BFloat16); }},
      {"attention in float32", 0, attention_of(DType::Float32, causal)},
      {"attention in float32 with a bias", 0, attention_of(DType::Float32, with_bias)},
      {"attention", kOfHeads, attention_of(DType::BFloat16, causal)},
      {"attention with a bias", kOfHeads, attention_of(DType::BFloat16, with_bias)},
      {"attention of long rows", size_t{3} * 4 * 1024 * 1024 * 2,
       [] {
         constexpr AttentionShape kLong{.batch = 3,
                                        .q_tokens = 1024,
                                        .kv_tokens = 1024,
                                        .heads = 4,
                                        .kv_heads = 4,
                                        .head_dim = 64};
         attend(DType::BFloat16, {.scale = 0.125F}, kLong);
       }},
      {"attention in documents", kOfHeads,
       attention_of(DType::BFloat16,
                    [](AttentionOptions& options) { options.document_starts = zeros({2 * 128}, DType::Int32); })},
      {"attention in any order", size_t{2} * 2 * 128 * 16 * 4,
       [] {
         const DeterminismScope in_any_order(false);
         attend(DType::BFloat16, {.scale = 0.25F});
       }},
      {"norms and biases", 0, go_back_through_norms}};
}

size_t most_held(const std::function<void()>& work) {
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  work();
  return ledger->peak_bytes();
}

}  // namespace

TEST_CASE("a dry run for a device holds what the device's kernels hold, and more only where a library says how much",
          "[ops]") {
  if (cuda_devices() == 0) return test::skip("no device");
  const Case each = GENERATE(from_range(cases()));
  CAPTURE(each.name);
  const size_t held = most_held(each.work);
  test::Elsewhere elsewhere;
  const DryRunScope dry(elsewhere);
  const size_t counted = most_held(each.work);
  CHECK(counted >= held);
  CHECK(counted <= held + each.more);
}

}  // namespace trainyard::ops
