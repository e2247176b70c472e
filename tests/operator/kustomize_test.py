#!/usr/bin/env python3
"""Every overlay of kustomize/ as kubectl renders it: the real API server takes it, `validate` and `config check` find nothing,
the operator makes its pods, also in a restricted namespace, and patches at the usual paths hold.

usage: kustomize_test.py OPERATOR TRAINYARD
"""
import json
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
resources: [BASE]
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
        wanted = sum(replica["replicas"] for replica in job["spec"]["pytorchReplicaSpecs"].values())
        selector = f"{JOB_LABEL}={job['metadata']['name']}"
        wait_until(f"{wanted} pods of {overlay.name}",
                   lambda: len(self.admin.list("v1", "Pod", namespace, selector)) == wanted, 60)
        self.check_references(self.admin.list("v1", "Pod", namespace, selector), namespace)

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

    def test_patches_that_users_have_hold(self):
        folder = self.folder / "theirs"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(USERS_PATCHES.replace("BASE", "../../../kustomize/base"))
        job = self.create(self.render(folder), "theirs")
        replicas = job["spec"]["pytorchReplicaSpecs"]
        containers = {name: replica["template"]["spec"]["containers"][0] for name, replica in replicas.items()}
        self.assertEqual(replicas["Worker"]["replicas"], 3)
        self.assertEqual(containers["Master"]["args"], ["echo one\necho two"])
        self.assertEqual(containers["Worker"]["args"], ["echo $(pwd)"])
        self.assertEqual(json.dumps(replicas).count("nodeAffinity"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
