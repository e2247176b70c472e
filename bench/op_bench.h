#pragma once

#include <functional>
#include <string>

#include "tensor/tensor.h"

namespace trainyard::bench {

/// What a device gives, measured: FLOP/s of a large matrix product, bytes/s of a sum a = b + c out of cache.
struct Peak {
  double flops = 0, bytes = 0;
};

/// One device, the tensors that its operations are timed with, and a line for each of them. On a CPU weights and
/// activations are float32, on a CUDA device bfloat16 with float32 gradients of weights: as a model trains there.
class OpBench {
 public:
  using Run = std::function<void()>;

  /// Measures peak(). Throws InputError where `device` cannot be computed on.
  OpBench(Device device, DType dtype);

  [[nodiscard]] Device device() const { return device_; }
  /// Of weights and activations.
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Peak peak() const { return peak_; }

  /// A tensor on the device, of numbers between -1 and 1.
  [[nodiscard]] Tensor filled(const Shape& shape) const { return filled(shape, dtype_); }
  [[nodiscard]] Tensor filled(const Shape& shape, DType dtype) const;

  /// Seconds that `run` takes: the best of the runs of a tenth of a second. On a CUDA device many are given to its
  /// stream before it is waited for, so that the host's part shows only where it is the longer one; on one thread of a
  /// CPU it is CPU time, so that what else the machine does shows least.
  [[nodiscard]] double seconds_of(const Run& run) const;

  /// Times `run` and prints its FLOP/s beside the peak's.
  void products(const std::string& name, double flops, const Run& run) const;
  /// The same of the bytes that a run reads and writes. Each call of `make` makes one with tensors of its own: as many,
  /// run in turn, as have twice the bytes of a CUDA device's L2 cache, where else the last run's tensors would lie.
  void stream(const std::string& name, double bytes, const std::function<Run()>& make) const;

  /// What the device is and gives, on a line; of a CUDA device beside its data sheet.
  void print_peak() const;

 private:
  [[nodiscard]] bool is_cpu() const { return device_.kind == DeviceKind::Cpu; }
  [[nodiscard]] double now() const;
  [[nodiscard]] Peak measure_peak() const;

  Device device_;
  DType dtype_;
  std::string flops_unit_;
  double flops_scale_;
  Tensor pattern_, float_pattern_;  ///< a million numbers on the device, in dtype_ and in float32
  Peak peak_;
};

}  // namespace trainyard::bench
