#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "data/pairs.h"
#include "metrics/rouge.h"
#include "models/language_model.h"
#include "tokenizer/tokenizer.h"

// What a model makes of pairs whose answers are known.
namespace trainyard::train {

/// The ids of what a model is asked: a decoder's prompt as it is, a source with its end of text.
std::vector<int32_t> prompt_ids(const models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                                const std::string& text);

struct Answered {
  std::string source, reference, answer;
};

struct AnswersReport {
  std::vector<Answered> all;
  metrics::Rouge mean;  ///< of each answer against its reference
};

/// How questions are asked and answers end.
struct Answering {
  const config::Data& options;  ///< prefix, and the longest source and target
  std::vector<int32_t> stops;   ///< ids that end an answer
};

/// Answers `pairs`, at least one, always with the likeliest token, until an id that ends it or `options`'
/// max_target_length. The ranks of `world`, which share the model's shards, call it together.
AnswersReport answer_pairs(models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                           const Answering& answering, const std::vector<data::PairText>& pairs,
                           comm::Communicator& world);

/// The mean scores, and the first `shown` answers beside their references.
std::string format_answers(const AnswersReport& report, size_t shown);

}  // namespace trainyard::train
