#pragma once

#include <cstdint>
#include <functional>

#include "ops/cross_entropy.h"

// Cross-entropy of a head whose vocabulary is split among ranks (Narayanan et al. 2021): each has the logits of its own
// ids, and no rank has those of all.
namespace trainyard::ops {

/// Which ids of a vocabulary are here.
struct VocabularyPart {
  int64_t first = 0;
  int64_t whole = 0;  ///< ids of all parts
};

/// Takes what this rank knows of each row, float32 [rows, 3], and gives what each part knows, one part after the other:
/// [parts · rows, 3].
using GatherSums = std::function<Tensor(const Tensor& own)>;

/// linear_cross_entropy() where w [part, hidden] holds the rows of `part`. Each rank gives the loss of the whole
/// vocabulary. dh is the part of the gradient that comes from this rank's ids: the sum over the ranks is the whole.
/// `gradients` null: the loss alone. Throws as linear_cross_entropy(); a target must be below part.whole.
Loss linear_cross_entropy_of_part(const Tensor& h, const Tensor& w, const VocabularyPart& part, const Targets& targets,
                                  const GatherSums& gather, LossGradients* gradients);

/// The tokens that rows of logits belong to, for the kernels below.
struct VocabularyRows {
  const Tensor& tokens;   ///< int32 [rows]: whose logits each row is
  const Tensor& targets;  ///< int32, by token: ids of the whole vocabulary
  int64_t first;          ///< the id of the first logit
  DType dtype;            ///< in which logits count, and of their gradients
};

/// What the sums of all parts come to.
struct WholeSoftmax {
  float most, total, loss;
};

/// For the kernels of every device: `sums` are one row's in the first part, those of the next part are `stride`
/// further, `exp` and `log` those of the device.
template <typename Exp, typename Log>
constexpr WholeSoftmax whole_softmax(const float* sums, int64_t parts, int64_t stride, const Exp& exp, const Log& log) {
  float most = sums[0], total = 0, of_target = 0;
  for (int64_t part = 1; part < parts; ++part)
    if (const float other = sums[part * stride]; other > most) most = other;
  for (int64_t part = 0; part < parts; ++part) {
    total += exp(sums[part * stride] - most) * sums[part * stride + 1];
    of_target += sums[part * stride + 2];
  }
  return {most, total, log(total) + most - of_target};
}

}  // namespace trainyard::ops
