#include "assemble/line_reading.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/conversations.h"
#include "data/token_lists.h"

namespace trainyard::train {
namespace {

nlohmann::ordered_json template_kwargs_of(const config::Data& data) {
  constexpr const char* kKey = "data.chat_template_kwargs";
  if (data.chat_template_kwargs.empty()) return nlohmann::ordered_json::object();
  nlohmann::ordered_json kwargs = chat::parse_ordered(data.chat_template_kwargs, kKey);
  if (!kwargs.is_object()) throw InputError(fmt::format("{}: must be a JSON object, is {}", kKey, kwargs.type_name()));
  return kwargs;
}

data::ConversationOptions conversations_of(const config::Data& data) {
  const auto chat = [&](bool has_tools) {
    return chat::read_tokenizer_chat(data.tokenizer, data.chat_template, has_tools);
  };
  return {.field = data.messages_field,
          .plain = chat(false),
          .with_tools = chat(true),
          .template_kwargs = template_kwargs_of(data),
          .loss_on = data.loss_on == config::LossOn::All ? data::LossOn::All : data::LossOn::Answers};
}

}  // namespace

std::unique_ptr<const data::LineReading> line_reading_of(const config::Data& data,
                                                         const tokenizer::Tokenizer* tokenizer, int64_t vocab_size) {
  if (!data.messages_field.empty())
    return std::make_unique<const data::Conversations>(conversations_of(data), *tokenizer);
  if (!data.input_ids_field.empty()) return std::make_unique<const data::TokenLists>(data.input_ids_field, vocab_size);
  return nullptr;
}

bool has_line_reading(const config::Data& data) {
  return !data.messages_field.empty() || !data.input_ids_field.empty();
}

}  // namespace trainyard::train
