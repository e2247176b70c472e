#!/usr/bin/env python3
"""What the operator is told that cannot be: it ends at once with 2 and one line that says where, what and what is
allowed. What an old Deployment may say is taken. No API server is needed.

usage: flags_test.py OPERATOR
"""
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from kube import OperatorProcess, wait_until

PROGRAM = Path(sys.argv[1]).resolve()
GOOD = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
GARBAGE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmdhcmJhZ2UKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="  # PEM in form only
NO_SERVERS = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--webhook-server-port", "0"]

REFUSED_FLAGS = [
    (["--frobnicate"], "unknown word '--frobnicate'"),
    (["--leader-elct"], "unknown word '--leader-elct', did you mean '--leader-elect'?"),
    (["srve"], "unknown word 'srve', did you mean 'serve'?"),
    (["serve", "more"], "unknown word 'more'"),
    (["--kubeconfig"], "--kubeconfig: 1 required TEXT missing"),
    (["--kube-api-qps", "fast"], "--kube-api-qps: 'fast' is given; a number from 0 on is allowed"),
    (["--kube-api-qps", "-3"], "--kube-api-qps: '-3' is given; a number from 0 on"),
    (["--kube-api-qps", "nan"], "--kube-api-qps: 'nan' is given"),
    (["--kube-api-burst=-1"], "--kube-api-burst: '-1' is given; a number from 0 on"),
    (["--restart-scope", "all"], "--restart-scope: 'all' is given; gang, replica is allowed"),
    (["--restart-scope="], "--restart-scope: '' is given; gang, replica is allowed"),
    (["--node-lost-grace", "soon"], "--node-lost-grace: 'soon' is given; a time such as 500ms, 60s, 1m30s or 2h"),
    (["--node-lost-grace", "-5s"], "--node-lost-grace: '-5s' is given; a time"),
    (["--node-lost-grace", "5 s"], "--node-lost-grace: '5 s' is given; a time"),
    (["--webhook-server-port", "70000"], "--webhook-server-port: '70000' is given; a whole number from 0 to 65535"),
    (["--webhook-server-port", "-1"], "--webhook-server-port: '-1' is given; a whole number from 0 to 65535"),
    (["--webhook-server-port", "x"], "--webhook-server-port: 'x' is given; a whole number from 0 to 65535"),
    (["--metrics-bind-address", "9"], '--metrics-bind-address: "9" is no address to listen on; give HOST:PORT'),
    (["--health-probe-bind-address", "localhost:80"], '--health-probe-bind-address: "localhost:80" is no address'),
    (["--pytorch-init-container-max-tries", "0"], "max-tries: '0' is given; a whole number from 1 to"),
    (["--pytorch-init-container-template-file", "gone.yaml"], "template-file: gone.yaml cannot be read"),
    (["--log-level", "loud"], "'loud' is given; debug, info, warn, error is allowed"),
    (["--leader-elect=maybe"], "--leader-elect = maybe"),
    (["--leader-election-id", "Not_A_Name"], "--leader-election-id: 'Not_A_Name' is given; a name of lower case"),
    (["--namespace", "Team"], "--namespace: 'Team' is given; a name of at most 63 lower case letters, digits and '-'"),
    (["--webhook-secret-name", "a/b"], "--webhook-secret-name: 'a/b' is given; a name"),
    (["--token-secret-name", "a/b"], "--token-secret-name: 'a/b' is given; a name"),
    (["--webhook-service-name", "a.b"], "--webhook-service-name: 'a.b' is given; a name"),
    (["--progress-url", "op.team.svc"], "--progress-url: 'op.team.svc' is given; https://HOST[:PORT]/PATH"),
    (["--controller-threads", "many"], "--controller-threads: 'many' is given; a whole number from 0"),
    (["--context", "b"], "contexts 'b' is not there, but --context asks for it; known: a"),
]

TAKEN = [
    ["--namespace="], ["--gang-scheduler-name="], ["--leader-elect=true"], ["--leader-elect=false"],
    ["--enable-scheme=pytorchjob", "--enable-scheme=tfjob"], ["--zap-devel"], ["--zap-log-level=debug"],
    ["--controller-threads=4"], ["--kube-api-qps=50", "--kube-api-burst=100", "--kube-api-qps=20.5"],
    ["--node-lost-grace", "1m30s"], ["--node-lost-grace=0"], ["serve"],
]

MALFORMED = [
    ("a: [", ":1: is no YAML"),
    ("\0\xff\xfe", ":1: is no YAML"),
    ("", "no API server is configured"),
    ("[]", "is no kubeconfig; it begins with `apiVersion: v1`, `kind: Config`"),
    ("apiVersion: v1\nkind: Pod\n", "current-context is missing; set it, or choose one with --context"),
    (GOOD.replace("current-context: a", "current-context: [a]"), ": current-context: must be a text"),
    (GOOD.replace("current-context: a", "current-context: b"), "contexts 'b' is not there"),
    (GOOD.replace("https://127.0.0.1:1", "ftp://127.0.0.1"), "server: is 'ftp://127.0.0.1'; use https://HOST:PORT"),
    (GOOD.replace("127.0.0.1:1", "127.0.0.1:port"), "server: is 'https://127.0.0.1:port'; use https://HOST:PORT"),
    (GOOD.replace("{token: t}", '{token: "t\\r\\nX: y"}'), "users[u].user.token: holds a control character"),
    (GOOD.replace("{server:", f"{{certificate-authority-data: {GARBAGE}, server:"), "authority is no certificate"),
    (GOOD.replace("{token: t}", f"{{client-certificate-data: {GARBAGE}, client-key-data: {GARBAGE}}}"),
     "the client certificate and its key are no pair"),
]


class Flags(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(GOOD)

    def check_refused(self, flags, part, environment=None):
        ended = subprocess.run([PROGRAM, *map(str, flags)], capture_output=True, timeout=60, env=environment,
                               cwd=self.folder)
        said = ended.stderr.decode(errors="replace")
        self.assertEqual(ended.returncode, 2, said)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertTrue(said.startswith("trainyard-operator: error: "), said)
        self.assertIn(part, said)
        self.assertEqual(ended.stdout, b"")

    def test_wrong_flags(self):
        for flags, part in REFUSED_FLAGS:
            first = [] if flags[0] in ("serve", "srve") else ["--kubeconfig", self.kubeconfig]
            with self.subTest(flags=flags):
                self.check_refused([*first, *flags], part)

    def test_malformed_kubeconfigs(self):
        for number, (text, part) in enumerate(MALFORMED):
            file = self.folder / f"kubeconfig-{number}"
            file.write_bytes(text.encode("latin-1"))
            with self.subTest(text=text):
                self.check_refused(["--kubeconfig", file, *NO_SERVERS], part)
                self.check_refused(["--kubeconfig", file, *NO_SERVERS], str(file))

    def test_kubeconfigs_that_are_no_files(self):
        huge = self.folder / "huge"
        huge.write_bytes(b" " * (9 << 20))
        for file in [self.folder / "gone", self.folder, huge]:
            with self.subTest(file=file.name):
                self.check_refused(["--kubeconfig", file, *NO_SERVERS], f"--kubeconfig {file} cannot be read")
        self.check_refused(NO_SERVERS, "no API server is configured", {"HOME": str(self.folder), "KUBECONFIG": "gone"})

    def test_ports_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("", 0)) as taken_everywhere:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            port = taken_everywhere.getsockname()[1]
            for flag, value in [("--metrics-bind-address", address), ("--health-probe-bind-address", address),
                                ("--webhook-server-port", port)]:
                with self.subTest(flag=flag):
                    self.check_refused(["--kubeconfig", self.kubeconfig, *NO_SERVERS, flag, value],
                                       f"{flag}: cannot listen on {value if flag != '--webhook-server-port' else ''}")

    def test_what_an_old_deployment_says_is_taken(self):
        for number, flags in enumerate(TAKEN):
            with self.subTest(flags=flags):
                flags = flags[1:] if flags[0] == "serve" else flags
                operator = OperatorProcess(PROGRAM, self.kubeconfig, self.folder / f"log-{number}", flags,
                                           {**os.environ, "KUBEFLOW_NAMESPACE": ""})
                self.addCleanup(operator.kill)
                operator.start()
                wait_until("the operator to live", lambda: operator.probe("/healthz") == 200, 60, [operator])
                self.assertEqual(operator.probe("/readyz"), 503)
                self.assertEqual(operator.stop(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
