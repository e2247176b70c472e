#!/usr/bin/env python3
"""`kubectl apply -k manifests` on a real API server, and the operator as its Deployment starts it: same flags, same rights.

usage: manifests_test.py OPERATOR
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from kube import ApiError, ControlPlane, OperatorProcess, wait_until
from kube.jobs import pytorch_job

ROOT = Path(__file__).resolve().parents[2]
WEBHOOKS = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validator.training-operator.kubeflow.org")


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane())
        cls.admin = cls.cluster.client()
        cls.applied = cls.kubectl("apply", "-k", ROOT / "manifests")
        wait_until("the CRD to be served", lambda: "pytorchjobs" in cls.kubectl("api-resources"), 60)

    @classmethod
    def kubectl(cls, *words):
        done = subprocess.run(["kubectl", *map(str, words)], env=cls.cluster.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout + done.stderr

    def deployment(self):
        return self.admin.get("apps/v1", "Deployment", "training-operator", "kubeflow")

    def test_applied_again_nothing_changes_and_nothing_was_warned_of(self):
        self.assertNotIn("Warning", self.applied)
        before = self.versions()
        self.kubectl("apply", "-k", ROOT / "manifests")
        self.assertEqual(self.versions(), before)

    def versions(self):
        there = json.loads(self.kubectl("get", "-k", ROOT / "manifests", "-o", "json"))["items"]
        return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in there}

    def test_the_pods_keep_to_the_restricted_pod_security_standard(self):
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {
            "name": "training-operator", "namespace": "strict"}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator", "namespace": "strict"},
               "spec": self.deployment()["spec"]["template"]["spec"]}
        self.admin.create(pod)
        with self.assertRaises(ApiError) as refused:  # so this API server does look
            self.admin.create({**pod, "metadata": {"name": "b", "namespace": "strict"},
                               "spec": {"containers": [{"name": "a", "image": "i"}]}})
        self.assertIn("violates PodSecurity", str(refused.exception))

    def test_service_policy_and_budget_select_the_deployments_pods_and_their_ports(self):
        template = self.deployment()["spec"]["template"]
        names = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
        service = self.admin.get("v1", "Service", "training-operator", "kubeflow")["spec"]
        budget = self.admin.get("policy/v1", "PodDisruptionBudget", "training-operator", "kubeflow")["spec"]
        policy = self.admin.get("networking.k8s.io/v1", "NetworkPolicy", "training-operator", "kubeflow")["spec"]
        for labels in (service["selector"], budget["selector"]["matchLabels"], policy["podSelector"]["matchLabels"]):
            self.assertLessEqual(labels.items(), template["metadata"]["labels"].items())
        self.assertLessEqual({port["targetPort"] for port in service["ports"]}, names)
        self.assertEqual({port["port"] for port in policy["ingress"][0]["ports"]}, names)
        reference = self.admin.get(*WEBHOOKS)["webhooks"][0]["clientConfig"]["service"]
        self.assertEqual((reference["name"], reference["namespace"]), ("training-operator", "kubeflow"))
        self.assertIn(reference["port"], [port["port"] for port in service["ports"]])

    def test_the_operator_starts_as_the_deployment_says_and_publishes_its_authority(self):
        container = self.deployment()["spec"]["template"]["spec"]["containers"][0]
        account = self.cluster.service_account_kubeconfig("kubeflow", "training-operator")
        with OperatorProcess(sys.argv[1], account, self.cluster.folder / "operator.log", container["args"],
                             {**os.environ, "MY_POD_NAMESPACE": "kubeflow"}) as operator:
            for probe in ("livenessProbe", "readinessProbe"):
                self.assertEqual(operator.probe(container[probe]["httpGet"]["path"]), 200)
            wait_until("the webhook's authority", lambda: self.admin.get(*WEBHOOKS)["webhooks"][0]["clientConfig"].get(
                "caBundle"), 60)
            self.kubectl("apply", "-k", ROOT / "manifests")
            self.assertIn("caBundle", self.admin.get(*WEBHOOKS)["webhooks"][0]["clientConfig"], "applying took it away")

    def test_a_job_is_refused_while_nobody_can_judge_it(self):
        with self.assertRaises(ApiError) as refused:
            self.admin.create(pytorch_job("early", "default"))
        self.assertIn("validator.pytorchjob.training-operator.kubeflow.org", str(refused.exception))

    def test_kubectl_explains_the_fields(self):
        for field, said in {"spec.runPolicy.backoffLimit": "restart", "spec.runPolicy.suspend": "pods",
                            "spec.elasticPolicy.maxReplicas": "", "spec.pytorchReplicaSpecs": "Master",
                            "status.restarts": "generation", "status.progress": "step"}.items():
            text = self.kubectl("explain", f"pytorchjob.{field}")
            self.assertIn("DESCRIPTION", text)
            self.assertNotIn("<empty>", text, field)
            self.assertIn(said, text)
        columns = self.kubectl("get", "pytorchjobs", "-A", "-o", "wide")
        self.assertIn("No resources found", columns)

    def test_z_deleted_nothing_is_left(self):
        """Last: the others need it."""
        self.kubectl("delete", "-k", ROOT / "manifests", "--wait=false")
        wait_until("the namespace to be gone", lambda: self.admin.get("v1", "Namespace", "kubeflow") is None, 120)
        for kind in ("clusterroles", "clusterrolebindings", "validatingwebhookconfigurations", "crds"):
            left = self.kubectl("get", kind, "-o", "name")
            self.assertNotIn("train", left.replace("constrained", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore", verbosity=2)
