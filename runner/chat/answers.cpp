#include "chat/answers.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::chat {
namespace {

constexpr const char* kWhatToDo =
    "; name a template that marks the answers by {% generation %} in data.chat_template, or set data.loss_on to all";

/// Finds the answers in what a template prints that does not mark them.
class Answers {
 public:
  Answers(const TokenizerChat& chat, const Conversation& conversation, const Settings& settings, std::string_view whole)
      : chat_(chat), conversation_(conversation), settings_(settings), whole_(whole) {}

  [[nodiscard]] std::vector<Rendered::Span> find() const {
    std::vector<Rendered::Span> answers;
    for (size_t at = 0; at < conversation_.messages.size(); ++at)
      if (conversation_.messages[at]["role"] == "assistant") answers.push_back(answer(at));
    return answers;
  }

 private:
  [[nodiscard]] Rendered::Span answer(size_t at) const {
    const bool is_last = at + 1 == conversation_.messages.size();
    const std::string before = first_messages(at, true);
    const std::string with = is_last ? std::string(whole_) : first_messages(at + 1, false);
    if (!with.starts_with(before)) fail(at, "prints what comes before it otherwise where it is there");
    if (!whole_.starts_with(with)) fail(at, "prints it otherwise where other messages follow");
    return {before.size(), with.size()};
  }

  [[nodiscard]] std::string first_messages(size_t count, bool asks) const {
    Conversation part = conversation_;
    const auto begin = conversation_.messages.begin();
    part.messages =
        nlohmann::ordered_json(nlohmann::ordered_json::array_t(begin, begin + static_cast<ptrdiff_t>(count)));
    part.add_generation_prompt = asks;
    try {
      return render_conversation(chat_, part, settings_).text;
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("where the answers are is not certain, as the first {} alone cannot be printed: {}{}",
                      count == 1 ? "message" : fmt::format("{} messages", count), error.what(), kWhatToDo));
    }
  }

  [[noreturn]] void fail(size_t at, const char* why) const {
    throw InputError(fmt::format("message {} is an answer, but where it begins and ends is not certain, as {} {}{}",
                                 at + 1, chat_.text.name(), why, kWhatToDo));
  }

  const TokenizerChat& chat_;
  const Conversation& conversation_;
  const Settings& settings_;
  std::string_view whole_;
};

}  // namespace

Rendered render_answers(const TokenizerChat& chat, const Conversation& conversation, const Settings& settings) {
  Rendered whole = render_conversation(chat, conversation, settings);
  if (!chat.text.marks_answers()) whole.generated = Answers(chat, conversation, settings, whole.text).find();
  return whole;
}

}  // namespace trainyard::chat
