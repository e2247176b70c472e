#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "local_job.h"

using namespace trainyard::test;
namespace fs = std::filesystem;

namespace {

/// A job whose worker sees a ConfigMap, a Secret, an emptyDir and a claim at paths that no machine has.
std::string job_with_volumes() {
  ScriptJob job;
  job.worker =
      "cat /settings/a.txt /etc/trainyard-test/secret/key; echo >/scratch/x && ls /scratch; "
      "ls /claims/data; echo kept >/claims/data/$(ls /claims/data | wc -l); touch /settings/b 2>/dev/null || echo "
      "read-only; pwd";
  job.pod =
      "volumes: [{name: c, configMap: {name: settings}}, {name: s, secret: {secretName: keys}}, {name: e, emptyDir: "
      "{}}, "
      "{name: p, persistentVolumeClaim: {claimName: data}}], ";
  job.container =
      "volumeMounts: [{name: c, mountPath: /settings}, {name: s, mountPath: /etc/trainyard-test/secret}, "
      "{name: e, mountPath: /scratch}, {name: p, mountPath: /claims/data}], ";
  return "kind: ConfigMap\nmetadata: {name: settings}\ndata: {a.txt: \"from the map\\n\"}\n---\n"
         "kind: Secret\nmetadata: {name: keys}\nstringData: {key: \"from the secret\\n\"}\n---\n" +
         job.yaml();
}

/// The job works where it is started, and this clone may be closed to others.
Command as_nobody(const LocalRun& local, Command command) {
  fs::permissions(local.base(), fs::perms::all);
  command.words = Words{"env", "--chdir", local.base(), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"} +
                  command.words;
  return command;
}

}  // namespace

TEST_CASE("run: volumes are where they are mounted, and a claim is kept from run to run", "[local]") {
  const LocalRun local;
  const Ended first = local.run(job_with_volumes());
  CAPTURE(first.all());
  if (has(first.err, "cannot be mounted")) return skip("this kernel lets nobody mount");
  CHECK(first.code == 0);
  const std::string here = fs::current_path();
  for (const std::string& line : {std::string("from the map"), std::string("from the secret"), std::string("x"),
                                  std::string("read-only"), here})
    CHECK(has(first.out, fmt::format("j-worker-0 | {}\n", line)));
  const Ended second = local.run(job_with_volumes());
  CHECK(has(second.out, "j-worker-0 | 0\n"));
  CHECK(text_of_file(local.folder() / "volumes/data/1") == "kept\n");
  CHECK_FALSE(fs::exists("/claims"));
  CHECK_FALSE(fs::exists("/etc/trainyard-test"));
}

TEST_CASE("run: volumes take no root", "[local]") {
  if (::geteuid() != 0) return skip("not root, so the case before has shown it");
  const LocalRun local;
  const Ended ended = run(as_nobody(local, local.command(job_with_volumes())));
  CAPTURE(ended.all());
  if (has(ended.err, "cannot be mounted")) return skip("this kernel gives user namespaces to root alone");
  if (has(ended.err, "Permission denied") && ended.code == 127) return skip("the program lies where nobody may run it");
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-worker-0 | from the secret\n"));
}

TEST_CASE("run: a sidecar's startupProbe sees what the sidecar writes into / itself, without root, too", "[local]") {
  const bool is_root = GENERATE(true, false);
  if (!is_root && ::geteuid() != 0) return skip("not root, so the run before has shown it");
  const LocalRun local;
  ScriptJob job{.worker = "[ -e /trainyard-made ] || echo after"};
  job.pod =
      "volumes: [{name: e, emptyDir: {}}], initContainers: [{name: a, image: none, restartPolicy: Always, command: "
      "[bash, -c, 'touch /trainyard-made; exec sleep 300'], volumeMounts: [{name: e, mountPath: /scratch}], startupProbe: {"
      "periodSeconds: 1, exec: {command: [test, -e, /trainyard-made]}}}], ";
  const Command command = local.command(job.yaml());
  const Ended ended = run(is_root ? command : as_nobody(local, command));
  CAPTURE(is_root, ended.all());
  if (has(ended.err, "cannot be mounted")) return skip("this kernel gives user namespaces to root alone");
  if (has(ended.err, "Permission denied") && ended.code == 127) return skip("the program lies where nobody may run it");
  CHECK(ended.code == 0);
  CHECK_FALSE(has(ended.err, "startupProbe"));
  CHECK(has(ended.out, "j-worker-0 | after\n"));
}

TEST_CASE("run: what an init container writes is mounted by its subPath as it is", "[local]") {
  const LocalRun local;
  ScriptJob job{.worker = "cat /etc/app/conf.ini /etc/app/kept"};
  job.pod =
      "volumes: [{name: w, emptyDir: {}}, {name: p, persistentVolumeClaim: {claimName: data}}], initContainers: [{name: "
      "fetch, image: none, command: [bash, -c, 'echo lr=1 >/w/conf.ini; echo claim >/p/kept'], volumeMounts: [{name: w, "
      "mountPath: /w}, {name: p, mountPath: /p}]}], ";
  job.container =
      "volumeMounts: [{name: w, mountPath: /etc/app/conf.ini, subPath: conf.ini}, {name: p, mountPath: /etc/app/kept, "
      "subPath: kept}], ";
  const Ended ended = local.run(job.yaml());
  CAPTURE(ended.all());
  if (has(ended.err, "cannot be mounted")) return skip("this kernel lets nobody mount");
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "j-worker-0 | lr=1\n"));
  CHECK(has(ended.out, "j-worker-0 | claim\n"));
  CHECK(fs::is_regular_file(local.folder() / "volumes/data/kept"));
}
