#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/files/json_file.h"

namespace trainyard::tokenizer {

/// Collects a byte-level vocabulary as Hugging Face's files spell it: an object of token to id, and pairs of tokens to
/// join.
class VocabularyReader {
 public:
  /// Throws InputError, naming the entry, for an id out of range. Of tokens with one id, the first that is spelled in
  /// byte-level characters, by the order of their names, is what the id stands for.
  explicit VocabularyReader(const Field& vocab);

  /// Throws InputError, beginning with `where`, where a token or what the two make together is not in the vocabulary.
  void add_merge(const std::string& left, const std::string& right, const std::string& where);

  /// Entries of the file.
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  /// The id of a token as the file writes it.
  [[nodiscard]] std::optional<int32_t> find(const std::string& written) const;

  /// What was collected. Tokens that are not spelled in byte-level characters can come out of no text; they are not in
  /// it but in unspelled().
  [[nodiscard]] BpeModel::Vocabulary take();
  [[nodiscard]] const std::map<int32_t, std::string>& unspelled() const { return unspelled_; }

 private:
  void add_token(const std::string& written, int32_t id);
  [[nodiscard]] int32_t require(const std::string& written, const std::string& where) const;

  std::unordered_map<std::string, int32_t> ids_;
  std::map<int32_t, std::string> unspelled_;
  BpeModel::Vocabulary vocabulary_;
};

}  // namespace trainyard::tokenizer
