"""A node from within: run as `python3 -m yard.machine FOLDER` in namespaces of its own, below a shell that is their process 1.

Programs find the usual paths, /var/lib/kubelet and /run among them, but what lies there is the node's own.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from . import control
from kube.process import Process

# The kubelet sets these for the whole machine. It writes, and finds what it has written, but in files beside them.
TUNABLES = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"]
OWN = {"var-lib-kubelet": "/var/lib/kubelet", "var-lib-containerd": "/var/lib/containerd", "var-log": "/var/log",
       "etc-cni": "/etc/cni/net.d", "run": "/run"}


def mount_own(folder):
    """Needs folders that the host may lack (/etc/cni/net.d): /etc and /var/lib are seen through a layer that is thrown away."""
    mount("--make-rprivate", "/")
    shutil.rmtree(folder / "run")
    (folder / "run").mkdir()
    for below in ("/etc", "/var/lib"):
        layers = folder / "layers" / below.strip("/").replace("/", "-")
        for each in ("upper", "work"):
            (layers / each).mkdir(parents=True, exist_ok=True)
        mount("-t", "overlay", "overlay", "-o", f"lowerdir={below},upperdir={layers}/upper,workdir={layers}/work", below)
    for own, path in OWN.items():
        os.makedirs(path, exist_ok=True)
        mount("--bind", folder / own, path)
    mount("-t", "proc", "proc", "/proc")
    for tunable in TUNABLES:
        real = Path("/proc/sys") / tunable
        if real.exists():
            ours = folder / "files" / tunable.replace("/", "-")
            ours.write_text(real.read_text())
            mount("--bind", ours, real)
    mount("--make-rshared", "/")


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def main(folder):
    described = json.loads((folder / "node.json").read_text())
    mount_own(folder)
    socket.sethostname(described["name"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    environment = {**os.environ, "PATH": described["path"], "HOME": "/root"}
    os.environ.update(environment)
    programs = {name: Process(name, command, folder / f"{name}.log", environment)
                for name, command in described["programs"].items()}
    control.serve(folder / "control.sock", control.Programs(programs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
