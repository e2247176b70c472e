#pragma once

#include <cstddef>
#include <string_view>

namespace trainyard::tokenizer {

/// Whether a space stands at `at`, between two characters that are no white space: "x| y".
bool is_between_words(std::string_view text, size_t at);

/// Whether a line begins at `at`, behind a line feed between two characters that are no white space: "x\n|y".
bool begins_line(std::string_view text, size_t at);

/// Either of these. What has to be no white space is whole; the rest of `text` may be any bytes.
bool is_between_words_or_lines(std::string_view text, size_t at);

}  // namespace trainyard::tokenizer
