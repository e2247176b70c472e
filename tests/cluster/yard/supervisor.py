"""The control plane and the boot of the nodes: run as `python3 -m yard.supervisor FOLDER LISTENER LEASH` by Cluster.up().

It lives in namespaces of its own below a shell that is their process 1: when that is gone, all is.
"""
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

from . import addresses, control, leash, network, node, relay, storage
from .namespaces import OWN_NAMESPACES
from kube import ControlPlane
from kube.certificates import write_kubeconfig
from kube.process import Process, wait_until

COREFILE = """cluster.local in-addr.arpa {
  bind %s
  errors
  kubernetes {
    kubeconfig %s
    ttl 1
  }
}
. {
  bind %s
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
"""


class Supervisor(control.Programs):
    def __init__(self, folder, plane, nodes, programs):
        self.folder, self._nodes = folder, nodes
        scheduler = [programs["kube-scheduler"], "--kubeconfig", plane.kubeconfig_for("system:kube-scheduler"),
                     "--leader-elect=false", "--bind-address", "127.0.0.1", "--kube-api-qps", 500, "--kube-api-burst", 1000]
        coredns = [programs["coredns"], "-conf", self._corefile(plane)]
        more = {"kube-scheduler": Process("kube-scheduler", scheduler, folder / "kube-scheduler.log"),
                "coredns": Process("coredns", coredns, folder / "coredns.log")}
        super().__init__({"etcd": plane.etcd, "kube-apiserver": plane.api_server,
                          "kube-controller-manager": plane.controller_manager, **more})
        self._machines = {addresses.node_name(number): self._machine(addresses.node_name(number)) for number in nodes}

    def start_all(self):
        for name in ("kube-scheduler", "coredns"):
            self.start(name)
        for machine in self._machines.values():
            machine.start()
        for number in self._nodes:
            self._boot(number)

    def on(self, node):
        """Starts a node that is off; what it had on disk is there again."""
        if not self._machine_of(node).is_running():
            (self.folder / node / "control.sock").unlink(missing_ok=True)
            self._machines[node].start()
            self._boot(int(node.rpartition("-")[2]))

    def off(self, node):
        """As if its power was cut: every process of it is gone at once."""
        self._machine_of(node).kill()

    def status(self):
        return {**super().status(), **{name: machine.is_running() for name, machine in self._machines.items()}}

    def _machine_of(self, node):
        if node not in self._machines:
            raise control.Refused(f"there is no node '{node}', but {', '.join(self._machines)}")
        return self._machines[node]

    def _machine(self, name):
        folder = self.folder / name
        return Process(name, [*OWN_NAMESPACES, sys.executable, "-m", "yard.machine", folder], folder / "machine.log")

    def _boot(self, number):
        name = addresses.node_name(number)
        machine, path = self._machines[name], self.folder / name / "control.sock"
        wait_until(f"{name} to answer", path.exists, 30, [machine])
        network.join(number, machine.pid, len(self._nodes))
        control.ask(path, "start", program="containerd")
        wait_until(f"containerd of {name}", lambda: answers(path, ["ctr", "version"]), 60, [machine])
        for program in json.loads((self.folder / name / "node.json").read_text())["programs"]:
            control.ask(path, "start", program=program)

    def _corefile(self, plane):
        path = self.folder / "Corefile"
        path.write_text(COREFILE % (addresses.CONTROL, plane.kubeconfig, addresses.CONTROL))
        return path


def answers(path, command):
    try:
        control.ask(path, "run", command=command)
    except control.Refused:
        return False
    return True


def admit(client):
    """What the API server may ask of kubelets: logs, exec. Its own certificate is who it is there."""
    client.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                  "metadata": {"name": "kube-apiserver-to-kubelets"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                              "name": "system:kubelet-api-admin"},
                  "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kube-apiserver"}]})


def main(folder, listener):
    told = json.loads((folder / "settings.json").read_text())
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    network.make_bridge()
    nodes = range(1, told["nodes"] + 1)
    # A node that does not report is NotReady after 12 s, not 50: what follows from it is what tests and people wait for.
    plane = ControlPlane(controllers=["*"], address=addresses.CONTROL, folder=folder / "control", api_flags=[
        "--kubelet-preferred-address-types", "InternalIP", "--allow-privileged",
        # Services are no addresses where the API server is: it asks webhooks at their pods.
        "--enable-aggregator-routing"], manager_flags=[
            "--node-monitor-grace-period", "12s", "--node-monitor-period", "2s"])
    with plane:
        client = plane.client()
        admit(client)
        for number in nodes:
            node.describe(folder / addresses.node_name(number), number,
                          {**told, "server": plane.server, "authority": plane.authority})
        supervisor = Supervisor(folder, plane, nodes, told["programs"])
        supervisor.start_all()
        storage.serve(client, folder / "volumes")
        relay.serve(listener, (addresses.CONTROL, plane.port))
        write_kubeconfig(folder / "kubeconfig.part", f"https://127.0.0.1:{listener.getsockname()[1]}",
                         plane.authority.certificate, plane.admin_identity)
        (folder / "kubeconfig.part").rename(folder / "kubeconfig")
        control.serve(folder / "control.sock", supervisor)


if __name__ == "__main__":
    threading.excepthook = lambda args: print(args, flush=True)
    leash.watch(int(sys.argv[3]), Path(sys.argv[1]) / "starting")
    main(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
