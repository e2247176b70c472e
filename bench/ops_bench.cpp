// How fast the ops run at the shapes of a training step, beside what the machine gives: GFLOP/s beside the measured
// matrix peak, GB/s beside a measured sum. Usage: ops_bench [threads [peak]], 1 thread by default; `peak`: only what
// the machine gives. Each figure is the best of the runs of a tenth of a second; with one thread in its CPU time, so
// that what else the machine does shows least.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/adamw.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/swiglu.h"
#include "ops/threads.h"

namespace trainyard::bench {
namespace {

struct ModelShape {
  std::string name;
  int64_t batch, tokens, hidden, ff, heads, kv_heads, head_dim, vocab;
  [[nodiscard]] int64_t rows() const { return batch * tokens; }
};

struct Peak {
  double flops, bytes;  ///< a second
};

Tensor filled(const Shape& shape) {
  Tensor made = Tensor::empty(shape, DType::Float32);
  float* const values = made.data<float>();
  for (int64_t i = 0; i < made.count(); ++i) values[i] = static_cast<float>(i * 7919 % 2001 - 1000) / 1000.0F;
  return made;
}

double now() {
  timespec time{};
  clock_gettime(ops::threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& run) {
  run();
  double best = 1e9;
  const double enough = now() + 0.1;
  for (int round = 0; round < 5 || now() < enough; ++round) {
    const double start = now();
    run();
    best = std::min(best, now() - start);
  }
  return best;
}

class Report {
 public:
  explicit Report(Peak peak) : peak_(peak) {}

  void products(const std::string& name, double flops, const std::function<void()>& run) const {
    const double seconds = seconds_of(run);
    fmt::print("  {:<44} {:>9.1f} us {:>8.1f} GFLOP/s {:>5.0f} % of peak\n", name, seconds * 1e6,
               flops / seconds * 1e-9, 100 * flops / seconds / peak_.flops);
  }

  void stream(const std::string& name, double bytes, const std::function<void()>& run) const {
    const double seconds = seconds_of(run);
    fmt::print("  {:<44} {:>9.1f} us {:>8.1f} GB/s    {:>5.0f} % of sum\n", name, seconds * 1e6, bytes / seconds * 1e-9,
               100 * bytes / seconds / peak_.bytes);
  }

 private:
  Peak peak_;
};

void linear(const Report& report, const std::string& name, int64_t rows, int64_t in, int64_t out) {
  const Tensor x = filled({rows, in}), w = filled({out, in}), dy = filled({rows, out});
  Tensor y = filled({rows, out}), dx = filled({rows, in}), dw = filled({out, in});
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  const std::string size = fmt::format("{} {} -> {}", name, in, out);
  report.products(size + " y = x Wt", flops, [&] { ops::matmul(x, w, y, {.b = ops::Transpose::Yes}); });
  report.products(size + " dx = dy W", flops, [&] { ops::matmul(dy, w, dx); });
  report.products(size + " dW += dyt x", flops,
                  [&] { ops::matmul(dy, x, dw, {.a = ops::Transpose::Yes, .accumulate = true}); });
}

void attention(const Report& report, const ModelShape& m) {
  const ops::AttentionShape shape{m.batch, m.tokens, m.tokens, m.heads, m.kv_heads, m.head_dim};
  const ops::AttentionOptions options{.scale = 0.125F, .document_starts = {}};
  const Tensor q = filled({m.rows(), m.heads * m.head_dim}), k = filled({m.rows(), m.kv_heads * m.head_dim}),
               v = filled(k.shape());
  Tensor out = filled(q.shape()), lse = filled({m.batch, m.heads, m.tokens});
  const ops::AttentionGradients gradients{filled(q.shape()), filled(k.shape()), filled(k.shape())};
  // What a causal row needs, diagonal included: no credit for products beyond it.
  const double pairs = static_cast<double>(m.batch * m.heads) * static_cast<double>(m.tokens * (m.tokens + 1) / 2);
  const double flops = pairs * 4 * static_cast<double>(m.head_dim);
  report.products("attention", flops, [&] { ops::attention(q, k, v, shape, options, out, lse); });
  report.products("attention backward", 2.5 * flops, [&] {
    ops::attention_backward(q, {q, k, v, out, lse}, shape, options, gradients);
  });
}

void loss(const Report& report, const ModelShape& m) {
  const Tensor h = filled({m.rows(), m.hidden}), w = filled({m.vocab, m.hidden});
  Tensor targets = Tensor::empty({m.rows()}, DType::Int32);
  for (int64_t i = 0; i < m.rows(); ++i) targets.data<int32_t>()[i] = static_cast<int32_t>(i * 31 % m.vocab);
  const ops::LossGradients gradients{.grad_scale = 1e-3F, .dh = filled(h.shape()), .dw = filled(w.shape())};
  const double flops = 2.0 * static_cast<double>(m.rows() * m.hidden * m.vocab);
  report.products("cross entropy with the head", flops, [&] { ops::linear_cross_entropy(h, w, targets); });
  report.products("cross entropy with gradients", 3 * flops,
                  [&] { ops::linear_cross_entropy_with_gradients(h, w, targets, gradients); });
  Tensor rows = filled(h.shape()), table = filled(w.shape());
  report.stream("embedding", 8.0 * static_cast<double>(h.count()), [&] { ops::embedding(targets, w, rows); });
  report.stream("embedding backward", 12.0 * static_cast<double>(h.count()),
                [&] { ops::embedding_backward(h, targets, table); });
}

void norms(const Report& report, const std::string& name, int64_t rows, int64_t width) {
  const Tensor x = filled({rows, width}), weight = filled({width}), dy = filled(x.shape());
  Tensor y = filled(x.shape()), sum = filled(x.shape()), rstd = filled({rows});
  const ops::RmsNormGradients gradients{.dx = filled(x.shape()), .dweight = filled({width})};
  const double bytes = 4.0 * static_cast<double>(x.count());
  report.stream(name, 2 * bytes, [&] { ops::rms_norm(x, weight, 1e-6F, y, rstd); });
  report.stream(name + " of a sum", 4 * bytes, [&] { ops::add_rms_norm(x, dy, weight, 1e-6F, sum, y, rstd); });
  report.stream(name + " backward", 3 * bytes, [&] { ops::rms_norm_backward(dy, x, weight, rstd, gradients); });
}

void elementwise(const Report& report, const ModelShape& m) {
  Tensor gate = filled({m.rows(), m.ff}), up = filled(gate.shape()), y = filled(gate.shape()),
         dgate = filled(gate.shape()), dup = filled(gate.shape());
  const double bytes = 4.0 * static_cast<double>(gate.count());
  report.stream("swiglu", 3 * bytes, [&] { ops::swiglu(gate, up, y); });
  report.stream("swiglu backward", 5 * bytes, [&] { ops::swiglu_backward(y, gate, up, dgate, dup); });
  report.stream("add", 3 * bytes, [&] { ops::add(gate, up, y); });

  Tensor q = filled({m.rows(), m.heads * m.head_dim});
  Tensor positions = Tensor::empty({m.rows()}, DType::Int32);
  for (int64_t i = 0; i < m.rows(); ++i) positions.data<int32_t>()[i] = static_cast<int32_t>(i % m.tokens);
  const std::vector<float> frequencies(static_cast<size_t>(m.head_dim / 2), 0.01F);
  const ops::RopeTables tables = ops::rope_tables(m.tokens, frequencies);
  report.stream("rope", 8.0 * static_cast<double>(q.count()),
                [&] { ops::rope(q, positions, tables, ops::Rotation::Forward, q); });
}

void optimizer(const Report& report) {
  constexpr int64_t kCount = 4 << 20;
  Tensor param = filled({kCount}), grad = filled({kCount}), first = filled({kCount}),
         second = Tensor::zeros({kCount}, DType::Float32);
  report.stream("adamw, 4 Mi parameters", 28.0 * kCount,
                [&] { ops::adamw_step(param, grad, first, second, {.lr = 1e-3, .weight_decay = 0.1}); });
  report.stream("sum of squares, 4 Mi", 4.0 * kCount, [&] { static_cast<void>(ops::sum_of_squares(grad)); });
}

Peak measure_peak() {
  constexpr int64_t kSize = 1024, kCount = 8 << 20;
  const Tensor a = filled({kSize, kSize}), b = filled({kSize, kSize}), from = filled({kCount}),
               other = filled({kCount});
  Tensor c = filled({kSize, kSize}), to = filled({kCount});
  return {.flops = 2.0 * kSize * kSize * kSize / seconds_of([&] { ops::matmul(a, b, c); }),
          .bytes = 12.0 * kCount / seconds_of([&] { ops::add(from, other, to); })};
}

void bench_shape(const Report& report, const ModelShape& m) {
  fmt::print("{}\n", m.name);
  linear(report, "q", m.rows(), m.hidden, m.heads * m.head_dim);
  linear(report, "k", m.rows(), m.hidden, m.kv_heads * m.head_dim);
  linear(report, "gate", m.rows(), m.hidden, m.ff);
  linear(report, "down", m.rows(), m.ff, m.hidden);
  attention(report, m);
  loss(report, m);
  norms(report, "rms norm", m.rows(), m.hidden);
  norms(report, "rms norm of q's heads", m.rows() * m.heads, m.head_dim);
  elementwise(report, m);
}

}  // namespace

void run(int threads, bool only_peak) {
  ops::set_threads(threads);
  const Peak peak = measure_peak();
  fmt::print("{} thread(s): matrix peak {:.1f} GFLOP/s, out of cache a = b + c at {:.1f} GB/s\n", threads,
             peak.flops * 1e-9, peak.bytes * 1e-9);
  if (only_peak) return;
  const Report report(peak);
  bench_shape(report, {"29.4 M: d 512, ff 1536, heads 8/4 of 64, vocabulary 8192, batch 2 x 512", 2, 512, 512, 1536, 8,
                       4, 64, 8192});
  bench_shape(report, {"0.9 M: d 128, ff 384, heads 4/2 of 32, vocabulary 512, batch 8 x 128", 8, 128, 128, 384, 4, 2,
                       32, 512});
  bench_shape(report, {"0.7 M: d 64, ff 256, heads 4/2 of 16, vocabulary 1024, batch 32 x 64", 32, 64, 64, 256, 4, 2,
                       16, 1024});
  optimizer(report);
}

}  // namespace trainyard::bench

int main(int argc, char** argv) {
  trainyard::bench::run(argc > 1 ? std::stoi(argv[1]) : 1, argc > 2 && std::string_view(argv[2]) == "peak");
  return 0;
}
