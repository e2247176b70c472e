#!/usr/bin/env python3
"""operator/kube on a real API server, from the outside: what tests/operator/probe says of it.

usage: kube_test.py PROBE [unittest's arguments]
"""
import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import yaml
from kube import ControlPlane, wait_until

PROBE = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
LABELS = {"probe": "yes"}


class Probe:
    """A running probe; `next` takes what it says, line by line."""

    def __init__(self, kubeconfig, *words, **settings):
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), **{name: str(v) for name, v in settings.items()}}
        self._child = subprocess.Popen([PROBE, *map(str, words)], env=environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._child.stdout:
            self._lines.put(json.loads(line))

    def next(self, wanted=None, timeout=30):
        """The next line that has the key `wanted`; those before it are passed over."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"waited {timeout} s for {wanted}") from None
            if wanted is None or wanted in line:
                return line

    def rest(self):
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines

    def signal(self, number):
        self._child.send_signal(number)

    def finish(self, timeout=30):
        """Its exit code and stderr, once it has ended by itself."""
        code = self._child.wait(timeout)
        self._reader.join()
        return code, self._child.stderr.read()

    def end_input(self):
        self._child.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.kill()
        self._child.wait()
        self._reader.join()
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


class Mirror:
    """The state that an informer's lines lead to; complains of what may not be."""

    def __init__(self, test):
        self.test, self.held, self.gone = test, {}, set()

    def hear(self, line):
        if "change" not in line:
            return
        name, uid, version = line["name"], line["uid"], int(line["version"])
        self.test.assertNotIn(uid, self.gone, f"{line}: it was deleted before")
        if line["change"] == "add":
            self.test.assertNotIn(name, self.held, line)
        else:
            self.test.assertEqual(self.held[name][0], uid, line)
        if line["change"] == "update":
            self.test.assertGreater(version, self.held[name][1], line)
        if line["change"] == "delete":
            del self.held[name]
            self.gone.add(uid)
        else:
            self.held[name] = (uid, version)

    def follow(self, probe, expected, timeout=60):
        """Until it is as `expected` ({name: (uid, version)})."""
        deadline = time.monotonic() + timeout
        while self.held != expected:
            self.hear(probe.next(timeout=max(0.1, deadline - time.monotonic())))


class WithAServer(unittest.TestCase):
    API_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(audit=True, api_flags=cls.API_FLAGS))
        cls.admin = cls.cluster.client()

    def setUp(self):
        self.ns = self._testMethodName.replace("_", "-")[:60].rstrip("-")
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.ns}})
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def probe(self, *words, kubeconfig=None, **settings):
        return self.enterContext(Probe(kubeconfig or self.cluster.kubeconfig, *words, **settings))

    def put(self, name, **data):
        return self.admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                                 "metadata": {"name": name, "namespace": self.ns, "labels": LABELS}})

    def restart_api_server(self):
        self.cluster.api_server.kill()
        self.cluster.api_server.start()
        self.cluster.wait_until_ready()
        OnARealServer.admin = self.cluster.client()  # the old one's connection ended with the server

    def remove(self, name):
        self.admin.delete("v1", "ConfigMap", name, self.ns)

    def state(self):
        there = self.admin.list("v1", "ConfigMap", self.ns, "probe=yes")
        return {each["metadata"]["name"]: (each["metadata"]["uid"], int(each["metadata"]["resourceVersion"]))
                for each in there}

    def edited_kubeconfig(self, **changes):
        """The administrator's, with `cluster` and `user` changed."""
        document = yaml.safe_load(Path(self.cluster.kubeconfig).read_text())
        for part, change in changes.items():
            entry = document[part + "s"][0]
            entry[part] = change(entry[part])
        path = self.folder / f"kubeconfig-{len(list(self.folder.iterdir()))}"
        path.write_text(json.dumps(document))
        return path

    def token_of_a_reader(self):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": self.ns}}
        self.admin.create(account)
        path = self.cluster.service_account_kubeconfig(self.ns, "reader")
        return yaml.safe_load(Path(path).read_text())["users"][0]["user"]["token"]


class OnAServerThatSendsConnectionsAway(WithAServer):
    API_FLAGS = ("--goaway-chance", "0.02")

    def test_writes_come_through_or_are_said_to_be_unknown_and_nothing_is_lost_to_an_informer(self):
        informer, mirror = self.probe("inform", self.ns), Mirror(self)
        unknown = 1200 - self.create_all({"Unknown"})
        self.assertGreaterEqual(len(self.state()), 1200 - unknown)
        while len(self.state()) < 1200:
            self.create_all({"Unknown", "AlreadyExists"})
        mirror.follow(informer, self.state())

    def create_all(self, allowed):
        """How many were created; `allowed`: what may be said of others."""
        creator, errors = self.probe("create", self.ns, 1200), []
        while "created" not in (line := creator.next(timeout=120)):
            errors.append(line)
        self.assertEqual({each["error"] for each in errors} - allowed, set(), errors[:3])
        return 1200 - len(errors)


class OnARealServer(WithAServer):
    # -- lists and watches

    def test_1200_objects_are_listed_in_pages_and_followed(self):
        creator = self.probe("create", self.ns, 1200)
        self.assertEqual(creator.next(timeout=120)["created"], 1200)
        informer, mirror = self.probe("inform", self.ns), Mirror(self)
        mirror.follow(informer, self.state())
        self.assertEqual(informer.next("listed"), {"listed": 1200})
        self.put("c00007", a="1")
        self.remove("c00008")
        self.put("new")
        mirror.follow(informer, self.state())
        self.assertEqual(informer.rest(), [])
        pages = [e for e in self.cluster.requests() if e["verb"] == "list" and "limit=500" in e["requestURI"]
                 and f"/namespaces/{self.ns}/" in e["requestURI"]]
        self.assertEqual([each["responseStatus"]["code"] for each in pages], [200, 200, 200])

    def test_own_deletes_say_that_the_object_is_gone(self):
        self.probe("create", self.ns, 2).next(timeout=60)
        deleter = self.probe("delete", self.ns, 3)
        said = [deleter.next() for _ in range(3)]
        self.assertEqual(said.count({"gone": True}), 2)
        self.assertEqual([each["error"] for each in said if "error" in each], ["NotFound"])

    def test_a_server_killed_in_the_middle_of_a_watch_loses_no_event(self):
        informer, mirror = self.probe("inform", self.ns), Mirror(self)
        for number in range(5):
            self.put(f"a{number}")
        mirror.follow(informer, self.state())
        for round_ in range(3):
            self.cluster.api_server.kill()
            informer.next("trouble")
            self.restart_api_server()
            self.put("a0", round=str(round_))
            self.remove(f"a{round_ + 1}")
            self.put(f"b{round_}")
            mirror.follow(informer, self.state())
        listed = [line for line in informer.rest() if "listed" in line]
        self.assertEqual(listed, [], "a watch that ended is resumed, not begun with a new list")

    def test_a_version_that_was_compacted_away_is_followed_by_a_list_that_tells_of_deletions(self):
        informer, mirror = self.probe("inform", self.ns), Mirror(self)
        for number in range(5):
            self.put(f"a{number}")
        mirror.follow(informer, self.state())
        informer.signal(signal.SIGSTOP)
        self.restart_api_server()
        self.put("a0", changed="yes")
        self.remove("a1")
        self.remove("a2")
        self.put("a2", another="object")
        self.compact(int(self.put("z")["metadata"]["resourceVersion"]))
        self.restart_api_server()  # without its memory of the versions that the store no longer has
        informer.signal(signal.SIGCONT)
        mirror.follow(informer, self.state())
        self.assertTrue(informer.next("listed"))

    def compact(self, version):
        url = next(part for part in self.cluster.etcd.command if part.startswith("http://"))
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": version, "physical": True}))
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_a_silent_connection_is_given_up_and_the_watch_goes_on_elsewhere(self):
        informer, mirror = self.probe("inform", self.ns, PROBE_WATCH_STALL_MS=2000), Mirror(self)
        self.put("a")
        mirror.follow(informer, self.state())
        with self.cluster.api_server.paused():
            informer.next("trouble")
        self.cluster.wait_until_ready()
        self.put("a", changed="yes")
        self.put("b")
        mirror.follow(informer, self.state())

    # -- identities and refusals

    def test_a_refusal_says_which_verb_on_which_resource(self):
        nobody = self.cluster.kubeconfig_for("nobody")
        line = self.probe("get", f"/api/v1/namespaces/{self.ns}/secrets", kubeconfig=nobody).next()
        self.assertEqual((line["error"], line["status"]), ("Forbidden", 403))
        self.assertIn('User "nobody" cannot list resource "secrets"', line["message"])

    def test_a_server_of_another_authority_is_not_spoken_to(self):
        stranger = self.folder / "stranger.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", "/dev/null", "-out", stranger, "-subj", "/CN=stranger"], check=True, capture_output=True)
        kubeconfig = self.edited_kubeconfig(cluster=lambda cluster: {**cluster, "certificate-authority": str(stranger)})
        line = self.probe("get", "/version", kubeconfig=kubeconfig).next()
        self.assertEqual(line["error"], "NotSent")
        self.assertIn("certificate", line["message"])

    def test_the_name_to_verify_can_be_another_than_the_servers_host(self):
        def named(name):
            return self.edited_kubeconfig(cluster=lambda cluster: {**cluster, "tls-server-name": name})

        self.assertIn("ok", self.probe("get", "/version", kubeconfig=named("kubernetes.default.svc")).next())
        self.assertEqual(self.probe("get", "/version", kubeconfig=named("example.com")).next()["error"], "NotSent")

    def test_a_refused_token_is_read_anew_from_its_file(self):
        token = self.folder / "token"
        token.write_text("expired")
        kubeconfig = self.edited_kubeconfig(user=lambda _: {"tokenFile": str(token)})
        poll = self.probe("poll", "/api", kubeconfig=kubeconfig)
        line = poll.next()
        self.assertEqual((line["error"], line["status"]), ("Unauthorized", 401))
        token.write_text(self.token_of_a_reader() + "\n")
        deadline = time.monotonic() + 60
        while "ok" not in poll.next():
            self.assertLess(time.monotonic(), deadline)

    def test_a_plugin_runs_again_when_its_token_is_refused_and_not_otherwise(self):
        token, runs, plugin = self.folder / "token", self.folder / "runs", self.folder / "plugin"
        token.write_text("expired")
        plugin.write_text(f"""#!/bin/sh
echo "$GREETING $1 $KUBERNETES_EXEC_INFO" >> {runs}
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' "$(cat {token})"
""")
        plugin.chmod(0o755)
        exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "args": ["there"],
                 "interactiveMode": "Never", "env": [{"name": "GREETING", "value": "hello"}], "provideClusterInfo": True}
        poll = self.probe("poll", "/api", kubeconfig=self.edited_kubeconfig(user=lambda _: {"exec": exec_}))
        self.assertEqual(poll.next()["error"], "Unauthorized")
        token.write_text(self.token_of_a_reader())
        poll.next("ok")
        so_far = runs.read_text().splitlines()
        self.assertEqual([poll.next() for _ in range(5)], [{"ok": True}] * 5)
        self.assertEqual(runs.read_text().splitlines(), so_far)
        greeting, info = so_far[0].split(" there ", 1)
        self.assertEqual(greeting, "hello")
        self.assertEqual(json.loads(info)["spec"]["cluster"]["server"], self.cluster.server)

    def test_a_plugin_that_fails_is_quoted(self):
        exec_ = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh", "installHint": "log in first",
                 "args": ["-c", "echo no session >&2; exit 3"]}
        kubeconfig = self.edited_kubeconfig(user=lambda _: {"exec": exec_})
        message = self.probe("poll", "/api", kubeconfig=kubeconfig).next(timeout=60)["message"]
        for part in ("users[test].user.exec", "ended with code 3", "no session", "log in first"):
            self.assertIn(part, message)

    def test_a_kubeconfig_that_cannot_work_ends_with_2_and_says_what_is_right(self):
        unverified = self.edited_kubeconfig(cluster=lambda cluster: {**cluster, "insecure-skip-tls-verify": True})
        code, said = self.probe("get", "/version", kubeconfig=unverified).finish()
        self.assertEqual(code, 2)
        self.assertIn(f"{unverified}: clusters[test].cluster.insecure-skip-tls-verify", said)
        self.assertIn("tls-server-name", said)

    # -- election

    ELECTION = {"PROBE_LEASE_MS": 9000, "PROBE_DEADLINE_MS": 6000, "PROBE_RETRY_MS": 500}

    def electors(self, **settings):
        self.put("log")
        settings = {**self.ELECTION, **settings}
        first = self.probe("elect", self.ns, "first", **settings)
        self.assertTrue(first.next("leads")["leads"])
        first.next("wrote")
        return first, self.probe("elect", self.ns, "second", **settings)

    def lease(self):
        return self.admin.get("coordination.k8s.io/v1", "Lease", "probe", self.ns)["spec"]

    def test_a_stopped_leader_is_followed_in_time_and_writes_nothing_when_it_wakes(self):
        first, second = self.electors()
        wait_until("the follower has seen the lease", lambda: self.lease()["holderIdentity"] == "first", 30)
        time.sleep(2)  # it takes part for some renewals
        first.signal(signal.SIGSTOP)
        self.assertTrue(second.next("leads")["leads"])
        taken_over = int(second.next("wrote")["wrote"])
        first.signal(signal.SIGCONT)
        self.assertFalse(first.next("leads")["leads"])
        for _ in range(20):
            second.next("wrote")
        late = [line for line in first.rest() if int(line.get("wrote", 0)) > taken_over]
        self.assertEqual(late, [])
        self.assertEqual((self.lease()["holderIdentity"], self.lease()["leaseTransitions"]), ("second", 1))

    def test_a_leader_that_ends_in_order_is_followed_at_once(self):
        first, second = self.electors(PROBE_LEASE_MS=300_000)  # nobody waits for the end of that
        first.end_input()
        self.assertEqual(first.finish()[0], 0)
        self.assertTrue(second.next("leads")["leads"])

    def test_a_leader_without_a_server_stops_leading_by_itself(self):
        first, second = self.electors()
        with self.cluster.api_server.paused():
            self.assertFalse(first.next("leads")["leads"])
        self.cluster.wait_until_ready()
        wait_until("one of them leads again", lambda: any(
            line.get("leads") for probe in (first, second) for line in probe.rest()), 30)

    # -- events

    def test_repeated_events_are_counted_and_some_are_said_once_by_all(self):
        for senders in (1, 2):
            sender = self.probe("events", self.ns)
            wait_until("the event's count", lambda: [
                each["count"] for each in self.events() if each["reason"] == "Again"] == [10] * senders, 20)
            sender.end_input()
            self.assertEqual(sender.finish()[0], 0)
        once = [each for each in self.events() if each["reason"] == "Once"]
        self.assertEqual(len(once), 1)
        self.assertEqual((once[0]["type"], once[0]["source"]["component"], once[0]["count"]),
                         ("Warning", "pytorchjob-controller", 1))
        self.assertTrue(once[0]["metadata"]["name"].startswith("llama."))

    def events(self):
        return self.admin.list("v1", "Event", self.ns)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
