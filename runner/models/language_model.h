#pragma once

#include <vector>

#include "models/model.h"
#include "nn/attention.h"

namespace trainyard::models {

/// A model that makes text.
class LanguageModel : public Model {
 public:
  using Model::Model;

  /// [rows, tokens, vocab] in the dtype of the parameters.
  virtual Tensor logits(const Batch& batch) = 0;

  /// Logits [vocab] after the last of `ids`, which follow the tokens that `caches` (of new_caches) hold, and join them.
  virtual Tensor next_logits(const std::vector<int32_t>& ids, std::vector<nn::KeyValueCache>& caches) = 0;
  [[nodiscard]] virtual std::vector<nn::KeyValueCache> new_caches(int64_t capacity) const = 0;
};

/// `model` as one that makes text. Throws InputError naming its family where it does not.
LanguageModel& language_model(Model& model);

}  // namespace trainyard::models
