#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/line_reading.h"

namespace trainyard::data {

/// Lists of ids that somebody has tokenised. Beside them a line may have lists of as many numbers, which are null or
/// not there otherwise: `labels`, each the id at its place or kIgnored; `loss_mask`, whose ids with a 0 are no targets;
/// and `attention_mask`, whose ids with a 0 are padding and left out. ids() throws InputError for all else, and for an
/// id outside of the vocabulary, with its place in the list.
class TokenLists final : public LineReading {
 public:
  TokenLists(std::string field, int64_t vocab_size) : field_(std::move(field)), vocab_size_(vocab_size) {}

  [[nodiscard]] std::string name() const override { return "lists of ids"; }
  [[nodiscard]] RecordColumns columns() const override;
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] Counting counting() const override { return Counting::SomeIds; }
  [[nodiscard]] std::vector<int32_t> ids(std::string_view line, const std::string& where) const override;

 private:
  std::string field_;
  int64_t vocab_size_;
};

}  // namespace trainyard::data
