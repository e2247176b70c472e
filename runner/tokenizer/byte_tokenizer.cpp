#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/readers.h"

namespace trainyard::tokenizer {
namespace {

constexpr int32_t kEndOfText = 256;

class ByteTokenizer : public Tokenizer {
 public:
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (size_t at = 0; at < ids.size(); ++at) {
      if (ids[at] < 0 || ids[at] > kEndOfText)
        throw InputError(fmt::format("decode: id {} at position {} stands for nothing; ids run from 0 to {}", ids[at],
                                     at, kEndOfText));
      if (ids[at] == kEndOfText)
        text += "<|endoftext|>";
      else
        text += static_cast<char>(ids[at]);
    }
    return text;
  }

  [[nodiscard]] int64_t vocab_size() const override { return kEndOfText + 1; }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return kEndOfText; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return std::nullopt; }
  [[nodiscard]] std::string fingerprint() const override { return Fingerprint().add("bytes").hex(); }
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace trainyard::tokenizer
