#!/usr/bin/env python3
"""The operator where the resource PyTorchJob is not defined, or is defined otherwise than ours: it says so and what to
do, stays, and works once our definition is there.

usage: definitions_test.py OPERATOR
"""
import sys
import unittest
from pathlib import Path

from kube import ControlPlane, OperatorProcess, wait_until
from kube.client import load_manifests
from kube.jobs import API, Kubelet, pytorch_job
from kube.resources import install_job_definition, job_definition, remove_job_definition

OURS = load_manifests(Path(__file__).resolve().parents[2] / "manifests/crd")[0]
SOME_STATUS = {"type": "object", "properties": {
    name: {"type": "object", "x-kubernetes-preserve-unknown-fields": True} for name in ["replicaStatuses"]} | {
    "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    "startTime": {"type": "string"}}}


class Definitions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(audit=True))
        cls.admin = cls.cluster.client()

    def setUp(self):
        self.namespace = self.id().rpartition(".")[2].replace("_", "-")[:60].rstrip("-")
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self.kubelet = Kubelet(self.admin, self.namespace)
        remove_job_definition(self.admin)

    def start_operator(self, user):
        kubeconfig = self.cluster.kubeconfig_for(user, groups=["system:masters"])
        operator = OperatorProcess(sys.argv[1], kubeconfig, self.cluster.folder / f"{self.namespace}.log")
        self.addCleanup(operator.kill)
        operator.start()
        return operator

    def wait_for_log(self, operator, text):
        wait_until(f"the log to say {text!r}", lambda: text in operator.log.read_text(), 60, [operator])

    def create_job(self):
        self.admin.create(pytorch_job("job", self.namespace))

    def check_that_it_works(self, operator):
        operator.wait_until_ready(120)
        self.kubelet.wait_for_pods("job", 3, 120)
        self.kubelet.run_until_running("job", 120)
        self.assertEqual(operator.stop(), 0)

    def test_none_then_another_version_then_ours(self):
        operator = self.start_operator("none")
        self.wait_for_log(operator, "; the CRD is not installed, or one that does not serve kubeflow.org/v1: "
                                    "kubectl apply --server-side -f manifests/crd; it is tried again")
        self.assertEqual(operator.probe("/healthz"), 200)
        self.assertEqual(operator.probe("/readyz"), 503)
        install_job_definition(self.admin, job_definition("v1beta1"))
        asked = len(self.cluster.requests("none"))
        wait_until("it to have asked again", lambda: any(
            event["objectRef"]["resource"] == "pytorchjobs" for event in self.cluster.requests("none")[asked:]
            if "objectRef" in event), 90, [operator])
        self.assertEqual(operator.probe("/readyz"), 503)
        remove_job_definition(self.admin)
        install_job_definition(self.admin, OURS)
        self.create_job()
        self.check_that_it_works(operator)
        log = operator.log.read_text()
        self.assertEqual(log.count("pytorchjobs: "), 2, log)  # that it is missing, and that it works

    def test_one_without_the_status_subresource(self):
        install_job_definition(self.admin, job_definition())
        operator = self.start_operator("without-status")
        operator.wait_until_ready()
        self.create_job()
        self.wait_for_log(operator, "or one without the status subresource: kubectl apply --server-side")
        self.assertEqual(self.kubelet.pods("job"), [])
        install_job_definition(self.admin, OURS)
        self.check_that_it_works(operator)

    def test_one_that_drops_what_ours_adds_to_the_status(self):
        install_job_definition(self.admin, job_definition(subresources={"status": {}}, status=SOME_STATUS))
        operator = self.start_operator("drops")
        operator.wait_until_ready()
        self.create_job()
        self.kubelet.wait_for_pods("job", 3)
        self.kubelet.run_all("job")
        self.wait_for_log(operator, "the CRD that is installed drops status.restarts")
        wait_until("an event about it", lambda: "CRDOutdated" in [
            event["reason"] for event in self.admin.list("v1", "Event", self.namespace)], 60)
        failed = next(pod for pod in self.kubelet.pods("job") if pod["metadata"]["name"] == "job-worker-1")
        self.kubelet.set_phase(failed, "Failed", exit_code=1)
        version = self.admin.get(API, "PyTorchJob", "job", self.namespace)["metadata"]["resourceVersion"]
        self.assertTrue(version)
        install_job_definition(self.admin, OURS)
        wait_until("the restart to be counted", lambda: self.kubelet.status("job").get("restarts", {}).get(
            "count") == 1, 150)
        self.check_that_it_works(operator)
        self.assertEqual(operator.log.read_text().count("drops status.restarts"), 1)
        patches = [event for event in self.cluster.requests("drops")
                   if event["verb"] == "patch" and event["objectRef"].get("subresource") == "status"]
        self.assertLess(len(patches), 60)  # it rests longer each time


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
