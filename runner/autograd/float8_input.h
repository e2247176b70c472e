#pragma once

#include <optional>

#include "ops/float8.h"

namespace trainyard::autograd {

/// A value as the input of linear layers in 8 bits: what the first of them casts serves the others that take it.
class Float8Input {
 public:
  /// `x`, the value, by `cast`: at least what is wanted.
  const ops::Float8Factors& of(const Tensor& x, const ops::Float8Cast& cast, ops::Float8Wanted wanted);
  /// What is there by columns; undefined: nothing.
  [[nodiscard]] ops::Float8Matrix columns(const ops::Float8Cast& cast) const;

 private:
  ops::Float8Cast cast_;
  std::optional<ops::Float8Factors> factors_;  // most values never have any, and each has one of these
};

}  // namespace trainyard::autograd
