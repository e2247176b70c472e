#include "chat/rendering.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::chat {

void fail_at(const std::string& name, int line, std::string_view message) {
  throw InputError(fmt::format("{}:{}: {}", name, line, message));
}

void Rendering::refuse(std::string_view what) const {
  fail(fmt::format("{} is not offered in chat templates here", what));
}

void Rendering::step(size_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    fail(fmt::format("the template takes more than {} steps; is there a loop without an end?",
                     with_thousands(static_cast<int64_t>(limits_.steps))));
}

void Rendering::make(size_t bytes) {
  bytes_ += bytes;
  if (bytes > limits_.bytes || bytes_ > limits_.bytes)
    fail(fmt::format("the template makes more than {} of texts and lists", human_bytes(limits_.bytes)));
}

void Rendering::make_text(size_t bytes) {
  require_size_of_text(bytes);
  make(bytes);
}

void Rendering::require_size_of_text(size_t bytes) const {
  if (bytes > limits_.text_bytes)
    fail(fmt::format("the template makes a text of more than {}", human_bytes(limits_.text_bytes)));
}

void Rendering::enter() {
  if (++depth_ <= limits_.depth) return;
  --depth_;
  fail(fmt::format("expressions and calls of macros stand more than {} deep within one another", limits_.depth));
}

}  // namespace trainyard::chat
