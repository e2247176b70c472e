#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/added_tokens.h"

namespace trainyard::tokenizer {
namespace {

constexpr int32_t kEndOfTextId = 256;
constexpr const char* kEndOfBytes = "<|endoftext|>";

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(SpecialTokensAre special)
      : added_({{kEndOfTextId, {.content = kEndOfBytes, .special = true}}}, {}, special) {}

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view /*before*/, std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    added_.split(text, [&](std::string_view part, std::optional<int32_t> token) {
      if (token) return ids.push_back(*token);
      for (const char byte : part) ids.push_back(static_cast<unsigned char>(byte));
    });
    return ids;
  }
  [[nodiscard]] Added sought() const override { return added_.sought(); }
  [[nodiscard]] Added found_in(std::string_view text) const override { return added_.found_in(text); }

  [[nodiscard]] bool is_border(std::string_view document, size_t at) const override {
    return added_.is_safe_cut(document, at);
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (size_t at = 0; at < ids.size(); ++at) {
      if (ids[at] < 0 || ids[at] > kEndOfTextId)
        throw InputError(fmt::format("decode: id {} at position {} stands for nothing; ids run from 0 to {}", ids[at],
                                     at, kEndOfTextId));
      if (ids[at] == kEndOfTextId)
        text += kEndOfBytes;
      else
        text += static_cast<char>(ids[at]);
    }
    return text;
  }

  [[nodiscard]] int64_t vocab_size() const override { return kEndOfTextId + 1; }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return kEndOfTextId; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return std::nullopt; }
  [[nodiscard]] std::string fingerprint() const override { return Fingerprint().add("bytes").hex(); }

 private:
  AddedTokens added_;
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer(SpecialTokensAre special) {
  return std::make_unique<ByteTokenizer>(special);
}

}  // namespace trainyard::tokenizer
