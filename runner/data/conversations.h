#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/folder.h"
#include "data/line_reading.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::data {

/// Which ids of a conversation are targets.
enum class LossOn { Answers, All };

struct ConversationOptions {
  std::string field;  ///< of each line or row: [{role, content}, …], or [{from, value}, …]; or such a list in a text
  chat::TokenizerChat plain, with_tools;
  nlohmann::ordered_json template_kwargs = nlohmann::ordered_json::object();
  LossOn loss_on = LossOn::Answers;
};

/// Conversations, which a chat template prints. Where the model may call some, a line has `tools` beside its messages.
/// ids() throws InputError for a line that is no such object, for what the template refuses, and where no id counts or
/// it is not certain which do.
class Conversations final : public LineReading {
 public:
  /// The tokenizer, which parses special tokens, outlives it.
  Conversations(ConversationOptions options, const tokenizer::Tokenizer& tokenizer)
      : options_(std::move(options)), tokenizer_(tokenizer) {}

  [[nodiscard]] std::string name() const override { return "conversations"; }
  [[nodiscard]] RecordColumns columns() const override { return {.needed = options_.field, .optional = {"tools"}}; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] Counting counting() const override {
    return options_.loss_on == LossOn::All ? Counting::AllIds : Counting::SomeIds;
  }
  [[nodiscard]] std::vector<int32_t> ids(std::string_view line, const std::string& where) const override;

 private:
  ConversationOptions options_;
  const tokenizer::Tokenizer& tokenizer_;
};

}  // namespace trainyard::data
