"""A real Kubernetes API for tests: its control plane, identities, a small client, and the operator beside it.

    from kube import ControlPlane
    with ControlPlane(crds=[ROOT / "manifests/crd"]) as cluster:
        cluster.client().create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
"""
from .client import ApiError, Client
from .control_plane import ControlPlane
from .operator_process import OperatorProcess
from .process import ProcessEnded, WaitedInVain, wait_until

__all__ = ["ApiError", "Client", "ControlPlane", "OperatorProcess", "ProcessEnded", "WaitedInVain", "wait_until"]
