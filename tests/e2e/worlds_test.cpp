// The ways in which ranks are started, and what a run can be asked to show of itself.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <set>

#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

using std::chrono::seconds;

Ended completed(const Command& command) {
  Ended ended = run(command);
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

void check_same_losses(const SmallJob& a, const SmallJob& b) {
  const auto left = a.losses(), right = b.losses();
  REQUIRE(left.size() == right.size());
  for (size_t i = 0; i < left.size(); ++i) CHECK(left[i] == Approx(right[i]).epsilon(1e-5));
}

/// Bytes that this rank's collectives carried in one step, by the kind and label of the lines that
/// NCCL_DEBUG_SUBSYS=COLL asks for, without the few that ranks agree with: what a rank sends of `bytes` on `ranks`
/// ranks is (ranks - 1) / ranks of them.
double bytes_sent_a_step(const Ended& ended, int ranks, int steps) {
  const std::regex line(R"(rank 0: (all-gather|reduce-scatter|all-reduce) (\S+): (\d+) bytes in [0-9.]+ ms)");
  double bytes = 0;
  for (const std::string& text : lines_of(ended.err)) {
    std::smatch found;
    if (!std::regex_search(text, found, line) || found[2] == "agree" || found[2] == "totals" || found[2] == "meeting")
      continue;
    const double times = found[1] == "all-reduce" ? 2 : 1;  // a reduce-scatter and an all-gather
    bytes += times * std::stod(found[3]) * (ranks - 1) / ranks;
  }
  return bytes / steps;
}

/// Bytes of the small job's parameters, in shards of equal size: rows that do not divide are padded.
struct ModelBytes {
  explicit ModelBytes(int ranks) : ranks_(ranks) {
    for (const auto& [rows, columns] : std::initializer_list<std::pair<int, int>>{
             {32, 1}, {32, 32}, {16, 32}, {16, 32}, {32, 32}, {32, 1}, {64, 32}, {64, 32}, {32, 64}})
      blocks += 2 * padded(rows, columns);
    root = padded(257, 32) + padded(32, 1);
  }
  double blocks = 0, root = 0;

 private:
  [[nodiscard]] double padded(int rows, int columns) const {
    return static_cast<double>((rows + ranks_ - 1) / ranks_ * ranks_ * columns) * sizeof(float);
  }
  int ranks_;
};

}  // namespace

TEST_CASE("worlds: mpirun gives the same losses as launch") {
  if (run({{"mpirun", "--version"}}).code != 0) return skip("no mpirun");
  const char* const backend = GENERATE("auto", "mpi", "gloo");
  CAPTURE(backend);
  const SmallJob launched, by_mpirun;
  completed({on_ranks(2, launched.train(4)), {}, seconds(60)});
  const Words words = Words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"} +
                      trainyard(by_mpirun.train(4, {"--comm.backend", backend}));
  std::map<std::string, std::string> environment;  // gloo's ranks have nothing but it to tell them where to meet
  if (backend == std::string("gloo"))
    environment = {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(free_port())}};
  const Ended ended = completed({words, environment, seconds(120)});
  CHECK(ended.out.find('\x1b') == std::string::npos);  // plain lines, though mpirun gives ranks a terminal
  check_same_losses(by_mpirun, launched);
}

TEST_CASE("worlds: rows and layers that processes share give the losses of one process, over gloo and over MPI") {
  const bool by_mpi = GENERATE(false, true);
  if (by_mpi && run({{"mpirun", "--version"}}).code != 0) return skip("no mpirun");
  const Words way =
      GENERATE(Words{"--parallel.context", "2", "--parallel.context_method", "ring"},
               Words{"--parallel.context", "2", "--parallel.context_method", "all_gather"},
               Words{"--parallel.context", "2", "--parallel.context_method", "ulysses"},
               Words{"--parallel.tensor", "2"}, Words{"--parallel.tensor", "2", "--parallel.async_tensor", "true"},
               Words{"--parallel.tensor", "2", "--parallel.sequence_parallel", "false"});
  CAPTURE(by_mpi, way);
  const SmallJob alone, split;
  completed({trainyard(alone.train(4)), {}, seconds(60)});
  const Words words = by_mpi ? Words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"} +
                                   trainyard(split.train(4, way + Words{"--comm.backend", "mpi"}))
                             : on_ranks(2, split.train(4, way));
  completed({words, {}, seconds(120)});
  check_same_losses(alone, split);
}

TEST_CASE("worlds: two nodes that the operator's environment describes start their ranks and train together") {
  const SmallJob launched, on_nodes;
  completed({on_ranks(4, launched.train(3)), {}, seconds(60)});
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> nodes;
  for (int node = 0; node < 2; ++node) {
    const std::map<std::string, std::string> environment{{"PET_NNODES", "2"},
                                                         {"PET_NODE_RANK", std::to_string(node)},
                                                         {"PET_NPROC_PER_NODE", "2"},
                                                         {"MASTER_ADDR", "127.0.0.1"},
                                                         {"MASTER_PORT", std::to_string(port)}};
    nodes.push_back(std::make_unique<Process>(Command{trainyard(on_nodes.train(3)), environment, seconds(60)}));
  }
  for (const auto& node : nodes) {
    const Ended ended = node->wait();
    INFO(ended.all());
    CHECK(ended.code == 0);
  }
  check_same_losses(on_nodes, launched);
}

TEST_CASE("worlds: an elastic job's workers, as many as there are, form the world, and one more goes on from there") {
  const SmallJob straight, elastic;
  completed({on_ranks(2, straight.train(3)), {}, seconds(60)});
  // What the operator gives the workers of a job without a master; worker 0 is the last to come.
  const auto run_workers = [&](int workers, int steps) {
    const int port = free_port();
    std::vector<std::unique_ptr<Process>> nodes;
    for (int worker = workers - 1; worker >= 0; --worker) {
      const std::map<std::string, std::string> environment{{"PET_NNODES", "1:8"},
                                                           {"PET_RDZV_BACKEND", "c10d"},
                                                           {"PET_RDZV_ENDPOINT", fmt::format("localhost:{}", port)},
                                                           {"PET_NPROC_PER_NODE", "auto"},
                                                           {"WORLD_SIZE", std::to_string(workers)},
                                                           {"RANK", std::to_string(worker)}};
      nodes.push_back(std::make_unique<Process>(Command{trainyard(elastic.train(steps)), environment, seconds(60)}));
    }
    for (const auto& node : nodes) {
      const Ended ended = node->wait();
      INFO(ended.all());
      CHECK(ended.code == 0);
      CHECK((ended.out.find("step: ") == std::string::npos) == (node != nodes.back()));  // worker 0 is rank 0
    }
  };
  run_workers(2, 3);
  check_same_losses(elastic, straight);
  run_workers(3, 6);
  CHECK(elastic.losses().size() == 6);
  CHECK(elastic.losses().back() < elastic.losses().front());
  run_workers(1, 8);
  CHECK(elastic.losses().size() == 8);
}

TEST_CASE("worlds: launch --nnodes 2 on two hosts is the same world") {
  const SmallJob launched, on_nodes;
  completed({on_ranks(2, launched.train(3)), {}, seconds(60)});
  const std::string port = std::to_string(free_port());
  const auto node = [&](const char* number) {
    return Command{trainyard(Words{"launch", "--nnodes=2", "--nproc_per_node=1", "--node_rank", number, "--master_addr",
                                   "localhost", "--master_port", port} +
                             on_nodes.train(3)),
                   {},
                   seconds(60)};
  };
  Process second(node("1"));  // the worker first: it waits
  Process first(node("0"));
  CHECK(first.wait().code == 0);
  CHECK(second.wait().code == 0);
  check_same_losses(on_nodes, launched);
}

TEST_CASE(
    "traffic: NCCL_DEBUG_SUBSYS=COLL shows 3 (N-1)/N parameters a step for full_shard and 2 (N-1)/N for no_shard") {
  struct Row {
    const char* strategy;
    double blocks, root;  // how often each travels: the root keeps its parameters between forward and backward
  };
  const Row row = GENERATE(Row{"full_shard", 3, 2}, Row{"shard_grad_op", 2, 2}, Row{"no_shard", 2, 2});
  const int ranks = GENERATE(2, 3);
  CAPTURE(row.strategy, ranks);
  const SmallJob job;
  const Ended ended = completed({on_ranks(ranks, job.train(2, {"--parallel.strategy", row.strategy})),
                                 {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "COLL"}},
                                 seconds(60)});
  const ModelBytes model(row.strategy == std::string("no_shard") ? 1 : ranks);
  CHECK(model.blocks + model.root >= 26'816 * sizeof(float));
  const double expected = (row.blocks * model.blocks + row.root * model.root) * (ranks - 1) / ranks;
  CHECK(bytes_sent_a_step(ended, ranks, 2) == Approx(expected));
}

TEST_CASE("profile: each rank's trace is one that Chrome reads, with its ops and collectives") {
  const SmallJob job;
  completed({on_ranks(2, job.train(2, {"--profile", (job.folder() / "trace.json").string()})), {}, seconds(60)});
  for (const int rank : {0, 1}) {
    const auto trace = nlohmann::json::parse(std::ifstream(job.folder() / fmt::format("trace.rank-{}.json", rank)));
    std::set<std::string> names;
    for (const auto& event : trace.at("traceEvents")) {
      CHECK(event.at("pid") == rank);
      if (event.at("ph") != "X") continue;
      CHECK(event.at("dur").get<double>() >= 0);
      CHECK(event.at("ts").is_number());
      names.insert(event.at("name"));
    }
    for (const char* const name : {"forward", "backward", "optimizer", "matmul", "attention", "save",
                                   "all_gather model.layers.1", "reduce_scatter model.layers.0"}) {
      CAPTURE(name);
      CHECK(names.contains(name));
    }
  }
}

TEST_CASE("export: evaluate gives an exported model the loss of the checkpoint, and another run starts from it") {
  const SmallJob job;
  completed({on_ranks(2, job.train(6)), {}, seconds(60)});
  const std::string folder = (job.folder() / "exported").string();
  completed({trainyard({"checkpoint", "export", job.checkpoints().string(), "--output", folder})});
  const std::string tokens = (job.folder() / "tokens.safetensors").string();
  std::vector<int32_t> ids;
  for (int i = 0; i < 64; ++i) ids.push_back(32 + i);
  write_text(tokens, token_file("input_ids", {2, 32}, ids));
  const Ended of_checkpoint =
      completed({trainyard({"evaluate", "--checkpoint", job.checkpoints().string(), "--tokens", tokens})});
  CHECK_THAT(of_checkpoint.out, Catch::StartsWith("loss: ") && Catch::Contains(" tokens: 62\n"));
  CHECK(completed({trainyard({"evaluate", "--model", folder, "--tokens", tokens})}).out == of_checkpoint.out);

  const SmallJob next;
  completed({trainyard(next.train(1, {"--model.config", "", "--model.init_from", folder}))});
  CHECK(next.losses().at(0) < job.losses().at(0) - 0.5);
}

TEST_CASE("configuration: what --print-config prints loads again to the same") {
  const SmallJob job;
  const Words words = job.train(7, {"--optimizer.betas", "[0.8, 0.9]", "--metrics.line", "{step}: \"{loss:.3f}\"",
                                    "--comm.timeout=90s", "--parallel.param_dtype", "BF16"});
  const Ended printed = completed({trainyard(words + Words{"--print-config"})});
  CHECK_THAT(printed.out, Catch::Contains("flag"));  // where each value came from
  write_text(job.folder() / "printed.yaml", printed.out);
  const Ended again =
      completed({trainyard({"train", "--config", (job.folder() / "printed.yaml").string(), "--print-config"})});
  const auto without_origin = [](const std::string& text) {
    return std::regex_replace(text, std::regex(" *#[^\n]*"), "");
  };
  CHECK(without_origin(again.out) == without_origin(printed.out));
  CHECK(saved_in(job.checkpoints()).empty());
}

TEST_CASE("metrics: every line is one that grep finds and the n-th of metrics.interval, as is a line of one's own") {
  const SmallJob job;
  const std::regex standard(
      R"(step: (\d+)  loss: \d+\.\d{5}  grad_norm: \d+\.\d{4}  lr: \d\.\de-\d\d  tokens/s: [0-9,]+  mfu: [0-9.]+%  memory: \d+\.\d\dGiB)");
  const Ended ended = completed({trainyard(job.train(20, {"--metrics.interval", "10"}))});
  std::vector<std::string> steps;
  for (const std::string& line : lines_of(ended.out)) {
    std::smatch found;
    if (std::regex_match(line, found, standard)) steps.push_back(found[1]);
  }
  CHECK(steps == std::vector<std::string>{"10", "20"});
  CHECK(job.metrics().size() == 20);

  const SmallJob own;
  const Ended chosen = completed({trainyard(own.train(2, {"--metrics.line", "Batch {step} Loss: {loss:.5f}"}))});
  CHECK_THAT(chosen.out, Catch::Contains(fmt::format("\nBatch 2 Loss: {:.5f}\n", own.losses().at(1))));
}

}  // namespace trainyard::test
