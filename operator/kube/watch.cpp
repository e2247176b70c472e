#include "kube/watch.h"

#include <fmt/format.h>

#include <utility>

#include "kube/reply.h"

namespace trainyard::kube {

std::optional<WatchEvent> parse_watch_event(std::string_view line) {
  auto json = parse_body(line);
  if (!json || !json->is_object()) return std::nullopt;
  const std::string type = text_at(*json, "/type");
  const auto object = json->find("object");
  if (object == json->end() || !object->is_object()) return std::nullopt;
  const auto event = [&](WatchEvent::Type kind) { return WatchEvent{kind, std::move(*object)}; };
  if (type == "ADDED") return event(WatchEvent::Type::Added);
  if (type == "MODIFIED") return event(WatchEvent::Type::Modified);
  if (type == "DELETED") return event(WatchEvent::Type::Deleted);
  if (type == "BOOKMARK") return event(WatchEvent::Type::Bookmark);
  if (type == "ERROR") return event(WatchEvent::Type::Error);
  return std::nullopt;
}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Watch::cancel() {
  const auto state = std::exchange(state_, nullptr);
  if (!state || std::exchange(state->is_over, true)) return;
  if (state->stop) state->stop();
}

void Watch::State::feed(std::string_view bytes) {
  bool is_event = true;
  const bool fits = lines.feed(bytes, [this, &is_event](std::string_view line) {
    const auto event = parse_watch_event(line);
    is_event = event.has_value();
    if (event) on_event(*event);
    return is_event && !is_over;
  });
  if (is_over || (fits && is_event)) return;
  const auto stop_it = stop;  // first: it is not heard of again
  if (stop_it) stop_it();
  end(ApiError{.kind = ErrorKind::Unknown,
               .message = fits ? "the watch sent a line that is no event" : "the watch sent a line over the limit"});
}

void Watch::State::end(const std::optional<ApiError>& error) {
  if (!std::exchange(is_over, true)) on_end(error);
}

}  // namespace trainyard::kube
