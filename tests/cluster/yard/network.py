"""Cables between machines: a bridge in the control plane's namespace, a pair of veths to each node, and routes."""
import subprocess
from pathlib import Path

from . import addresses

BRIDGE = "yard"


def make_bridge():
    """In the namespace of who calls."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for words in (["link", "set", "lo", "up"], ["link", "add", BRIDGE, "type", "bridge"],
                  ["address", "add", f"{addresses.CONTROL}/24", "dev", BRIDGE], ["link", "set", BRIDGE, "up"]):
        _ip(*words)


def join(number, pid, count):
    """Wires node-<number>, whose namespace is that of process `pid`, to the bridge and to the pods of `count` nodes."""
    name = addresses.node_name(number)
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("link", "set", name, "master", BRIDGE, "up")
    _ip("route", "replace", addresses.pods(number), "via", addresses.node(number))
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
    for words in (["link", "set", "lo", "up"], ["address", "add", f"{addresses.node(number)}/24", "dev", "eth0"],
                  ["link", "set", "eth0", "up"], ["route", "add", "default", "via", addresses.CONTROL]):
        _ip(*words, within=inside)
    for other in range(1, count + 1):
        if other != number:
            _ip("route", "add", addresses.pods(other), "via", addresses.node(other), within=inside)


def cut(other):
    """Command for a node that drops, without a word, what its pods send to those of another."""
    return ["ip", "route", "replace", "blackhole", addresses.pods(other)]


def mend(other):
    """Commands for a node that undo cut()."""
    return [["ip", "route", "del", "blackhole", addresses.pods(other)],
            ["ip", "route", "add", addresses.pods(other), "via", addresses.node(other)]]


def plug(name, state):
    """Command for the control plane: the node's cable in (up) or out (down)."""
    return ["ip", "link", "set", name, state]


def _ip(*words, within=()):
    subprocess.run([*within, "ip", *words], check=True)
