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

}  // namespace trainyard::train
