#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "ops/nf4.h"
#include "tensor/tensor.h"

namespace trainyard::autograd {

/// How a parameter begins where nothing is loaded.
struct Init {
  enum class Kind { Normal, Uniform, Constant } kind = Kind::Normal;
  float scale = 0.02F;  ///< the deviation of normal values; uniform ones are in [-scale, scale]; constant ones are this
  std::optional<int64_t> zero_row = {};  ///< a row that is zero all the same
};
inline constexpr Init kOnes{Init::Kind::Constant, 1}, kZeros{Init::Kind::Constant, 0};

/// How a linear layer is computed in 8 bits: torchao's recipes, under their names.
enum class Float8Recipe : uint8_t {
  Tensorwise,       ///< one scale for each matrix; gradients of outputs e5m2, all else e4m3
  Rowwise,          ///< one for each row along the sums, a power of 2; all e4m3
  RowwiseWithGwHp,  ///< the same, but weight gradients in high precision and one scale for the weight of dx = dy · W
};

/// Which part of a weight a parameter is, where ranks split weights between them (tensor parallelism).
struct Part {
  int dimension = 0;                 ///< that is split: 0 or 1
  int64_t begin = 0;                 ///< the index there of the first element that is here
  int64_t shared = 0;                ///< so many of the first rows here count on a lower rank, which has them too
  bool is_partial_gradient = false;  ///< what backward adds is this rank's share of a sum over the ranks
  bool operator==(const Part&) const = default;
};

/// A named weight. The model owns it and computes with value(); who places it (shard/, or place_whole) decides where
/// its elements live and when they are there. The name is its key in checkpoints, its shard and its log line.
class Parameter {
 public:
  Parameter(std::string name, Shape shape, Init init)
      : name_(std::move(name)), whole_shape_(shape), shape_(std::move(shape)), init_(init) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The shape of the part that this rank holds. A forward computes with this part alone.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The shape of the whole weight. Checkpoints store this shape.
  [[nodiscard]] const Shape& whole_shape() const { return whole_shape_; }
  [[nodiscard]] const Part& part() const { return part_; }
  [[nodiscard]] bool is_split() const { return shape_ != whole_shape_; }
  [[nodiscard]] int64_t count() const { return count_of(shape_); }
  [[nodiscard]] const Init& init() const { return init_; }

  /// The weight, [shape]. Valid where its storage is materialized: inside its group's forward and backward.
  /// The value is in 8 bits where it is gathered so, and packed where it is in NF4.
  [[nodiscard]] const Tensor& value() const { return value_; }
  /// The weight in compute_dtype(): value(), or what one in NF4 stands for, made anew and gone with the tensor.
  [[nodiscard]] Tensor dequantized() const;
  /// What a value() in 8 bits is to be multiplied by, float32 [1]. Undefined else.
  [[nodiscard]] const Tensor& inverse_scale() const { return inverse_scale_; }
  /// What is computed with it in: value()'s; of one in 8 bits what it was cast from, of one in NF4 what it becomes.
  [[nodiscard]] DType compute_dtype() const { return compute_dtype_; }
  /// Where backward adds, [shape]: what has gathered so far, or zero. A frozen parameter has none.
  [[nodiscard]] Tensor& gradient();
  /// The same for an operation that fills all of it: where nothing has gathered yet, `accumulate` is false and what is
  /// there is nothing, so nobody has to clear it first.
  struct GradientSum {
    Tensor& sum;
    bool accumulate;
  };
  [[nodiscard]] GradientSum gradient_sum();

  /// The parameter becomes `count` elements of the part's dimension, beginning at part.begin.
  /// The caller does this before the parameter is placed.
  void take_part(const Part& part, int64_t count) {
    part_ = part;
    shape_ = whole_shape_;
    shape_.at(static_cast<size_t>(part.dimension)) = count;
  }

  /// Leaves the parameter as it is: no gradient is computed for it. Before it is placed.
  void freeze() { frozen_ = true; }
  [[nodiscard]] bool is_frozen() const { return frozen_; }

  /// Freezes it, and says that the weights with which a run begins keep it: no checkpoint of the run holds it. The base
  /// of adapters (nn/lora.h) is that. Before it is placed.
  void set_base() { frozen_ = is_base_ = true; }
  [[nodiscard]] bool is_base() const { return is_base_; }

  /// Says that it is the weight of a linear layer that is computed in 8 bits. Before it is placed.
  void set_float8(Float8Recipe recipe) { float8_ = recipe; }
  [[nodiscard]] std::optional<Float8Recipe> float8() const { return float8_; }

  /// Says that it is kept and gathered in NF4 (ops/nf4.h): the weight of a linear layer, [out, in], of a base. It is
  /// called before the parameter is placed.
  void set_nf4() { is_nf4_ = true; }
  [[nodiscard]] bool is_nf4() const { return is_nf4_; }

  /// Sets both views; whoever places the parameter calls it once, before the first forward. `prepare_gradient` is
  /// called before each use of the gradient and sees to it that it is there, new after begin_gradient().
  void place(Tensor value, Tensor gradient, std::function<void()> prepare_gradient = {}) {
    value_ = std::move(value);
    compute_dtype_ = value_.dtype();
    gradient_ = std::move(gradient);
    prepare_gradient_ = std::move(prepare_gradient);
  }
  /// Whoever placed the gradient has new memory for it: nothing has gathered there.
  void begin_gradient() { is_gradient_new_ = true; }
  /// Afterwards, of a value in 8 bits.
  void place_scale(Tensor inverse_scale, DType compute_dtype) {
    inverse_scale_ = std::move(inverse_scale);
    compute_dtype_ = compute_dtype;
  }
  /// Afterwards, of a packed value: what its scalers are read with.
  void place_nf4_scales(ops::Nf4Scales scales, DType compute_dtype) {
    nf4_scales_ = std::move(scales);
    compute_dtype_ = compute_dtype;
  }
  [[nodiscard]] ops::Nf4Scales& nf4_scales() { return nf4_scales_; }

 private:
  std::string name_;
  Shape whole_shape_, shape_;
  Part part_;
  Init init_;
  bool frozen_ = false, is_base_ = false, is_nf4_ = false;
  std::optional<Float8Recipe> float8_;
  Tensor value_, inverse_scale_, gradient_;
  ops::Nf4Scales nf4_scales_;
  DType compute_dtype_ = DType::Float32;
  std::function<void()> prepare_gradient_;
  bool is_gradient_new_ = false;
};

}  // namespace trainyard::autograd
