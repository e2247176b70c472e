#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/rendering.h"

// Texts as Python's str has them: of characters, where ours are of bytes. All are well-formed UTF-8.
namespace trainyard::chat {

/// str.isspace() of one character.
bool is_space(char32_t character);
/// str.isprintable() of one character.
bool is_printable(char32_t character);
bool is_ascii_text(std::string_view text);

size_t length_of(std::string_view text);
std::vector<std::string> characters_of(std::string_view text);

/// The text without what is in `characters` at its front and its back; without white space where that is null.
enum class Side { Left = 1, Right = 2, Both = 3 };
std::string_view stripped(std::string_view text, Side side, const std::string_view* characters = nullptr);

// Letters that become several in another case, and the final sigma, are refused by name.
std::string upper(std::string_view text, Rendering& rendering);
std::string lower(std::string_view text, Rendering& rendering);
std::string capitalized(std::string_view text, Rendering& rendering);
/// str.title(), which begins a word behind whatever is no letter.
std::string titled(std::string_view text, Rendering& rendering);
/// str.islower() and str.isupper().
bool is_lower(std::string_view text);
bool is_upper(std::string_view text);

/// It makes at most `most` replacements, and all where that is negative.
std::string replaced_in(std::string_view text, std::string_view old, std::string_view by, int64_t most,
                        Rendering& rendering);
std::vector<std::string> split_lines(std::string_view text);

}  // namespace trainyard::chat
