#include "ops/cuda/columns.cuh"
#include "ops/cuda/kernels.h"

namespace trainyard::ops::cuda {
namespace {

/// So many threads have a head: of 128 elements of 16 bits each has 8 of either half, 16 bytes.
constexpr int kLanes = 8;
constexpr int64_t kHeadsOfBlock = kThreads / kLanes;

/// The heads of x and where they are turned to.
template <typename T>
struct NormedHeads {
  const T *x, *weight;
  const float *cos, *sin;  ///< of position 0
  const int32_t* positions;
  int64_t heads, half, count;  ///< heads of a token; elements of half a head; heads of all tokens

  NormedHeads(const Tensor& of, const Tensor& weight_of, const RopePlaces& places)
      : x(elements<T>(of)),
        weight(elements<T>(weight_of)),
        cos(elements<float>(places.tables.cos)),
        sin(elements<float>(places.tables.sin)),
        positions(elements<int32_t>(places.positions)),
        heads(of.size(1) / weight_of.count()),
        half(places.tables.cos.size(1)),
        count(of.count() / weight_of.count()) {}

  [[nodiscard]] Grid grid() const { return {.blocks = (count + kHeadsOfBlock - 1) / kHeadsOfBlock}; }
};

/// A thread's head, and what it is turned by.
template <typename T>
struct NormedHead {
  int64_t index, begin;
  const float *cos, *sin;
  bool is_there;

  __device__ explicit NormedHead(const NormedHeads<T>& work)
      : index(blockIdx.x * kHeadsOfBlock + threadIdx.x / kLanes),
        begin(index * 2 * work.half),
        is_there(index < work.count) {
    const int64_t place = is_there ? work.positions[index / work.heads] * work.half : 0;
    cos = work.cos + place, sin = work.sin + place;
  }
};

/// Calls body(pack) for the thread's packs of half a head.
template <int kCount, typename T, typename Body>
__device__ void for_packs(const NormedHeads<T>& work, const NormedHead<T>& head, const Body& body) {
  if (!head.is_there) return;
  for (int64_t pack = threadIdx.x % kLanes; pack < work.half / kCount; pack += kLanes) body(pack);
}

/// Both halves are read before either is written, so out may be x.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) rms_norm_rope_kernel(NormedHeads<T> work, float eps, T* out, float* rstds) {
  const NormedHead<T> head(work);
  const T *const x = work.x + head.begin, *const upper_x = x + work.half, *const upper_weight = work.weight + work.half;
  float squares = 0;
  for_packs<kCount>(work, head, [&](int64_t pack) {
    const auto first = load<kCount>(x, pack), second = load<kCount>(upper_x, pack);
    for (int k = 0; k < kCount; ++k) {
      const float a = to_float(first.values[k]), b = to_float(second.values[k]);
      squares += a * a + b * b;
    }
  });
  const float rstd = 1.0F / sqrtf(among<kLanes>(squares, Sum{}) / static_cast<float>(2 * work.half) + eps);
  for_packs<kCount>(work, head, [&](int64_t pack) {
    auto first = load<kCount>(x, pack), second = load<kCount>(upper_x, pack);
    const auto w1 = load<kCount>(work.weight, pack), w2 = load<kCount>(upper_weight, pack);
    for (int k = 0; k < kCount; ++k) {
      const float c = rounded_to<T>(head.cos[pack * kCount + k]), s = rounded_to<T>(head.sin[pack * kCount + k]);
      const float a = rounded_to<T>(to_float(w1.values[k]) * rounded_to<T>(to_float(first.values[k]) * rstd));
      const float b = rounded_to<T>(to_float(w2.values[k]) * rounded_to<T>(to_float(second.values[k]) * rstd));
      first.values[k] = from_float<T>(a * c - b * s);
      second.values[k] = from_float<T>(b * c + a * s);
    }
    store<kCount>(out + head.begin, pack, first);
    store<kCount>(out + head.begin + work.half, pack, second);
  });
  if (head.is_there && threadIdx.x % kLanes == 0) rstds[head.index] = rstd;
}

/// An element of either half, by the same turn.
struct Pair {
  float lower, upper;
};

/// The gradient of the norm's output from that of the rotation's.
template <typename T>
__device__ Pair rotated_back(float lower, float upper, float cos, float sin) {
  const float c = rounded_to<T>(cos), s = rounded_to<T>(sin);
  return {rounded_to<T>(lower * c + upper * s), rounded_to<T>(upper * c - lower * s)};
}

/// dx may be dout: a thread reads again what it alone writes.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads)
    rms_norm_rope_backward_kernel(NormedHeads<T> work, const T* dout, const float* rstds, T* dx) {
  const NormedHead<T> head(work);
  const int64_t lower = head.begin, upper = head.begin + work.half;
  const float rstd = head.is_there ? rstds[head.index] : 0;
  float dot = 0;
  for_packs<kCount>(work, head, [&](int64_t pack) {
    const auto d1 = load<kCount>(dout + lower, pack), d2 = load<kCount>(dout + upper, pack);
    const auto x1 = load<kCount>(work.x + lower, pack), x2 = load<kCount>(work.x + upper, pack);
    const auto w1 = load<kCount>(work.weight, pack), w2 = load<kCount>(work.weight + work.half, pack);
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = pack * kCount + k;
      const Pair g = rotated_back<T>(to_float(d1.values[k]), to_float(d2.values[k]), head.cos[i], head.sin[i]);
      dot += g.lower * to_float(w1.values[k]) * to_float(x1.values[k]) +
             g.upper * to_float(w2.values[k]) * to_float(x2.values[k]);
    }
  });
  const float along_x = among<kLanes>(dot, Sum{}) * rstd * rstd * rstd / static_cast<float>(2 * work.half);
  for_packs<kCount>(work, head, [&](int64_t pack) {
    auto d1 = load<kCount>(dout + lower, pack), d2 = load<kCount>(dout + upper, pack);
    const auto x1 = load<kCount>(work.x + lower, pack), x2 = load<kCount>(work.x + upper, pack);
    const auto w1 = load<kCount>(work.weight, pack), w2 = load<kCount>(work.weight + work.half, pack);
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = pack * kCount + k;
      const Pair g = rotated_back<T>(to_float(d1.values[k]), to_float(d2.values[k]), head.cos[i], head.sin[i]);
      d1.values[k] = from_float<T>(rstd * g.lower * to_float(w1.values[k]) - along_x * to_float(x1.values[k]));
      d2.values[k] = from_float<T>(rstd * g.upper * to_float(w2.values[k]) - along_x * to_float(x2.values[k]));
    }
    store<kCount>(dx + lower, pack, d1);
    store<kCount>(dx + upper, pack, d2);
  });
}

/// dweight's share of an element of a token's heads, which are all turned by the same.
template <typename T>
struct WeightGradient {
  NormedHeads<T> work;
  const T* dout;
  const float* rstds;
  __device__ float operator()(int64_t token, int64_t column) const {
    const bool is_upper = column >= work.half;
    const int64_t i = is_upper ? column - work.half : column, place = work.positions[token] * work.half + i;
    const float cos = work.cos[place], sin = work.sin[place];
    float sum = 0;
    for (int64_t head = token * work.heads; head < (token + 1) * work.heads; ++head) {
      const int64_t begin = head * 2 * work.half;
      const Pair g = rotated_back<T>(to_float(dout[begin + i]), to_float(dout[begin + i + work.half]), cos, sin);
      sum += (is_upper ? g.upper : g.lower) * rounded_to<T>(to_float(work.x[begin + column]) * rstds[head]);
    }
    return sum;
  }
};

}  // namespace

void rms_norm_rope(const Tensor& x, const Tensor& weight, float eps, const RopePlaces& places, Tensor& out,
                   Tensor& rstd) {
  if (x.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const NormedHeads<T> work(x, weight, places);
    with_packs(
        work.half % kWide<T> == 0,
        [&](auto width) {
          launch("rms_norm_rope", x.device(), work.grid(), rms_norm_rope_kernel<width.value, T>, work, eps,
                 elements<T>(out), elements<float>(rstd));
        },
        work.x, work.weight, elements<T>(std::as_const(out)));
  });
}

void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients& gradients) {
  if (x.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const NormedHeads<T> work(x, weight, places);
    if (gradients.dweight.defined())  // first, as dx may be written over dout
      add_column_sums("rms_norm_rope_backward", x.size(0),
                      WeightGradient<T>{work, elements<T>(dout), elements<float>(rstd)}, gradients.dweight);
    const T* const dx = elements<T>(std::as_const(gradients.dx));
    with_packs(
        work.half % kWide<T> == 0,
        [&](auto width) {
          launch("rms_norm_rope_backward", x.device(), work.grid(), rms_norm_rope_backward_kernel<width.value, T>, work,
                 elements<T>(dout), elements<float>(rstd), elements<T>(gradients.dx));
        },
        work.x, work.weight, elements<T>(dout), dx);
  });
}

}  // namespace trainyard::ops::cuda
