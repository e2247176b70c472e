#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/files/special_tokens.h"
#include "tokenizer/text/text_steps.h"

namespace trainyard::tokenizer {

/// The class that transformers' AutoTokenizer makes anew from the vocabulary alone; where none is named it is that of
/// the family of config.json. "" where it takes what tokenizer.json has: the class is another, or the family is one
/// whose class it does not trust.
std::string_view class_of(const SpecialTokens& special);

/// The steps of that class, with add_prefix_space as tokenizer_config.json has it (absent: false); none where there is
/// no such class.
std::optional<TextSteps> steps_of_class(const SpecialTokens& special);

}  // namespace trainyard::tokenizer
