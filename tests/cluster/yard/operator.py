"""The operator as it is installed on a cluster, with flags that let tests be short."""
import json
import os
import tempfile
from pathlib import Path

from .training import ROOT

# A minute otherwise. A kubelet reports every 10 s: after a control plane that was away, nodes are not ready for so long.
FLAGS = ["--node-lost-grace=20s"]


def install(cluster, flags=FLAGS):
    """By `kubectl apply -k` of an overlay, as a user adds flags; returns when it is there."""
    with tempfile.TemporaryDirectory() as folder:
        patch = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": flag} for flag in flags]
        overlay = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                   "resources": [os.path.relpath(ROOT / "manifests", os.path.realpath(folder))],
                   "patches": [{"target": {"kind": "Deployment"}, "patch": json.dumps(patch)}]}
        (Path(folder) / "kustomization.yaml").write_text(json.dumps(overlay))
        cluster.kubectl("apply", "-k", folder)
    cluster.kubectl("-n", "kubeflow", "rollout", "status", "deployment", "--timeout=90s")


def leader(cluster):
    """The name of the pod that leads, or None."""
    for lease in cluster.client().list("coordination.k8s.io/v1", "Lease", "kubeflow"):
        holder = lease["spec"].get("holderIdentity") or ""
        for pod in cluster.client().list("v1", "Pod", "kubeflow"):
            if holder.startswith(pod["metadata"]["name"]):
                return pod["metadata"]["name"]
    return None
