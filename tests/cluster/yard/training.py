"""A training job as a user makes one: an overlay over kustomize/base, applied by kubectl, in a namespace of its own."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

import yaml

from kube import wait_until

from .cluster import ClusterError

ROOT = Path(__file__).resolve().parents[3]
API = "kubeflow.org/v1"
TRAIN = {
    "model": {"preset": "qwen3-tiny"}, "data": {"path": "embedded", "tokenizer": "bytes"},
    "training": {"steps": 400, "batch_size": 2, "sequence_length": 64},
    "optimizer": {"lr": 0.004, "warmup_steps": 20},
    "checkpoint": {"dir": "/checkpoints", "interval": 40},
    "metrics": {"dir": "/checkpoints/metrics", "interval": 10},
}


def settings(**sections):
    """TRAIN with other values: settings(training={"steps": 10})."""
    return {name: {**TRAIN.get(name, {}), **sections.get(name, {})} for name in {**TRAIN, **sections}}


class Training:
    """`train-<name>` in the namespace <name>, with its checkpoints on a claim, of a master and `workers` workers.

    patches: JSON patches of the job, after those of the overlay. labels: of the namespace. base: what the overlay lies over.
    """

    def __init__(self, cluster, name, train=None, workers=2, patches=(), labels=None, claim=True, base="kustomize/base"):
        self.cluster, self.namespace, self.name = cluster, name, f"train-{name}"
        self.client = cluster.client()
        self._folder = tempfile.TemporaryDirectory(prefix="trainyard-overlay-")
        self.train, self._workers, self._patches, self._claim = train or TRAIN, workers, list(patches), claim
        self._labels, self._base = labels or {}, base

    def __enter__(self):
        self.client.apply({"apiVersion": "v1", "kind": "Namespace",
                           "metadata": {"name": self.namespace, "labels": self._labels}})
        return self

    def __exit__(self, *_):
        self._folder.cleanup()
        self.kubectl("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found", check=False)

    # -- what the user does

    def apply(self):
        self.write()
        return self.kubectl("apply", "-k", self._folder.name)

    def delete(self):
        return self.kubectl("delete", "-k", self._folder.name)

    def write(self):
        """The overlay's folder, as `kubectl apply -k` takes it."""
        folder = Path(self._folder.name)
        # Half a core each: two of the three nodes are to hold a gang when the third is away.
        less = [{"op": "replace", "value": "500m",
                 "path": f"/spec/pytorchReplicaSpecs/{role}/template/spec/containers/0/resources/requests/cpu"}
                for role in ("Master", "Worker")]
        patches = [{"op": "replace", "path": "/spec/pytorchReplicaSpecs/Worker/replicas", "value": self._workers},
                   *less, *self._patches]
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "namespace": self.namespace, "nameSuffix": f"-{self.namespace}", "resources": [self._relative(self._base)],
            "components": [self._relative("kustomize/components/claim")] if self._claim else [],
            "configMapGenerator": [{"name": "train", "behavior": "merge", "files": ["train.yaml"]}],
            "patches": [{"target": {"kind": "PyTorchJob"}, "patch": json.dumps(patches)}],
        }
        (folder / "kustomization.yaml").write_text(json.dumps(overlay))
        (folder / "train.yaml").write_text(yaml.safe_dump(self.train))
        return folder

    def change(self, *patches):
        """A JSON patch of the job that is there."""
        return self.client.patch(API, "PyTorchJob", self.name, list(patches), self.namespace)

    def kubectl(self, *words, **named):
        return self.cluster.kubectl("--namespace", self.namespace, *words, **named)

    def _relative(self, path):
        return os.path.relpath(ROOT / path, os.path.realpath(self._folder.name))

    # -- what the user sees

    def status(self):
        return (self.client.get(API, "PyTorchJob", self.name, self.namespace) or {}).get("status") or {}

    def state(self):
        conditions = [each for each in self.status().get("conditions") or [] if each["status"] == "True"]
        return conditions[-1]["type"] if conditions else None

    def restarts(self):
        """(count, disruptions) of all restarts so far."""
        restarts = self.status().get("restarts") or {}
        return restarts.get("count", 0), restarts.get("disruptions", 0)

    def pods(self):
        return self.client.list("v1", "Pod", self.namespace)

    def pod(self, role, index=0):
        return self.client.get("v1", "Pod", f"{self.name}-{role}-{index}", self.namespace)

    def node_of(self, role, index=0):
        """None where there is no such pod now, or no node for it."""
        return ((self.pod(role, index) or {}).get("spec") or {}).get("nodeName")

    def events(self):
        """All messages about the job and its pods, as `kubectl describe` shows them."""
        return [f"{each['reason']}: {each.get('message', '')}" for each in self.client.list("v1", "Event", self.namespace)]

    def log(self, role="master", index=0, *words):
        return self.kubectl("logs", f"{self.name}-{role}-{index}", *words, check=False)

    def wait_for(self, state, timeout=120):
        self.wait_until(f"to be {state}", lambda: self.state() == state, timeout)

    def wait_for_step(self, step, timeout=120):
        self.wait_until(f"to reach step {step}", lambda: self.last_step() >= step, timeout)

    def wait_until(self, what, condition, timeout):
        """`what` it is waited for to do. Where that was in vain its story is told."""
        try:
            wait_until(f"{self.name} {what}", condition, timeout)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def story(self):
        """What one wants to read when a test has failed."""
        told = [self.kubectl("get", "pytorchjob,pods,pvc", "-o", "wide", check=False),
                json.dumps(self.status(), indent=1), *self.events()[-25:]]
        for pod in self.pods():
            told += [f"-- {pod['metadata']['name']}",
                     self.kubectl("logs", pod["metadata"]["name"], "--tail=15", check=False)]
        return "\n".join(told)

    # -- what is on its volume

    def volume(self):
        """The folder that is /checkpoints to the pods."""
        claims = self.client.list("v1", "PersistentVolumeClaim", self.namespace)
        name = next((each["spec"].get("volumeName") for each in claims), None)
        return self.cluster.folder / "volumes" / name if name else None

    def metrics(self):
        """All steps that count, in order: what a run that was resumed repeats is there once."""
        volume = self.volume()
        file = volume / "metrics/metrics.jsonl" if volume else None
        if not file or not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]

    def last_step(self):
        return max((each["step"] for each in self.metrics()), default=0)

    def checkpoints(self):
        return sorted(int(each.name.partition("-")[2]) for each in self.volume().glob("step-*"))


def paced(train, ranks, seconds):
    """`train` with a batch of which a step takes about so long on this machine: of a training that is over before the
    cluster has noticed what happened, a test learns nothing."""
    tried, steps, warm = 12, 40, 10
    with_batch = lambda size, **other: {**train, "training": {**train["training"], "batch_size": size, **other}}
    times = [each["time"] for each in undisturbed(with_batch(tried, steps=steps), ranks)]
    return with_batch(max(1, round(tried * seconds * (steps - 1 - warm) / (times[-1] - times[warm]))))


def undisturbed(train, ranks):
    """The metrics, step by step, of the same training as processes of this machine, which nothing happens to."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "train.yaml"
        config.write_text(yaml.safe_dump({**train, "checkpoint": {"enabled": False},
                                          "metrics": {"dir": f"{folder}/metrics", "interval": 100}}))
        done = subprocess.run([ROOT / "build/release/bin/trainyard", "launch", "--nproc-per-node", str(ranks), "train",
                               "--config", config], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise ClusterError(f"the reference run ended with {done.returncode}: {done.stderr[-2000:]}")
        return [json.loads(line) for line in (Path(folder) / "metrics/metrics.jsonl").read_text().splitlines()]
