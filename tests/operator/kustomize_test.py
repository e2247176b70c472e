#!/usr/bin/env python3
"""Every overlay of kustomize/ as kubectl renders it: the real API server takes it, `validate` and `config check` find nothing,
the operator makes its pods, also in a restricted namespace, and patches at the usual paths hold.

usage: kustomize_test.py OPERATOR TRAINYARD
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

from kube import ControlPlane, OperatorProcess, wait_until
from kube.jobs import JOB_LABEL

ROOT = Path(__file__).resolve().parents[2]
OPERATOR, TRAINYARD = sys.argv[1:3]
OVERLAYS = sorted(path for path in (ROOT / "kustomize/overlays").iterdir())
REPLICAS = "/spec/pytorchReplicaSpecs"
USERS_PATCHES = f"""
resources: [../kustomize/base]
patches:
  - target: {{kind: PyTorchJob}}
    patch: |
      - {{op: replace, path: {REPLICAS}/Worker/replicas, value: 3}}
      - {{op: replace, path: {REPLICAS}/Master/template/spec/containers/0/args/0, value: "echo one\\necho two"}}
      - {{op: replace, path: {REPLICAS}/Worker/template/spec/containers/0/args/0, value: "echo $(pwd)"}}
      - {{op: add, path: {REPLICAS}/Master/template/spec/affinity, value: {{nodeAffinity: {{}}}}}}
      - {{op: add, path: {REPLICAS}/Worker/template/spec/affinity, value: {{nodeAffinity: {{}}}}}}
"""


class Kustomize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"]))
        cls.admin = cls.cluster.client()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(dir=ROOT / "build")))

    def render(self, folder):
        done = subprocess.run(["kubectl", "kustomize", folder], env=self.cluster.environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), folder)
        return done.stdout

    def must_pass(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def create(self, text, namespace):
        """Its job, in a namespace that takes restricted pods alone."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        for thing in yaml.safe_load_all(text):
            thing["metadata"]["namespace"] = namespace
            made = self.admin.create(thing)
            if made["kind"] == "PyTorchJob":
                job = made
        return job

    def test_every_overlay(self):
        self.assertGreater(len(OVERLAYS), 8)
        with OperatorProcess(OPERATOR, self.cluster.kubeconfig, self.cluster.folder / "operator.log") as operator:
            for overlay in OVERLAYS:
                with self.subTest(overlay.name):
                    self.check(overlay)
            operator.must_be_running()

    def check(self, overlay):
        text = self.render(overlay)
        file = self.folder / "overlay.yaml"
        file.write_text(text)
        self.must_pass(OPERATOR, "validate", "-f", file)
        namespace = overlay.name.replace(".", "-")
        job = self.create(text, namespace)
        for config in self.admin.list("v1", "ConfigMap", namespace):
            if "train.yaml" in config["data"]:
                file.write_text(config["data"]["train.yaml"])
                self.must_pass(TRAINYARD, "config", "check", "--config", file)
                self.check_gpus(job, yaml.safe_load(config["data"]["train.yaml"]))
        wanted = sum(replica["replicas"] for replica in job["spec"]["pytorchReplicaSpecs"].values())
        selector = f"{JOB_LABEL}={job['metadata']['name']}"
        wait_until(f"{wanted} pods of {overlay.name}",
                   lambda: len(self.admin.list("v1", "Pod", namespace, selector)) == wanted, 60)
        self.check_references(self.admin.list("v1", "Pod", namespace, selector), namespace)

    def check_gpus(self, job, config):
        """Who asks for GPUs does not train without, and has the time for a checkpoint and memory for the host's side."""
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            spec = replica["template"]["spec"]
            resources = spec["containers"][0]["resources"]
            if "nvidia.com/gpu" in resources.get("limits", {}):
                self.assertEqual(config["device"], {"kind": "cuda"})
                self.assertEqual(spec["terminationGracePeriodSeconds"], 600)
                self.assertEqual(resources["requests"], {"1": {"cpu": "2", "memory": "8Gi"}, "8": {"cpu": "64", "memory": "256Gi"}}[
                    resources["limits"]["nvidia.com/gpu"]])

    def check_references(self, pods, namespace):
        """What pods mount has the name that kustomize gave it."""
        for volume in (volume for pod in pods for volume in pod["spec"]["volumes"]):
            if "configMap" in volume and volume["name"] == "config":
                self.assertTrue(self.admin.get("v1", "ConfigMap", volume["configMap"]["name"], namespace), volume)
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                self.assertTrue(self.admin.get("v1", "PersistentVolumeClaim", claim, namespace), volume)

    def test_elastic_gang_is_scaled(self):
        """By kubectl, up and down: each time a new generation, whose pods all know the new size."""
        job = self.create(self.render(ROOT / "kustomize/overlays/elastic"), "scaled")["metadata"]["name"]

        def pods():
            found = {}
            for pod in self.admin.list("v1", "Pod", "scaled", f"{JOB_LABEL}={job}"):
                environment = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
                found[pod["metadata"]["name"]] = tuple(environment[name] for name in
                                                       ("RANK", "WORLD_SIZE", "PET_NNODES", "PET_RDZV_ENDPOINT", "TRAINYARD_GENERATION"))
            return found

        def wanted(size, generation):
            return {f"{job}-worker-{rank}": (str(rank), str(size), "1:8", f"{job}-worker-0:23456", str(generation)) for rank in range(size)}

        with OperatorProcess(OPERATOR, self.cluster.kubeconfig, self.cluster.folder / "scaling.log"):
            wait_until("the workers", lambda: pods() == wanted(2, 1), 60)
            for size, generation in ((4, 2), (1, 3)):
                self.must_pass("kubectl", "--kubeconfig", self.cluster.kubeconfig, "-n", "scaled", "scale", "pytorchjob", job, f"--replicas={size}")
                wait_until(f"{size} workers", lambda: pods() == wanted(size, generation), 60)
            restarts = self.admin.get("kubeflow.org/v1", "PyTorchJob", job, "scaled")["status"]["restarts"]
            self.assertEqual((restarts["generation"], restarts.get("count", 0), restarts.get("disruptions", 0)), (3, 0, 0))

    def overlay(self, name, text):
        """A user's, beside kustomize/; what kubectl makes of it."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(text.replace("../kustomize", "../../../kustomize"))
        return self.render(folder)

    def test_a_line_makes_pods_nodes_of_gpus(self):
        """Over the base, over an overlay of a GPU each, and over one that says how many ranks a pod has."""
        with OperatorProcess(OPERATOR, self.cluster.kubeconfig, self.cluster.folder / "nodes.log"):
            for below in ("base", "overlays/fsdp", "overlays/hsdp"):
                with self.subTest(below):
                    self.check_nodes_of_gpus(below, f"nodes-of-{below.rpartition('/')[2]}")

    def check_nodes_of_gpus(self, below, namespace):
        job = self.create(self.overlay(namespace, f"resources: [../kustomize/{below}]\n"
                                                  "components: [../kustomize/components/gpu-node]\n"), namespace)
        replicas = job["spec"]["pytorchReplicaSpecs"].values()
        nodes = sum(replica["replicas"] for replica in replicas)
        selector = f"{JOB_LABEL}={job['metadata']['name']}"
        pods = wait_until("the pods", lambda: (found := self.admin.list("v1", "Pod", namespace, selector)) and len(found) == nodes and found, 60)
        for pod in pods:
            container = pod["spec"]["containers"][0]
            environment = {entry["name"]: entry for entry in container["env"]}
            self.assertEqual(container["image"], "trainyard-cuda:0.1.0")
            self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": "8"})
            self.assertEqual((environment["PET_NPROC_PER_NODE"]["value"], environment["PET_NNODES"]["value"]), ("gpu", str(nodes)))
            self.assertEqual(environment["TRAINYARD_CPUS"]["valueFrom"]["resourceFieldRef"]["resource"], "requests.cpu")
            self.assertNotIn("OMP_NUM_THREADS", environment)
            self.assertIn({"name": "shared-memory", "emptyDir": {"medium": "Memory"}}, pod["spec"]["volumes"])

    def test_recipes_of_the_page(self):
        """Two nodes of GPUs, with the cards of InfiniBand: docs/kustomize.md, as a user copies it."""
        page = (ROOT / "docs/kustomize.md").read_text()
        nodes, cards = (re.search(rf"^{heading}\n.*?```yaml\n(.*?)```", page, re.MULTILINE | re.DOTALL)[1]
                        for heading in ("## GPUs", "### InfiniBand and RoCE"))
        both = cards + "".join(cards.splitlines(keepends=True)[3:]).replace("/Master/", "/Worker/")
        job, = (thing for thing in yaml.safe_load_all(self.overlay("cards", nodes + both.replace("patches:\n", "")))
                if thing["kind"] == "PyTorchJob")
        file = self.folder / "cards.yaml"
        file.write_text(yaml.safe_dump(job))
        self.must_pass(OPERATOR, "validate", "-f", file)
        self.assertEqual([replica["replicas"] for replica in job["spec"]["pytorchReplicaSpecs"].values()], [1, 1])
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            container = replica["template"]["spec"]["containers"][0]
            self.assertEqual(replica["template"]["metadata"], {"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}})
            self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": "8", "rdma/hca": "1"})
            self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"], "add": ["IPC_LOCK"]})
            self.assertEqual([entry["name"] for entry in container["env"]], ["TRAINYARD_CPUS", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"])

    def test_patches_that_users_have_hold(self):
        job = self.create(self.overlay("theirs", USERS_PATCHES), "theirs")
        replicas = job["spec"]["pytorchReplicaSpecs"]
        containers = {name: replica["template"]["spec"]["containers"][0] for name, replica in replicas.items()}
        self.assertEqual(replicas["Worker"]["replicas"], 3)
        self.assertEqual(containers["Master"]["args"], ["echo one\necho two"])
        self.assertEqual(containers["Worker"]["args"], ["echo $(pwd)"])
        self.assertEqual(json.dumps(replicas).count("nodeAffinity"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
