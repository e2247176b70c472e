#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;

TEST_CASE("pods' own reports are relayed in the reference's words, once", "[decide]") {
  World world(spec_of(1));
  world.settings.restart_scope = RestartScope::Replica;
  world.settle();
  world.run_all();
  world.pods.at("job-worker-0").containers = {
      {"pytorch", false, api::ContainerState::Terminated, "Error", "no such file", 5}};
  world.settle();
  world.settle();
  CHECK(world.said("Error") ==
        std::vector<std::string>{
            "Error pod job-worker-0 container pytorch exitCode: 5 terminated message: no such file"});
  CHECK(world.said("ExitedWithCode") == std::vector<std::string>{"Pod: ns.job-worker-0 exited with code 5"});
}
