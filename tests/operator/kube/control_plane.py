"""etcd, kube-apiserver and kube-controller-manager on loopback, in a folder that goes with them."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import leftovers

from .certificates import Authority, write_kubeconfig
from .client import ApiError, Client, load_manifests
from .ports import free_ports
from .process import Process, wait_until

BUILD = Path(__file__).parents[1] / "kubernetes/build"

# Those whose work tests rely on. Others would disturb: the pod garbage collector takes pods away that are bound to a
# node that does not exist, and the node life cycle taints nodes that a test made up.
CONTROLLERS = [
    "clusterrole-aggregation-controller", "endpointslice-controller", "garbage-collector-controller",
    "namespace-controller", "resourcequota-controller", "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
]


SERVICE_RANGE, FIRST_SERVICE = "10.96.0.0/16", "10.96.0.1"  # the first is the API server's own


class ControlPlane:
    """A Kubernetes without nodes, ready when `with` has been entered, gone when it is left or its process ends.

    Leave it in the thread that entered it, or keep that thread alive: the servers die with it.
      crds         CustomResourceDefinitions that are established then: YAML files, or folders of them
      controllers  of kube-controller-manager
      audit        notes every request, for requests()
      api_flags    more flags of kube-apiserver; of two of a name the later one counts
      manager_flags  more flags of kube-controller-manager
      logs         folder in which the servers' logs are left
      address      where the API server serves; one that is not loopback is told to pods, as the service `kubernetes`
      folder       for all that they keep, which is then left; else one of its own that goes with them
    """

    def __init__(self, crds=(), controllers=CONTROLLERS, audit=False, api_flags=(), manager_flags=(), logs=None,
                 address="127.0.0.1", folder=None):
        self._crds, self._controllers, self._audit = list(crds), list(controllers), audit
        self._api_flags, self._manager_flags = list(api_flags), list(manager_flags)
        self._logs, self._address, self._own_folder = logs and Path(logs), address, folder
        self._identities = 0

    def __enter__(self):
        self._programs = Path(subprocess.run([BUILD, "control"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        if self._own_folder:
            self.folder, self._remover = Path(self._own_folder), None
            self.folder.mkdir()
        else:
            self._owned = leftovers.Owned.new("kube", _roomy_place())
            self.folder, self._remover = self._owned.folder, _FolderRemover(self._owned.folder)
        self._all = []
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self._all):
            process.kill()  # all that they know goes with them, so there is nothing to end in order
        if self._logs:
            self._logs.mkdir(parents=True, exist_ok=True)
            for log in self.folder.glob("*.log"):
                shutil.copy(log, self._logs)
        if self._remover:
            self._remover.remove()
            self._owned.release()

    # -- identities

    def client(self, kubeconfig=None):
        return Client(kubeconfig or self.kubeconfig)

    def kubeconfig_for(self, user, groups=(), days=365):
        """The kubeconfig of a user with a client certificate."""
        self._identities += 1
        file = f"identity-{self._identities}"
        certificate, key = self.authority.issue(file, user, groups, days=days)
        return self._write_kubeconfig(file, {"client-certificate": certificate, "client-key": key})

    def service_account_kubeconfig(self, namespace, name, seconds=3600):
        """The kubeconfig of a ServiceAccount that is there, with a token that lasts so long (600 s at least)."""
        self._identities += 1
        path = self._admin.path("v1", "ServiceAccount", namespace, name, "token")
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                  "spec": {"expirationSeconds": seconds}}
        token = self._admin.request("POST", path, wanted)["status"]["token"]
        return self._write_kubeconfig(f"identity-{self._identities}", {"token": token})

    @property
    def environment(self):
        """Of a command that is to use this cluster: KUBECONFIG, and kubectl in its PATH."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": f"{self._programs}:{os.environ['PATH']}"}

    # -- contents

    def apply(self, path):
        """Applies the YAML file, or all of a folder; CRDs among it are established afterwards."""
        if self._apply_objects(path):
            # Its garbage collector looks for new kinds every 30 s only, and until then keeps what their objects owned.
            self.controller_manager.kill()
            self.controller_manager.start()

    def _apply_objects(self, path):
        objects = load_manifests(path)
        for thing in objects:
            self._admin.apply(thing)
        crds = [thing for thing in objects if thing["kind"] == "CustomResourceDefinition"]
        for crd in crds:
            self._wait_until_served(crd)
        return crds

    def requests(self, user=None):
        """What was asked of the API server so far, in order, as audit events (audit.k8s.io/v1); by one user, or all."""
        with open(self.folder / "audit.jsonl") as lines:
            events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if user in (None, event["user"]["username"])]

    def resident_bytes(self):
        return {process.name: process.resident_bytes() for process in self._all}

    # -- start

    def wait_until_ready(self, timeout=120):
        """After api_server.start(), too."""
        wait_until("the API server's /readyz", self._is_ready, timeout, [self.etcd, self.api_server])

    def _is_ready(self):
        try:
            return self._admin.request("GET", "/readyz") == "ok"
        except ApiError:  # 403 while the rules of access are not there yet, 500 while a part is not up
            return False

    def _start(self):
        etcd_port, peer_port, self.port, manager_port = free_ports(4)
        self._start_etcd(etcd_port, peer_port)
        self.authority = Authority(self.folder / "certificates")
        self.server = f"https://{self._address}:{self.port}"
        certificate, key = self.authority.issue("admin", "admin", ["system:masters"])
        self.admin_identity = {"client-certificate": certificate, "client-key": key}
        self.kubeconfig = self._write_kubeconfig("admin", self.admin_identity)
        self._admin = Client(self.kubeconfig)
        signing_key, checking_key = self.authority.signing_key("service-accounts")
        self._start_api_server(etcd_port, signing_key, checking_key)
        self.wait_until_ready()
        for path in self._crds:
            self._apply_objects(path)
        self._start_controller_manager(manager_port, signing_key)
        wait_until("the ServiceAccount default/default, by kube-controller-manager",
                   lambda: self._admin.get("v1", "ServiceAccount", "default", "default"), 120, self._all)

    def _start_etcd(self, port, peer_port):
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self.etcd = self._launch(
            "etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--quota-backend-bytes", 4 << 30)

    def _start_api_server(self, etcd_port, signing_key, checking_key):
        hosts = ["IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc", f"IP:{self._address}", f"IP:{FIRST_SERVICE}"]
        certificate, key = self.authority.issue("server", "kube-apiserver", hosts=hosts)
        self.api_server = self._launch(
            "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{etcd_port}",
            "--bind-address", self._address, "--secure-port", self.port, "--advertise-address", self._address,
            # Endpoints may not have loopback addresses, so nobody is to write one for the service `kubernetes`.
            "--endpoint-reconciler-type", "none" if self._address == "127.0.0.1" else "lease",
            "--tls-cert-file", certificate, "--tls-private-key-file", key,
            "--kubelet-client-certificate", certificate, "--kubelet-client-key", key, "--client-ca-file",
            self.authority.certificate, "--authorization-mode", "Node,RBAC", "--service-cluster-ip-range",
            SERVICE_RANGE, "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", checking_key, "--service-account-signing-key-file", signing_key,
            *self._audit_flags(), *self._api_flags)

    def _audit_flags(self):
        if not self._audit:
            return []
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                                      "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}))
        return ["--audit-policy-file", policy, "--audit-log-path", self.folder / "audit.jsonl"]

    def _start_controller_manager(self, port, signing_key):
        self.controller_manager = self._launch(
            "kube-controller-manager", "--kubeconfig",
            self.kubeconfig_for("system:kube-controller-manager"), "--use-service-account-credentials",
            "--bind-address", "127.0.0.1", "--secure-port", port, "--leader-elect=false",
            "--controllers", ",".join(self._controllers), "--root-ca-file", self.authority.certificate,
            "--service-account-private-key-file", signing_key,
            # What a test deletes should be gone at the pace of the API server, not of the default 20 requests a second.
            "--kube-api-qps", 2000, "--kube-api-burst", 4000, *self._manager_flags)

    def _launch(self, name, *flags):
        process = Process(name, [self._programs / name, *flags], self.folder / f"{name}.log")
        self._all.append(process)
        process.start()
        return process

    def _wait_until_served(self, crd):
        name = crd["metadata"]["name"]

        def established():
            conditions = self._admin.get(crd["apiVersion"], crd["kind"], name).get("status", {}).get("conditions")
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions or [])

        wait_until(f"the CustomResourceDefinition {name} to be established", established, 30, [self.api_server])

    def _write_kubeconfig(self, file, user):
        return write_kubeconfig(self.folder / f"{file}.kubeconfig", self.server, self.authority.certificate, user)


class _FolderRemover:
    """Removes an owned folder when asked to, or when this process is gone, even by SIGKILL. Where both are killed the folder
    is a leftover, which others clear up."""

    def __init__(self, folder):
        script = 'read -r _; for try in $(seq 100); do rm -rf "$1" && rm -f "$2" && exit; sleep 0.1; done'
        self._shell = subprocess.Popen(["sh", "-c", script, "sh", folder, leftovers.lock_of(folder)], stdin=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, start_new_session=True)

    def remove(self):
        self._shell.stdin.close()
        self._shell.wait()


def _roomy_place():
    """/dev/shm, unless it is as small as containers have it (etcd's journal alone begins with 128 MB): then TMPDIR."""
    try:
        shm = os.statvfs("/dev/shm")
        is_roomy = shm.f_bavail * shm.f_frsize > 2 << 30 and os.access("/dev/shm", os.W_OK)
    except OSError:
        is_roomy = False
    return "/dev/shm" if is_roomy else tempfile.gettempdir()
