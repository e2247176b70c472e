#include "autograd/functions.h"

#include <functional>
#include <utility>
#include <vector>

#include "autograd/float8.h"
#include "autograd/recompute.h"
#include "ops/bias.h"
#include "ops/matmul.h"

namespace trainyard::autograd {
namespace {

/// input · weightᵀ + bias; `bias` null: none. `takes_rows`: of an input whose rows arrive, as they do.
Tensor product_of(const Variable& input, const Parameter& weight, const Parameter* bias, bool takes_rows) {
  if (weight.float8()) {
    Tensor product = float8_linear(input, weight);
    if (bias) ops::add_bias(product, bias->value());
    return product;
  }
  const Tensor& x = input.arriving();
  Tensor product = Tensor::empty({x.size(0), weight.shape()[0]}, x.dtype(), x.device());
  const Tensor factor = weight.dequantized();
  const auto multiply_rows = [&](Rows rows) {
    Tensor to = product.rows(rows.begin, rows.count);
    ops::matmul(x.rows(rows.begin, rows.count), factor, to,
                {.b = ops::Transpose::Yes, .bias = bias ? bias->value() : Tensor()});
  };
  if (takes_rows) {
    while (const auto rows = input.arrival()->next()) multiply_rows(*rows);
  } else {
    static_cast<void>(input.value());
    multiply_rows({0, x.size(0)});
  }
  return product;
}

void add_weight_gradient(const Tensor& gradient, const Tensor& value, Parameter& weight) {
  if (weight.is_frozen()) return;
  const Parameter::GradientSum dw = weight.gradient_sum();
  ops::matmul(gradient, value, dw.sum, {.a = ops::Transpose::Yes, .accumulate = dw.accumulate});
}

/// way_back() of a product that took rows as they arrived.
std::function<void(const Tensor&)> way_back_by_rows(const Variable& x, Parameter& weight) {
  return [value = x.value(), &weight, arrival = x.arrival()](const Tensor& gradient) {
    arrival->give_back(
        [&](Tensor& to, Rows rows, bool accumulate) {
          ops::matmul(gradient.rows(rows.begin, rows.count), weight.value(), to, {.accumulate = accumulate});
        },
        [&] { add_weight_gradient(gradient, value, weight); });
  };
}

/// The way back of the product `x` went into, from the product's gradient: it adds to the weight's gradient and to x's.
std::function<void(const Tensor&)> way_back(const Variable& x, Parameter& weight) {
  if (weight.float8())
    return [kept = kept_for_float8(x, weight), &weight, dx = x.gradient()](const Tensor& gradient) {
      dx->add(float8_linear_backward(gradient, kept, weight));
    };
  return [value = x.value(), &weight, dx = x.gradient()](const Tensor& gradient) {
    add_weight_gradient(gradient, value, weight);
    dx->add(value, [&](Tensor& to, bool accumulate) {
      ops::matmul(gradient, weight.dequantized(), to, {.accumulate = accumulate});
    });
  };
}

/// `bias` null: none.
Variable linear(const Variable& input, Parameter& weight, Parameter* bias) {
  const Variable x = cast(input, weight.compute_dtype());
  const bool takes_rows = !weight.float8() && x.arrival() && x.arrival()->claim();
  const auto outputs = kept([&] { return std::vector{product_of(x, weight, bias, takes_rows)}; });
  const Variable y(outputs[0], x.tape());
  if (x.tape()) {
    x.tape()->record(
        y, [back = takes_rows ? way_back_by_rows(x, weight) : way_back(x, weight), bias](const Tensor& gradient) {
          if (bias && !bias->is_frozen()) ops::bias_backward(gradient, bias->gradient());
          back(gradient);
        });
  }
  return y;
}

}  // namespace

Variable linear(const Variable& x, Parameter& weight) {
  return linear(x, weight, nullptr);
}

Variable linear(const Variable& x, Parameter& weight, Parameter& bias) {
  return linear(x, weight, &bias);
}

}  // namespace trainyard::autograd
