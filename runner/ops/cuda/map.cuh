#pragma once

#include "ops/cuda/launch.cuh"

namespace trainyard::ops::cuda {

template <typename Out, int kCount, typename F, typename... In>
__device__ inline Pack<Out, kCount> mapped(const F& f, const Pack<In, kCount>&... in) {
  Pack<Out, kCount> out;
  for (int k = 0; k < kCount; ++k) out.values[k] = from_float<Out>(f(to_float(in.values[k])...));
  return out;
}

template <int kCount, typename F, typename Out, typename... In>
__global__ void __launch_bounds__(kThreads) map_kernel(int64_t count, F f, Out* out, const In*... in) {
  const Stride stride = grid_stride();
  const int64_t packs = count / kCount;
  for (int64_t i = stride.first; i < packs; i += stride.step)
    store<kCount>(out, i, mapped<Out, kCount>(f, load<kCount>(in, i)...));
  for (int64_t i = packs * kCount + stride.first; i < count; i += stride.step)
    store<1>(out, i, mapped<Out, 1>(f, load<1>(in, i)...));
}

/// out[i] = f(in[i]…) in float32; out may be an input. F is a struct with a __device__ operator() const.
template <typename F, typename Out, typename... In>
void map(const char* name, Device device, int64_t count, const F& f, Out* out, const In*... in) {
  if (count == 0) return;
  with_packs(
      true,
      [&](auto width) {
        launch(name, device, grid_for(count / width.value), map_kernel<width.value, F, Out, In...>, count, f, out,
               in...);
      },
      out, in...);
}

}  // namespace trainyard::ops::cuda
