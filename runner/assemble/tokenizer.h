#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/load.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// The tokenizer of data.tokenizer; null where the data is pre-tokenised and none is named.
std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Loaded& loaded);

/// Files that belong to the tokenizer, for exports; none for byte-level.
std::vector<std::string> tokenizer_files_of(const config::Data& data);

}  // namespace trainyard::train
