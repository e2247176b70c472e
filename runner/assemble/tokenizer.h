#pragma once

#include <memory>

#include "config/load.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// That its tokenizer has no token that ends a document, and what to do.
std::string no_end_of(const config::Data& data);

/// The tokenizer of data.tokenizer; null where the data is pre-tokenised and none is named. Throws InputError where it
/// has no end of text and data.append_eos was given.
std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Loaded& loaded);

/// Warns where transformers' AutoTokenizer will give a text other ids than data.tokenizer gives here: by the class of
/// the model's `family`, beside whose config.json the tokenizer comes to lie where the model is exported.
void warn_of_other_ids(const config::Data& data, const std::string& family);

}  // namespace trainyard::train
