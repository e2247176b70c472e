#include "controller/stage.h"

#include <optional>
#include <utility>

namespace trainyard::controller {

/// Its end is the stage's end.
struct Stage::State {
  Later later;
  Next next;
  End end = End::Complete;

  State(Later how, Next what) : later(std::move(how)), next(std::move(what)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    later([next = std::move(next), end = end] { next(end); });
  }
};

/// A call that has not ended holds its stage. A client may copy the callback, or keep it longer than the answer: all
/// copies share one of these.
struct Stage::Call {
  std::optional<Stage> stage;

  explicit Call(Stage of) : stage(std::move(of)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (stage) stage->state_->end = End::Incomplete;
  }
};

Stage::Stage(Later later, Next next) : state_(std::make_shared<State>(std::move(later), std::move(next))) {}

kube::Client::Callback Stage::expect(Handler handler) const {
  return [call = std::make_shared<Call>(*this), handler = std::move(handler)](const kube::Result<Json>& reply) {
    if (!call->stage) return;  // it has been answered
    handler(*call->stage, reply);
    call->stage.reset();
  };
}

}  // namespace trainyard::controller
