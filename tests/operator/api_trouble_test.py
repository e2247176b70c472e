#!/usr/bin/env python3
"""The operator with an API server that is away, is not trusted, or refuses it: it says once what is wrong and what to
do, goes on trying, and works as soon as it can.

usage: api_trouble_test.py OPERATOR
"""
import base64
import json
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

import yaml

from kube import ControlPlane, OperatorProcess, wait_until
from kube.certificates import Authority
from kube.jobs import Kubelet, pytorch_job

ROOT = Path(__file__).resolve().parents[2]


class ApiTrouble(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"]))
        cls.admin = cls.cluster.client()
        for name in ["kubeflow", "team"]:
            cls.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        cls.admin.create({"apiVersion": "v1", "kind": "ServiceAccount",
                          "metadata": {"name": "training-operator", "namespace": "kubeflow"}})
        cls.kubelet = Kubelet(cls.admin, "team")

    def setUp(self):
        self.name = self.id().rpartition(".")[2].removeprefix("test_").replace("_", "-")
        self.folder = self.cluster.folder / self.name
        self.folder.mkdir()

    def start_operator(self, kubeconfig):
        operator = OperatorProcess(sys.argv[1], kubeconfig, self.folder / "log")
        self.addCleanup(operator.kill)
        operator.start()
        return operator

    def wait_for_log(self, operator, *texts):
        for text in texts:
            wait_until(f"the log to say {text!r}", lambda text=text: text in operator.log.read_text(), 60, [operator])

    def grant_all(self):
        for thing in yaml.safe_load_all((ROOT / "manifests/rbac.yaml").read_text()):
            self.admin.apply(thing)
        self.addCleanup(self.admin.delete, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "trainyard-operator")

    def lines_with(self, operator, text):
        return [line for line in operator.log.read_text().splitlines() if text in line]

    def check_that_it_waits(self, operator):
        self.assertEqual(operator.probe("/healthz"), 200)
        self.assertEqual(operator.probe("/readyz"), 503)

    def check_that_it_works(self, operator):
        operator.wait_until_ready(120)
        self.admin.create(pytorch_job(self.name, "team", workers=1))
        self.kubelet.wait_for_pods(self.name, 2, 60)
        self.kubelet.run_until_running(self.name, 60)
        self.assertEqual(operator.stop(), 0)
        self.assertNotIn("status.restarts", operator.log.read_text())

    def kubeconfig_with(self, cluster=None, user=None):
        """The administrator's, with other values."""
        config = json.loads(Path(self.cluster.kubeconfig).read_text())
        config["clusters"][0]["cluster"].update(cluster or {})
        if user:
            config["users"][0]["user"] = user
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def test_no_rights_and_then_all(self):
        operator = self.start_operator(self.cluster.service_account_kubeconfig("kubeflow", "training-operator"))
        user = 'User "system:serviceaccount:kubeflow:training-operator" cannot'
        self.wait_for_log(
            operator,
            f'{user} list resource "pytorchjobs" in API group "kubeflow.org" at the cluster scope; grant it as '
            "manifests/rbac.yaml does; it is tried again",
            *(f'{user} list resource "{resource}" in API group' for resource in
              ["pods", "services", "horizontalpodautoscalers", "nodes"]))
        self.check_that_it_waits(operator)
        self.grant_all()
        self.check_that_it_works(operator)
        self.assertEqual(len(self.lines_with(operator, 'cannot list resource "pods"')), 1)
        self.assertEqual(len(self.lines_with(operator, "pods: works now")), 1)

    def test_a_right_that_is_missing_is_named_at_the_job(self):
        reader = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "few"},
                  "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
                            {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs/status"], "verbs": ["patch"]},
                            {"apiGroups": [""], "resources": ["events", "secrets"], "verbs": ["create"]}]}
        self.admin.create(reader)
        self.admin.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                           "metadata": {"name": "few"}, "subjects": [{"kind": "User", "name": "few"}],
                           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"}})
        operator = self.start_operator(self.cluster.kubeconfig_for("few"))
        operator.wait_until_ready()
        self.admin.create(pytorch_job("few", "team", workers=1))
        # Pod and service have one name; which of them was refused last is chance.
        refusal = r'User "few" cannot create resource "(pods|services)" in API group "" in the namespace "team"'
        wait_until("the job to say it", lambda: re.search(
            refusal, json.dumps(self.kubelet.status("few")).replace('\\"', '"')), 60, [operator])
        self.assertEqual(self.kubelet.state("few"), "Created")
        reader["rules"].append({"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["create", "delete"]})
        self.admin.apply(reader)
        self.kubelet.wait_for_pods("few", 2, 90)
        self.kubelet.run_until_running("few", 60)
        self.assertNotIn("CannotCreate", json.dumps(self.kubelet.status("few")))
        self.assertEqual(operator.stop(), 0)

    def test_a_server_that_is_down_at_start(self):
        self.cluster.api_server.kill()
        try:
            operator = self.start_operator(self.cluster.kubeconfig)
            self.wait_for_log(
                operator, f"the API server {self.cluster.server} ({self.cluster.kubeconfig}, context test):")
            self.check_that_it_waits(operator)
            time.sleep(3)  # that it says it once shows only where it would have said it again
            self.assertEqual(len(operator.log.read_text().splitlines()), 1, operator.log_tail())
        finally:
            self.cluster.api_server.start()
            self.cluster.wait_until_ready()
        self.check_that_it_works(operator)
        # A server that starts may answer, then refuse once more while its storage is not ready, and answer again.
        complaints = len(self.lines_with(operator, f"the API server {self.cluster.server} ("))
        self.assertIn(len(self.lines_with(operator, f"the API server {self.cluster.server} answers")),
                      range(1, complaints + 1), operator.log_tail())

    def test_another_authority_until_the_right_one_is_in_the_file(self):
        right = json.loads(Path(self.cluster.kubeconfig).read_text())["clusters"][0]["cluster"]["certificate-authority"]
        file = self.folder / "ca.crt"
        file.write_bytes(Authority(self.folder / "others").certificate.read_bytes())
        operator = self.start_operator(self.kubeconfig_with(cluster={"certificate-authority": str(file)}))
        self.wait_for_log(operator, "see certificate-authority, tls-server-name")
        self.check_that_it_waits(operator)
        time.sleep(2)
        self.assertEqual(len(operator.log.read_text().splitlines()), 1, operator.log_tail())
        file.write_bytes(Path(right).read_bytes())
        self.check_that_it_works(operator)

    def test_an_expired_token_until_its_file_has_another(self):
        fresh = json.loads(self.cluster.service_account_kubeconfig("kubeflow", "training-operator").read_text())
        token = fresh["users"][0]["user"]["token"]
        file = self.folder / "token"
        file.write_text(self.expired(token))
        self.grant_all()
        kubeconfig = self.kubeconfig_with(user={"tokenFile": str(file)})
        operator = self.start_operator(kubeconfig)
        self.wait_for_log(operator, "does not know who asks (401 Unauthorized): the token or certificate of "
                                    f"{kubeconfig}, context test has expired or was revoked; renew it")
        self.check_that_it_waits(operator)
        self.assertEqual(len(self.lines_with(operator, "401")), 1)
        file.write_text(token + "\n")
        self.check_that_it_works(operator)

    def expired(self, token):
        """The same claims, over since an hour, signed by the cluster itself."""
        header, claims, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(claims + "=="))
        claims.update(iat=int(time.time()) - 7200, nbf=int(time.time()) - 7200, exp=int(time.time()) - 3600)
        signed = header + "." + encoded(json.dumps(claims).encode())
        key = self.cluster.folder / "certificates/service-accounts.key"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=signed.encode(), check=True,
                                   capture_output=True).stdout
        return signed + "." + encoded(raw_signature(signature))


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_signature(der):
    """An ECDSA signature as tokens have it: r and s of 32 bytes each, out of ASN.1's SEQUENCE {INTEGER, INTEGER}."""
    r_size = der[3]
    r, s = der[4:4 + r_size], der[4 + r_size + 2:]
    return b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in (r, s))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
