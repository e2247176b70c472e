#include "decide/rules/autoscaler.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;

TEST_CASE("autoscaler: a quantity that the API wrote in its own way is what was asked for", "[decide]") {
  const auto metric = [](const Json& value) {
    return Json::array(
        {{{"type", "Resource"},
          {"resource", {{"name", "memory"}, {"target", {{"type", "AverageValue"}, {"averageValue", value}}}}}}});
  };
  World world(spec_of(2, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 4}, {"metrics", metric("1024Mi")}}}}));
  const Plan first = world.look();
  const auto made = std::ranges::find(first.creates, Kind::Autoscaler, &Create::kind);
  REQUIRE(made != first.creates.end());
  api::Autoscaler there = api::parse_autoscaler(made->object);
  const auto patches = [&](const Json& value) {
    there.spec["metrics"] = metric(value);
    world.autoscaler = there;
    return world.look().patches.size();
  };
  CHECK(patches("1Gi") == 0);
  CHECK(patches("2Gi") == 1);
}

TEST_CASE("autoscaler: it is made once, goes with its metrics, and is not deleted twice", "[decide]") {
  const Json metrics = Json::array({{{"type", "Resource"}, {"resource", {{"name", "cpu"}}}}});
  const World world(spec_of(2, {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 4}, {"metrics", metrics}}}}));
  Observed seen{world.job, {}, {}};
  const Plan first = autoscaler_plan(seen);
  REQUIRE(first.creates.size() == 1);
  api::Autoscaler there = api::parse_autoscaler(first.creates.front().object);
  seen.autoscaler = &there;
  CHECK(autoscaler_plan(seen).writes_nothing());

  api::Job without = world.job;
  without.spec.elastic->metrics = Json();
  Observed later{without, {}, {}};
  CHECK(autoscaler_plan(later).writes_nothing());
  later.autoscaler = &there;
  CHECK(autoscaler_plan(later).deletes.size() == 1);
  there.deleted = world.now;
  CHECK(autoscaler_plan(later).writes_nothing());
}
