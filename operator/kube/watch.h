#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "kube/line_splitter.h"
#include "kube/result.h"

namespace trainyard::kube {

/// One event of a watch's line.
struct WatchEvent {
  enum class Type { Added, Modified, Deleted, Bookmark, Error };
  Type type = Type::Error;
  Json object;
};
/// None where the line is no event.
[[nodiscard]] std::optional<WatchEvent> parse_watch_event(std::string_view line);

/// A watch that goes on as long as this handle lives.
class [[nodiscard]] Watch {
 public:
  using OnEvent = std::function<void(const WatchEvent&)>;
  using OnEnd = std::function<void(const std::optional<ApiError>&)>;

  Watch() = default;
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch() { cancel(); }
  /// Neither callback is called any more, also from within one.
  void cancel();

 private:
  friend class Client;
  struct State {
    std::string path;
    OnEvent on_event;
    OnEnd on_end;
    LineSplitter lines;
    bool is_over = false;
    std::function<void()> stop;
    /// Gives `bytes`' events; a defect in them ends it.
    void feed(std::string_view bytes);
    void end(const std::optional<ApiError>& error);
  };
  explicit Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace trainyard::kube
