#pragma once

#include <functional>
#include <string>

#include "tensor/tensor.h"

namespace trainyard::autograd {

/// How a parameter begins where nothing is loaded.
struct Init {
  enum class Kind { Normal, Uniform, Ones, Zeros } kind = Kind::Normal;
  float deviation = 0.02F;  ///< of a normal one; a uniform one is in [-deviation, deviation]
};

/// A named weight. The model owns it and computes with value(); who places it (shard/, or place_whole) decides where
/// its elements live and when they are there. The name is its key in checkpoints, its shard and its log line.
class Parameter {
 public:
  Parameter(std::string name, Shape shape, Init init) : name_(std::move(name)), shape_(std::move(shape)), init_(init) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] int64_t count() const { return count_of(shape_); }
  [[nodiscard]] const Init& init() const { return init_; }

  /// The whole weight, [shape]. Valid where its storage is materialized: inside its group's forward and backward.
  [[nodiscard]] const Tensor& value() const { return value_; }
  /// Where backward adds, [shape]: what has gathered so far, or zero. A frozen parameter has none.
  [[nodiscard]] Tensor& gradient() {
    if (prepare_gradient_) prepare_gradient_();
    return gradient_;
  }

  /// Leaves the parameter as it is: no gradient is computed for it. Before it is placed.
  void freeze() { frozen_ = true; }
  [[nodiscard]] bool is_frozen() const { return frozen_; }

  /// Sets both views; whoever places the parameter calls it once, before the first forward. `prepare_gradient` is
  /// called before each use of the gradient and sees to it that it is there.
  void place(Tensor value, Tensor gradient, std::function<void()> prepare_gradient = {}) {
    value_ = std::move(value);
    gradient_ = std::move(gradient);
    prepare_gradient_ = std::move(prepare_gradient);
  }

 private:
  std::string name_;
  Shape shape_;
  Init init_;
  bool frozen_ = false;
  Tensor value_, gradient_;
  std::function<void()> prepare_gradient_;
};

}  // namespace trainyard::autograd
