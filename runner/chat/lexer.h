#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::chat {

enum class TokenKind { Text, PrintBegin, PrintEnd, TagBegin, TagEnd, Name, String, Int, Float, Operator, End };

struct Token {
  TokenKind kind;
  std::string text;  ///< of a string: what it stands for
  int line;
  int64_t whole = 0;
  double real = 0;
};

/// The tokens of a template, white space taken off as trim_blocks, lstrip_blocks, `-` and `+` say; the last is an End.
/// Comments are left out, and what `raw` covers is Text. Throws InputError, beginning with `name` and the line.
std::vector<Token> tokens_of(std::string_view source, const std::string& name);

}  // namespace trainyard::chat
