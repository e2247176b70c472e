#include "ops/attention_parts.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops/columns.h"
#include "ops/sum.h"
#include "ops_support.h"

namespace trainyard {
using namespace test;

TEST_CASE("merge_attention: parts of the keys give what all of them give", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const ops::AttentionShape all{2, 5, 9, 4, 2, 6}, few{2, 5, 3, 4, 2, 6};
  const ops::AttentionOptions options{.scale = 0.4F, .causal = false, .document_starts = {}};
  const Tensor q = random_tensor({10, 24}, dtype, 1, device), k = random_tensor({18, 12}, dtype, 2, device),
               v = random_tensor({18, 12}, dtype, 3, device);
  Tensor whole = Tensor::empty({10, 24}, dtype, device), whole_lse = Tensor::empty({2, 4, 5}, DType::Float32, device);
  ops::attention(q, k, v, all, options, whole, whole_lse);

  Tensor out = Tensor::zeros({10, 24}, DType::Float32, device), lse = Tensor::empty({2, 4, 5}, DType::Float32, device);
  ops::fill(lse, -std::numeric_limits<float>::infinity());
  Tensor part = Tensor::empty({10, 24}, dtype, device), part_lse = Tensor::empty({2, 4, 5}, DType::Float32, device);
  Tensor unseen = Tensor::zeros({10, 24}, dtype, device), unseen_lse = Tensor::empty({2, 4, 5}, DType::Float32, device);
  ops::fill(unseen_lse, -std::numeric_limits<float>::infinity());
  ops::merge_attention(unseen, unseen_lse, few, out, lse);  // still nothing
  for (int64_t third = 0; third < 3; ++third) {
    Tensor keys = Tensor::empty({6, 12}, dtype, device), values = Tensor::empty({6, 12}, dtype, device);
    for (int64_t row = 0; row < 2; ++row) {
      Tensor key = keys.rows(row * 3, 3), value = values.rows(row * 3, 3);
      copy(k.rows(row * 9 + third * 3, 3), key);
      copy(v.rows(row * 9 + third * 3, 3), value);
    }
    ops::attention(q, keys, values, few, options, part, part_lse);
    std::vector<Tensor> before;
    for_thread_counts([&] {
      before.emplace_back(Tensor::empty(out.shape(), DType::Float32, device));
      Tensor& merged = before.back();
      Tensor merged_lse = Tensor::empty(lse.shape(), DType::Float32, device);
      copy(out, merged), copy(lse, merged_lse);
      ops::merge_attention(part, part_lse, few, merged, merged_lse);
    });
    ops::merge_attention(part, part_lse, few, out, lse);
    for (const Tensor& merged : before) CHECK(same_bits(merged, out));  // whatever the number of threads
  }
  ops::merge_attention(unseen, unseen_lse, few, out, lse);
  CHECK(relative_error(out, in_double(whole)) < tolerance(dtype));
  CHECK(relative_error(lse, in_double(whole_lse)) < 1e-5);
}

TEST_CASE("attention: document starts count from document_offset", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  // Queries 4 to 7 of a row see its keys 4 to 7 here; their documents begin at 2 and at 6.
  const ops::AttentionShape shape{1, 4, 4, 1, 1, 8};
  const auto random = [device](uint32_t seed) { return random_tensor({4, 8}, DType::Float32, seed, device); };
  const Tensor q = random(1), k = random(2), v = random(3);
  Tensor a = Tensor::empty({4, 8}, DType::Float32, device), b = Tensor::empty({4, 8}, DType::Float32, device),
         lse = Tensor::empty({1, 1, 4}, DType::Float32, device);
  ops::attention(q, k, v, shape, {.document_starts = int_tensor({2, 2, 6, 6}, device), .document_offset = 4}, a, lse);
  ops::attention(q, k, v, shape, {.document_starts = int_tensor({0, 0, 2, 2}, device)}, b, lse);
  CHECK(same_bits(a, b));
}

TEST_CASE("copy_columns: a part of each row, of every dtype", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(DType::Float32, DType::BFloat16, DType::Float16, DType::Float64, DType::Int64);
  std::vector<std::byte> bytes(static_cast<size_t>(3 * 5) * size_of(dtype));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  const Tensor from = on_device(Tensor::from_bytes(bytes, {3, 5}, dtype), device);
  for_thread_counts([&] {
    Tensor to = Tensor::zeros({3, 4}, dtype, device);
    ops::copy_columns(from, 2, 3, to, 1);
    const Tensor seen = on_device(to, {});
    for (int64_t row = 0; row < 3; ++row) {
      const size_t size = size_of(dtype);
      const std::byte* const got = seen.raw() + static_cast<size_t>(row * 4) * size;
      CHECK(std::equal(got + size, got + 4 * size, bytes.data() + static_cast<size_t>(row * 5 + 2) * size));
      CHECK(std::all_of(got, got + size, [](std::byte byte) { return byte == std::byte{0}; }));
    }
  });
  Tensor to = Tensor::zeros({3, 4}, dtype, device);
  CHECK_THROWS_AS(ops::copy_columns(from, 3, 3, to, 0), std::invalid_argument);
  CHECK_THROWS_AS(ops::copy_columns(from, 0, 3, to, 2), std::invalid_argument);
}

}  // namespace trainyard
