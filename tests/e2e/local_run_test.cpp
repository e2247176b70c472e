#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "local_job.h"

using namespace trainyard::test;
namespace fs = std::filesystem;

namespace {

/// The process whose id stands in a file ends within a few seconds.
bool ends(const fs::path& pid_file) {
  const pid_t pid = std::stoi(text_of_file(pid_file));
  for (int tries = 0; tries < 500; ++tries, ::usleep(10'000)) {
    const std::string state = text_of_file(fmt::format("/proc/{}/stat", pid));
    if (state.empty() || has(state, ") Z ")) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("run: a job that succeeds: lines behind names, logs, status, exit code 0", "[local]") {
  const LocalRun local;
  const Ended ended = local.run(
      ScriptJob{.master = "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR; echo token ${#TRAINYARD_JOB_TOKEN}",
                .worker = "echo rank $RANK >&2"}
          .yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-master-0 | rank 0 of 2 at 127.0.0.1\n"));
  CHECK(has(ended.out, "j-master-0 | token 64\n"));
  CHECK(has(ended.out, "j-worker-0 | rank 1\n"));
  CHECK(has(ended.err, "operator   | PyTorchJob j is successfully completed.\n"));
  CHECK(local.log("j-worker-0") == "rank 1\n");
  CHECK(has(text_of_file(local.folder() / "status.yaml"), "type: Succeeded"));
  CHECK_FALSE(fs::exists(local.folder() / "pods/j-master-0"));
}

TEST_CASE("run: a failed worker fails the job with its exit code once the budget is spent", "[local]") {
  const auto scope = GENERATE("gang", "replica");
  const LocalRun local;
  const Ended ended = local.run(
      ScriptJob{
          .master = "exec sleep 300", .worker = "exit 7", .run_policy = "{backoffLimit: 0}", .restart_policy = "Never"}
          .yaml(),
      {"--restart-scope", scope});
  CAPTURE(scope, ended.all());
  CHECK(ended.code == 7);
  CHECK(has(ended.err, "j-worker-0 ended with exit code 7"));
  CHECK(has(ended.err, "stopping pod j-master-0"));
}

TEST_CASE("run: in gang scope one failure restarts all pods, within the budget", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  const Ended ended = local.run(ScriptJob{
      .master = fmt::format(
          "echo generation $TRAINYARD_GENERATION; touch {0}.said; until [ -e {0} ]; do sleep 0.05; done", flag),
      .worker = fmt::format(
          "until [ -e {0}.said ]; do sleep 0.05; done; [ $TRAINYARD_GENERATION = 1 ] && exit 9; touch {0}", flag),
      .run_policy = "{backoffLimit: 1}"}
                                    .yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-master-0 | generation 1\n"));
  CHECK(has(ended.out, "j-master-0 | generation 2\n"));
  CHECK(has(ended.err, "exited with code 9"));
  CHECK(has(text_of_file(local.folder() / "status.yaml"), "exitCode: 9"));
  CHECK(has(text_of_file(local.folder() / "logs/j-master-0.log.previous"), "generation 1"));
}

TEST_CASE("run: in gang scope the budget's last failure decides the exit code", "[local]") {
  const LocalRun local;
  const Ended ended = local.run(ScriptJob{
      .master = "exec sleep 300", .worker = "exit $((10 + TRAINYARD_GENERATION))", .run_policy = "{backoffLimit: 1}"}
                                    .yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 12);
  CHECK(has(ended.err, "backoff limit"));
}

TEST_CASE("run: in replica scope a container is restarted in place, and the others go on", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  const Ended ended = local.run(
      ScriptJob{.master = fmt::format("echo master; until [ -e {}.done ]; do sleep 0.05; done", flag),
                .worker = fmt::format("echo try; if [ -e {0} ]; then touch {0}.done; else touch {0}; exit 1; fi", flag)}
          .yaml(),
      {"--restart-scope", "replica"});
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "j-worker-0 ended with exit code 1"));
  CHECK(local.log("j-master-0") == "master\n");
  CHECK(text_of_file(local.folder() / "logs/j-worker-0.log.previous") == "try\n");
}

TEST_CASE("run: a deadline ends the job with exit code 1", "[local]") {
  const LocalRun local;
  const Ended ended = local.run(
      ScriptJob{.master = "exec sleep 300", .worker = "exec sleep 300", .run_policy = "{activeDeadlineSeconds: 1}"}
          .yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "active longer than specified deadline"));
}

TEST_CASE("run: Ctrl-C stops all pods in order and waits for them", "[local]") {
  const LocalRun local;
  const auto [signal, code] = GENERATE(table<int, int>({{SIGINT, 130}, {SIGTERM, 143}}));
  const std::string script = "trap 'echo saved; exit 143' TERM; echo ready; while :; do sleep 0.05; done";
  Process process(local.command(ScriptJob{.master = script, .worker = script}.yaml()));
  REQUIRE(process.says("j-master-0 | ready"));
  REQUIRE(process.says("j-worker-0 | ready"));
  process.signal(signal);
  const Ended ended = process.wait();
  CAPTURE(ended.all());
  CHECK(ended.code == code);
  CHECK(has(ended.out, "j-master-0 | saved"));
  CHECK(has(ended.out, "j-worker-0 | saved"));
}

TEST_CASE("run: a second Ctrl-C kills what does not stop", "[local]") {
  const LocalRun local;
  const std::string script = "trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done";
  Process process(local.command(ScriptJob{.master = script, .worker = script}.yaml()));
  REQUIRE(process.says("j-master-0 | ready"));
  REQUIRE(process.says("j-worker-0 | ready"));
  process.signal(SIGINT);
  REQUIRE(process.says("j-master-0 | no"));
  process.signal(SIGINT);
  const Ended ended = process.wait();
  CAPTURE(ended.all());
  CHECK(ended.code == 130);
  CHECK(has(ended.err, "stopping at once"));
}

TEST_CASE("run: what a pod leaves behind is ended, in its process group or out of it", "[local]") {
  const LocalRun local;
  const auto group = local.base() / "group", stray = local.base() / "stray";
  const Ended ended =
      local.run(ScriptJob{.master = fmt::format("sleep 300 & echo $! >{}", group.string()),
                          .worker = fmt::format("setsid sleep 300 & echo $! >{}; sleep 0.2", stray.string())}
                    .yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(ends(group));
  CHECK(ends(stray));
}

TEST_CASE("run: pods die with a run that is killed", "[local]") {
  const LocalRun local;
  const auto pid = local.base() / "pid";
  Process process(local.command(ScriptJob{
      .master = fmt::format("echo $BASHPID >{0}.new; mv {0}.new {0}; echo ready; exec sleep 300", pid.string()),
      .worker = "exec sleep 300"}
                                    .yaml()));
  REQUIRE(process.says("ready"));
  process.signal(SIGKILL);
  CHECK(process.wait().code == 137);
  CHECK(ends(pid));
}

TEST_CASE("run: init containers come first, one after another", "[local]") {
  const LocalRun local;
  ScriptJob job{.worker = "echo main"};
  job.pod =
      "initContainers: [{name: a, image: none, command: [bash, -c, 'sleep 0.1; echo first']}, "
      "{name: b, image: none, command: [bash, -c, echo second]}], ";
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  const size_t a = ended.out.find("j-worker-0/a | first"), b = ended.out.find("j-worker-0/b | second"),
               c = ended.out.find("j-worker-0 | main");
  CHECK(a < b);
  CHECK(b < c);
  CHECK(c != std::string::npos);
}

TEST_CASE("run: sidecars live beside the others and are asked to end once these have, the last one first", "[local]") {
  const LocalRun local;
  const std::string order = (local.base() / "order").string();
  const auto sidecar = [&](const std::string& name) {
    return fmt::format(
        "{{name: {0}, image: none, restartPolicy: Always, command: [bash, -c, 'trap \"echo {0} >>{1}; exit 9\" TERM; "
        "touch {1}.{0}; while :; do sleep 0.05; done']}}",
        name, order);
  };
  ScriptJob job{.worker = fmt::format("until [ -e {0}.a -a -e {0}.b ]; do sleep 0.05; done; echo main >>{0}", order)};
  job.restart_policy = "Never";
  job.pod = fmt::format("initContainers: [{}, {}], ", sidecar("a"), sidecar("b"));
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(text_of_file(order) == "main\nb\na\n");
  CHECK_FALSE(has(ended.err, "ended with exit code"));
}

TEST_CASE("run: a sidecar that ends is started again, and spends no budget", "[local]") {
  const auto scope = GENERATE("gang", "replica");
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  ScriptJob job{.worker = fmt::format("until [ -e {}.again ]; do sleep 0.05; done", flag),
                .run_policy = "{backoffLimit: 0}"};
  job.pod = fmt::format(
      "initContainers: [{{name: a, image: none, restartPolicy: Always, command: [bash, -c, '[ -e {0} ] || {{ touch "
      "{0}; exit 4; }}; touch {0}.again; exec sleep 300']}}], ",
      flag);
  const Ended ended = local.run(job.yaml(), {"--restart-scope", scope});
  CAPTURE(scope, ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "j-worker-0/a has ended; as a sidecar it is started again"));
}

TEST_CASE("run: what comes after a sidecar waits for its startupProbe", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  ScriptJob job{.worker = fmt::format("[ -e {} ] && echo after", flag)};
  job.pod = fmt::format(
      "initContainers: [{{name: a, image: none, restartPolicy: Always, command: [bash, -c, 'sleep 0.3; touch {0}; exec "
      "sleep 300'], startupProbe: {{periodSeconds: 1, failureThreshold: 100, exec: {{command: [test, -e, {0}]}}}}}}], ",
      flag);
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-worker-0 | after\n"));
}

TEST_CASE("run: a sidecar whose startupProbe fails is stopped, in the probe's time, and started again", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  ScriptJob job{.run_policy = "{activeDeadlineSeconds: 20}"};  // ends before the pod's 20 s of grace do
  job.pod = fmt::format(
      "initContainers: [{{name: a, image: none, restartPolicy: Always, command: [bash, -c, 'if [ -e {0} ]; then touch "
      "{0}.again; exec sleep 300; fi; touch {0}; trap \"\" TERM; exec sleep 300'], startupProbe: {{"
      "initialDelaySeconds: 1, periodSeconds: 1, failureThreshold: 2, terminationGracePeriodSeconds: 1, exec: {{"
      "command: [test, -e, {0}.again]}}}}}}], ",
      flag);
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "j-worker-0/a: its startupProbe has failed; it is stopped and started again"));
}

TEST_CASE("run: of several containers that fail beside pytorch the first is the cause", "[local]") {
  const LocalRun local;
  const std::string pid = (local.base() / "pid").string();  // of `second` in the list, which ends first
  const std::string others = fmt::format(
      "{{name: first, image: none, command: [bash, -c, 'until [ -s {0} ]; do sleep 0.05; done; while kill -0 $(<{0}); "
      "do sleep 0.05; done; exit 4']}}, {{name: second, image: none, command: [bash, -c, 'echo $BASHPID >{0}; "
      "exit 5']}}, ",
      pid);
  ScriptJob job{.master = "exec sleep 300"};
  job.restart_policy = "Never";
  std::string yaml = job.yaml();
  const std::string list = "containers: [";
  yaml.insert(yaml.rfind(list) + list.size(), others);
  const Ended ended = local.run(yaml);
  CAPTURE(ended.all());
  CHECK(ended.code == 5);
  CHECK(has(text_of_file(local.folder() / "status.yaml"), "container: second\n      exitCode: 5\n"));
}

TEST_CASE("run: a pod that waits long for a container says so", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string();
  ScriptJob job{};
  job.pod = fmt::format(
      "initContainers: [{{name: a, image: none, command: [bash, -c, 'until [ -e {} ]; do sleep 0.05; done']}}], ",
      flag);
  Process process(local.command(job.yaml()));
  CHECK(process.says("pod j-worker-0 waits for container a: it has not ended yet"));
  std::ofstream(flag).flush();
  CHECK(process.wait().code == 0);
}

TEST_CASE("run: two jobs of one input run at the same time, and the first that fails gives the exit code", "[local]") {
  const LocalRun local;
  ScriptJob first{
      .master = "exec sleep 300", .worker = "exit 5", .run_policy = "{backoffLimit: 0}", .restart_policy = "Never"},
      second{};
  second.name = "k";
  const Ended ended = local.run(first.yaml() + "---\n" + second.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 5);
  CHECK(has(ended.err, "PyTorchJob k is successfully completed."));
  CHECK(fs::exists(local.folder() / "k/status.yaml"));
}

TEST_CASE("run: a manifest from standard input, arguments behind --, a folder in use", "[local]") {
  const LocalRun local;
  const std::string file = local.write(ScriptJob{.master = "echo got $0 $1"}.yaml());
  const std::string program = trainyard_operator({}).front(), folder = local.folder().string();
  const Ended ended =
      run({.words = {"bash", "-c", fmt::format("cat {} | {} run -f - --dir {} -- --a.b 1", file, program, folder)}});
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "got --a.b 1"));

  Process busy(local.command(ScriptJob{.master = "echo ready; exec sleep 300"}.yaml()));
  REQUIRE(busy.says("ready"));
  const Ended refused = local.run(ScriptJob{}.yaml());
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "another run uses this folder"));
}

TEST_CASE("run: what rank 0 posts is in the status, and a job that gets on no further is restarted", "[local]") {
  const LocalRun local;
  // The trainer's own post, by hand: this one then hangs.
  const std::string post = R"(
    url=${TRAINYARD_PROGRESS_URL#http://}; address=${url%%/*}
    body='{"step": 7, "totalSteps": 9, "silentRanks": [1]}'
    exec 3<>/dev/tcp/${address%:*}/${address#*:}
    printf 'POST /%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s' \
      "${url#*/}" "$TRAINYARD_JOB_TOKEN" ${#body} "$body" >&3
    read -r line <&3; echo "answer $line"
    exec sleep 300)";
  ScriptJob job{.master = "[ $TRAINYARD_GENERATION = 2 ] && exit 0" + post, .worker = "exec sleep 300"};
  job.master_restart_policy = "OnFailure";
  job.annotations = R"({trainyard.dev/progress-deadline-seconds: "2"})";
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-master-0 | answer HTTP/1.1 204"));
  CHECK(has(ended.err, "silent: rank 1"));
  const std::string status = text_of_file(local.folder() / "status.yaml");
  CHECK(has(status, "reason: Stalled"));
  CHECK(has(status, "step: 7"));
}
