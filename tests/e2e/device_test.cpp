// What a user of a GPU types, to the program with the kernels for CUDA on the host (tests/support/host_cuda): a machine
// with one device.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <memory>

#include "base/files.h"
#include "failure.h"

namespace trainyard::test {
namespace {

Ended on_host_cuda(const Words& words) {
  return run({Words{TRAINYARD_ON_HOST_CUDA} + words});
}

Ended done(const Words& words) {
  Ended ended = on_host_cuda(words);
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// A run to `steps`, from where the last one ended.
Ended train_to(const SmallJob& job, int steps, const std::string& device) {
  return done(job.train(steps, {"--device", device, "--optimizer.decay", "constant"}));
}

constexpr const char* kTooFew =
    "LOCAL_WORLD_SIZE is 2, but the ranks of this node see 1 GPU, and each needs one to itself";

using Ranks = std::vector<std::unique_ptr<Process>>;

/// Ranks that something else than `launch` has started on this machine, rank r with GPU gpus[r] alone.
Ranks started_with(const std::vector<int>& gpus, const Words& words, const TemporaryFolder& mail) {
  const int port = free_port(), world = static_cast<int>(gpus.size());
  Ranks ranks;
  for (int rank = 0; rank < world; ++rank) {
    auto environment = rank_environment(rank, world, port);
    environment["CUDA_VISIBLE_DEVICES"] = std::to_string(gpus[static_cast<size_t>(rank)]);
    environment["HOST_NCCL_MAIL"] = mail.path().string();
    ranks.push_back(std::make_unique<Process>(Command{Words{TRAINYARD_ON_HOST_CUDA} + words, environment}));
  }
  return ranks;
}

std::vector<Ended> ranks_with(const std::vector<int>& gpus, const Words& words) {
  const TemporaryFolder mail;
  const Ranks ranks = started_with(gpus, words, mail);
  std::vector<Ended> ended;
  for (const auto& rank : ranks) ended.push_back(rank->wait());
  return ended;
}

}  // namespace

TEST_CASE("device: ranks that see one GPU each, of their own, train as on the CPU, and on the same one do not start") {
  const SmallJob own, shared, on_cpu;
  for (const Ended& ended : ranks_with({3, 1}, own.train(2, {"--device", "cuda"}))) {
    INFO(ended.all());
    CHECK(ended.code == 0);
  }
  REQUIRE(run({on_ranks(2, on_cpu.train(2, {"--device", "cpu"}))}).code == 0);
  const auto seen = own.losses(), expected = on_cpu.losses();
  REQUIRE(seen.size() == 2);
  for (size_t i = 0; i < 2; ++i) CHECK(std::abs(seen[i] / expected[i] - 1) < 1e-5);

  const auto refused = ranks_with({3, 3}, shared.train(2, {"--device", "cuda"}));
  check_failure(refused[0], 2, {"ranks 0 (", kTooFew});
  CHECK(refused[1].code == 2);
  CHECK(errors_of(refused[1]).empty());
}

TEST_CASE("device: ranks of which one finds no GPU do not start") {
  const SmallJob job;
  const int port = free_port();
  Ranks ranks;
  const Words words = job.train(1, {"--device", "auto"});
  for (const Words& command : {Words{TRAINYARD_ON_HOST_CUDA} + words, trainyard(words)}) {
    auto environment = rank_environment(static_cast<int>(ranks.size()), 2, port);
    if (!ranks.empty()) environment["CUDA_VISIBLE_DEVICES"] = "";
    ranks.push_back(std::make_unique<Process>(Command{command, environment}));
  }
  for (const auto& rank : ranks)
    check_failure(rank->wait(), 2,
                  {"the configuration differs between ranks: ", "what it computes on = cuda on rank 0 (",
                   "what it computes on = cpu on rank 1 ("});
}

TEST_CASE("device: of three ranks over NCCL the two that are left end with 138 and name the killed one") {
  const int killed = GENERATE(0, 1, 2);
  CAPTURE(killed);
  const SmallJob job;
  const TemporaryFolder mail;
  const Ranks ranks =
      started_with({0, 1, 2}, job.train(1'000'000, {"--device", "cuda", "--checkpoint.enabled", "false"}), mail);
  REQUIRE(ranks[0]->says("step: 3 "));
  ranks[static_cast<size_t>(killed)]->signal(SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    const Ended ended = ranks[static_cast<size_t>(rank)]->wait();
    if (rank == killed) continue;
    check_failure(ended, 138, {fmt::format("rank {}: ", rank), fmt::format("lost rank {} (", killed)});
  }
}

TEST_CASE("device: a run that moves to a GPU and back goes on as one that stays on the CPU, and each can sample it") {
  const SmallJob moved, stayed;
  for (const int step : {1, 2, 3}) train_to(stayed, step, "cpu");
  train_to(moved, 1, "cpu");
  const Ended there = train_to(moved, 2, "cuda");
  CHECK_THAT(there.out, Catch::Contains("Resuming at epoch 0, after step 1"));
  train_to(moved, 3, "cpu");
  const auto seen = moved.losses(), expected = stayed.losses();
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(std::abs(seen[i] / expected[i] - 1) < 1e-5);

  const auto text_of = [&moved](const std::string& device) {
    return done({"generate", "--checkpoint", moved.checkpoints().string(), "--prompt", "3 times", "--max-new-tokens",
                 "3", "--temperature", "0", "--device", device})
        .out;
  };
  CHECK(text_of("cuda") == text_of("cpu"));
}

TEST_CASE("device: steps that are one graph give the same losses, and it is said what cannot be part of one") {
  const SmallJob with, without;
  const Words cuda{"--device", "cuda"}, graphs{"--device.cuda_graphs", "always"};
  const Ended there = done(with.train(4, cuda + graphs));
  CHECK_THAT(there.err, Catch::Contains("forward and backward are one CUDA graph of "));
  done(without.train(4, cuda));
  CHECK(with.losses() == without.losses());
  check_failure(on_host_cuda(with.train(5, graphs + Words{"--device", "cpu"})), 2,
                {"device.cuda_graphs", "this run computes on the CPU"});
  check_failure(on_host_cuda(with.train(5, cuda + graphs + Words{"--parallel.offload", "true"})), 2,
                {"device.cuda_graphs", "parallel.offload is true"});
}

TEST_CASE("device: a trace shows what the GPU did, beside what the host gave it to do") {
  const SmallJob job;
  done(job.train(2, {"--device", "cuda", "--profile", (job.folder() / "trace.json").string()}));
  const std::string trace = read_file(job.folder() / "trace.rank-0.json");
  CHECK_THAT(trace, Catch::Contains(R"("name":"cuda:0 stream 0")") && Catch::Contains(R"("name":"compute")") &&
                        Catch::Contains(R"("name":"host::kernel","cat":"device")") &&
                        Catch::Contains(R"("name":"copy host to device","cat":"device")"));
}

TEST_CASE("device: what does not fit a GPU ends with what holds its memory, and more ranks than GPUs do not start") {
  const SmallJob job;
  const Words large{"--model.hidden_size", "8192", "--model.intermediate_size", "32768"};
  check_failure(on_host_cuda(job.train(1, Words{"--device", "cuda"} + large)), 2, {"cuda:0: ", " for parameters"});
  const Ended crowded = on_host_cuda(Words{"launch", "--nproc-per-node", "2"} + job.train(1, {"--device", "cuda"}));
  check_failure(crowded, 2, {kTooFew});
}

/// `words` on two nodes of one rank, on the one GPU of this machine; what node 0 printed.
std::string out_of_two_nodes(const Words& words) {
  const TemporaryFolder mail;
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Process>> nodes;
  for (const std::string node : {"0", "1"}) {
    const Words launch{"launch", "--nnodes",      "2",         "--nproc-per-node", "1", "--node-rank",
                       node,     "--master-addr", "127.0.0.1", "--master-port",    port};
    nodes.push_back(std::make_unique<Process>(
        Command{Words{TRAINYARD_ON_HOST_CUDA} + launch + words,
                {{"NCCL_HOSTID", "node-" + node}, {"HOST_NCCL_MAIL", mail.path().string()}}}));
  }
  std::vector<std::string> printed;
  for (const auto& node : nodes) {
    const Ended ended = node->wait();
    INFO(ended.all());
    CHECK(ended.code == 0);
    printed.push_back(ended.out);
  }
  return printed.front();
}

TEST_CASE("device: two nodes on one GPU, each with an NCCL_HOSTID, train over NCCL as over gloo on the CPU") {
  const SmallJob on_cpu, on_gpu;
  REQUIRE(run({on_ranks(2, on_cpu.train(2, {"--device", "cpu"}))}).code == 0);
  out_of_two_nodes(on_gpu.train(2, {"--device", "cuda", "--comm.user_buffers", "true"}));
  const auto seen = on_gpu.losses(), expected = on_cpu.losses();
  REQUIRE(seen.size() == 2);
  for (size_t i = 0; i < 2; ++i) CHECK(std::abs(seen[i] / expected[i] - 1) < 1e-5);
  CHECK_THAT(out_of_two_nodes({"comm-bench", "all_gather", "-e", "1K", "-f", "8", "-n", "1", "-w", "1", "-R", "1"}),
             Catch::Contains("NCCL 2.28.9 from cuda:0 (host), with registered buffers"));
}

TEST_CASE("device: ranks that share a GPU and are of one host to NCCL do not start") {
  const SmallJob job;
  const TemporaryFolder mail;
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> nodes;
  for (int rank = 0; rank < 2; ++rank) {
    auto environment = rank_environment(rank, 2, port);
    environment["LOCAL_RANK"] = "0", environment["LOCAL_WORLD_SIZE"] = "1";
    environment["HOST_NCCL_MAIL"] = mail.path().string();
    nodes.push_back(std::make_unique<Process>(
        Command{Words{TRAINYARD_ON_HOST_CUDA} + job.train(1, {"--device", "cuda"}), environment}));
  }
  for (const auto& node : nodes) {
    const Ended ended = node->wait();
    CAPTURE(ended.all());
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, Catch::Contains("connecting: NCCL: "));
  }
}

}  // namespace trainyard::test
