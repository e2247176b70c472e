#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "rendezvous/place.h"
#include "support/support.h"

namespace trainyard::rendezvous {
namespace {

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Environment kTorchrun{{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "29500"}};
// What the operator gives worker 1 of a job with a master and nprocPerNode "2" (data/pytorchjob-golden).
const Environment kWorker{{"MASTER_PORT", "23456"},
                          {"PET_MASTER_PORT", "23456"},
                          {"MASTER_ADDR", "job-master-0"},
                          {"PET_MASTER_ADDR", "job-master-0"},
                          {"WORLD_SIZE", "6"},
                          {"RANK", "2"},
                          {"PET_NODE_RANK", "2"},
                          {"PET_NPROC_PER_NODE", "2"},
                          {"PET_NNODES", "3"}};
const Environment kMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};

}  // namespace

TEST_CASE("place_of: nothing set is a world of one", "[rendezvous]") {
  const Place place = place_of({{"PATH", "/bin"}, {"MASTER_ADDR", "ignored"}, {"RANK", ""}});
  CHECK(place.kind == Place::Kind::Alone);
  CHECK(place.world == 1);
  CHECK(place.generation == 0);
}

TEST_CASE("place_of: torchrun's variables make a rank", "[rendezvous]") {
  const Place place = place_of(with(kTorchrun, {{"TRAINYARD_GENERATION", "7"}}));
  CHECK(place.kind == Place::Kind::Rank);
  CHECK(place.rank == 5);
  CHECK(place.world == 8);
  CHECK(place.local_rank == 1);
  CHECK(place.local_world == 4);
  CHECK(place.master == Endpoint{"10.0.0.1", 29500});
  CHECK(place.generation == 7);
}

TEST_CASE("place_of: what is logged is what NCCL's variables ask NCCL for", "[rendezvous]") {
  const auto [level, subsystems, logs_meeting, logs_collectives] =
      GENERATE(table<std::string, std::string, bool, bool>({
          {"", "COLL", false, false},
          {"WARN", "ALL", false, false},
          {"INFO", "", true, false},
          {"info", "coll", false, true},
          {"INFO", "COLL,BOOTSTRAP", true, true},
          {"TRACE", "ALL", true, true},
          {"INFO", "^COLL", true, false},
          {"INFO", "^INIT,BOOTSTRAP", false, true},
      }));
  CAPTURE(level, subsystems);
  const Place place = place_of(with(kTorchrun, {{"NCCL_DEBUG", level}, {"NCCL_DEBUG_SUBSYS", subsystems}}));
  CHECK(place.logs_meeting == logs_meeting);
  CHECK(place.logs_collectives == logs_collectives);
  CHECK(place.summarizes_collectives == (subsystems.empty() && logs_meeting));
}

TEST_CASE("place_of: INIT logs the communicator and the interface, NET the interface alone", "[rendezvous]") {
  const auto [level, subsystems, logs_communicator, logs_interface] =
      GENERATE(table<std::string, std::string, bool, bool>({
          {"INFO", "", true, true},
          {"INFO", "INIT,GRAPH,ENV", true, true},
          {"INFO", "NET", false, true},
          {"INFO", "^INIT", false, true},
          {"INFO", "^INIT,NET", false, false},
          {"INFO", "COLL,BOOTSTRAP", false, false},
          {"WARN", "INIT,NET", false, false},
      }));
  CAPTURE(level, subsystems);
  const Place place = place_of(with(kTorchrun, {{"NCCL_DEBUG", level}, {"NCCL_DEBUG_SUBSYS", subsystems}}));
  CHECK(place.logs_communicator == logs_communicator);
  CHECK(place.logs_interface == logs_interface);
}

TEST_CASE("place_of: a rank that torchrun started inside a pod does not mind the operator's PET_ variables",
          "[rendezvous]") {
  const Place place =
      place_of(with(kTorchrun, {{"PET_NODE_RANK", "1"}, {"PET_NNODES", "2"}, {"PET_MASTER_ADDR", "elsewhere"}}));
  CHECK(place.kind == Place::Kind::Rank);
  CHECK(place.master == Endpoint{"10.0.0.1", 29500});
}

TEST_CASE("place_of: mpirun's own variables make a rank, with or without a master", "[rendezvous]") {
  const Place place = place_of(kMpi);
  CHECK(place.kind == Place::Kind::Rank);
  CHECK(place.rank == 3);
  CHECK(place.world == 4);
  CHECK(place.local_rank == 1);
  CHECK(place.local_world == 2);
  CHECK(place.under_mpirun);
  CHECK_FALSE(place.master);
  CHECK(place_of(with(kMpi, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})).master == Endpoint{"a", 1});
}

TEST_CASE("place_of: the operator's variables make a node", "[rendezvous]") {
  const Place place = place_of(kWorker);
  CHECK(place.kind == Place::Kind::Node);
  CHECK(place.node.min_nodes == 3);
  CHECK(place.node.max_nodes == 3);
  CHECK(place.node.node_rank == 2);
  CHECK(place.node.processes == "2");
  CHECK(place.master == Endpoint{"job-master-0", 23456});
}

TEST_CASE("place_of: WORLD_SIZE and RANK without LOCAL_RANK count nodes", "[rendezvous]") {
  const Environment plain{{"WORLD_SIZE", "4"}, {"RANK", "1"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "5"}};
  CHECK(place_of(plain).node.max_nodes == 4);
  CHECK(place_of(plain).node.processes == "auto");
  CHECK(place_of(plain).master->text() == "[::1]:5");
  CHECK(place_of(with(plain, {{"MASTER_ADDR", "[::1]"}})).master == Endpoint{"::1", 5});
  CHECK(place_of(with(plain, {{"PET_NPROC_PER_NODE", "2"}})).node.max_nodes == 2);
  // nprocPerNode auto counts as one rank in the operator's WORLD_SIZE.
  CHECK(place_of(with(plain, {{"PET_NPROC_PER_NODE", "auto"}, {"PET_NNODES", "4"}})).node.max_nodes == 4);
}

TEST_CASE("place_of: an elastic node may learn its rank later, and its rendezvous endpoint is the master",
          "[rendezvous]") {
  Environment elastic{{"PET_NNODES", "2:4"}, {"PET_RDZV_ENDPOINT", "job-worker-0:29401"}, {"PET_RDZV_BACKEND", "c10d"}};
  const Place place = place_of(elastic);
  CHECK(place.node.min_nodes == 2);
  CHECK(place.node.max_nodes == 4);
  CHECK_FALSE(place.node.node_rank);
  CHECK_FALSE(place.node.nodes_now);
  CHECK(place.master == Endpoint{"job-worker-0", 29401});
  // WORLD_SIZE counts the ranks of the nodes that there are now.
  const Place now = place_of(with(elastic, {{"WORLD_SIZE", "6"}, {"RANK", "2"}, {"PET_NPROC_PER_NODE", "2"}}));
  CHECK(now.node.nodes_now == 3);
  CHECK(now.node.node_rank == 2);
  elastic["PET_RDZV_ENDPOINT"] = "job-worker-0";
  CHECK(place_of(elastic).master == Endpoint{"job-worker-0", 29400});
  elastic["PET_RDZV_ENDPOINT"] = "[fd00::1]:77";
  CHECK(place_of(elastic).master == Endpoint{"fd00::1", 77});
}

TEST_CASE("place_of: a single node needs no master", "[rendezvous]") {
  CHECK(place_of({{"PET_NPROC_PER_NODE", "cpu"}}).node.node_rank == 0);
  CHECK_FALSE(place_of({{"PET_NNODES", "1"}}).master);
}

TEST_CASE("place_of: what is malformed, missing or contradictory is named with its value", "[rendezvous]") {
  struct Row {
    std::string situation;
    Environment environment;
    std::string message;
  };
  const std::vector<Row> rows{
      {"rank no number", with(kTorchrun, {{"RANK", "two"}}), "RANK is 'two'; it must be a whole number of at least 0"},
      {"rank negative", with(kTorchrun, {{"RANK", "-1"}}), "RANK is '-1'"},
      {"world zero", with(kTorchrun, {{"WORLD_SIZE", "0"}}),
       "WORLD_SIZE is '0'; it must be a whole number of at least 1"},
      {"world beyond int", with(kTorchrun, {{"WORLD_SIZE", "99999999999"}}), "WORLD_SIZE is '99999999999'"},
      {"rank past world", with(kTorchrun, {{"RANK", "8"}}), "RANK=8 contradicts WORLD_SIZE=8"},
      {"local rank past local world", with(kTorchrun, {{"LOCAL_RANK", "4"}}),
       "LOCAL_RANK=4 contradicts LOCAL_WORLD_SIZE=4"},
      {"node larger than world", with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}),
       "LOCAL_WORLD_SIZE=9 contradicts WORLD_SIZE=8"},
      {"rank missing", {{"LOCAL_RANK", "0"}}, "RANK is not set, though LOCAL_RANK=0 is"},
      {"master missing",
       {{"LOCAL_RANK", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}},
       "MASTER_ADDR is not set, though WORLD_SIZE=2"},
      {"port missing",
       {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "a"}},
       "MASTER_ADDR=a is set, so MASTER_PORT must be set too"},
      {"port out of range", with(kTorchrun, {{"MASTER_PORT", "65536"}}),
       "MASTER_PORT is '65536'; it must be a whole number of at least 1 and at most 65535"},
      {"mpirun against torchrun", with(kTorchrun, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}),
       "LOCAL_RANK=1 contradicts OMPI_COMM_WORLD_LOCAL_RANK=0"},
      {"node ranks differ", with(kWorker, {{"RANK", "1"}}), "PET_NODE_RANK=2 contradicts RANK=1"},
      {"masters differ", with(kWorker, {{"PET_MASTER_ADDR", "b"}}),
       "MASTER_ADDR=job-master-0 contradicts PET_MASTER_ADDR=b"},
      {"ports differ", with(kWorker, {{"PET_MASTER_PORT", "1"}}), "MASTER_PORT=23456 contradicts PET_MASTER_PORT=1"},
      {"world against nodes", with(kWorker, {{"WORLD_SIZE", "5"}}),
       "WORLD_SIZE=5 contradicts PET_NNODES=3 with PET_NPROC_PER_NODE=2, which make 6"},
      {"node rank past nodes", with(kWorker, {{"RANK", "3"}, {"PET_NODE_RANK", "3"}}),
       "PET_NODE_RANK=3 contradicts PET_NNODES=3"},
      {"processes unknown", with(kWorker, {{"PET_NPROC_PER_NODE", "all"}}),
       "PET_NPROC_PER_NODE is 'all'; it must be auto, cpu, gpu, or a number"},
      {"node rank missing",
       {{"PET_NNODES", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}},
       "PET_NODE_RANK (or RANK) is not set, though PET_NNODES=2 is"},
      {"node's master missing",
       {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}},
       "MASTER_ADDR is not set, though PET_NNODES=2"},
      {"nodes reversed", {{"PET_NNODES", "4:2"}}, "PET_NNODES=4:2: the minimum exceeds the maximum"},
      {"nodes malformed", {{"PET_NNODES", "2:"}}, "PET_NNODES is ''"},
      {"generation malformed", {{"TRAINYARD_GENERATION", "-3"}}, "TRAINYARD_GENERATION is '-3'"},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK_THROWS_AS(place_of(row.environment), InputError);
    CHECK_THROWS_WITH(place_of(row.environment), Catch::Contains(row.message));
  }
}

TEST_CASE("job_token: from the variable, or from a file, and both must agree", "[rendezvous]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "token", "secret\n");
  const std::string file = folder / "token";
  CHECK(job_token({}).empty());
  CHECK(job_token({{"TRAINYARD_JOB_TOKEN", "a b"}}) == "a b");
  CHECK(job_token({{"TRAINYARD_JOB_TOKEN_FILE", file}}) == "secret");
  CHECK(job_token({{"TRAINYARD_JOB_TOKEN_FILE", file}, {"TRAINYARD_JOB_TOKEN", "secret"}}) == "secret");
  const Environment differing{{"TRAINYARD_JOB_TOKEN_FILE", file}, {"TRAINYARD_JOB_TOKEN", "hidden"}};
  CHECK_THROWS_WITH(job_token(differing), Catch::Contains("TRAINYARD_JOB_TOKEN differs") && !Catch::Contains("hidden"));
  CHECK_THROWS_AS(job_token({{"TRAINYARD_JOB_TOKEN_FILE", folder / "none"}}), InputError);
}

}  // namespace trainyard::rendezvous
