#include "ops/cross_entropy.h"

#include <array>
#include <vector>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/head_chunks.h"
#include "ops/kernels.h"
#include "ops/vocabulary_parts.h"

namespace trainyard::ops {
namespace {

Tensor valid_tokens(const Tensor& targets) {
  std::vector<int32_t> valid;
  valid.reserve(static_cast<size_t>(targets.count()));
  const std::span<const int32_t> values = targets.values<int32_t>();
  for (size_t token = 0; token < values.size(); ++token)
    if (values[token] != kIgnoredTarget) valid.push_back(static_cast<int32_t>(token));
  return Tensor::from<int32_t>(valid, {static_cast<int64_t>(valid.size())});
}

void require_inputs(std::string_view op, const Tensor& h, const Tensor& w, const Targets& targets,
                    const Tensor* token_loss, int64_t vocab) {
  require_rank(op, "h", h, 2);
  require_rank(op, "w", w, 2);
  require_floating(op, "h", h);
  require(op, "w", w, {w.size(0), h.size(1)}, h.dtype());
  require(op, "targets", targets.values(), {h.size(0)}, DType::Int32);
  if (token_loss) require(op, "token_loss", *token_loss, {h.size(0)}, DType::Float32);
  require_indices(op, "targets", targets.values(), vocab, kIgnoredTarget);
}

void require_gradients(std::string_view op, const Tensor& h, const Tensor& w, const LossGradients& gradients) {
  require(op, "dh", gradients.dh, h.shape(), h.dtype());
  if (!gradients.dw.defined()) return;
  require_floating(op, "dw", gradients.dw);
  require(op, "dw", gradients.dw, w.shape(), gradients.dw.dtype());
}

void tell_cost_of(const Tensor& h, const Tensor& w, const LossGradients* gradients) {
  const double product = 2.0 * static_cast<double>(h.count()) * static_cast<double>(w.size(0));
  if (!gradients) return tell_cost({&h, &w}, product);
  tell_cost({&h, &w, &w, &gradients->dh, &gradients->dw, &gradients->dw},
            (gradients->dw.defined() ? 3.0 : 2.0) * product);
}

}  // namespace

Tensor Loss::sums() const {
  if (device_.defined()) return device_;
  Tensor sums = Tensor::from<double>(
      std::array{host_.loss_sum, static_cast<double>(host_.valid), static_cast<double>(host_.correct)}, {3});
  if (!loss_sum_.defined()) return sums;
  sums = on_device(sums, loss_sum_.device());
  Tensor place = sums.rows(0, 1);
  copy(loss_sum_, place);
  return sums;
}

LossSums Loss::read() const {
  if (!device_.defined() && !loss_sum_.defined()) return host_;
  const Tensor here = on_device(sums(), {});
  const auto values = here.values<double>();
  return {values[0], static_cast<int64_t>(values[1]), static_cast<int64_t>(values[2])};
}

Targets::Targets(const Tensor& values) : values_(on_device(values, {})), valid_(valid_tokens(values_)) {}

Targets::Targets(const Tensor& values, Device device)
    : values_(values),
      valid_(valid_tokens(values_)),
      values_there_(on_device(values_, device)),
      valid_there_(on_device(valid_, device)) {}

Tensor Targets::values_on(Device device) const {
  return on_device(values_there_.defined() ? values_there_ : values_, device);
}

Tensor Targets::valid_on(Device device) const {
  return on_device(valid_there_.defined() ? valid_there_ : valid_, device);
}

Loss linear_cross_entropy(const Tensor& h, const Tensor& w, const Targets& targets, Tensor* token_loss) {
  const metrics::TraceSpan span("linear_cross_entropy", "op");
  require_inputs("linear_cross_entropy", h, w, targets, token_loss, w.size(0));
  tell_cost_of(h, w, nullptr);
  return kernel("linear_cross_entropy", &Kernels::linear_cross_entropy, {&h, &w})(h, w, targets, nullptr, token_loss);
}

Loss linear_cross_entropy_with_gradients(const Tensor& h, const Tensor& w, const Targets& targets,
                                         LossGradients gradients, Tensor* token_loss) {
  const metrics::TraceSpan span("linear_cross_entropy_with_gradients", "op");
  constexpr std::string_view kOp = "linear_cross_entropy_with_gradients";
  require_inputs(kOp, h, w, targets, token_loss, w.size(0));
  require_gradients(kOp, h, w, gradients);
  tell_cost_of(h, w, &gradients);
  return kernel("linear_cross_entropy", &Kernels::linear_cross_entropy, {&h, &w})(h, w, targets, &gradients,
                                                                                  token_loss);
}

Loss linear_cross_entropy_of_part(const Tensor& h, const Tensor& w, const VocabularyPart& part, const Targets& targets,
                                  const GatherSums& gather, LossGradients* gradients) {
  const metrics::TraceSpan span("linear_cross_entropy_of_part", "op");
  constexpr std::string_view kOp = "linear_cross_entropy_of_part";
  require_inputs(kOp, h, w, targets, nullptr, part.whole);
  if (gradients) require_gradients(kOp, h, w, *gradients);
  tell_cost_of(h, w, gradients);
  const Kernels& kernels = kernels_for(kOp, std::array{&h, &w});
  const Tensor by_token = targets.values_on(h.device());
  Tensor losses = Tensor::zeros({h.size(0)}, DType::Float32, h.device());
  for_head_chunks(h, w, targets, gradients, [&](const Tensor& tokens, Tensor& logits, Tensor* dlogits) {
    const VocabularyRows rows{.tokens = tokens, .targets = by_token, .first = part.first, .dtype = h.dtype()};
    Tensor own = Tensor::empty({logits.size(0), 3}, DType::Float32, h.device());
    kernels.softmax_sums(logits, rows, own);
    kernels.softmax_of_parts(logits, rows, own, gather(own), gradients ? gradients->grad_scale : 0, losses, dlogits);
  });
  return {kernels.sum(losses), targets.valid().count()};
}

Loss cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale, Tensor* dlogits) {
  const metrics::TraceSpan span("cross_entropy", "op");
  require_rank("cross_entropy", "logits", logits, 2);
  require_floating("cross_entropy", "logits", logits);
  require("cross_entropy", "targets", targets, {logits.size(0)}, DType::Int32);
  require_indices("cross_entropy", "targets", targets, logits.size(1), kIgnoredTarget);
  if (dlogits) require("cross_entropy", "dlogits", *dlogits, logits.shape(), logits.dtype());
  tell_cost({&logits});
  const Tensor none;
  return kernel("cross_entropy", &Kernels::cross_entropy, {&logits, &targets, dlogits ? dlogits : &none})(
      logits, targets, grad_scale, dlogits);
}

}  // namespace trainyard::ops
