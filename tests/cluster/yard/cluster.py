"""A cluster as the rest of this machine sees it."""
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import leftovers

from . import addresses, control, leash, network, node
from .namespaces import OWN_NAMESPACES
from kube import Client, WaitedInVain, wait_until

NOT_UP = "the cluster is not up; `./cluster up` starts it"
SLOWEST_IMPORT = 2_000_000  # bytes a second of each node, all at once on a busy machine
HERE = Path(__file__).resolve().parents[1]


class ClusterError(Exception):
    """What stands in the way of what was asked, for whom asked."""


class Cluster:
    """One of a name at a time. As a context manager it goes with the process that entered it, however that ends; where another
    of its name is in use it is `<name>-2` then, or the next that is free."""

    def __init__(self, name="trainyard", nodes=3, gpus=2, images=()):
        """`gpus`: that each node but the first pretends to have. `images`: OCI archives that every node is to have."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
            raise ClusterError(f"'{name}' cannot be the name of a cluster: small letters, digits and hyphens can")
        self.name, self._nodes, self._gpus, self._images = name, nodes, gpus, list(images)
        self._owned = self._leash = None

    @property
    def folder(self):
        return leftovers.folder_of("cluster", self.name, "/var/tmp")

    def __enter__(self):
        self._clear_the_way()
        wanted, numbers = self.name, itertools.count(2)
        while self.is_up() or not self._own():
            self.name = f"{wanted}-{next(numbers)}"
        try:
            self._start()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()

    # -- up and down

    def is_up(self):
        return not self._starting.exists() and control.is_served(self.folder / "control.sock")

    def up(self):
        """Returns when all nodes are Ready and have the images. It stays when this process ends, but one that is killed
        before leaves none. Throws ClusterError, WaitedInVain."""
        self._clear_the_way()
        wait_until(f"another process to have started or ended the cluster in {self.folder}", self._own_unless_up, 30)
        self._start()
        self._say(leash.STAY)
        os.close(self._leash)
        self._owned.release()
        self._owned = self._leash = None

    def down(self):
        """Leaves nothing. Nothing happens where there is nothing."""
        self._end()
        if not self._owned:
            wait_until(f"another process to let go of {self.folder}", self._own, 30)
        if self._leash is not None:
            os.close(self._leash)
        self._owned.remove()
        self._owned = self._leash = None

    @staticmethod
    def _clear_the_way():
        if reason := why_not_here():
            raise ClusterError(reason)
        leftovers.clear()

    def _own_unless_up(self):
        if self.is_up():
            raise ClusterError(f"it is up already; `./cluster down` ends it, its files are in {self.folder}")
        return self._own()

    def _own(self):
        """Whether it is ours now. Until then another process may be about to start or end it."""
        try:
            self._owned = leftovers.Owned(self.folder)
        except leftovers.InUse:
            return False
        return True

    def _start(self):
        programs = find_programs()
        self.folder.chmod(0o755)
        self._starting.touch()
        names = self.node_names()
        settings = {"nodes": self._nodes, "gpus": self._gpus, "programs": programs,
                    "cgroup": node.make_cgroups(self.folder.name, names)}
        (self.folder / "settings.json").write_text(json.dumps(settings))
        self._launch()
        self._wait_until_answering()
        self.load(self._images)
        wait_until("all nodes to be Ready", self._all_ready, 120)
        self._say(leash.READY)
        wait_until("the cluster to know that it is ready", lambda: not self._starting.exists(), 30)

    def _say(self, word):
        try:
            os.write(self._leash, word)
        except BrokenPipeError as error:
            raise ClusterError(f"it ended while it started; {self.folder}/supervisor.log tells") from error

    def _end(self):
        pid = self._pid()
        if pid is None:
            return
        try:
            control.ask(self.folder / "control.sock", "end", patience=5)
            wait_until("the cluster to end", lambda: self._pid() is None, 10)
        except (OSError, WaitedInVain):
            os.kill(pid, signal.SIGKILL)
            wait_until("the cluster to end", lambda: self._pid() is None, 30)

    @property
    def _starting(self):
        return self.folder / "starting"

    def _launch(self):
        watched, self._leash = os.pipe()
        with socket.create_server(("127.0.0.1", 0)) as listener, open(self.folder / "supervisor.log", "ab") as log:
            inherited = [listener.fileno(), watched, self._owned.fileno()]
            self._child = subprocess.Popen(
                [*OWN_NAMESPACES, sys.executable, "-m", "yard.supervisor", self.folder, *map(str, inherited[:2])],
                cwd="/", env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"},
                pass_fds=inherited, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        os.close(watched)
        (self.folder / "pid").write_text(str(self._child.pid))

    def _wait_until_answering(self):
        def answers():
            if self._child.poll() is not None:
                log = (self.folder / "supervisor.log").read_text(errors="replace").splitlines()
                raise ClusterError("it did not start:\n" + "\n".join(log[-15:]))
            return (self.folder / "control.sock").exists()
        wait_until(f"the cluster to start; {self.folder}/supervisor.log tells", answers, 180)

    def _pid(self):
        """Of its first process, or None. A number that another process has by now is not taken for it."""
        try:
            pid = int((self.folder / "pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError):
            return None
        if state == "Z":
            self._bury(pid)
            return None
        return pid if str(self.folder).encode() in command else None

    @staticmethod
    def _bury(pid):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass

    # -- use

    @property
    def kubeconfig(self):
        return self.folder / "kubeconfig"

    @property
    def environment(self):
        """Of a command that is to use this cluster: KUBECONFIG, and kubectl in its PATH."""
        kubectl = Path(self._settings()["programs"]["kubectl"]).parent
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": f"{kubectl}:{os.environ['PATH']}"}

    def client(self):
        return Client(self.kubeconfig)

    def kubectl(self, *words, check=True, timeout=120, stdin=None):
        """What it prints, errors included. Throws ClusterError where it ends otherwise than with 0, if `check`."""
        done = subprocess.run(["kubectl", *map(str, words)], env=self.environment, text=True, timeout=timeout, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}")
        return done.stdout

    def wait_until_ready(self, timeout=60):
        """After the API server, or etcd behind it, was away."""
        wait_until("the API server", lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", timeout)

    def load(self, archives):
        """Brings images, as OCI archives, to every node."""
        def load_into(name):
            for archive in map(Path, archives):
                seconds = 120 + archive.stat().st_size // SLOWEST_IMPORT
                self.run_on(name, ["ctr", "--namespace", "k8s.io", "images", "import", str(archive.resolve())], seconds)
        with ThreadPoolExecutor() as pool:
            list(pool.map(load_into, self.node_names()))

    def node_names(self):
        count = self._settings()["nodes"] if (self.folder / "settings.json").exists() else self._nodes
        return [addresses.node_name(number) for number in range(1, count + 1)]

    def _settings(self):
        try:
            return json.loads((self.folder / "settings.json").read_text())
        except FileNotFoundError as error:
            raise ClusterError(NOT_UP) from error

    def _all_ready(self):
        nodes = self.client().list("v1", "Node")
        ready = [each for each in nodes if any(condition["type"] == "Ready" and condition["status"] == "True"
                                               for condition in each["status"].get("conditions", []))]
        return len(ready) == len(self.node_names())

    # -- what happens to clusters

    def status(self):
        """Whether each program and each node is running: {"etcd": True, "node-1": …, "node-1/kubelet": …}."""
        found = self._ask("", "status")
        for name in self.node_names():
            if found[name]:
                found |= {f"{name}/{program}": runs for program, runs in self._ask(name, "status").items()}
        return found

    def do(self, what, program):
        """`what`: start, stop, kill, pause or resume. `program`: etcd, kube-apiserver, node-2/kubelet…"""
        machine, _, name = program.rpartition("/")
        self._ask(machine, what, program=name)

    def off(self, name):
        """As if the node's power was cut."""
        self._ask("", "off", node=name)

    def on(self, name):
        self._ask("", "on", node=name)

    def unplug(self, name):
        """Takes the node off the network; all goes on in it."""
        self._ask("", "run", command=network.plug(name, "down"))

    def plug(self, name):
        self._ask("", "run", command=network.plug(name, "up"))

    def cut(self, one, other):
        """Between the pods of two nodes nothing passes any more. Both still reach the API server."""
        self.run_on(one, network.cut(_number(other)))
        self.run_on(other, network.cut(_number(one)))

    def mend(self, one, other):
        for name, far in ((one, other), (other, one)):
            for command in network.mend(_number(far)):
                self.run_on(name, command)

    def run_on(self, name, command, timeout=120):
        """What a command prints that runs on a node, outside of containers."""
        return self._ask(name, "run", command=command, timeout=timeout, patience=timeout + 60)

    def _ask(self, machine, do, **arguments):
        try:
            return control.ask(self.folder / machine / "control.sock", do, **arguments)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise ClusterError(f"{machine} is not up, or no node at all; `./cluster status` tells which are"
                               if machine and self.is_up() else NOT_UP) from error
        except control.Refused as error:
            raise ClusterError(str(error)) from error


def _number(name):
    return int(name.rpartition("-")[2])


# What machines and their containers are made of; the last fails in a chroot, where no container can have a root of its own.
_TRIED = """mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/both /mnt/old &&
  mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /mnt/both &&
  ip link add try0 type bridge && ip link add try1 type veth && pivot_root /mnt /mnt/old"""


def why_not_here():
    """What keeps a cluster from being made on this machine, or None."""
    if os.geteuid() != 0:
        return "namespaces, mounts and cgroups take root: sudo ./cluster up"
    done = subprocess.run([*OWN_NAMESPACES, "sh", "-c", _TRIED], capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        return f"this machine does not let namespaces be made: {done.stderr.strip()}"
    trial = leftovers.Owned.new("trial", "/var/tmp")
    try:
        node.make_cgroups(trial.folder.name, ["node"])
    except OSError as error:
        return f"this machine does not let cgroups be made: {error}"
    finally:
        trial.remove()
    return None


def find_programs():
    """{name: path} of all that the machines run; builds or downloads into the cache what is not there yet."""
    control, nodes, coredns, runtime = map(Path, _output_of(HERE / "programs").splitlines())
    parts = ("kubelet", "kube-proxy", "kube-scheduler", "device-plugin")
    return {**{name: str(nodes / name) for name in parts}, "kubectl": str(control / "kubectl"), "coredns": str(coredns),
            "containerd": str(runtime / "usr/bin/containerd"), "runc": str(runtime / "usr/sbin/runc"),
            "cni": str(runtime / "usr/lib/cni")}


def _output_of(script):
    done = subprocess.run([script], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ClusterError(f"{script.name} failed; it has said why")
    return done.stdout.strip()


def images():
    """The archives of pause and of this tree's operator and trainer, built where they are not yet: pause.tar, …"""
    return sorted(Path(_output_of(HERE / "images/build")).glob("*.tar"))
