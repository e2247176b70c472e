#include "autograd/functions.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "autograd/recompute.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "ops/multiply.h"
#include "ops/relative_bias.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "ops/scale.h"
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

}  // namespace trainyard::autograd
