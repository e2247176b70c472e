#pragma once

#include <memory>

#include "config/load.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// The tokenizer of data.tokenizer; null where the data is pre-tokenised and none is named.
std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Loaded& loaded);

}  // namespace trainyard::train
