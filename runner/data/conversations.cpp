#include "data/conversations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/text.h"
#include "chat/answers.h"
#include "data/documents.h"

namespace trainyard::data {
namespace {
using nlohmann::ordered_json;
using tokenizer::Tokenizer;
using Span = chat::Rendered::Span;

const chat::Settings kSettings{
    .instead_of_now =
        ", as a corpus is the same every day; give the template its date in data.chat_template_kwargs, such as "
        "'{\"date_string\": \"26 Jul 2024\"}' for Llama's"};

/// The roles of ShareGPT's form by our names of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRoles{{{"system", "system"},
                                                                               {"human", "user"},
                                                                               {"user", "user"},
                                                                               {"gpt", "assistant"},
                                                                               {"assistant", "assistant"},
                                                                               {"tool", "tool"}}};

ordered_json without_from(const ordered_json& message, const std::string& where) {
  if (!message.is_object() || message.contains("role") || !message.contains("from")) return message;
  const ordered_json& from = message["from"];
  const auto role = std::ranges::find(kRoles, from.is_string() ? from.get<std::string>() : "",
                                      [](const auto& each) { return each.first; });
  if (role == kRoles.end())
    throw InputError(fmt::format(
        "{}: a message is from {}, which is none of system, human, user, gpt, assistant and tool", where, from.dump()));
  ordered_json made{{"role", role->second}};
  for (const auto& [key, value] : message.items())
    if (key != "from") made[key == "value" ? "content" : key] = value;
  return made;
}

/// What stands in the line, or in a text there, which tables without lists have.
ordered_json list_in(const ordered_json& value, const std::string& where) {
  return value.is_string() ? chat::parse_ordered(value.get_ref<const std::string&>(), where) : value;
}

const ordered_json& messages_in(const ordered_json& object, const std::string& field, const std::string& where) {
  if (!object.is_object())
    throw InputError(
        fmt::format("{}: must be a JSON object with the field '{}', is {}", where, field, object.type_name()));
  if (const auto found = object.find(field); found != object.end()) return *found;
  std::vector<std::string> names;
  for (const auto& member : object.items()) names.push_back(member.key());
  const auto near = nearest(field, names);
  throw InputError(fmt::format("{}: no field '{}'{}; the line has {}; data.messages_field names the one to take", where,
                               field, near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(names, ", ")));
}

chat::Conversation conversation_of(std::string_view line, const std::string& where,
                                   const ConversationOptions& options) {
  if (!is_shallow_json(line)) throw InputError(fmt::format("{}: the brackets are too deep", where));
  const ordered_json object = parse_json_line(line, where);
  ordered_json messages = list_in(messages_in(object, options.field, where), where);
  if (!messages.is_array() || messages.empty())
    throw InputError(fmt::format("{}: the field '{}' must be a list of messages, is {}", where, options.field,
                                 messages.is_array() ? "empty" : messages.type_name()));
  for (ordered_json& message : messages) message = without_from(message, where);
  ordered_json whole{{"messages", std::move(messages)}};
  if (const auto tools = object.find("tools"); tools != object.end()) whole["tools"] = list_in(*tools, where);
  chat::Conversation conversation = chat::read_conversation(whole, where);
  conversation.further = options.template_kwargs;
  return conversation;
}

/// Where in the text each id ends; none where the ids are not made of its very bytes.
std::optional<std::vector<size_t>> ends_in(std::string_view text, std::span<const int32_t> ids,
                                           const Tokenizer& tokenizer) {
  std::vector<size_t> ends;
  size_t at = 0;
  for (const int32_t id : ids) {
    const std::string piece = tokenizer.decode({&id, 1});
    if (!text.substr(at).starts_with(piece)) return std::nullopt;
    ends.push_back(at += piece.size());
  }
  return at == text.size() ? std::optional(std::move(ends)) : std::nullopt;
}

/// Has `ids` count that have a byte of a span.
void count_by_bytes(std::vector<int32_t>& ids, std::span<const size_t> ends, std::span<const Span> spans) {
  size_t begin = 0;
  for (size_t i = 0; i < ids.size(); begin = ends[i++]) {
    const bool counts =
        std::ranges::any_of(spans, [&](const Span& span) { return begin < span.end && ends[i] > span.begin; });
    if (!counts) ids[i] = ~ids[i];
  }
}

/// The ids of what the spans cut the text into, one after another; those outside of a span are complements.
std::vector<int32_t> ids_of_parts(std::string_view text, std::span<const Span> spans, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  size_t begin = 0;
  const auto add = [&](size_t end, bool counts) {
    if (end <= begin) return;
    for (const int32_t id : tokenizer.encode_after(text.substr(0, begin), text.substr(begin, end - begin)))
      ids.push_back(counts ? id : ~id);
    begin = end;
  };
  for (const Span& span : spans) add(span.begin, false), add(span.end, true);
  add(text.size(), false);
  return ids;
}

bool are_equal(std::span<const int32_t> ids, std::span<const int32_t> some_complements) {
  return std::ranges::equal(ids, some_complements, {}, {}, [](int32_t id) { return id < 0 ? ~id : id; });
}

std::vector<int32_t> ids_with_answers(const chat::Rendered& rendered, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids = tokenizer.encode(rendered.text);
  if (const auto ends = ends_in(rendered.text, ids, tokenizer)) {
    count_by_bytes(ids, *ends, rendered.generated);
    return ids;
  }
  std::vector<int32_t> of_parts = ids_of_parts(rendered.text, rendered.generated, tokenizer);
  if (are_equal(ids, of_parts)) return of_parts;
  throw InputError(
      "the tokenizer changes the text, so that where an answer begins and ends among its ids is not certain; take the "
      "line "
      "out, or set data.loss_on to all");
}

}  // namespace

std::string Conversations::description() const {
  return ordered_json{"conversations 1",  // to be changed with what equal lines are made into
                      tokenizer_.fingerprint(),
                      options_.field,
                      options_.plain.text.source(),
                      options_.with_tools.text.source(),
                      options_.plain.tokens,
                      options_.template_kwargs,
                      options_.loss_on == LossOn::All ? "all" : "answers"}
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<int32_t> Conversations::ids(std::string_view line, const std::string& where) const {
  const chat::Conversation conversation = conversation_of(line, where, options_);
  const chat::TokenizerChat& chat = conversation.tools.is_null() ? options_.plain : options_.with_tools;
  try {
    if (options_.loss_on == LossOn::All)
      return tokenizer_.encode(chat::render_conversation(chat, conversation, kSettings).text);
    std::vector<int32_t> ids = ids_with_answers(chat::render_answers(chat, conversation, kSettings), tokenizer_);
    if (std::ranges::any_of(ids, [](int32_t id) { return id >= 0; })) return ids;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
  throw InputError(fmt::format(
      "{}: the conversation has no answer of the assistant; take it out, or set data.loss_on to all", where));
}

}  // namespace trainyard::data
