"""A real Kubernetes of three nodes on this machine, in network, mount and process namespaces of its own.

    from yard import Cluster
    with Cluster("mine") as cluster:
        cluster.kubectl("get", "nodes")
        cluster.off("node-3")
"""
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "operator"))  # for `kube`, which the tests of the operator share
sys.path.append(str(TESTS))  # for `leftovers`

from .cluster import Cluster, ClusterError, images, why_not_here  # noqa: E402

__all__ = ["Cluster", "ClusterError", "images", "skip_where_there_can_be_none", "why_not_here"]


def skip_where_there_can_be_none():
    """Ends a test's script, by name, on a machine that cannot have a cluster."""
    if reason := why_not_here():
        print(f"SKIPPED: {reason}")
        sys.exit(0)
