// How fast the ops run at the shapes of a training step, beside what the machine gives: FLOP/s beside the measured
// matrix peak, GB/s beside a measured sum.
//   ops_bench [THREADS [bf16] [peak]]   on the CPU, by 1 thread where none is said; float32, or bfloat16 by `bf16`
//   ops_bench 1 [bf16] products         the products alone that bench/products times beside PyTorch's
//   ops_bench cuda [peak]               on the first GPU; bfloat16, Qwen3-0.6B's and 1.7B's shapes
//   ops_bench 1 nf4                     NF4 alone, beside a copy
// `peak`: only what the machine gives. op_bench.h says how times are taken.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "metrics/trace.h"
#include "op_bench.h"
#include "ops/adamw.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/determinism.h"
#include "ops/embedding.h"
#include "ops/float8.h"
#include "ops/matmul.h"
#include "ops/nf4.h"
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "ops/swiglu.h"
#include "ops/threads.h"
#include "plan/hardware.h"

namespace trainyard::bench {
namespace {

constexpr const char* kUsage = "usage: ops_bench [THREADS [bf16]|cuda] [peak|products|nf4]";

struct Batch {
  int64_t rows, tokens;
};

struct ModelShape {
  std::string name;
  std::vector<Batch> batches;  ///< each with as many tokens in all, so that only attention differs
  int64_t hidden, ff, heads, kv_heads, head_dim, vocab;
  [[nodiscard]] int64_t rows() const { return batches.front().rows * batches.front().tokens; }
};

double bytes_of(const OpBench& bench, const Shape& shape) {
  return static_cast<double>(count_of(shape) * static_cast<int64_t>(size_of(bench.dtype())));
}

/// step * i modulo `limit`, on the host.
Tensor indices(int64_t count, int64_t step, int64_t limit) {
  Tensor made = Tensor::empty({count}, DType::Int32);
  for (int64_t i = 0; i < count; ++i) made.data<int32_t>()[i] = static_cast<int32_t>(i * step % limit);
  return made;
}

/// As words of a text are, by Zipf: the id r with a share of about 1 / (r + 1), in an order without pattern; on the
/// host.
Tensor words(int64_t count, int64_t vocab) {
  constexpr double kGolden = 0.618033988749895;
  Tensor made = Tensor::empty({count}, DType::Int32);
  for (int64_t i = 0; i < count; ++i) {
    const double place = static_cast<double>(i) * kGolden;
    made.data<int32_t>()[i] = static_cast<int32_t>(std::pow(static_cast<double>(vocab), place - std::floor(place))) - 1;
  }
  return made;
}

void linear(const OpBench& bench, const std::string& name, int64_t rows, int64_t in, int64_t out) {
  const Tensor x = bench.filled({rows, in}), w = bench.filled({out, in}), dy = bench.filled({rows, out});
  Tensor y = bench.filled({rows, out}), dx = bench.filled({rows, in}), dw = bench.filled({out, in}, DType::Float32);
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  const std::string size = fmt::format("{} {} -> {}", name, in, out);
  bench.products(size + " y = x Wt", flops, [&] { ops::matmul(x, w, y, {.b = ops::Transpose::Yes}); });
  bench.products(size + " dx = dy W", flops, [&] { ops::matmul(dy, w, dx); });
  bench.products(size + " dW += dyt x", flops,
                 [&] { ops::matmul(dy, x, dw, {.a = ops::Transpose::Yes, .accumulate = true}); });
}

/// The same layer in 8 bits, where the device has units for it: its products, and the casts that go before them.
void float8_linear(const OpBench& bench, const std::string& name, int64_t rows, int64_t in, int64_t out) {
  if (bench.device().kind == DeviceKind::Cpu || !multiplies_float8(properties_of(bench.device()))) return;
  const Tensor x = bench.filled({rows, in}), w = bench.filled({out, in}), dy = bench.filled({rows, out});
  Tensor y = bench.filled({rows, out}), dx = bench.filled({rows, in}), dw = bench.filled({out, in}, DType::Float32);
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  for (const auto& [scaling, scale_of, of_gradient] :
       {std::tuple{"tensorwise", ops::ScaleOf::Tensor, DType::Float8E5M2},
        std::tuple{"rowwise", ops::ScaleOf::Row, DType::Float8E4M3}}) {
    const ops::Float8Cast cast{.scale_of = scale_of}, gradient_cast{.dtype = of_gradient, .scale_of = scale_of};
    const auto both = [](const Tensor& t, const ops::Float8Cast& how) {
      return ops::to_float8(t, how, ops::Float8Wanted::Both);
    };
    const ops::Float8Factors of_x = both(x, cast), of_w = both(w, cast), of_dy = both(dy, gradient_cast);
    const std::string size = fmt::format("{} {} -> {} {}", name, in, out, scaling);
    bench.products(size + " y = x Wt", flops,
                   [&] { ops::float8_matmul(of_x.by_rows, of_w.by_rows, y, {.fast_sums = true}); });
    bench.products(size + " dx = dy W", flops, [&] { ops::float8_matmul(of_dy.by_rows, of_w.by_columns, dx); });
    bench.products(size + " dW += dyt x", flops, [&] {
      ops::float8_matmul(of_dy.by_columns, of_x.by_columns, dw, {.accumulate = ops::Accumulate::Yes});
    });
    bench.stream(size + " cast both ways", 2 * bytes_of(bench, dy.shape()) + 2 * static_cast<double>(dy.count()), [&] {
      return [=, from = bench.filled(dy.shape())] { static_cast<void>(both(from, gradient_cast)); };
    });
  }
}

/// Whose kernels an attention on a device runs, as it says in its trace; "" on a CPU, where there is one kind.
std::string path_of(const OpBench& bench, const std::function<void()>& attention) {
  if (bench.device().kind == DeviceKind::Cpu) return "";
  metrics::Trace trace(0);
  const metrics::AttachTrace attach(&trace, "compute");
  attention();
  const auto spans = trace.spans();
  const bool is_by_cudnn = std::ranges::any_of(spans, [](const auto& span) { return span.name == "cudnn attention"; });
  return is_by_cudnn ? ", cuDNN" : ", own kernels";
}

void attention(const OpBench& bench, const ModelShape& m, Batch batch) {
  const ops::AttentionShape shape{batch.rows, batch.tokens, batch.tokens, m.heads, m.kv_heads, m.head_dim};
  const ops::AttentionOptions options{.scale = 1 / std::sqrt(static_cast<float>(m.head_dim)), .document_starts = {}};
  const Tensor q = bench.filled({m.rows(), m.heads * m.head_dim}),
               k = bench.filled({m.rows(), m.kv_heads * m.head_dim}), v = bench.filled(k.shape());
  Tensor out = bench.filled(q.shape()), lse = bench.filled({batch.rows, m.heads, batch.tokens}, DType::Float32);
  const ops::AttentionGradients gradients{
      bench.filled(q.shape()), bench.filled(k.shape()), bench.filled(k.shape()), {}};
  // What a causal row needs, diagonal included: no credit for products beyond it.
  const double pairs =
      static_cast<double>(batch.rows * m.heads) * static_cast<double>(batch.tokens * (batch.tokens + 1) / 2);
  const double flops = pairs * 4 * static_cast<double>(m.head_dim);
  const auto forward = [&] { ops::attention(q, k, v, shape, options, out, lse); };
  const auto backward = [&] { ops::attention_backward(q, {q, k, v, out, lse}, shape, options, gradients); };
  const std::string size = fmt::format(" of {} x {}", batch.rows, batch.tokens);
  bench.products("attention" + size + path_of(bench, forward), flops, forward);
  bench.products("attention backward" + size + path_of(bench, backward), 2.5 * flops, backward);
  if (bench.device().kind == DeviceKind::Cpu) return;
  const ops::DeterminismScope in_any_order(false);
  bench.products("attention backward" + size + " in any order" + path_of(bench, backward), 2.5 * flops, backward);
}

void loss(const OpBench& bench, const ModelShape& m) {
  const Tensor h = bench.filled({m.rows(), m.hidden}), w = bench.filled({m.vocab, m.hidden});
  const Tensor targets = indices(m.rows(), 31, m.vocab);
  const ops::LossGradients gradients{
      .grad_scale = 1e-3F, .dh = bench.filled(h.shape()), .dw = bench.filled(w.shape(), DType::Float32)};
  const double flops = 2.0 * static_cast<double>(m.rows() * m.hidden * m.vocab);
  bench.products("cross entropy with the head", flops, [&] { ops::linear_cross_entropy(h, w, targets); });
  bench.products("cross entropy with gradients", 3 * flops,
                 [&] { ops::linear_cross_entropy_with_gradients(h, w, targets, gradients); });
}

void embedding(const OpBench& bench, const ModelShape& m) {
  const Tensor made = words(m.rows(), m.vocab), ids = on_device(made, bench.device());
  const std::set<int32_t> different(made.data<int32_t>(), made.data<int32_t>() + made.count());
  const Shape shape{m.rows(), m.hidden}, table{m.vocab, m.hidden};
  const double bytes = bytes_of(bench, shape);
  bench.stream("embedding", 2 * bytes, [&] {
    return [=, weight = bench.filled(table), h = bench.filled(shape)]() mutable { ops::embedding(ids, weight, h); };
  });
  bench.stream("embedding backward",
               bytes + 8.0 * static_cast<double>(static_cast<int64_t>(different.size()) * m.hidden), [&] {
                 return [=, dh = bench.filled(shape), dtable = bench.filled(table, DType::Float32)]() mutable {
                   ops::embedding_backward(dh, ids, dtable);
                 };
               });
}

void norms(const OpBench& bench, const std::string& name, int64_t rows, int64_t width) {
  const Shape shape{rows, width};
  const double bytes = bytes_of(bench, shape);
  const Tensor weight = bench.filled({width});
  const auto make = [&] { return bench.filled(shape); };
  const auto make_rstd = [&] { return bench.filled({rows}, DType::Float32); };
  bench.stream(name, 2 * bytes, [&] {
    return [=, x = make(), y = make(), rstd = make_rstd()]() mutable { ops::rms_norm(x, weight, 1e-6F, y, rstd); };
  });
  bench.stream(name + " of a sum", 4 * bytes, [&] {
    return [=, x = make(), more = make(), sum = make(), y = make(), rstd = make_rstd()]() mutable {
      ops::add_rms_norm(x, more, weight, 1e-6F, sum, y, rstd);
    };
  });
  bench.stream(name + " backward", 3 * bytes, [&] {
    const ops::RmsNormGradients gradients{.dx = make(), .dweight = bench.filled({width}, DType::Float32)};
    return [=, dy = make(), x = make(), rstd = make_rstd()] { ops::rms_norm_backward(dy, x, weight, rstd, gradients); };
  });
}

void elementwise(const OpBench& bench, const ModelShape& m) {
  const Shape shape{m.rows(), m.ff};
  const double bytes = bytes_of(bench, shape);
  const auto make = [&] { return bench.filled(shape); };
  bench.stream("swiglu", 3 * bytes,
               [&] { return [gate = make(), up = make(), y = make()]() mutable { ops::swiglu(gate, up, y); }; });
  bench.stream("swiglu backward", 5 * bytes, [&] {
    return [dy = make(), gate = make(), up = make(), dgate = make(), dup = make()]() mutable {
      ops::swiglu_backward(dy, gate, up, dgate, dup);
    };
  });
  bench.stream("add", 3 * bytes,
               [&] { return [a = make(), b = make(), sum = make()]() mutable { ops::add(a, b, sum); }; });
}

void rope(const OpBench& bench, const ModelShape& m) {
  const int64_t tokens = m.batches.front().tokens;
  const Shape shape{m.rows(), m.heads * m.head_dim};
  const double bytes = bytes_of(bench, shape);
  const std::vector<float> frequencies(static_cast<size_t>(m.head_dim / 2), 0.01F);
  const ops::RopeTables made = ops::rope_tables(tokens, frequencies);
  const ops::RopeTables tables{on_device(made.cos, bench.device()), on_device(made.sin, bench.device())};
  const Tensor positions = on_device(indices(m.rows(), 1, tokens), bench.device());
  const ops::RopePlaces places{positions, tables};
  const Tensor weight = bench.filled({m.head_dim}), dweight = bench.filled({m.head_dim}, DType::Float32);
  const auto make = [&] { return bench.filled(shape); };
  const auto make_rstd = [&] { return bench.filled({m.rows() * m.heads}, DType::Float32); };
  bench.stream("rope", 2 * bytes, [&] {
    return [&, q = make()]() mutable { ops::rope(q, positions, tables, ops::Rotation::Forward, q); };
  });
  bench.stream("rms norm and rope of q's heads", 2 * bytes, [&] {
    return [&, q = make(), out = make(), rstd = make_rstd()]() mutable {
      ops::rms_norm_rope(q, weight, 1e-6F, places, out, rstd);
    };
  });
  bench.stream("rms norm and rope of q's heads backward", 3 * bytes, [&] {
    const ops::RmsNormRopeGradients gradients{make(), dweight};
    return [&, gradients, dy = make(), q = make(), rstd = make_rstd()] {
      ops::rms_norm_rope_backward(dy, q, weight, rstd, places, gradients);
    };
  });
}

void optimizer(const OpBench& bench) {
  const int64_t millions = bench.device().kind == DeviceKind::Cpu ? 4 : 64, count = millions << 20;
  const auto elements = static_cast<double>(count);
  // Of which a block has some ten.
  std::vector<ops::AdamWTensor> tensors;
  std::vector<Tensor> gradients;
  for (int64_t i = 0; i < 16; ++i) {
    const Shape shape{count / 16};
    gradients.push_back(bench.filled(shape, DType::Float32));
    tensors.push_back({.param = bench.filled(shape, DType::Float32),
                       .grad = gradients.back(),
                       .m = bench.filled(shape, DType::Float32),
                       .v = Tensor::zeros(shape, DType::Float32, bench.device()),
                       .weight_decay = 0.1});
  }
  fmt::print("{} Mi parameters\n", millions);
  bench.stream("adamw", 28 * elements, [&] { return [&] { ops::adamw_step(tensors, {.lr = 1e-3}); }; });
  bench.stream("sums of squares", 4 * elements,
               [&] { return [&] { static_cast<void>(ops::sums_of_squares(gradients)); }; });
  Tensor param = bench.filled({count}, DType::Float32);
  Tensor half = Tensor::empty({count}, DType::BFloat16, bench.device());
  bench.stream("cast float32 to bfloat16", 6 * elements, [&] { return [&] { ops::cast(param, half); }; });
  bench.stream("cast bfloat16 to float32", 6 * elements, [&] { return [&] { ops::cast(half, param); }; });
}

/// The rate of unpacking NF4, beside that of a copy: it is to be half of that, in bytes read and written a second.
void nf4(const OpBench& bench) {
  const int64_t rows = bench.device().kind == DeviceKind::Cpu ? 4096 : 16384, columns = 4096;
  const auto elements = static_cast<double>(rows * columns);
  const Tensor packed = Tensor::zeros({rows, ops::nf4_row_bytes(columns)}, DType::UInt8, bench.device());
  const ops::Nf4Scales scales{bench.filled({ops::nf4_factors(rows * columns)}, DType::Float32),
                              bench.filled({1}, DType::Float32)};
  fmt::print("[{}, {}]\n", rows, columns);
  for (const DType dtype : {DType::Float32, DType::BFloat16}) {
    const Tensor from = bench.filled({rows, columns}, dtype);
    Tensor to = bench.filled({rows, columns}, dtype);
    const auto bytes = static_cast<double>(to.bytes());
    bench.stream(fmt::format("copy {}", name_of(dtype)), 2 * bytes, [&] { return [&] { copy_async(from, to); }; });
    bench.stream(fmt::format("nf4 to {}", name_of(dtype)), elements * 33 / 64 + bytes,
                 [&] { return [&] { ops::nf4_dequantize(packed, scales, to); }; });
  }
}

std::vector<ModelShape> shapes_for(DeviceKind kind) {
  if (kind == DeviceKind::Cpu)
    return {
        {"29.4 M: d 512, ff 1536, heads 8/4 of 64, vocabulary 8192, batch 2 x 512",
         {{2, 512}},
         512,
         1536,
         8,
         4,
         64,
         8192},
        {"0.9 M: d 128, ff 384, heads 4/2 of 32, vocabulary 512, batch 8 x 128", {{8, 128}}, 128, 384, 4, 2, 32, 512},
        {"0.7 M: d 64, ff 256, heads 4/2 of 16, vocabulary 1024, batch 32 x 64", {{32, 64}}, 64, 256, 4, 2, 16, 1024}};
  return {{"Qwen3-0.6B, 8192 tokens", {{8, 1024}, {2, 4096}}, 1024, 3072, 16, 8, 128, 151936},
          {"Qwen3-1.7B, 8192 tokens", {{8, 1024}, {2, 4096}}, 2048, 6144, 16, 8, 128, 151936}};
}

void bench_shape(const OpBench& bench, const ModelShape& m) {
  fmt::print("{}\n", m.name);
  for (const auto of : {linear, float8_linear}) {
    of(bench, "q", m.rows(), m.hidden, m.heads * m.head_dim);
    of(bench, "k", m.rows(), m.hidden, m.kv_heads * m.head_dim);
    of(bench, "gate", m.rows(), m.hidden, m.ff);
    of(bench, "down", m.rows(), m.ff, m.hidden);
  }
  for (const Batch batch : m.batches) attention(bench, m, batch);
  loss(bench, m);
  embedding(bench, m);
  norms(bench, "rms norm", m.rows(), m.hidden);
  norms(bench, "rms norm of q's heads", m.rows() * m.heads, m.head_dim);
  elementwise(bench, m);
  rope(bench, m);
}

/// Square layers of 512 to 4096 rows, and those of the first shape.
void layers(const OpBench& bench) {
  for (const int64_t size : {512, 1024, 2048, 4096}) linear(bench, "square", size, size, size);
  const ModelShape m = shapes_for(bench.device().kind).front();
  linear(bench, "q", m.rows(), m.hidden, m.heads * m.head_dim);
  linear(bench, "k", m.rows(), m.hidden, m.kv_heads * m.head_dim);
  linear(bench, "gate", m.rows(), m.hidden, m.ff);
  linear(bench, "down", m.rows(), m.ff, m.hidden);
}

/// Sets the threads of a CPU.
Device device_of(std::string_view word) {
  if (word == "cuda") return {DeviceKind::Cuda, 0};
  int threads = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), threads);
  if (error != std::errc() || end != word.data() + word.size() || threads < 1)
    throw InputError(fmt::format("'{}' is neither cuda nor a number of threads; {}", word, kUsage));
  ops::set_threads(threads);
  return {};
}

void run(std::span<char* const> arguments) {
  const Device device = device_of(arguments.empty() ? "1" : arguments[0]);
  std::vector<std::string_view> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  const auto take = [&rest](std::string_view word) {
    const bool is_first = !rest.empty() && rest.front() == word;
    if (is_first) rest.erase(rest.begin());
    return is_first;
  };
  const bool in_bfloat16 = device.kind != DeviceKind::Cpu || take("bf16"), is_peak = take("peak"),
             is_products = !is_peak && take("products"), is_nf4 = take("nf4");
  if (!rest.empty()) throw InputError(kUsage);
  const OpBench bench(device, in_bfloat16 ? DType::BFloat16 : DType::Float32);
  bench.print_peak();
  if (is_peak) return;
  if (is_products) return layers(bench);
  if (is_nf4) return nf4(bench);
  for (const ModelShape& shape : shapes_for(bench.device().kind)) bench_shape(bench, shape);
  optimizer(bench);
  nf4(bench);
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run that is cut short has left its lines, through a pipe too
  try {
    trainyard::bench::run({argv + 1, static_cast<size_t>(argc - 1)});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(trainyard::exit_code_of(error));
  }
}
