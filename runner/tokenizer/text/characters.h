#pragma once

#include <string_view>

namespace trainyard::tokenizer {

/// The offset of the last character of well-formed `text`, which has one.
size_t last_character(std::string_view text);

/// Unicode's White_Space.
bool is_white_space(char32_t character);

/// What regular expressions call \w (Unicode, technical standard 18): letters, marks, decimal digits, connecting signs
/// and the two joiners.
bool is_word_character(char32_t character);

/// Bytes of white space at the front and at the back of `text`, which is well-formed UTF-8.
size_t white_space_at_front(std::string_view text);
size_t white_space_at_back(std::string_view text);

/// Whether the first, the last character of well-formed `text` is of a word; not where there is none.
bool begins_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace trainyard::tokenizer
