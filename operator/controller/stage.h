#pragma once

#include <functional>
#include <memory>

#include "kube/client.h"

namespace trainyard::controller {

/// Calls that are under way at once, and what comes when the last of them has ended. Whoever holds a Stage keeps it
/// open: the function that begins the calls, and each call's callback until it has handled its answer. After that
/// `next` runs, once, in a later turn of the loop: never inside a destructor or inside of the client.
///
/// A call cannot be forgotten: a callback that is dropped without being called, or that throws, ends its call too, and
/// `next` is told that the stage is incomplete. One thread: the loop's.
class Stage {
 public:
  enum class End {
    Complete,    ///< every call was answered, and its answer handled
    Incomplete,  ///< of one or more calls it is not known what became
  };
  using Task = std::function<void()>;
  /// Runs a task in a later turn of the loop. It may drop the task where nobody is left whom the task concerns.
  using Later = std::function<void(Task)>;
  using Next = std::function<void(End)>;
  using Handler = std::function<void(const Stage&, const kube::Result<Json>&)>;

  Stage(Later later, Next next);

  /// The callback of one call. The handler may begin more calls of the stage that it is given.
  [[nodiscard]] kube::Client::Callback expect(Handler handler) const;

 private:
  struct State;
  struct Call;
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::controller
