#include "autograd/functions.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "autograd/float8.h"
#include "autograd/recompute.h"
#include "ops/add.h"
#include "ops/bias.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/multiply.h"
#include "ops/relative_bias.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "ops/scale.h"
#include "ops/sum.h"
#include "ops/swiglu.h"

namespace trainyard::autograd {
namespace {

/// An input without a tape could not take its gradient; one on another tape would take it too early or too late.
void require_one_tape(const char* function, std::span<const Variable> inputs) {
  for (const Variable& input : inputs)
    if (input.tape() != inputs.front().tape())
      throw std::invalid_argument(std::string(function) + ": its inputs are not on the same tape");
}

/// The inputs in one dtype: where they differ float32, what PyTorch promotes any two of ours to.
template <size_t N>
std::array<Variable, N> promoted(const char* function, std::array<Variable, N> inputs) {
  require_one_tape(function, inputs);
  const DType first = inputs.front().value().dtype();
  if (!std::ranges::all_of(inputs, [first](const Variable& input) { return input.value().dtype() == first; }))
    for (Variable& input : inputs) input = cast(input, DType::Float32);
  return inputs;
}

Tensor in_dtype(const Tensor& tensor, DType dtype) {
  Tensor other = Tensor::empty(tensor.shape(), dtype, tensor.device());
  ops::cast(tensor, other);
  return other;
}

/// input · weightᵀ + bias; `bias` null: none. `takes_rows`: of an input whose rows arrive, as they do.
Tensor product_of(const Variable& input, const Parameter& weight, const Parameter* bias, bool takes_rows) {
  if (weight.float8()) {
    Tensor product = float8_linear(input, weight);
    if (bias) ops::add_bias(product, bias->value());
    return product;
  }
  const Tensor& x = input.arriving();
  Tensor product = Tensor::empty({x.size(0), weight.shape()[0]}, x.dtype(), x.device());
  const auto multiply_rows = [&](Rows rows) {
    Tensor to = product.rows(rows.begin, rows.count);
    ops::matmul(x.rows(rows.begin, rows.count), weight.value(), to,
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
      ops::matmul(gradient, weight.value(), to, {.accumulate = accumulate});
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

Variable cast(const Variable& x, DType dtype) {
  const DType own = x.arriving().dtype();
  if (own == dtype) return x;
  const Variable y(in_dtype(x.value(), dtype), x.tape());
  if (x.tape())
    x.tape()->record(y, [own, dx = x.gradient()](const Tensor& gradient) { dx->add(in_dtype(gradient, own)); });
  return y;
}

Variable add(const Variable& first, const Variable& second) {
  const auto [a, b] = promoted<2>("add", {first, second});
  Tensor sum = empty_like(a.value());
  ops::add(a.value(), b.value(), sum);
  const Variable y(std::move(sum), a.tape());
  if (a.tape()) {
    a.tape()->record(y, [da = a.gradient(), db = b.gradient()](const Tensor& gradient) {
      da->add(gradient);
      db->add(gradient);
    });
  }
  return y;
}

Variable first_rows(const Variable& x, int64_t count) {
  if (x.arriving().size(0) == count) return x;
  const Tensor& value = x.value();
  const Variable y(value.rows(0, count), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape = value.shape(), count, dx = x.gradient()](const Tensor& gradient) {
      Tensor whole = Tensor::empty(shape, gradient.dtype(), gradient.device());
      Tensor first = whole.rows(0, count), rest = whole.rows(count, shape[0] - count);
      copy(gradient, first);
      ops::set_zero(rest);
      dx->add(std::move(whole));
    });
  }
  return y;
}

Variable select_heads(const Variable& x, int64_t dim, const std::vector<int64_t>& heads) {
  const Tensor& value = x.value();
  Tensor selected = Tensor::empty({value.size(0), std::ssize(heads) * dim}, value.dtype(), value.device());
  for (size_t i = 0; i < heads.size(); ++i)
    ops::copy_columns(value, heads[i] * dim, dim, selected, static_cast<int64_t>(i) * dim);
  const Variable y(std::move(selected), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape = value.shape(), dim, heads, dx = x.gradient()](const Tensor& gradient) {
      const auto of_head = [&] { return Tensor::empty({shape[0], dim}, gradient.dtype(), gradient.device()); };
      Tensor whole = Tensor::zeros(shape, gradient.dtype(), gradient.device());
      for (int64_t head = 0; head < shape[1] / dim; ++head) {
        Tensor sum = of_head(), addend = of_head();
        bool is_first = true;
        for (size_t i = 0; i < heads.size(); ++i) {
          if (heads[i] != head) continue;
          ops::copy_columns(gradient, static_cast<int64_t>(i) * dim, dim, is_first ? sum : addend, 0);
          if (!std::exchange(is_first, false)) ops::add_to(sum, addend);
        }
        if (!is_first) ops::copy_columns(sum, 0, dim, whole, head * dim);
      }
      dx->add(std::move(whole));
    });
  }
  return y;
}

Variable multiply(const Variable& first, const Variable& second) {
  const auto [a, b] = promoted<2>("multiply", {first, second});
  Tensor product = empty_like(a.value());
  ops::multiply(a.value(), b.value(), product);
  const Variable y(std::move(product), a.tape());
  if (a.tape()) {
    a.tape()->record(y, [a = a.value(), b = b.value(), da = a.gradient(), db = b.gradient()](const Tensor& gradient) {
      Tensor a_gradient = empty_like(a), b_gradient = empty_like(b);
      ops::multiply(gradient, b, a_gradient);
      ops::multiply(gradient, a, b_gradient);
      da->add(std::move(a_gradient));
      db->add(std::move(b_gradient));
    });
  }
  return y;
}

Variable scale(const Variable& x, float factor) {
  const auto scaled = [factor](const Tensor& from) {
    Tensor to = empty_like(from);
    copy(from, to);
    ops::scale(to, factor);
    return to;
  };
  const Variable y(scaled(x.value()), x.tape());
  if (x.tape()) x.tape()->record(y, [scaled, dx = x.gradient()](const Tensor& gradient) { dx->add(scaled(gradient)); });
  return y;
}

Variable activation(ops::Activation f, const Variable& x) {
  Tensor out = empty_like(x.value());
  ops::activation(f, x.value(), out);
  const Variable y(std::move(out), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [f, value = x.value(), dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = empty_like(value);
      ops::activation_backward(f, gradient, value, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable dropout(const Variable& x, const ops::Dropout& dropout) {
  if (dropout.rate == 0) return x;
  Tensor out = empty_like(x.value());
  ops::dropout(x.value(), dropout, out);
  const Variable y(std::move(out), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [dropout, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = empty_like(gradient);
      ops::dropout(gradient, dropout, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable relative_bias(const Tensor& buckets, Parameter& table, Tape* tape) {
  Tensor bias = Tensor::empty({table.shape()[1], buckets.count()}, DType::Float32, table.value().device());
  ops::relative_bias(buckets, table.value(), bias);
  const Variable y(std::move(bias), tape);
  if (tape && !table.is_frozen())
    tape->record(y, [buckets, &table](const Tensor& gradient) {
      ops::relative_bias_backward(gradient, buckets, table.gradient());
    });
  return y;
}

Variable linear(const Variable& x, Parameter& weight) {
  return linear(x, weight, nullptr);
}

Variable linear(const Variable& x, Parameter& weight, Parameter& bias) {
  return linear(x, weight, &bias);
}

Variable rms_norm(const Variable& input, Parameter& weight, float eps) {
  const Variable x = cast(input, weight.value().dtype());
  const int64_t size = weight.shape()[0];
  const Tensor rows = x.value().reshape({x.value().count() / size, size});
  Tensor normed = empty_like(rows);
  Tensor inverse_rms = Tensor::empty({rows.size(0)}, DType::Float32, rows.device());
  ops::rms_norm(rows, weight.value(), eps, normed, inverse_rms);
  const Variable y(normed.reshape(x.value().shape()), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [rows, inverse_rms, &weight, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = empty_like(rows);
      ops::rms_norm_backward(gradient.reshape(rows.shape()), rows, weight.value(), inverse_rms,
                             {input_gradient, weight.is_frozen() ? Tensor() : weight.gradient()});
      dx->add(input_gradient.reshape(gradient.shape()));
    });
  }
  return y;
}

SumAndNorm add_rms_norm(const Variable& x, const Variable& residual, Parameter& weight, float eps) {
  const DType dtype = x.value().dtype();
  if (residual.value().dtype() != dtype || weight.value().dtype() != dtype) {
    const Variable sum = add(x, residual);
    return {sum, rms_norm(sum, weight, eps)};
  }
  Tensor summed = empty_like(x.value()), normed = empty_like(x.value());
  Tensor inverse_rms = Tensor::empty({x.value().size(0)}, DType::Float32, x.value().device());
  ops::add_rms_norm(x.value(), residual.value(), weight.value(), eps, summed, normed, inverse_rms);
  const Variable sum(std::move(summed), x.tape()), norm(std::move(normed), x.tape());
  if (x.tape()) {
    x.tape()->record([value = sum.value(), inverse_rms, &weight, dsum = sum.gradient(), dnorm = norm.gradient(),
                      dx = x.gradient(), dresidual = residual.gradient()] {
      Tensor gradient = dsum->take();
      if (const Tensor of_norm = dnorm->take(); of_norm.defined()) {
        // What nobody else holds takes the norm's in the same pass.
        const bool adds = gradient.defined() && gradient.storage().use_count() == 1;
        Tensor total = adds ? gradient : empty_like(value);
        ops::rms_norm_backward(of_norm, value, weight.value(), inverse_rms,
                               {total, weight.is_frozen() ? Tensor() : weight.gradient(), adds});
        if (gradient.defined() && !adds) ops::add(gradient, total, total);
        gradient = std::move(total);
      }
      if (!gradient.defined()) return;
      dx->add(gradient);
      dresidual->add(std::move(gradient));
    });
  }
  return {sum, norm};
}

Variable layer_norm(const Variable& input, Parameter& weight, Parameter& bias, float eps) {
  const Variable x = cast(input, weight.value().dtype());
  const auto of_rows = [&] { return Tensor::empty({x.value().size(0)}, DType::Float32, x.value().device()); };
  const ops::RowMoments moments{of_rows(), of_rows()};
  Tensor normed = empty_like(x.value());
  ops::layer_norm(x.value(), weight.value(), bias.value(), eps, normed, moments);
  const Variable y(std::move(normed), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [value = x.value(), moments, &weight, &bias, dx = x.gradient()](const Tensor& gradient) {
      // The kernel makes both sums at once; that of a frozen parameter is dropped.
      const auto to = [](Parameter& of) { return of.is_frozen() ? empty_like(of.value()) : of.gradient(); };
      const ops::LayerNormGradients gradients{empty_like(value), to(weight), to(bias)};
      ops::layer_norm_backward(gradient, value, weight.value(), moments, gradients);
      dx->add(gradients.dx);
    });
  }
  return y;
}

Variable embedding(const Tensor& ids, Parameter& table, Tape* tape, std::optional<int64_t> padding_idx) {
  Tensor rows = Tensor::empty({ids.count(), table.shape()[1]}, table.value().dtype(), table.value().device());
  const ops::TablePart part{table.part().begin, table.whole_shape()[0]};
  ops::embedding(ids, table.value(), rows, part);
  const Variable y(std::move(rows), tape);
  if (tape && !table.is_frozen())
    tape->record(y, [ids, &table, part, padding_idx](const Tensor& gradient) {
      ops::embedding_backward(gradient, ids, table.gradient(), part, padding_idx);
    });
  return y;
}

Variable swiglu(const Variable& gate_input, const Variable& up_input) {
  const auto [gate, up] = promoted<2>("swiglu", {gate_input, up_input});
  Tensor gated = empty_like(gate.value());
  ops::swiglu(gate.value(), up.value(), gated);
  const Variable y(std::move(gated), gate.tape());
  if (gate.tape()) {
    gate.tape()->record(
        y, [g = gate.value(), u = up.value(), dgate = gate.gradient(), dup = up.gradient()](const Tensor& gradient) {
          Tensor gate_gradient = empty_like(g), up_gradient = empty_like(u);
          ops::swiglu_backward(gradient, g, u, gate_gradient, up_gradient);
          dgate->add(std::move(gate_gradient));
          dup->add(std::move(up_gradient));
        });
  }
  return y;
}

Variable rope(const Variable& x, const Tensor& positions, const ops::RopeTables& tables) {
  Tensor rotated = empty_like(x.value());
  ops::rope(x.value(), positions, tables, ops::Rotation::Forward, rotated);
  const Variable y(std::move(rotated), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [positions, tables, dx = x.gradient()](Tensor gradient) {
      ops::rope(gradient, positions, tables, ops::Rotation::Inverse, gradient);
      dx->add(std::move(gradient));
    });
  }
  return y;
}

Variable rms_norm_rope(const Variable& input, Parameter& weight, float eps, const ops::RopePlaces& places) {
  const Variable x = cast(input, weight.value().dtype());
  Tensor turned = empty_like(x.value());
  Tensor inverse_rms = Tensor::empty({turned.count() / weight.shape()[0]}, DType::Float32, turned.device());
  ops::rms_norm_rope(x.value(), weight.value(), eps, places, turned, inverse_rms);
  const Variable y(std::move(turned), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [value = x.value(), inverse_rms, places, &weight, dx = x.gradient()](Tensor gradient) {
      ops::rms_norm_rope_backward(gradient, value, weight.value(), inverse_rms, places,
                                  {gradient, weight.is_frozen() ? Tensor() : weight.gradient()});
      dx->add(std::move(gradient));
    });
  }
  return y;
}

Variable attention(const Variable& q_input, const Variable& k_input, const Variable& v_input,
                   const ops::AttentionShape& shape, const ops::AttentionOptions& given, const Variable& bias_input) {
  const auto [q, k, v] = promoted<3>("attention", {q_input, k_input, v_input});
  ops::AttentionOptions options = given;
  Variable bias;
  if (bias_input.value().defined()) {
    require_one_tape("attention", std::array{q, bias_input});
    bias = cast(bias_input, DType::Float32);
    options.bias = bias.value();
  }
  const auto outputs = kept([&] {
    Tensor mixed = empty_like(q.value());
    Tensor log_sum = Tensor::empty({shape.batch, shape.heads, shape.q_tokens}, DType::Float32, q.value().device());
    ops::attention(q.value(), k.value(), v.value(), shape, options, mixed, log_sum);
    return std::vector{std::move(mixed), std::move(log_sum)};
  });
  const Tensor &mixed = outputs[0], &log_sum = outputs[1];
  const Variable y(mixed, q.tape());
  if (q.tape()) {
    q.tape()->record(y, [q = q.value(), k = k.value(), v = v.value(), mixed, log_sum, shape, options, dq = q.gradient(),
                         dk = k.gradient(), dv = v.gradient(), dbias = bias.gradient()](const Tensor& gradient) {
      const ops::AttentionGradients gradients{empty_like(q), empty_like(k), empty_like(v),
                                              dbias ? empty_like(options.bias) : Tensor()};
      ops::attention_backward(gradient, {q, k, v, mixed, log_sum}, shape, options, gradients);
      dq->add(gradients.dq);
      dk->add(gradients.dk);
      dv->add(gradients.dv);
      if (dbias) dbias->add(gradients.dbias);
    });
  }
  return y;
}

Variable convolution(const Variable& input, const ops::ImageShape& shape, Parameter& weight, Parameter& bias) {
  const Variable x = cast(input, weight.value().dtype());
  const int64_t out = weight.shape()[0], width = weight.count() / out, size = weight.shape()[3];
  const auto patches_of = [shape, size, width](const Tensor& images) {
    const int64_t pixels = ops::convolved(shape, size, 1).pixels();
    Tensor patches = Tensor::empty({pixels, width}, images.dtype(), images.device());
    ops::unfold(images, shape, size, patches);
    return patches;
  };
  const auto outputs = kept([&] {
    const Tensor patches = patches_of(x.value());
    Tensor product = Tensor::empty({patches.size(0), out}, patches.dtype(), patches.device());
    ops::matmul(patches, weight.value().reshape({out, width}), product,
                {.b = ops::Transpose::Yes, .bias = bias.value()});
    return std::vector{std::move(product)};
  });
  const Variable y(outputs[0], x.tape());
  if (x.tape()) {
    x.tape()->record(y, [=, value = x.value(), &weight, &bias, dx = x.gradient()](const Tensor& gradient) {
      if (!bias.is_frozen()) ops::bias_backward(gradient, bias.gradient());
      Tensor patches = patches_of(value);
      if (!weight.is_frozen()) {
        Tensor dweight = weight.gradient().reshape({out, width});
        ops::matmul(gradient, patches, dweight, {.a = ops::Transpose::Yes, .accumulate = true});
      }
      Tensor input_gradient = empty_like(value);
      ops::matmul(gradient, weight.value().reshape({out, width}), patches);  // of the patches, in their place
      ops::unfold_backward(patches, shape, size, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable max_pool(const Variable& x, const ops::ImageShape& shape, int64_t size) {
  const ops::ImageShape to = ops::pooled(shape, size);
  Tensor largest = Tensor::empty({to.pixels(), to.channels}, x.value().dtype(), x.value().device());
  Tensor chosen = Tensor::empty(largest.shape(), DType::Int32, x.value().device());
  ops::max_pool(x.value(), shape, size, largest, chosen);
  const Variable y(std::move(largest), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape, size, chosen, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = Tensor::empty({shape.pixels(), shape.channels}, gradient.dtype(), gradient.device());
      ops::max_pool_backward(gradient, chosen, shape, size, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Variable channels_first(const Variable& x, const ops::ImageShape& shape) {
  const Tensor& pixels = x.value();
  Tensor rows =
      Tensor::empty({shape.images, shape.height * shape.width * shape.channels}, pixels.dtype(), pixels.device());
  ops::channels_first(pixels, shape, rows);
  const Variable y(std::move(rows), x.tape());
  if (x.tape()) {
    x.tape()->record(y, [shape, dx = x.gradient()](const Tensor& gradient) {
      Tensor input_gradient = Tensor::empty({shape.pixels(), shape.channels}, gradient.dtype(), gradient.device());
      ops::channels_last(gradient, shape, input_gradient);
      dx->add(std::move(input_gradient));
    });
  }
  return y;
}

Tensor sum(const Variable& x, float gradient_scale) {
  if (x.tape()) {
    Tensor gradient = empty_like(x.value());
    ops::fill(gradient, gradient_scale);
    x.tape()->record([gradient, dx = x.gradient()] { dx->add(gradient); });
  }
  return ops::sum(x.value());
}

ops::Loss cross_entropy(const Variable& logits, const Tensor& targets, float gradient_scale) {
  if (!logits.tape()) return ops::cross_entropy(logits.value(), targets);
  Tensor gradient = empty_like(logits.value());
  const ops::Loss loss = ops::cross_entropy(logits.value(), targets, gradient_scale, &gradient);
  logits.tape()->record([gradient, dlogits = logits.gradient()] { dlogits->add(gradient); });
  return loss;
}

ops::Loss linear_cross_entropy(const Variable& input, Parameter& head, const ops::Targets& targets,
                               float gradient_scale) {
  const Variable h = cast(input, head.value().dtype());
  if (!h.tape()) return ops::linear_cross_entropy(h.value(), head.value(), targets);
  Tensor gradient = empty_like(h.value());
  const Tensor head_gradient = head.is_frozen() ? Tensor() : head.gradient();
  const ops::Loss loss = ops::linear_cross_entropy_with_gradients(h.value(), head.value(), targets,
                                                                  {gradient_scale, gradient, head_gradient});
  h.tape()->record([gradient, dh = h.gradient()] { dh->add(gradient); });
  return loss;
}

}  // namespace trainyard::autograd
