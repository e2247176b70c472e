// What a run shows of itself while it is under way.
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "failure.h"
#include "process.h"
#include "small_job.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;

/// The answer to GET /metrics on a port of the loopback; "" where nobody listens.
std::string scrape(uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer(1 << 16, '\0');
  size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < answer.size(); size += static_cast<size_t>(std::max<ssize_t>(count, 0)))
    count = ::recv(socket.get(), answer.data() + size, answer.size() - size, 0);
  answer.resize(size);
  return answer;
}

/// The value of a metric in such an answer; -2 where it is not there.
double value_of(const std::string& answer, const std::string& metric) {
  for (const std::string& line : lines_of(answer))
    if (line.starts_with(metric + " ")) return std::stod(line.substr(metric.size() + 1));
  return -2;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("observability: Prometheus reads loss, times, memory and the last checkpoint of a run under way") {
  const SmallJob job;
  const uint16_t port = free_port();
  Process training({on_ranks(2, job.train(1'000'000, {"--metrics.port", std::to_string(port), "--checkpoint.interval",
                                                      "2", "--training.accumulation_steps", "2"})),
                    {},
                    std::chrono::seconds(120)});
  REQUIRE(training.says("step: 6 "));
  const std::string answer = scrape(port);
  CAPTURE(answer);
  CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 200"));
  CHECK(value_of(answer, "trainyard_ranks") == 2);
  CHECK(value_of(answer, "trainyard_total_steps") == 1'000'000);
  const double step = value_of(answer, "trainyard_step");
  CHECK(step >= 6);
  constexpr double kTokensOfAStep = 2 * 2 * 2 * 32;  // one may end while the answer is put together
  CHECK(std::abs(value_of(answer, "trainyard_tokens_total") - step * kTokensOfAStep) <= kTokensOfAStep);
  CHECK(value_of(answer, "trainyard_checkpoint_step") >= 4);
  CHECK(value_of(answer, "trainyard_loss") > 0);
  CHECK(value_of(answer, "trainyard_memory_bytes") > 1e6);
  CHECK_THAT(answer, !Catch::Contains("trainyard_validation_loss"));  // there was none
  CHECK(value_of(answer, "trainyard_tokens_per_second") > 0);
  for (const char* const part : {"compute", "optimizer", "data_wait", "communication_wait", "checkpoint"})
    CHECK(value_of(answer, fmt::format("trainyard_step_seconds{{part=\"{}\"}}", part)) >= 0);

  const SmallJob other;
  const Ended ended = run({trainyard(other.train(3, {"--metrics.port", std::to_string(port)})), {}});
  check_failure(ended, 2, {fmt::format("metrics.port: cannot listen on port {}", port), "Address already in use"});
  const Ended on_two = run({on_ranks(2, other.train(3, {"--metrics.port", std::to_string(port)}))});
  CHECK(on_two.code == 2);  // rank 0 alone listens, and what keeps it from that is everybody's error
  CHECK_THAT(on_two.err, Catch::Contains("rank 0: metrics.port: cannot listen"));
}

TEST_CASE("observability: every line of metrics.jsonl says where the time went, and the line prints it") {
  const SmallJob job;
  const Ended ended = run({on_ranks(2, job.train(4, {"--checkpoint.interval", "2", "--metrics.line",
                                                     "{step} took {compute_ms} and {communication_wait_ms:.3f}"})),
                           {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  CHECK_THAT(ended.out, Catch::Contains("4 took "));
  const auto records = job.metrics();
  REQUIRE(records.size() == 4);
  for (const auto& record : records) {
    CHECK(record.at("compute_ms").get<double>() > 0);
    CHECK(record.at("optimizer_ms").get<double>() > 0);
    CHECK(record.at("data_wait_ms").get<double>() >= 0);
    CHECK(record.at("communication_wait_ms").get<double>() > 0);
  }
  CHECK(column(records, "checkpoint_ms")[1] == 0);
  CHECK(column(records, "checkpoint_ms")[2] > 0);  // saved after step 2
}

TEST_CASE("observability: every few steps a trace of each rank, the newest ones kept") {
  const SmallJob job;
  const Ended ended = run({on_ranks(2, job.train(11, {"--metrics.profile_interval", "3", "--metrics.profile_steps", "2",
                                                      "--metrics.profile_keep", "2"})),
                           {}});
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  const fs::path traces = job.folder() / "traces";
  CHECK(files_in(traces) == std::vector<std::string>{"step-6.rank-0.json", "step-6.rank-1.json", "step-9.rank-0.json",
                                                     "step-9.rank-1.json"});
  std::ifstream stream(traces / "step-9.rank-1.json");
  const auto trace = nlohmann::json::parse(stream);
  const auto named = [&](const std::string& name) {
    return std::ranges::count_if(trace.at("traceEvents"), [&](const auto& event) { return event.at("name") == name; });
  };
  CHECK(named("forward") == 2);  // steps 8 and 9
  CHECK(named("all_gather model.layers.1") == 4);
  CHECK(named("reduce_scatter model.layers.1") == 2);
}

TEST_CASE("observability: --profile and traces every few steps exclude each other") {
  const SmallJob job;
  const Ended ended =
      run({trainyard(job.train(2, {"--metrics.profile_interval", "2", "--profile", "trace.json"})), {}});
  check_failure(ended, 2, {"--metrics.profile_interval", "--profile", "keep one"});
}

TEST_CASE("observability: a second run in one metrics.dir is refused while the first lives, which loses nothing") {
  const SmallJob job;
  Process first({trainyard(job.train(1'000'000)), {}});
  REQUIRE(first.says("step: 2"));
  const auto before = saved_in(job.checkpoints());
  check_failure(run({trainyard(job.train(2)), {}}), 2,
                {"metrics.dir: ", fmt::format("another run writes its metrics there, process {} on ", first.pid()),
                 "choose another folder"});
  CHECK(saved_in(job.checkpoints()) == before);
  first.signal(SIGTERM);
  CHECK(first.wait().code == 143);  // it could still save: the second had not claimed its checkpoints
  const auto steps = job.metrics();
  for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].at("step") == i + 1);
  CHECK(run({trainyard(job.train(static_cast<int>(steps.size()) + 1)), {}}).code == 0);
}

TEST_CASE("observability: a resumed run goes on in the same event file") {
  const SmallJob job;
  const Words board{"--metrics.tensorboard", "true", "--checkpoint.interval", "2"};
  REQUIRE(run({trainyard(job.train(3, board)), {}}).code == 0);
  const auto before = files_in(job.folder() / "tensorboard");
  REQUIRE(before.size() == 1);
  CHECK_THAT(before[0], Catch::StartsWith("events.out.tfevents."));
  const auto size = fs::file_size(job.folder() / "tensorboard" / before[0]);
  REQUIRE(run({trainyard(job.train(5, board)), {}}).code == 0);
  CHECK(files_in(job.folder() / "tensorboard") == before);
  CHECK(fs::file_size(job.folder() / "tensorboard" / before[0]) > size);
}

}  // namespace trainyard::test
