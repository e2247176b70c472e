"""A real Kubernetes API for tests: its control plane, identities, a small client, and the operator beside it.

    from kube import ControlPlane
    with ControlPlane(crds=[ROOT / "manifests/crd"]) as cluster:
        cluster.client().create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
"""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `leftovers`, which all of tests/ shares

from .client import ApiError, Client  # noqa: E402
from .control_plane import ControlPlane  # noqa: E402
from .operator_process import OperatorProcess  # noqa: E402
from .process import ProcessEnded, WaitedInVain, wait_until  # noqa: E402

__all__ = ["ApiError", "Client", "ControlPlane", "OperatorProcess", "ProcessEnded", "WaitedInVain", "wait_until"]
