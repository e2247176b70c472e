#!/usr/bin/env python3
"""What the other tests of the operator rely on in their control plane."""
import json
import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from kube import ApiError, ControlPlane, wait_until
import leftovers  # kube finds it

COMMAND = Path(__file__).parent / "control_plane"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "rails.test.local"},
    "spec": {"group": "test.local", "scope": "Namespaced",
             "names": {"plural": "rails", "singular": "rail", "kind": "Rail"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {"spec": {"type": "object", "properties": {"gauge": {
                     "type": "integer", "minimum": 1}}}}}}}]},
}


def config_map(name, owner=None, namespace="team-a"):
    metadata = {"name": name, "namespace": namespace}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
                                        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


class InOneControlPlane(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as crd:
            json.dump(CRD, crd)
            crd.flush()
            cls.cluster = cls.enterClassContext(ControlPlane(crds=[crd.name], audit=True))
        cls.admin = cls.cluster.client()
        cls.admin.create(NAMESPACE)

    def refusal(self, status, call, *arguments, **named):
        with self.assertRaises(ApiError) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception

    def test_a_crd_is_served_and_its_schema_is_kept(self):
        rail = {"apiVersion": "test.local/v1", "kind": "Rail", "metadata": {"name": "a", "namespace": "team-a"},
                "spec": {"gauge": 1435}}
        self.admin.create(rail)
        rails = self.admin.list("test.local/v1", "Rail", "team-a")
        self.assertIn({"gauge": 1435}, [each["spec"] for each in rails])
        self.assertIn("spec.gauge", str(self.refusal(422, self.admin.apply, {**rail, "spec": {"gauge": 0}})))

    def test_what_is_owned_goes_with_its_owner_of_a_crds_kind(self):
        owner = self.admin.create({"apiVersion": "test.local/v1", "kind": "Rail",
                                   "metadata": {"name": "owner", "namespace": "team-a"}, "spec": {"gauge": 1000}})
        self.admin.create(config_map("owned", owner))
        self.admin.delete("test.local/v1", "Rail", "owner", "team-a")
        wait_until("the garbage collector", lambda: not self.admin.get("v1", "ConfigMap", "owned", "team-a"), 60)

    def test_a_deleted_namespace_goes_with_what_is_in_it(self):
        self.admin.create({**NAMESPACE, "metadata": {"name": "team-b"}})
        self.admin.create(config_map("a", namespace="team-b"))
        self.admin.delete("v1", "Namespace", "team-b")
        wait_until("the namespace controller", lambda: not self.admin.get("v1", "Namespace", "team-b"), 60)

    def test_an_identity_may_what_its_role_says(self):
        someone = self.cluster.client(self.cluster.kubeconfig_for("someone", groups=["readers"]))
        self.refusal(403, someone.list, "v1", "ConfigMap", "team-a")
        self.admin.create({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "readers", "namespace": "team-a"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}]})
        wait_until("the role binding to be known", lambda: can_list(someone), 30)
        self.refusal(403, someone.create, config_map("by-someone"))
        asked = {(e["verb"], e["responseStatus"]["code"]) for e in self.cluster.requests("someone")
                 if e.get("objectRef", {}).get("resource") == "configmaps"}
        self.assertEqual(asked, {("list", 403), ("list", 200), ("create", 403)})

    def test_a_service_account_token_speaks_for_its_account(self):
        self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount",
                           "metadata": {"name": "operator", "namespace": "team-a"}})
        account = self.cluster.client(self.cluster.service_account_kubeconfig("team-a", "operator"))
        answer = account.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        self.assertEqual(answer["status"]["userInfo"]["username"], "system:serviceaccount:team-a:operator")

    def test_a_paused_api_server_does_not_answer_and_goes_on_afterwards(self):
        impatient = self.cluster.client()
        impatient.get("v1", "Namespace", "team-a")
        with self.cluster.api_server.paused():
            short = type(impatient)(self.cluster.kubeconfig, timeout=0.5)
            self.assertRaises(OSError, short.get, "v1", "Namespace", "team-a")
        self.assertTrue(impatient.get("v1", "Namespace", "team-a"))

    def test_a_restarted_api_server_is_at_its_address_with_what_it_knew(self):
        self.admin.create(config_map("kept"))
        self.cluster.api_server.kill()
        self.assertRaises(ConnectionRefusedError, self.cluster.client().get, "v1", "ConfigMap", "kept", "team-a")
        self.cluster.api_server.start()
        self.cluster.wait_until_ready()
        self.assertTrue(self.admin.get("v1", "ConfigMap", "kept", "team-a"))

    def test_kubectl_of_the_same_version_is_in_the_path(self):
        environment = self.cluster.environment
        said = subprocess.run(["kubectl", "version"], env=environment, capture_output=True, text=True).stdout
        versions = {line.split()[-1] for line in said.splitlines() if "Kustomize" not in line}
        self.assertEqual(len(versions), 1, said)


class TheCommand(unittest.TestCase):
    def start(self, *command):
        """(the command, what it runs; the folder of its control plane, and the servers' process ids)."""
        running = subprocess.Popen([COMMAND, "run", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, start_new_session=True)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.kill)
        kubeconfig = running.stdout.readline().strip()
        self.assertTrue(kubeconfig, "the command was not run")
        folder = Path(kubeconfig).parent
        return running, folder, processes_of(folder)

    def assert_nothing_is_left(self, folder, servers):
        wait_until(f"the end of {servers}", lambda: not any(Path(f"/proc/{pid}").exists() for pid in servers), 30)
        wait_until(f"{folder} to go", lambda: not folder.exists() and not leftovers.lock_of(folder).exists(), 30)

    def test_the_commands_exit_code_is_passed_on_and_nothing_is_left(self):
        running, folder, servers = self.start("sh", "-c", 'echo "$KUBECONFIG"; sleep 1; exit 7')
        self.assertEqual(running.wait(60), 7)
        self.assert_nothing_is_left(folder, servers)

    def test_nothing_is_left_after_sigterm_sigint_and_sigkill(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
            with self.subTest(number.name):
                running, folder, servers = self.start("sh", "-c", 'echo "$KUBECONFIG"; exec sleep 600')
                # etcd, API server, controller manager, and the command, which has no environment while it becomes sleep
                servers = wait_until("four processes", lambda: len(found := processes_of(folder)) == 4 and found, 30)
                running.send_signal(number)
                self.assertEqual(running.wait(60), code)
                self.assert_nothing_is_left(folder, servers)

    def test_where_its_remover_is_killed_too_others_clear_up_but_not_before(self):
        running, folder, servers = self.start("sh", "-c", 'echo "$KUBECONFIG"; exec sleep 600')
        leftovers.clear([folder.parent])
        self.assertTrue((folder / "admin.kubeconfig").exists())
        for pid in removers_of(folder):
            os.kill(pid, signal.SIGKILL)
        running.kill()
        wait_until(f"the end of {servers}", lambda: not any(Path(f"/proc/{pid}").exists() for pid in servers), 30)
        self.assertTrue(folder.exists())
        leftovers.clear([folder.parent])
        self.assertFalse(folder.exists() or leftovers.lock_of(folder).exists())


def can_list(client):
    try:
        return client.list("v1", "ConfigMap", "team-a") is not None
    except ApiError:
        return False


def processes_of(folder):
    """Those whose command line or environment names the folder, but for the shell that is to remove it."""
    return [pid for pid, line in naming(folder) if b"rm -rf" not in line]


def removers_of(folder):
    return [pid for pid, line in naming(folder) if b"rm -rf" in line]


def naming(folder):
    """(number, command line) of processes whose command line or environment names the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line + environment:
            found.append((int(process.name), line))
    return found


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")  # a client closes its connections with itself
