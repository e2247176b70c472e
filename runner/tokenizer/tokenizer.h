#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::tokenizer {

/// What encode() makes of a special token that stands in a text: the characters it is made of, or its id.
enum class SpecialTokensAre { Text, Parsed };

/// Which of the tokens that were added to a vocabulary a text has: none, only such as are not special, or special ones.
enum class Added { None, Words, Special };

/// Turns text into ids and back. Immutable once loaded; any number of threads may use one at once.
///
/// Tokens that were added to the vocabulary are found in text, special ones only where they are to be parsed. Nothing
/// is added at either end: who wants an end of text appends eos_id().
///
/// Text must be UTF-8 (the Unicode standard's: shortest form, no surrogates, up to U+10FFFF). Nothing is replaced
/// silently: encode() throws. Only the kind "bytes" takes any bytes.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Throws InputError, naming the offset of the first wrong byte, where `text` is no UTF-8.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const { return encode_after("", text); }

  /// The ids that `text`, which follows on `before` in its document, has there. Where the two meet at a border, the ids
  /// of the parts, one after another, are those of the whole, but that SentencePiece's unigram sums up its probabilities
  /// anew in each. Of `before` only the end counts; "": the beginning.
  [[nodiscard]] virtual std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const = 0;

  /// The most that encode() finds of added tokens in any text, and what it finds in this one.
  [[nodiscard]] virtual Added sought() const = 0;
  [[nodiscard]] virtual Added found_in(std::string_view text) const = 0;

  /// Whether the rules of this tokenizer, added tokens among them, prove that the ids of `document` are those of its two
  /// parts where it is cut at `at`, between two characters. Only what is near is looked at, and may be no UTF-8.
  [[nodiscard]] virtual bool is_border(std::string_view document, size_t at) const = 0;

  /// The text of `ids`, special tokens printed as they are written. A byte-level kind gives the very bytes, so ids cut
  /// out of a longer sequence may begin or end inside a character.
  /// Throws InputError, naming position and id, for an id that stands for nothing.
  [[nodiscard]] virtual std::string decode(std::span<const int32_t> ids) const = 0;

  /// One more than the largest id, special tokens included.
  [[nodiscard]] virtual int64_t vocab_size() const = 0;

  /// The token that ends a document (of a chat model: not the one that ends a turn); none where the files name none.
  [[nodiscard]] virtual std::optional<int32_t> eos_id() const = 0;
  [[nodiscard]] virtual std::optional<int32_t> bos_id() const = 0;

  /// Equal for tokenizers that were loaded from equal content: what is kept of their output can be keyed by it.
  /// Hexadecimal, 32 digits.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
};

/// Loads the tokenizer at `path`, a file or a folder, whose kind is recognised by its content:
///   "bytes"                     no files: ids 0 to 255 are the bytes, 256 is the end of text
///   tokenizer.json              Hugging Face, byte-level BPE
///   vocab.json + merges.txt     byte-level BPE; split pattern by the class in tokenizer_config.json, else GPT-2's
///   tokenizer.model             tiktoken (lines of `base64 rank`: Llama 3) or SentencePiece (protobuf), whatever the
///   name
/// Added tokens come from added_tokens.json, special_tokens_map.json and tokenizer_config.json beside it, too.
/// Throws InputError, naming file and line or field, for anything missing or malformed, and for an eos_token that is in
/// no vocabulary.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                          SpecialTokensAre special = SpecialTokensAre::Text);

/// The class whose steps transformers' AutoTokenizer takes for the tokenizer.json at `path` once that lies beside a
/// config.json of `model_type`, as in a folder that a model is exported to, where load_tokenizer() takes others; ""
/// where both are the same, and for other files. Throws as load_tokenizer().
std::string other_class_beside(const std::string& model_type, const std::filesystem::path& path);

}  // namespace trainyard::tokenizer
