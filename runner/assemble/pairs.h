#pragma once

#include <memory>
#include <vector>

#include "assemble/run_spec.h"
#include "config/config.h"
#include "data/loaders.h"
#include "data/pairs.h"
#include "data/split.h"
#include "models/config.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// Whether the data is pairs of a source and a target.
bool is_of_pairs(const config::Data& data);

/// This rank's loader of them, read ahead by data.num_workers threads. Throws InputError where pairs, tokenizer and
/// model do not fit each other.
std::unique_ptr<data::Loader> pair_loader_of(const config::Data& data, const BatchSize& batch,
                                             const tokenizer::Tokenizer& tokenizer, const models::ModelConfig& model,
                                             const data::Place& place, const data::Tokenising& how = {},
                                             data::Repeat repeat = data::Repeat::Forever,
                                             const data::Split& split = {});

/// The first sample.count pairs of sample.path; none where it is empty. Throws InputError for what is wrong with it.
std::vector<data::PairText> sample_pairs(const config::Config& config,
                                         data::Notes notes = data::Notes::Logged);

}  // namespace trainyard::train
