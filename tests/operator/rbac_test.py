#!/usr/bin/env python3
"""Runs the operator with exactly the rights of manifests/rbac.yaml, through everything that a job can ask of it: nothing
is refused, and nothing is granted that is not used.

usage: rbac_test.py OPERATOR
"""
import os
import sys
import unittest
from pathlib import Path

import yaml

from kube import ControlPlane, OperatorProcess, wait_until
from kube.jobs import API, Kubelet, pytorch_job

ROOT = Path(__file__).resolve().parents[2]
RBAC = ROOT / "manifests/rbac.yaml"
ACCOUNT = "system:serviceaccount:kubeflow:training-operator"

# Granted, and not used in this test: (resource, verb): why it has to be there.
UNUSED = {
    ("pytorchjobs/finalizers", "update"): "an admission plugin asks for it that this API server does not run",
    ("secrets", "update"): "certificates are renewed once in two months",
    ("pytorchjobs", "get"): "read back where the answer to a write was lost",
    ("horizontalpodautoscalers", "get"): "read back where the answer to a write was lost",
    **{("podgroups", verb): "only with --gang-scheduler-name" for verb in
       ["get", "list", "watch", "create", "patch", "delete"]},
}


def granted():
    """{(resource, verb)} of all rules."""
    pairs = set()
    for document in yaml.safe_load_all(RBAC.read_text()):
        for rule in document.get("rules", []):
            pairs |= {(resource, verb) for resource in rule["resources"] for verb in rule["verbs"]}
    return pairs


def asked(event):
    reference = event.get("objectRef", {})
    name = reference.get("resource", "") + (f"/{reference['subresource']}" if "subresource" in reference else "")
    return name, event["verb"]


class Rbac(unittest.TestCase):
    def test_what_is_shipped_is_enough_and_not_too_much(self):
        with ControlPlane(crds=[ROOT / "manifests/crd"], audit=True) as cluster:
            admin = cluster.client()
            for name in ["kubeflow", "team"]:
                admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            admin.create(webhook_configuration())
            cluster.apply(RBAC)
            account = cluster.service_account_kubeconfig("kubeflow", "training-operator")
            environment = {**os.environ, "MY_POD_NAMESPACE": "kubeflow"}
            with OperatorProcess(sys.argv[1], account, cluster.folder / "operator.log", ["--leader-elect"],
                                 environment) as operator:
                live_through_everything(admin, Kubelet(admin, "team"))
                operator.must_be_running()
            self.check(cluster.requests(ACCOUNT))

    def check(self, events):
        refused = {asked(event) for event in events if event["responseStatus"]["code"] == 403}
        self.assertEqual(refused, set(), "refused")
        used = {asked(event) for event in events}
        self.assertEqual(used - granted(), set(), "used, and not granted")
        self.assertEqual(granted() - used - set(UNUSED), set(), "granted, and not used")


def webhook_configuration():
    service = {"name": "training-operator", "namespace": "kubeflow", "path": "/validate-kubeflow-org-v1-pytorchjob"}
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "resources": ["pytorchjobs"], "operations": ["CREATE"]}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "validator.training-operator.kubeflow.org"},
            "webhooks": [{"name": "validator.pytorchjob.training-operator.kubeflow.org", "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "clientConfig": {"service": service}, "rules": [rule],
                          "failurePolicy": "Ignore", "timeoutSeconds": 1}]}


def live_through_everything(admin, kubelet):
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 80}}}]
    elastic = {"minReplicas": 1, "maxReplicas": 3, "metrics": metrics}
    taken = {"apiVersion": "v1", "metadata": {"name": "full-worker-1", "namespace": "team"}}
    admin.create({**taken, "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "i"}]}})
    admin.create({**taken, "kind": "Service", "spec": {"ports": [{"port": 1}]}})
    admin.create(pytorch_job("full", "team", run_policy={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1},
                             annotations={"trainyard.dev/network-policy": "true"}, elasticPolicy=elastic))
    wait_until("the foreign pod to be reported", lambda: "NameTaken" in str(kubelet.status("full")), 30)
    for kind in ["Pod", "Service"]:
        admin.delete("v1", kind, "full-worker-1", "team", grace=0)
    kubelet.wait_for_pods("full", 3, 90)
    kubelet.run_until_running("full")
    admin.patch(API, "PyTorchJob", "full", {"spec": {"elasticPolicy": {"maxReplicas": 4}}}, "team")
    autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler", "full", "team")
    wait_until("the autoscaler to follow", lambda: admin.get(*autoscaler)["spec"]["maxReplicas"] == 4, 30)
    fail_and_fail_again(kubelet)
    kubelet.run_until_running("full")
    master = next(pod for pod in kubelet.pods("full") if pod["metadata"]["name"] == "full-master-0")
    kubelet.set_phase(master, "Succeeded", exit_code=0)
    wait_until("the job to be gone", lambda: admin.get(API, "PyTorchJob", "full", "team") is None, 60)


def fail_and_fail_again(kubelet):
    """The second time of one pod is a repeated event, whose count is raised."""
    for generation in [2, 3]:
        kubelet.run_until_running("full")
        kubelet.set_phase(kubelet.pods("full")[-1], "Failed", exit_code=1)
        wait_until("the gang to restart", lambda: kubelet.status("full").get("restarts", {}).get(
            "generation") == generation, 30)
        kubelet.wait_for_pods("full", 3, 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
