#!/usr/bin/env python3
"""The validating webhook, called by the API server and by clients that mean no good.

usage: webhook_test.py OPERATOR
"""
import base64
import json
import socket
import ssl
import subprocess
import sys
import time
import unittest
from pathlib import Path

from kube import ApiError, ControlPlane, OperatorProcess, wait_until
from kube.jobs import API, pytorch_job
from kube.webhook import PATH, Reviewer, ca_bundle, install_webhook, review_of

ROOT = Path(__file__).resolve().parents[2]
SECRET = ("v1", "Secret", "training-operator-webhook-cert", "default")
NAMES = ["training-operator.default.svc", "training-operator.default.svc.cluster.local", "training-operator.default",
         "training-operator", "localhost"]
BAD_BODIES = [b"", b"{", b"[]", b"null", b"7", b"{}", b"\xff\xfe\x00", b'{"kind": "\xff"}', b'{"kind":' * 5000,
              b"[" * 1_000_000, b'"' + b"a" * 2_000_000, b'{"a":' + b"9" * 100_000 + b"}"]
BAD_REQUESTS = [b"\0" * 4096, b"GET / HTTP/9.9\r\n\r\n", b"POST " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
                b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n", b"A: b\r\n" * 50_000]


class Webhook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"]))
        cls.admin = cls.cluster.client()
        cls.operator = OperatorProcess(sys.argv[1], cls.cluster.kubeconfig, cls.cluster.folder / "operator.log")
        cls.addClassCleanup(cls.operator.kill)
        install_webhook(cls.admin, "default", cls.operator.webhook_port)
        cls.make_certificates()
        cls.operator.start()
        cls.operator.wait_until_ready()
        wait_until("the caBundle", lambda: ca_bundle(cls.admin), 60, [cls.operator])
        cls.job = pytorch_job("job", "default")
        wait_until("the API server to call the webhook", cls.is_called, 60, [cls.operator])

    @classmethod
    def is_called(cls):
        """It learns of Services and configurations a little later, and until then refuses or lets pass."""
        try:
            cls.admin.request("POST", f"/apis/{API}/namespaces/default/pytorchjobs",
                              pytorch_job("x", "default", workers=0), query={"dryRun": "All"})
        except ApiError as error:
            return error.status == 403

    @classmethod
    def make_certificates(cls):
        """An authority, and a serving certificate whose second third ends 30 s from now: then it has to be renewed."""
        folder = cls.cluster.folder / "webhook"
        folder.mkdir()
        (folder / "ca.cnf").write_text(
            "[ca]\ndefault_ca=c\n[c]\nnew_certs_dir=.\ndatabase=index\nserial=serial\ndefault_md=sha256\npolicy=p\n"
            "x509_extensions=e\n[p]\ncommonName=supplied\n[e]\nbasicConstraints=critical,CA:FALSE\n"
            "subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + ",IP:127.0.0.1,IP:::1\n"
            "[req]\ndistinguished_name=n\n[n]\n[a]\nbasicConstraints=critical,CA:TRUE\n")
        (folder / "index").write_text("")
        (folder / "serial").write_text("01")
        now = time.time()
        stamp = lambda at: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(at))
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "ca.cnf"]
        for command in (
                ["req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30", "-subj", "/CN=old",
                 "-extensions", "a"],
                ["req", *curve, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=old"],
                ["ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.crt", "-keyfile", "ca.key",
                 "-in", "tls.csr", "-out", "tls.crt", "-startdate", stamp(now - 7170), "-enddate", stamp(now + 3630)]):
            subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
        data = {name: base64.b64encode((folder / name).read_bytes()).decode()
                for name in ["ca.crt", "ca.key", "tls.crt", "tls.key"]}
        cls.admin.create({"apiVersion": "v1", "kind": "Secret", "data": data,
                          "metadata": {"name": SECRET[2], "namespace": SECRET[3]}})

    def shown_certificate(self):
        return ssl.get_server_certificate(("127.0.0.1", self.operator.webhook_port))

    def check_that_it_answers(self):
        reviewer = Reviewer(self.operator.webhook_port)
        self.assertTrue(reviewer.is_allowed(self.job))
        self.assertFalse(reviewer.is_allowed(pytorch_job("job", "default", workers=0)))
        reviewer.close()

    def test_a_certificate_is_renewed_in_time_while_jobs_are_created(self):
        first = (self.cluster.folder / "webhook/tls.crt").read_text()
        number = 0

        def is_renewed():
            nonlocal number
            number += 1
            self.admin.create(pytorch_job(f"during-{number}", "default", run_policy={"suspend": True}))  # or throws
            return self.shown_certificate().strip() != first.strip()
        wait_until("another certificate", is_renewed, 120, [self.operator])
        self.assertIn("its certificate expires at", self.operator.log.read_text())
        secret = self.admin.get(*SECRET)
        self.assertEqual(base64.b64decode(secret["data"]["tls.crt"]).decode().strip(), self.shown_certificate().strip())
        self.assertEqual(secret["data"]["ca.crt"], ca_bundle(self.admin))

    def test_create_and_update_are_validated(self):
        refused = pytorch_job("bad", "default", workers=0)
        with self.assertRaisesRegex(ApiError, r"403.*Worker\].replicas: Forbidden: must be at least 1"):
            self.admin.create(refused)
        self.admin.create(pytorch_job("good", "default", run_policy={"suspend": True}))
        with self.assertRaisesRegex(ApiError, r"spec.runPolicy.managedBy: Invalid value: .*field is immutable"):
            self.admin.patch(API, "PyTorchJob", "good", {"spec": {"runPolicy": {
                "managedBy": "kueue.x-k8s.io/multikueue"}}}, "default")
        self.admin.patch(API, "PyTorchJob", "good", {"spec": {"runPolicy": {"backoffLimit": 3}}}, "default")
        self.admin.delete(API, "PyTorchJob", "good", "default")

    def test_a_misspelt_field_of_a_pod_and_a_bad_name_are_answered_with_what_would_do(self):
        job = pytorch_job("misspelt", "default")
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["comand"] = ["true"]
        with self.assertRaisesRegex(ApiError, r"Worker\].*containers\[0\].comand: .*did you mean command\?"):
            self.admin.create(job)
        with self.assertRaisesRegex(ApiError, r'403.*; "my-job-7" would do'):
            self.admin.create(pytorch_job("my.job.7", "default"))

    def test_bodies_that_are_no_reviews(self):
        for body in [*BAD_BODIES, {**review_of(self.job), "kind": "Pod"}, {**review_of(self.job), "request": None}]:
            with self.subTest(body=str(body)[:40]):
                reviewer = Reviewer(self.operator.webhook_port)
                status, text = reviewer.post(body)
                self.assertEqual(status, 400, text)
                self.assertTrue(text.isprintable() or text.endswith("\n"), text)
                reviewer.close()
        self.check_that_it_answers()

    def test_a_body_over_the_limit(self):
        reviewer = Reviewer(self.operator.webhook_port)
        try:
            self.assertEqual(reviewer.post(b" " * (64 << 20))[0], 413)
        except (ConnectionError, ssl.SSLError):
            pass  # answered and closed while the rest was being sent
        self.check_that_it_answers()
        self.assertLess(self.operator.resident_bytes(), 400 << 20)

    def test_what_is_no_http_and_what_is_no_tls(self):
        tls = ssl._create_unverified_context()
        for data in BAD_REQUESTS:
            for is_encrypted in [True, False]:
                with self.subTest(data=data[:40], tls=is_encrypted):
                    with socket.create_connection(("127.0.0.1", self.operator.webhook_port), 30) as plain:
                        try:
                            with tls.wrap_socket(plain) if is_encrypted else plain as connection:
                                connection.sendall(data)
                        except OSError:
                            pass  # it need not listen to the end
        self.check_that_it_answers()

    def test_unicode_comes_through(self):
        job = pytorch_job("job", "default", annotations={"note": "Übung 😀 \u0000 \ud83d\ude00 日本"})
        self.assertTrue(Reviewer(self.operator.webhook_port).is_allowed(job))
        job["metadata"]["name"] = "jöb"
        status, text = Reviewer(self.operator.webhook_port).post(review_of(job))
        self.assertIn("jöb", json.loads(text)["response"]["status"]["message"])

    def test_thousands_of_idle_and_slow_connections(self):
        connections = []
        self.addCleanup(lambda: [each.close() for each in connections])
        tls = ssl._create_unverified_context()
        for number in range(2000):
            connection = socket.create_connection(("127.0.0.1", self.operator.webhook_port), 60)
            if number % 10 == 0:  # a handshake costs both sides: a tenth has one, and half a request
                connection = tls.wrap_socket(connection)
                connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n".encode())
            connections.append(connection)
        for drop in range(3):  # a byte now and then, as slow clients do
            for connection in connections[:200:10]:
                try:
                    connection.sendall(b"X")
                except OSError:
                    pass  # its time was over
            self.check_that_it_answers()
            self.admin.create(pytorch_job(f"meanwhile-{drop}", "default", run_policy={"suspend": True}))
        self.assertEqual(self.operator.probe("/healthz"), 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
