#include "controller/stage.h"

#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <stdexcept>
#include <vector>

using namespace trainyard;
using namespace trainyard::controller;

namespace {

using Callback = kube::Client::Callback;

/// What is to run later, and how a stage ended.
struct Turns {
  std::deque<Stage::Task> waiting;
  std::vector<Stage::End> ends;

  Stage stage() {
    return {[this](Stage::Task task) { waiting.push_back(std::move(task)); },
            [this](Stage::End end) { ends.push_back(end); }};
  }
  /// How the stage ended, where it has, and runs what comes next.
  std::vector<Stage::End> turn() {
    for (; !waiting.empty(); waiting.pop_front()) waiting.front()();
    return ends;
  }
};

const std::vector<Stage::End> kGoesOn;
const std::vector kComplete{Stage::End::Complete};
const std::vector kIncomplete{Stage::End::Incomplete};

const kube::Result<Json> kAnswer{Json::object()};

Callback call_of(const Stage& stage) {
  return stage.expect([](const Stage&, const kube::Result<Json>&) {});
}

}  // namespace

TEST_CASE("stage: without any call it ends when its beginner lets go of it, and what is next runs a turn later",
          "[controller]") {
  Turns turns;
  {
    const Stage stage = turns.stage();
    CHECK(turns.turn() == kGoesOn);
  }
  CHECK(turns.ends.empty());
  CHECK(turns.turn() == kComplete);
}

TEST_CASE("stage: the last of several answers ends it, once", "[controller]") {
  Turns turns;
  std::optional<Stage> stage = turns.stage();
  const Callback first = call_of(*stage), second = call_of(*stage);
  first(kAnswer);
  stage.reset();
  CHECK(turns.turn() == kGoesOn);
  second(kAnswer);
  CHECK(turns.turn() == kComplete);  // although the callbacks are there still
  first(kAnswer);
  second(kAnswer);
  CHECK(turns.turn() == kComplete);
}

TEST_CASE("stage: a handler may begin another call of its stage", "[controller]") {
  Turns turns;
  Callback second;
  turns.stage().expect([&](const Stage& same, const kube::Result<Json>&) { second = call_of(same); })(kAnswer);
  CHECK(turns.turn() == kGoesOn);
  second(kAnswer);
  CHECK(turns.turn() == kComplete);
}

TEST_CASE("stage: a callback that is dropped without an answer ends its call, and the stage is incomplete",
          "[controller]") {
  Turns turns;
  Callback first, second;
  {
    const Stage stage = turns.stage();
    first = call_of(stage), second = call_of(stage);
  }
  {
    const Callback copy = first;
    first = nullptr;
    second(kAnswer);
    CHECK(turns.turn() == kGoesOn);  // the copy may yet be called
  }
  CHECK(turns.turn() == kIncomplete);
}

TEST_CASE("stage: a handler that throws ends its call, and the stage is incomplete", "[controller]") {
  Turns turns;
  Callback callback = turns.stage().expect(
      [](const Stage&, const kube::Result<Json>&) { throw std::runtime_error("a defect"); });
  CHECK_THROWS_AS(callback(kAnswer), std::runtime_error);
  callback = nullptr;
  CHECK(turns.turn() == kIncomplete);
}

TEST_CASE("stage: an error is an answer, and the handler sees it", "[controller]") {
  Turns turns;
  std::optional<kube::ErrorKind> seen;
  turns.stage().expect([&](const Stage&, const kube::Result<Json>& reply) { seen = reply.error().kind; })(
      kube::ApiError{.kind = kube::ErrorKind::Conflict});
  CHECK(seen == kube::ErrorKind::Conflict);
  CHECK(turns.turn() == kComplete);
}
