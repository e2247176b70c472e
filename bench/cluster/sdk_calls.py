"""The calls of kubeflow.training.TrainingClient that a user makes, in the order of a job's life.

What cannot be shown here: TrainingClient.train(), whose two images (Hugging Face's, gigabytes) come from a registry,
and a train_func that computes. Our image has no Python, so a bash script stands in for torchrun and tells what it was given.
"""
import copy
from contextlib import redirect_stdout
from importlib import metadata
from io import StringIO

import yaml
from kubeflow.training import (KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, KubeflowOrgV1ReplicaSpec,
                               KubeflowOrgV1RunPolicy, TrainingClient)
from kubernetes import client as k8s
from yard.training import settings

NAMESPACE, IMAGE = "sdk", "trainyard:0.1.0"
OWN_INIT = {"trainyard.dev/init-container": "false"}  # the trainer waits for its master by itself
TORCHRUN = r"""#!/bin/bash
echo "node $PET_NODE_RANK of $PET_NNODES, $PET_NPROC_PER_NODE processes each, master $MASTER_ADDR:$MASTER_PORT"
cat "$1"
"""


def try_all(cluster, steps):
    steps.story = lambda: cluster.kubectl("-n", NAMESPACE, "describe", "pytorchjobs,pods", check=False)[-12000:]
    cluster.client().apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    client = TrainingClient(config_file=str(cluster.kubeconfig), namespace=NAMESPACE)
    steps.tell("the SDK", ", ".join(f"{name} {metadata.version(name)}" for name in ("kubeflow-training", "kubernetes")))
    try:
        provide(client)
        a_job_to_its_end(client, steps)
        looked_at_when_it_has_ended(client, steps)
        suspended_and_resumed(client, steps)
        what_is_refused_or_fails(client, steps)
        from_an_image(client, steps)
        from_a_function(client, steps)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


# -- what jobs are made of

def provide(client):
    """The configurations and the volume that the jobs name."""
    short, endless = settings(training={"steps": 60}), settings(training={"steps": 100_000})
    files = {"short": {"train.yaml": yaml.safe_dump(short)}, "torchrun": {"torchrun": TORCHRUN},
             "endless": {"train.yaml": yaml.safe_dump({**endless, "metrics": {"interval": 10}})}}
    for name, data in files.items():
        client.core_api.create_namespaced_config_map(
            NAMESPACE, k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name), data=data))
    size = k8s.V1VolumeResourceRequirements(requests={"storage": "1Gi"})
    for name in ("short", "endless"):
        client.core_api.create_namespaced_persistent_volume_claim(NAMESPACE, k8s.V1PersistentVolumeClaim(
            metadata=k8s.V1ObjectMeta(name=name),
            spec=k8s.V1PersistentVolumeClaimSpec(access_modes=["ReadWriteMany"], resources=size)))


def volumes(name):
    claim = k8s.V1PersistentVolumeClaimVolumeSource(claim_name=name)
    return [k8s.V1Volume(name="config", config_map=k8s.V1ConfigMapVolumeSource(name=name)),
            k8s.V1Volume(name="checkpoints", persistent_volume_claim=claim)]


MOUNTS = [k8s.V1VolumeMount(name="config", mount_path="/etc/trainyard"),
          k8s.V1VolumeMount(name="checkpoints", mount_path="/checkpoints")]


def job(name, settings_name, command=("trainyard", "train", "--config", "/etc/trainyard/train.yaml")):
    container = k8s.V1Container(name="pytorch", image=IMAGE, command=list(command), volume_mounts=MOUNTS,
                                resources=k8s.V1ResourceRequirements(requests={"cpu": "500m", "memory": "512Mi"}))
    replica = KubeflowOrgV1ReplicaSpec(
        replicas=1, restart_policy="OnFailure", template=k8s.V1PodTemplateSpec(spec=k8s.V1PodSpec(
            containers=[container], volumes=volumes(settings_name),
            security_context=k8s.V1PodSecurityContext(run_as_non_root=True, fs_group=65532))))
    return KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1", kind="PyTorchJob",
        metadata=k8s.V1ObjectMeta(name=name, namespace=NAMESPACE, annotations=OWN_INIT),
        spec=KubeflowOrgV1PyTorchJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None", backoff_limit=1),
            pytorch_replica_specs={"Master": replica, "Worker": copy.deepcopy(replica)}))


# -- chapters

def a_job_to_its_end(client, steps):
    steps.chapter("A job of the trainer, to its end")
    client.create_job(job=job("short", "short"))
    steps.until("create_job(job), is_job_created", lambda: client.is_job_created("short"))
    wait(client, steps, "short", "Running")
    steps.expect("is_job_running", client.is_job_running("short"), True)
    steps.expect("get_job_pod_names", sorted(client.get_job_pod_names("short")), ["short-master-0", "short-worker-0"])
    steps.expect("… is_master", client.get_job_pod_names("short", is_master=True), ["short-master-0"])
    steps.expect("… replica_type, replica_index",
                 client.get_job_pod_names("short", replica_type="worker", replica_index=0), ["short-worker-0"])
    logs = followed(client, "short")
    steps.expect("get_job_logs(follow=True), pods", list(logs), ["short-master-0"])
    log = logs["short-master-0"]
    steps.expect("… its steps", log.count("step: "), 6)
    steps.expect("… its last words", log[-200:], lambda _: "Training completed! 60 steps" in log)


def looked_at_when_it_has_ended(client, steps):
    steps.chapter("Looked at when it has ended, and deleted")
    wait(client, steps, "short", "Succeeded")
    steps.expect("is_job_succeeded, _running, _restarting, _failed", states(client, "short"),
                 (True, False, False, False))
    steps.expect("get_job_conditions", [each.type for each in client.get_job_conditions("short")],
                 ["Created", "Running", "Succeeded"])
    seen = client.get_job("short")
    succeeded = {role: each.succeeded for role, each in seen.status.replica_statuses.items()}
    steps.expect("get_job, replica_statuses", succeeded, lambda counts: counts["Master"] == 1)
    steps.expect("… from start_time to completion_time", str(seen.status.completion_time - seen.status.start_time),
                 lambda _: seen.status.completion_time > seen.status.start_time)
    logs, events = client.get_job_logs("short", is_master=False, verbose=True)
    steps.expect("get_job_logs(is_master=False, verbose=True), pods", sorted(logs), ["short-master-0", "short-worker-0"])
    steps.expect("… events of the job", [line.partition(" ")[2] for line in events["pytorchjob/short"]],
                 lambda lines: any("Created pod: short-master-0" in line for line in lines))
    steps.expect("list_jobs", [each.metadata.name for each in client.list_jobs()], ["short"])
    client.delete_job("short")
    steps.until("delete_job, and its pods go", lambda: client.get_job_pod_names("short") == [], 60)
    steps.expect("get_job", error_of(lambda: client.get_job("short")), lambda text: "RuntimeError" in text and "(404)" in text)


def suspended_and_resumed(client, steps):
    steps.chapter("Suspended and resumed by update_job")
    client.create_job(job=job("paused", "endless"))
    wait(client, steps, "paused", "Running")
    steps.until("20 steps", lambda: "step: 20 " in log_of(client, "paused"))
    suspend(client, "paused", True)
    steps.until("update_job, and it is Suspended", lambda: "Suspended" in true_conditions(client, "paused"), 60)
    steps.until("its pods go", lambda: client.get_job_pod_names("paused") == [], 60)
    steps.expect("is_job_running", client.is_job_running("paused"), False)
    suspend(client, "paused", False)
    wait(client, steps, "paused", "Running")
    steps.until("it goes on from its checkpoint", lambda: "Loaded checkpoint from step " in log_of(client, "paused"))
    client.delete_job("paused")
    steps.until("delete_job in the middle of it, and its pods go", lambda: client.get_job_pod_names("paused") == [], 90)


def what_is_refused_or_fails(client, steps):
    steps.chapter("What is refused, and what fails")
    steps.expect("create_job, without a container `pytorch`", error_of(lambda: client.create_job(job=misnamed())),
                 lambda text: "RuntimeError" in text and "pytorch" in text)
    client.create_job(job=job("failing", "short", command=("trainyard", "train", "--config", "/nowhere.yaml")))
    steps.expect("create_job again", error_of(lambda: client.create_job(job=job("failing", "short"))),
                 lambda text: "AlreadyExists" in text)
    steps.expect("wait_for_job_conditions of one that fails",
                 error_of(lambda: client.wait_for_job_conditions("failing", wait_timeout=120, polling_interval=1)),
                 lambda text: "RuntimeError" in text and "is Failed" in text)
    steps.expect("is_job_failed", client.is_job_failed("failing"), True)
    logs, _ = client.get_job_logs("failing", is_master=False)
    steps.expect("get_job_logs", logs, lambda seen: any("/nowhere.yaml" in log for log in seen.values()))
    client.delete_job("failing")


def from_an_image(client, steps):
    steps.chapter("create_job from an image alone")
    client.create_job(name="image", base_image=IMAGE, num_workers=2, num_procs_per_worker=1, annotations=OWN_INIT,
                      resources_per_worker={"cpu": "250m", "memory": "256Mi"}, env_vars={"WHO": "sdk"})
    wait(client, steps, "image", "Succeeded")
    steps.expect("its log: the help of `trainyard`", log_of(client, "image"), lambda text: "train" in text)
    pod = client.get_job_pods("image", is_master=True)[0]
    given = {each.name: each.value for each in pod.spec.containers[0].env}
    steps.expect("its environment", given, lambda env: env["WHO"] == "sdk" and env["PET_NNODES"] == "2"
                 and env["PET_NPROC_PER_NODE"] == "1" and env["WORLD_SIZE"] == "2")
    client.delete_job("image")


def train(parameters):
    print("lr", parameters["lr"])


def from_a_function(client, steps):
    steps.chapter("create_job from a Python function, as far as it goes without Python in the image")
    tools = k8s.V1Volume(name="tools", config_map=k8s.V1ConfigMapVolumeSource(name="torchrun", default_mode=0o555))
    client.create_job(
        name="function", base_image=IMAGE, train_func=train, parameters={"lr": 0.1}, num_workers=3,
        num_procs_per_worker=2, annotations=OWN_INIT, env_vars={"PATH": "/tools:/usr/local/bin:/usr/bin:/bin"}, volumes=[tools],
        volume_mounts=[k8s.V1VolumeMount(name="tools", mount_path="/tools")],
        resources_per_worker={"cpu": "250m", "memory": "256Mi"})
    wait(client, steps, "function", "Succeeded")
    phases = lambda: {each.status.phase for each in client.get_job_pods("function")}
    steps.until("all its pods end", lambda: phases() == {"Succeeded"})
    logs, _ = client.get_job_logs("function", is_master=False)
    for number, (name, log) in enumerate(sorted(logs.items())):
        steps.expect(f"{name} is given", log, lambda text: f"node {number} of 3, 2 processes each" in text
                     and "master function-master-0:23456" in text and "train({'lr': 0.1})" in text)
    steps.expect("get_job_logs, pods", len(logs), 3)
    client.delete_job("function")
    steps.expect("train(), without Hugging Face's packages and images", error_of(lambda: client.train(name="tuned")),
                 lambda text: "ImportError" in text)


# -- helpers

def wait(client, steps, name, condition):
    client.wait_for_job_conditions(name, expected_conditions={condition}, wait_timeout=120, polling_interval=1)
    steps.tell(f"wait_for_job_conditions {{{condition}}}")


def followed(client, name):
    """get_job_logs prints what it follows."""
    with redirect_stdout(StringIO()) as printed:
        logs, _ = client.get_job_logs(name, follow=True)
    assert printed.getvalue().startswith(f"[Pod {name}-master-0]: ")
    return logs


def suspend(client, name, whether):
    changed = client.get_job(name)
    changed.spec.run_policy.suspend = whether
    changed.metadata.resource_version = None  # the operator may have written a status since
    client.update_job(changed, name)


def states(client, name):
    return (client.is_job_succeeded(name), client.is_job_running(name), client.is_job_restarting(name),
            client.is_job_failed(name))


def true_conditions(client, name):
    return [each.type for each in client.get_job_conditions(name) if each.status == "True"]


def log_of(client, name):
    return "".join(client.get_job_logs(name)[0].values())


def misnamed():
    wrong = job("misnamed", "short")
    for replica in wrong.spec.pytorch_replica_specs.values():
        replica.template.spec.containers[0].name = "trainer"
    return wrong


def error_of(call):
    try:
        return f"no error, but {call()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
