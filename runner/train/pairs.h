#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/loaders.h"
#include "data/pairs.h"
#include "metrics/rouge.h"
#include "models/language_model.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// Whether the data is pairs of a source and a target.
bool is_of_pairs(const config::Data& data);

/// This rank's loader of them, read ahead by data.num_workers threads. Throws InputError where pairs, tokenizer and
/// model do not fit each other.
std::unique_ptr<data::Loader> pair_loader_of(const config::Config& config, const tokenizer::Tokenizer& tokenizer,
                                             const models::ModelConfig& model, const data::Place& place,
                                             data::Repeat repeat = data::Repeat::Forever);

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

/// The first sample.count pairs of sample.path; none where it is empty. Throws InputError for what is wrong with it.
std::vector<data::PairText> sample_pairs(const config::Config& config);

/// Answers `pairs`, at least one, always with the likeliest token, until the end of text or `options`'
/// max_target_length. Ranks that share the model's shards call it together.
AnswersReport answer_pairs(models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                           const config::Data& options, const std::vector<data::PairText>& pairs);

/// The mean scores, and the first `shown` answers beside their references.
std::string format_answers(const AnswersReport& report, size_t shown);

}  // namespace trainyard::train
