#!/usr/bin/env python3
"""Runs the operator with exactly the rights of manifests/rbac.yaml, and of one namespace with those of
rbac-namespaced.yaml, through everything that a job can ask of it: nothing is refused, and nothing is granted that is not
used.

usage: rbac_test.py OPERATOR
"""
import json
import os
import sys
import unittest
from pathlib import Path

import yaml

from kube import ControlPlane, OperatorProcess, wait_until
from kube.jobs import API, Kubelet, pytorch_job

ROOT = Path(__file__).resolve().parents[2]

# Granted, and not used in this test: (resource, verb): why it has to be there.
UNUSED = {
    ("pytorchjobs/finalizers", "update"): "an admission plugin asks for it that this API server does not run",
    ("secrets", "update"): "certificates are renewed once in two months",
    ("pytorchjobs", "get"): "read back where the answer to a write was lost",
    ("horizontalpodautoscalers", "get"): "read back where the answer to a write was lost",
    **{("podgroups", verb): "only with --gang-scheduler-name" for verb in
       ["get", "list", "watch", "create", "patch", "delete"]},
}


def granted(manifest):
    """{(resource, verb)} of all rules."""
    pairs = set()
    for document in yaml.safe_load_all(manifest.read_text()):
        for rule in document.get("rules", []):
            pairs |= {(resource, verb) for resource in rule["resources"] for verb in rule["verbs"]}
    return pairs


def asked(event):
    reference = event.get("objectRef", {})
    name = reference.get("resource", "") + (f"/{reference['subresource']}" if "subresource" in reference else "")
    return name, event["verb"]


class Rbac(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"], audit=True))
        cls.admin = cls.cluster.client()
        for name in ["kubeflow", "everywhere", "team"]:
            cls.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        cls.admin.create(webhook_configuration())

    def operator(self, manifest, namespace, *flags):
        """With the rights of the manifest alone, in that namespace."""
        self.cluster.apply(manifest)
        where = {"namespace": "team"} if namespace == "team" else {}
        wait_until("the API server to know its rights", lambda: (
            self.may(namespace, group="kubeflow.org", resource="pytorchjobs", verb="list", **where)
            and self.may(namespace, group="coordination.k8s.io", resource="leases", verb="create", namespace=namespace)), 60)
        account = self.cluster.service_account_kubeconfig(namespace, "training-operator")
        return OperatorProcess(sys.argv[1], account, self.cluster.folder / f"{namespace}.log",
                               ["--leader-elect", *flags], {**os.environ, "MY_POD_NAMESPACE": namespace})

    def may(self, home, **attributes):
        """Whether the operator that lives in namespace `home` may do something, asked as the administrator."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{home}:training-operator", "resourceAttributes": attributes}}
        return self.admin.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    def test_what_is_shipped_is_enough_and_not_too_much(self):
        manifest = ROOT / "manifests/rbac.yaml"
        with self.operator(manifest, "kubeflow") as operator:
            live_through_everything(self.admin, Kubelet(self.admin, "everywhere"))
            operator.must_be_running()
        self.check(self.cluster.requests("system:serviceaccount:kubeflow:training-operator"), granted(manifest))

    def test_an_operator_of_one_namespace_needs_no_more_than_a_role_there(self):
        manifest = ROOT / "manifests/rbac-namespaced.yaml"
        elsewhere = self.admin.create(pytorch_job("other", "default"))
        with self.operator(manifest, "team", "--namespace", "team") as operator:
            live_through_everything(self.admin, Kubelet(self.admin, "team"))
            operator.must_be_running()
        events = self.cluster.requests("system:serviceaccount:team:training-operator")
        self.check(events, granted(manifest))
        self.assertEqual({event["objectRef"].get("namespace") for event in events}, {"team"}, "asked elsewhere")
        left_alone = self.admin.get(API, "PyTorchJob", "other", "default")
        self.assertEqual(left_alone["metadata"]["resourceVersion"], elsewhere["metadata"]["resourceVersion"])
        self.assertEqual(operator.log.read_text().count("watching namespace team alone: nodes are not seen"), 1)

    def check(self, events, rights):
        refused = {asked(event) for event in events if event["responseStatus"]["code"] == 403}
        self.assertEqual(refused, set(), "refused")
        used = {asked(event) for event in events}
        self.assertEqual(used - rights, set(), "used, and not granted")
        self.assertEqual(rights - used - set(UNUSED), set(), "granted, and not used")


def webhook_configuration():
    service = {"name": "training-operator", "namespace": "kubeflow", "path": "/validate-kubeflow-org-v1-pytorchjob"}
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "resources": ["pytorchjobs"], "operations": ["CREATE"]}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "validator.training-operator.kubeflow.org"},
            "webhooks": [{"name": "validator.pytorchjob.training-operator.kubeflow.org", "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "clientConfig": {"service": service}, "rules": [rule],
                          "failurePolicy": "Ignore", "timeoutSeconds": 1}]}


def live_through_everything(admin, kubelet):
    namespace = kubelet.namespace
    tell_why_a_pod_does_not_start(admin, namespace)
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 80}}}]
    elastic = {"minReplicas": 1, "maxReplicas": 3, "metrics": metrics}
    taken = {"apiVersion": "v1", "metadata": {"name": "full-worker-1", "namespace": namespace}}
    admin.create({**taken, "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "i"}]}})
    admin.create({**taken, "kind": "Service", "spec": {"ports": [{"port": 1}]}})
    admin.create(pytorch_job("full", namespace, run_policy={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1},
                             annotations={"trainyard.dev/network-policy": "true"}, elasticPolicy=elastic))
    wait_until("the foreign pod to be reported", lambda: "NameTaken" in str(kubelet.status("full")), 30)
    for kind in ["Pod", "Service"]:
        admin.delete("v1", kind, "full-worker-1", namespace, grace=0)
    kubelet.wait_for_pods("full", 3, 90)
    kubelet.run_until_running("full")
    admin.patch(API, "PyTorchJob", "full", {"spec": {"elasticPolicy": {"maxReplicas": 4}}}, namespace)
    autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler", "full", namespace)
    wait_until("the autoscaler to follow", lambda: admin.get(*autoscaler)["spec"]["maxReplicas"] == 4, 30)
    fail_and_fail_again(kubelet)
    kubelet.run_until_running("full")
    master = next(pod for pod in kubelet.pods("full") if pod["metadata"]["name"] == "full-master-0")
    kubelet.set_phase(master, "Succeeded", exit_code=0)
    wait_until("the job to be gone", lambda: admin.get(API, "PyTorchJob", "full", namespace) is None, 60)


def tell_why_a_pod_does_not_start(admin, namespace):
    """In the words of its node, which are in no field of the pod."""
    admin.create(pytorch_job("stuck", namespace))
    name = "stuck-master-0"
    pod = wait_until("the pod", lambda: admin.get("v1", "Pod", name, namespace), 30)
    admin.request("POST", admin.path("v1", "Pod", namespace, name, "binding"), {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"}})
    admin.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "stuck", "namespace": namespace},
                  "type": "Warning", "reason": "FailedMount", "message": "configmap \"train\" not found",
                  "source": {"component": "kubelet"}, "lastTimestamp": "2026-01-01T00:00:00Z",
                  "involvedObject": {"kind": "Pod", "name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]}})
    wait_until("the reason in the job's status", lambda: "configmap \\\"train\\\" not found" in json.dumps(
        admin.get(API, "PyTorchJob", "stuck", namespace)), 60)
    admin.delete(API, "PyTorchJob", "stuck", namespace)
    wait_until("the pod to end", lambda: admin.delete("v1", "Pod", name, namespace, grace=0), 30)


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
