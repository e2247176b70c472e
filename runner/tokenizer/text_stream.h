#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {

/// Text as its tokens come, for people's eyes. What tokens leave unfinished of a character waits for the rest; what is no
/// character in the end is U+FFFD, as transformers writes it. Borrows the tokenizer.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// What is known of the text with this token, beyond what was given before.
  std::string add(int32_t id);
  /// The rest, once no token follows.
  std::string finish();

 private:
  std::string upto(size_t end);

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  std::string text_;
  size_t given_ = 0;  ///< bytes of text_
};

}  // namespace trainyard::tokenizer
