#include "tokenizer/files/vocabulary_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {

VocabularyReader::VocabularyReader(const Field& vocab) {
  ids_.reserve(vocab.object().size());
  for (const auto& [written, id] : vocab.object().items()) {
    const std::string where = fmt::format("{}: token '{}'", vocab.where(), written);
    add_token(written, Field(id, where).token_id());
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string written;
    append_utf8(written, byte_characters()[byte]);
    vocabulary_.byte_ids[byte] = find(written).value_or(-1);
  }
}

void VocabularyReader::add_token(const std::string& written, int32_t id) {
  const auto at = static_cast<size_t>(id);
  ids_.emplace(written, id);
  if (at >= vocabulary_.pieces.size()) vocabulary_.pieces.resize(at + 1);
  auto bytes = from_byte_level(written);
  if (!bytes)
    unspelled_.emplace(id, written);
  else if (vocabulary_.pieces[at])
    vocabulary_.also.emplace_back(std::move(*bytes), id);
  else
    vocabulary_.pieces[at] = std::move(bytes);
}

std::optional<int32_t> VocabularyReader::find(const std::string& written) const {
  const auto found = ids_.find(written);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

int32_t VocabularyReader::require(const std::string& written, const std::string& where) const {
  if (const auto id = find(written)) return *id;
  throw InputError(fmt::format("{}: '{}' is not in the vocabulary", where, written));
}

void VocabularyReader::add_merge(const std::string& left, const std::string& right, const std::string& where) {
  vocabulary_.merges.push_back({require(left, where), require(right, where), require(left + right, where)});
}

BpeModel::Vocabulary VocabularyReader::take() {
  return std::move(vocabulary_);
}

}  // namespace trainyard::tokenizer
