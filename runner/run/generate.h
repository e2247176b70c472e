#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "models/language_model.h"

namespace trainyard::train {

struct Sampling {
  int64_t max_new_tokens = 120;
  double temperature = 0.8;  ///< divides the logits; 0 = always the likeliest token
  double top_p = 0.95;       ///< from the likeliest tokens that together have this probability (Holtzman et al. 2020)
  uint64_t seed = 0;
  int64_t vocab_size =
      0;  ///< of the tokenizer: ids past it, which pad a model's vocabulary, are not drawn; 0 = all are
  std::vector<int32_t> stops = {};  ///< any of them ends the text where drawn, and is not part of it
};

/// Draws one token from logits [vocab] of any floating dtype; the largest, first of equals, where temperature is 0.
int32_t draw(const Tensor& logits, double temperature, double top_p, std::mt19937_64& random);

/// Continues `prompt` token by token with a key-value cache; `on_token` sees each as it comes. The ranks of `world`, which
/// share the model's shards, call it together: rank 0 draws, and all get its tokens, whatever their own logits round to.
/// Throws InputError for an empty prompt, an id outside the vocabulary, or more tokens than the model has positions.
std::vector<int32_t> generate(models::LanguageModel& model, std::span<const int32_t> prompt, const Sampling& sampling,
                              comm::Communicator& world, const std::function<void(int32_t)>& on_token = {});

/// The same for several prompts side by side, which encoder-decoders take (models/language_model.h): one gather of the
/// parameters makes a token of each.
std::vector<std::vector<int32_t>> generate_all(models::LanguageModel& model,
                                               const std::vector<std::vector<int32_t>>& prompts,
                                               const Sampling& sampling, comm::Communicator& world,
                                               const std::function<void(int32_t)>& on_token = {});

}  // namespace trainyard::train
