#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/files/readers.h"

// The first byte chooses the format, the rest is the file. A file that is accepted has to encode and decode.
namespace {
using namespace trainyard;

std::unique_ptr<tokenizer::Tokenizer> read(uint8_t kind, std::string_view content) {
  switch (kind % 4) {
    case 0:
      return tokenizer::read_hugging_face(content, "tokenizer.json", {});
    case 1:
      return tokenizer::read_tiktoken(content, "tokenizer.model", {});
    case 2:
      return tokenizer::read_sentencepiece(content, "spiece.model", {});
    default: {
      const size_t cut = content.find('\0');  // vocab.json, a zero, merges.txt
      const std::string_view merges = cut == std::string_view::npos ? std::string_view() : content.substr(cut + 1);
      return tokenizer::read_vocab_and_merges({content.substr(0, cut), "vocab.json"}, {merges, "merges.txt"}, {});
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    const auto tokenizer = read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
    static_cast<void>(tokenizer->decode(tokenizer->encode("The \xE2\x82\xAC 12 caf\xC3\xA9s'll\n\n  open.")));
  } catch (const InputError&) {  // what a damaged file deserves
  }
  return 0;
}
