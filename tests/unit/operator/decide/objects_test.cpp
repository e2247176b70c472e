#include <catch2/catch.hpp>

#include "decide/objects/names.h"
#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;

namespace {

Json created(const Plan& plan, Kind kind, const std::string& name) {
  for (const auto* list : {&plan.prepare, &plan.creates})
    for (const Create& one : *list)
      if (one.kind == kind && one.name == name) return one.object;
  return {};
}

std::vector<std::string> environment(const Json& pod, size_t container = 0) {
  std::vector<std::string> entries;
  for (const Json& one : pod.at("spec").at("containers").at(container).at("env"))
    entries.push_back(one.at("name").get<std::string>() + "=" + one.value("value", "<secret>"));
  return entries;
}

std::string template_of(const World& world) {
  return template_digest_of(world.job.spec.replicas.at(api::ReplicaType::Worker));
}

}  // namespace

TEST_CASE("a worker's environment comes in the contract's order, ours after it", "[decide]") {
  World world(spec_of(2, {{"nprocPerNode", "4"}}));
  world.settings.progress_url = "https://op/progress";
  world.settings.progress_ca = "PEM";
  CHECK(environment(created(world.look(), Kind::Pod, "job-worker-1")) ==
        std::vector<std::string>{"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456",
                                 "MASTER_ADDR=job-master-0", "PET_MASTER_ADDR=job-master-0", "WORLD_SIZE=12", "RANK=2",
                                 "PET_NODE_RANK=2", "PET_NPROC_PER_NODE=4", "PET_NNODES=3", "TRAINYARD_GENERATION=1",
                                 "TRAINYARD_TEMPLATE=" + template_of(world), "TRAINYARD_JOB_TOKEN=<secret>",
                                 "TRAINYARD_PROGRESS_URL=https://op/progress/ns/job",
                                 "TRAINYARD_PROGRESS_CA=PEM"});
}

TEST_CASE("each pod is made with the authorities that the operator has at that time", "[decide]") {
  World world(spec_of(1));
  world.settings.progress_url = "https://op/progress";
  world.settings.progress_ca = "old";
  world.settle();
  world.run_all();
  world.settle();
  world.settings.progress_ca = "new";
  world.end("job-worker-0", 1);
  Plan plan = world.look();
  for (int looks = 0; looks < 3 && plan.creates.empty(); ++looks) {
    world.carry_out(plan);
    plan = world.look();
  }
  const auto last = environment(created(plan, Kind::Pod, "job-worker-0")).back();
  CHECK(last == "TRAINYARD_PROGRESS_CA=new");
}

TEST_CASE("what a pod needs for EFA is passed on as it is written", "[decide]") {
  Json spec = spec_of(1);
  Json& container = spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
  container["resources"] = {{"limits", {{"nvidia.com/gpu", "8"}, {"vpc.amazonaws.com/efa", "4"},
                                        {"hugepages-2Mi", "5120Mi"}}}};
  container["securityContext"] = {{"runAsUser", 0}, {"capabilities", {{"add", {"IPC_LOCK"}}}}};
  World world(spec);
  const Json pod = created(world.look(), Kind::Pod, "job-worker-0");
  for (const char* const field : {"resources", "securityContext"})
    CHECK(pod.at("spec").at("containers").at(0).at(field) == container.at(field));
}

TEST_CASE("an elastic job gets its rendezvous, and without a master ranks too", "[decide]") {
  Json spec = spec_of(2);
  spec["pytorchReplicaSpecs"].erase("Master");
  spec["elasticPolicy"] = {{"minReplicas", 1},
                           {"maxReplicas", 3},
                           {"maxRestarts", 5},
                           {"rdzvId", "x"},
                           {"rdzvPort", 29400},
                           {"standalone", true},
                           {"rdzvConf", {{{"key", "a"}, {"value", "1"}}, {{"key", "b"}, {"value", "2"}}}}};
  World world(spec);
  CHECK(environment(created(world.look(), Kind::Pod, "job-worker-1")) ==
        std::vector<std::string>{"PYTHONUNBUFFERED=1", "WORLD_SIZE=2", "RANK=1", "PET_NPROC_PER_NODE=auto",
                                 "PET_RDZV_ENDPOINT=job-worker-0:29400", "PET_RDZV_BACKEND=c10d", "PET_NNODES=1:3",
                                 "PET_MAX_RESTARTS=5", "PET_RDZV_ID=x", "PET_RDZV_CONF=a=1,b=2",
                                 "PET_STANDALONE=", "TRAINYARD_GENERATION=1", "TRAINYARD_TEMPLATE=" + template_of(world),
                                 "TRAINYARD_JOB_TOKEN=<secret>"});
}

TEST_CASE("workers wait for the master in an init container, unless the job or the operator leaves it out",
          "[decide]") {
  const auto has_it = [](const World& world, const std::string& name) {
    return created(world.look(), Kind::Pod, name).at("spec").contains("initContainers");
  };
  World world(spec_of(1));
  CHECK(has_it(world, "job-worker-0"));
  CHECK_FALSE(has_it(world, "job-master-0"));
  CHECK(
      created(world.look(), Kind::Pod, "job-worker-0").at("/spec/initContainers/0/command/2"_json_pointer) ==
      "err=1;for i in $(seq 100); do if nslookup job-master-0; then err=0 && break; fi;echo waiting for master; sleep "
      "2; done; exit $err");
  world.settings.init_container = false;
  CHECK_FALSE(has_it(world, "job-worker-0"));
  CHECK_FALSE(has_it(World(spec_of(1), {{"trainyard.dev/init-container", "false"}}), "job-worker-0"));
  Json spec = spec_of(1);
  const Json own = {{"name", "init-pytorch"}, {"image", "ours"}};
  spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] = Json::array({own});
  const Json inits = created(World(spec).look(), Kind::Pod, "job-worker-0").at("spec").at("initContainers");
  CHECK((inits.size() == 1 && inits[0].at("image") == "ours"));  // two of one name are refused
  world = World(spec_of(1));
  world.settings.init_template = Json{{{"name", "wait"}, {"args", {"for", "trainyard-master-addr:1"}}}};
  CHECK(created(world.look(), Kind::Pod, "job-worker-0").at("/spec/initContainers/0/args/1"_json_pointer) ==
        "job-master-0:1");
}

TEST_CASE("the init container has no more rights than the job's own container, and is root only where that may be",
          "[decide]") {
  const auto rights_of = [](const Json& pod_context, const Json& container_context) {
    Json spec = spec_of(1);
    Json& pod = spec.at("/pytorchReplicaSpecs/Worker/template/spec"_json_pointer);
    if (!pod_context.is_null()) pod["securityContext"] = pod_context;
    if (!container_context.is_null()) pod["containers"][0]["securityContext"] = container_context;
    return created(World(spec).look(), Kind::Pod, "job-worker-0")
        .at("/spec/initContainers/0/securityContext"_json_pointer);
  };
  Json least = {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}};
  CHECK(rights_of(nullptr, nullptr) == least);
  CHECK(rights_of({{"runAsNonRoot", true}, {"runAsUser", 1000}}, {{"privileged", true}}) == least);
  const Json own = {{"runAsNonRoot", true}, {"runAsUser", 7}, {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  Json wanted = least;
  wanted.update(own);
  CHECK(rights_of(nullptr, own) == wanted);
  CHECK(rights_of({{"runAsNonRoot", "yes"}}, nullptr) == least);  // refused by the API, and no harm here
  least["runAsUser"] = 65532;
  CHECK(rights_of({{"runAsNonRoot", true}}, nullptr) == least);
}

TEST_CASE("pods and services carry the labels that users, Kueue and selectors read", "[decide]") {
  World world(spec_of(1));
  const Plan plan = world.look();
  const Json pod = created(plan, Kind::Pod, "job-worker-0"), service = created(plan, Kind::Service, "job-worker-0");
  const Json labels = {{"training.kubeflow.org/operator-name", "pytorchjob-controller"},
                       {"training.kubeflow.org/job-name", "job"},
                       {"training.kubeflow.org/replica-type", "worker"},
                       {"training.kubeflow.org/replica-index", "0"}};
  CHECK(pod.at("metadata").at("labels") == labels);
  CHECK(service.at("spec").at("selector") == labels);
  CHECK(service.at("spec").at("clusterIP") == "None");
  CHECK(service.at("spec").at("publishNotReadyAddresses") == true);
  CHECK(created(plan, Kind::Pod, "job-master-0").at("metadata").at("labels").at("training.kubeflow.org/job-role") ==
        "master");
  for (const Json& object : {pod, service}) {
    const Json& owner = object.at("metadata").at("ownerReferences").at(0);
    CHECK(owner.at("uid") == world.job.uid);
    CHECK(owner.at("controller") == true);
    CHECK(owner.at("blockOwnerDeletion") == true);
  }
}

TEST_CASE("a service has its container's ports with a name and a number each, and the ranks meet at one of them",
          "[decide]") {
  struct Row {
    const char* situation;
    const char* ports;
    const char* of_service;
    const char* meets_at;
  };
  const auto row = GENERATE(values<Row>({
      {"none", "[]", R"([{"name": "pytorchjob-port", "port": 23456}])", "23456"},
      {"the meeting port under another name", R"([{"containerPort": 23456, "name": "c10d"}])",
       R"([{"name": "c10d", "port": 23456}])", "23456"},
      {"another meeting port", R"([{"containerPort": 7000, "name": "pytorchjob-port"}])",
       R"([{"name": "pytorchjob-port", "port": 7000}])", "7000"},
      {"both: the name decides",
       R"([{"containerPort": 23456, "name": "c10d"}, {"containerPort": 7000, "name": "pytorchjob-port"}])",
       R"([{"name": "c10d", "port": 23456}, {"name": "pytorchjob-port", "port": 7000}])", "7000"},
      {"without a name", R"([{"containerPort": 6006}])",
       R"([{"name": "port-6006", "port": 6006}, {"name": "pytorchjob-port", "port": 23456}])", "23456"},
      {"without a name, and another has the one made up",
       R"([{"containerPort": 6006}, {"containerPort": 80, "name": "port-6006"}])",
       R"([{"name": "port-6006-tcp", "port": 6006}, {"name": "port-6006", "port": 80},
           {"name": "pytorchjob-port", "port": 23456}])",
       "23456"},
      {"UDP and TCP on one number", R"([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}])",
       R"([{"name": "port-53", "port": 53}, {"name": "port-53-udp", "port": 53, "protocol": "UDP"},
           {"name": "pytorchjob-port", "port": 23456}])",
       "23456"},
      {"23456 over UDP", R"([{"containerPort": 23456, "protocol": "UDP"}])",
       R"([{"name": "port-23456", "port": 23456, "protocol": "UDP"}, {"name": "pytorchjob-port", "port": 23456}])",
       "23456"},
  }));
  CAPTURE(row.situation);
  Json spec = spec_of(1);
  Json& container = spec["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0];
  container["ports"] = Json::parse(row.ports);
  World world(spec);
  const Plan plan = world.look();
  CHECK(created(plan, Kind::Service, "job-master-0").at("spec").at("ports") == Json::parse(row.of_service));
  CHECK(environment(created(plan, Kind::Pod, "job-worker-0")).at(1) == std::string("MASTER_PORT=") + row.meets_at);
}

TEST_CASE("under gang scope pods are never restarted in place, and under replica scope as the job says", "[decide]") {
  const auto [scope, given, expected] =
      GENERATE(table<RestartScope, std::string, std::string>({{RestartScope::Gang, "OnFailure", "Never"},
                                                              {RestartScope::Gang, "Always", "Never"},
                                                              {RestartScope::Replica, "OnFailure", "OnFailure"},
                                                              {RestartScope::Replica, "Always", "Always"},
                                                              {RestartScope::Replica, "ExitCode", "Never"}}));
  World world(spec_of(1, Json::object(), given));
  world.settings.restart_scope = scope;
  CHECK(created(world.look(), Kind::Pod, "job-master-0").at("spec").at("restartPolicy") == expected);
  World annotated(spec_of(1, Json::object(), given),
                  {{"trainyard.dev/restart-scope", scope == RestartScope::Gang ? "gang" : "replica"}});
  annotated.settings.restart_scope = scope == RestartScope::Gang ? RestartScope::Replica : RestartScope::Gang;
  CHECK(created(annotated.look(), Kind::Pod, "job-master-0").at("spec").at("restartPolicy") == expected);
}

TEST_CASE("a network policy is made where the job asks for it, and lets only its own pods in", "[decide]") {
  World world(spec_of(1), {{"trainyard.dev/network-policy", "true"}});
  const Json policy = created(world.look(), Kind::NetworkPolicy, network_policy_name(world.job));
  CHECK(policy.at("/spec/podSelector/matchLabels"_json_pointer).at(kJobNameLabel) == "job");
  CHECK(policy.at("/spec/ingress/0/from/0/podSelector"_json_pointer) == policy.at("spec").at("podSelector"));
  CHECK(created(World(spec_of(1)).look(), Kind::NetworkPolicy, network_policy_name(world.job)).is_null());
}

TEST_CASE("templates' settings that give way draw a warning each, once", "[decide]") {
  Json spec = spec_of(1);
  spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] = "Always";
  World world(spec);
  world.settle();
  world.run_all();
  world.settle();
  CHECK(world.said("SetPodTemplateRestartPolicy").size() == 1);
}

TEST_CASE("a container that does not say so itself is quoted from the end of its log", "[decide]") {
  Json spec = spec_of(1);
  Json& pod = spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  pod["containers"].push_back({{"name", "side"}, {"image", "i"}, {"terminationMessagePolicy", "File"}});
  const Json made = created(World(spec).look(), Kind::Pod, "job-worker-0");
  CHECK(made.at("/spec/containers/0/terminationMessagePolicy"_json_pointer) == "FallbackToLogsOnError");
  CHECK(made.at("/spec/containers/1/terminationMessagePolicy"_json_pointer) == "File");
  CHECK(made.at("/spec/initContainers/0/terminationMessagePolicy"_json_pointer) == "FallbackToLogsOnError");
}
