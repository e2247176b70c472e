"""A real Kubernetes of three nodes on this machine, in network, mount and process namespaces of its own.

    from yard import Cluster
    with Cluster("mine") as cluster:
        cluster.kubectl("get", "nodes")
        cluster.off("node-3")
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "operator"))  # for `kube`, which the tests of the operator share

from .cluster import Cluster, ClusterError, images  # noqa: E402

__all__ = ["Cluster", "ClusterError", "images"]
