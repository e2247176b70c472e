#pragma once

#include <optional>

#include "tokenizer/special_tokens.h"
#include "tokenizer/text_steps.h"

namespace trainyard::tokenizer {

/// The steps of a class that transformers' AutoTokenizer makes anew from the vocabulary alone, with add_prefix_space as
/// tokenizer_config.json has it (absent: false); where no class is named it is that of the family of config.json. None
/// where it takes the steps that tokenizer.json has: the class is another, or the family is one whose class it does not
/// trust.
std::optional<TextSteps> steps_of_class(const SpecialTokens& special);

}  // namespace trainyard::tokenizer
