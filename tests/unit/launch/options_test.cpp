#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/options.h"
#include "launch/resources.h"
#include "launch/world.h"
#include "support/support.h"

namespace trainyard::launch {
namespace {

using namespace std::chrono_literals;
using rendezvous::Endpoint;
using rendezvous::Environment;

LaunchOptions parsed(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  return parse_launch(arguments, environment).value();
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "(not set)";
}

// What the operator gives worker 1 of a job with a master and nprocPerNode "2".
const Environment kWorker{{"MASTER_PORT", "23456"},
                          {"PET_MASTER_PORT", "23456"},
                          {"MASTER_ADDR", "job-master-0"},
                          {"PET_MASTER_ADDR", "job-master-0"},
                          {"WORLD_SIZE", "6"},
                          {"RANK", "2"},
                          {"PET_NODE_RANK", "2"},
                          {"PET_NPROC_PER_NODE", "2"},
                          {"PET_NNODES", "3"}};

}  // namespace

TEST_CASE("parse_launch: torchrun's spelling with - and _, and the command after it as it is", "[launch]") {
  const std::vector<std::string> command{"train", "--config", "x.yaml", "--training.steps", "100", "--grace", "1s"};
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--nnodes", "2", "--nproc-per-node", "4", "--node-rank", "1", "--master-addr", "10.0.0.1", "--master-port",
            "29500"},
           {"--nnodes=2", "--nproc_per_node=4", "--node_rank=1", "--master_addr=10.0.0.1", "--master_port=29500"}}) {
    std::vector<std::string> arguments = flags;
    arguments.insert(arguments.end(), command.begin(), command.end());
    const LaunchOptions options = parsed(arguments);
    CHECK(options.node.max_nodes == 2);
    CHECK(options.node.processes == "4");
    CHECK(options.node.node_rank == 1);
    CHECK(options.master == Endpoint{"10.0.0.1", 29500});
    CHECK(options.grace == 30s);
    CHECK(options.is_trainyard);
    CHECK(options.command == command);
  }
}

TEST_CASE("parse_launch: without flags and environment it is one node of its own", "[launch]") {
  const LaunchOptions options = parsed({"train"});
  CHECK(options.node.max_nodes == 1);
  CHECK(options.node.node_rank == 0);
  CHECK(options.node.processes == "auto");
  CHECK_FALSE(options.master);
}

TEST_CASE("parse_launch: a single node meets on the port that it is given", "[launch]") {
  CHECK(parsed({"--nproc-per-node", "2", "--master-port", "29501", "train"}).master == Endpoint{"127.0.0.1", 29501});
  CHECK(parsed({"--master-addr", "::1", "--master-port", "29501", "train"}).master == Endpoint{"::1", 29501});
}

TEST_CASE("parse_launch: a program is told by a slash or by --", "[launch]") {
  CHECK_FALSE(parsed({"./run.sh", "x"}).is_trainyard);
  const LaunchOptions options = parsed({"--nproc-per-node", "2", "--", "python", "--version"});
  CHECK_FALSE(options.is_trainyard);
  CHECK(options.command == std::vector<std::string>{"python", "--version"});
}

TEST_CASE("parse_launch: what no flag says the environment does, and flags win", "[launch]") {
  CHECK(parsed({"train"}, kWorker).node.node_rank == 2);
  CHECK(parsed({"train"}, kWorker).master == Endpoint{"job-master-0", 23456});
  CHECK(parsed({"--nproc-per-node", "4", "train"}, kWorker).node.processes == "4");
  CHECK(parsed({"--node-rank", "0", "train"}, kWorker).node.node_rank == 0);
  CHECK(parsed({"--master-addr", "other", "train"}, kWorker).master == Endpoint{"other", 23456});
  CHECK(parsed({"--master-addr", "[::1]", "train"}, kWorker).master == Endpoint{"::1", 23456});
  CHECK(parsed({"--rdzv-endpoint", "other:7", "train"}, kWorker).master == Endpoint{"other", 7});
  const LaunchOptions alone = parsed({"--standalone", "--nproc_per_node", "2", "train"}, kWorker);
  CHECK(alone.node.max_nodes == 1);
  CHECK_FALSE(alone.master);
  // A launcher that a rank or mpirun starts is a launcher still.
  CHECK(parsed({"train"}, {{"LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}).node.max_nodes == 1);
}

TEST_CASE("parse_launch: an elastic world, its endpoint and how long it waits", "[launch]") {
  const LaunchOptions options = parsed({"--nnodes", "2:4", "--rdzv-endpoint", "h:1", "--rdzv-backend", "c10d",
                                        "--rdzv-id", "j", "--rdzv-conf", "timeout=90,x=1", "train"});
  CHECK(options.node.min_nodes == 2);
  CHECK(options.node.max_nodes == 4);
  CHECK(options.rendezvous_timeout == 90s);
  CHECK_FALSE(options.node.nodes_now);
  CHECK_FALSE(options.last_call);
}

TEST_CASE("options_of: a node of an elastic job waits as long as its rdzvConf says, else as its configuration does",
          "[launch]") {
  // What the operator gives worker 1 of an elastic job of two workers, without a master.
  Environment worker{{"WORLD_SIZE", "4"},          {"RANK", "1"},
                     {"PET_NPROC_PER_NODE", "2"},  {"PET_RDZV_ENDPOINT", "job-worker-0:23456"},
                     {"PET_RDZV_BACKEND", "c10d"}, {"PET_NNODES", "1:8"}};
  const auto options = [&] { return options_of(rendezvous::place_of(worker), {"train"}, worker, 7s); };
  CHECK(options().rendezvous_timeout == 7s);
  CHECK(options().node.nodes_now == 2);
  CHECK(options().node.node_rank == 1);
  CHECK(options().master == Endpoint{"job-worker-0", 23456});
  worker["PET_RDZV_CONF"] = "join_timeout=90,last_call_timeout=5,read_timeout=60,is_host=1,x";
  CHECK(options().rendezvous_timeout == 90s);
  CHECK(options().last_call == 5s);
  worker["PET_RDZV_CONF"] = "timeout=soon";
  CHECK_THROWS_WITH(options(), Catch::StartsWith("PET_RDZV_CONF timeout is 'soon'; it must be a time"));
  CHECK(parsed({"--rdzv-conf", "timeout=8", "train"}, worker).rendezvous_timeout == 8s);  // the flag wins
}

TEST_CASE("parse_launch: what is wrong is named by its flag and value", "[launch]") {
  struct Row {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Row> rows{
      {{}, "no command to run"},
      {{"--nproc-per-node", "2"}, "no command to run"},
      {{"--nproc-per-node", "many", "train"}, "--nproc-per-node is 'many'; it must be auto, cpu, gpu, or a number"},
      {{"--nnodes", "2", "train"}, "MASTER_ADDR is not set, though --nnodes=2 says"},
      {{"--nnodes", "2", "--master-addr", "a", "train"}, "--master-addr=a is set, so MASTER_PORT must be set too"},
      {{"--nnodes", "2", "--master-addr", "a", "--master-port", "1", "train"},
       "PET_NODE_RANK (or RANK) is not set, though --nnodes=2 is"},
      {{"--nnodes", "2", "--node-rank", "2", "--master-addr", "a", "--master-port", "1", "train"},
       "--node-rank=2 contradicts --nnodes=2"},
      {{"--master-port", "x", "--master-addr", "a", "train"}, "--master-port is 'x'"},
      {{"--grace", "soon", "train"}, "--grace is 'soon'; it must be a time such as 30s"},
      {{"--max-restarts", "-1", "train"}, "--max-restarts is '-1'; it must be a whole number from 0 to 1000000"},
      {{"--rdzv-backend", "etcd", "train"}, "--rdzv-backend is 'etcd'; it must be c10d or static"},
      {{"--standalone", "--nnodes", "2", "train"}, "--standalone contradicts --nnodes 2"},
      {{"--rdzv-endpoint", "a:1", "--master-addr", "b", "train"}, "--rdzv-endpoint a:1 contradicts --master-addr b"},
      {{"--nproc", "2", "train"}, "--nproc"},
  };
  for (const Row& row : rows) {
    INFO(row.message);
    CHECK_THROWS_AS(parse_launch(row.arguments, {}), InputError);
    CHECK_THROWS_WITH(parse_launch(row.arguments, {}), Catch::Contains(row.message));
  }
}

TEST_CASE("resources: cores follow what the pod asks for, GPUs what is visible", "[launch]") {
  CHECK(resources_here({{"TRAINYARD_CPUS", "1"}}).cores == 1);
  CHECK(visible_gpus(std::nullopt, 8) == 8);
  CHECK(visible_gpus("", 8) == 0);
  CHECK(visible_gpus("0,3", 8) == 2);
  CHECK(visible_gpus("0,-1,2", 8) == 1);
  CHECK(visible_gpus("0,9", 8) == 1);
  CHECK(visible_gpus("GPU-1f, MIG-2", 8) == 2);
  CHECK(ranks_of("auto", {.cores = 4, .gpus = 0}) == 1);
  CHECK(ranks_of("auto", {.cores = 4, .gpus = 8}) == 8);
  CHECK(ranks_of("cpu", {.cores = 4, .gpus = 8}) == 4);
  CHECK(ranks_of("gpu", {.cores = 4, .gpus = 8}) == 8);
  CHECK(ranks_of("3", {}) == 3);
  CHECK_THROWS_WITH(ranks_of("gpu", {.cores = 4, .gpus = 0}), Catch::Contains("this node has no GPU"));
  CHECK_THROWS_WITH(ranks_of("0", {}), Catch::Contains("is '0'"));
}

TEST_CASE("environment_of: a node's ranks count on from the nodes before it", "[launch]") {
  const LocalWorld world = local_world(parsed({"train"}, kWorker), kWorker);
  const auto environment = environment_of(1, world, kWorker);
  CHECK(value_of(environment, "RANK") == "5");
  CHECK(value_of(environment, "LOCAL_RANK") == "1");
  CHECK(value_of(environment, "WORLD_SIZE") == "6");
  CHECK(value_of(environment, "LOCAL_WORLD_SIZE") == "2");
  CHECK(value_of(environment, "MASTER_ADDR") == "job-master-0");
  CHECK(value_of(environment, "MASTER_PORT") == "23456");
  CHECK(value_of(environment, "TRAINYARD_JOB_TOKEN") == "(not set)");
}

TEST_CASE("environment_of: a node alone has a port that is held for rank 0, and a secret", "[launch]") {
  const LocalWorld world = local_world(parsed({"--nproc-per-node", "2", "train"}), {});
  CHECK(world.listener.valid());
  const auto zero = environment_of(0, world, {}), one = environment_of(1, world, {});
  CHECK(value_of(zero, "MASTER_ADDR") == "127.0.0.1");
  CHECK(value_of(zero, "TRAINYARD_STORE_LISTENER") == std::to_string(world.listener.get()));
  CHECK(value_of(one, "TRAINYARD_STORE_LISTENER") == "(not set)");
  CHECK(value_of(zero, "TRAINYARD_JOB_TOKEN").size() == 64);
  CHECK(value_of(zero, "TRAINYARD_JOB_TOKEN") == value_of(one, "TRAINYARD_JOB_TOKEN"));
  // Another program binds the port by itself.
  CHECK_FALSE(local_world(parsed({"--", "python"}), {}).listener.valid());
}

TEST_CASE("environment_of: ranks share the CPUs of their node, unless the user says how many each has", "[launch]") {
  const LocalWorld world{.ranks = 8, .world = 16, .cores = 100};
  CHECK(value_of(environment_of(3, world, {}), "OMP_NUM_THREADS") == "12");
  CHECK(value_of(environment_of(3, world, {{"OMP_NUM_THREADS", "7"}}), "OMP_NUM_THREADS") == "7");
  CHECK(value_of(environment_of(3, LocalWorld{.ranks = 8, .cores = 2}, {}), "OMP_NUM_THREADS") == "1");
}

TEST_CASE("only_rank_of: a node with one rank needs no launcher", "[launch]") {
  const auto only_rank = [](const Environment& environment) {
    const rendezvous::Place place = rendezvous::place_of(environment);
    return only_rank_of(place, options_of(place, {"train"}, environment), environment);
  };
  Environment one = kWorker;
  one["PET_NPROC_PER_NODE"] = "1";
  one["WORLD_SIZE"] = "3";
  const auto place = only_rank(one);
  REQUIRE(place);
  CHECK(place->kind == rendezvous::Place::Kind::Rank);
  CHECK(place->rank == 2);
  CHECK(place->world == 3);
  CHECK_FALSE(only_rank(kWorker));
  CHECK(only_rank({{"PET_NPROC_PER_NODE", "1"}})->kind == rendezvous::Place::Kind::Alone);
}

TEST_CASE("only_rank_of: the one node that an elastic job has, of all that it may have, trains alone", "[launch]") {
  const Environment worker{{"WORLD_SIZE", "1"},
                           {"RANK", "0"},
                           {"PET_NPROC_PER_NODE", "1"},
                           {"PET_RDZV_ENDPOINT", fmt::format("127.0.0.1:{}", test::free_port())},
                           {"PET_NNODES", "1:8"}};
  const rendezvous::Place place = rendezvous::place_of(worker);
  const auto rank = only_rank_of(place, options_of(place, {"train"}, worker), worker);
  REQUIRE(rank);
  CHECK(rank->kind == rendezvous::Place::Kind::Alone);
  CHECK(rank->world == 1);
}

}  // namespace trainyard::launch
