"""Definitions of the resource PyTorchJob that are not ours, as a cluster may have them, and how they come and go."""
from .client import ApiError
from .process import wait_until

NAME = "pytorchjobs.kubeflow.org"
_API = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAME)
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def job_definition(version="v1", subresources=None, status=ANYTHING):
    schema = {"type": "object", "properties": {"spec": ANYTHING, "status": status}}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
              **({"subresources": subresources} if subresources else {})}
    return {"apiVersion": _API[0], "kind": _API[1], "metadata": {"name": NAME},
            "spec": {"group": "kubeflow.org", "scope": "Namespaced", "versions": [served],
                     "names": {"plural": "pytorchjobs", "singular": "pytorchjob", "kind": "PyTorchJob"}}}


def remove_job_definition(admin):
    """And with it all jobs."""
    if admin.get(*_API):
        admin.delete(*_API)
    wait_until("the definition of PyTorchJob to be gone", lambda: admin.get(*_API) is None, 60)


def install_job_definition(admin, definition):
    admin.apply(definition)
    wanted = {version["name"] for version in definition["spec"]["versions"]}

    def is_served():
        conditions = admin.get(*_API).get("status", {}).get("conditions")
        established = any(each["type"] == "Established" and each["status"] == "True" for each in conditions or [])
        listed = wanted <= {version["version"] for version in _group_versions(admin)}
        return established and listed and all(_has_resources(admin, version) for version in wanted)
    wait_until("the definition of PyTorchJob to be served", is_served, 60)


def _has_resources(admin, version):
    """The list of versions comes a moment before what they serve."""
    try:
        return admin.request("GET", f"/apis/kubeflow.org/{version}")["resources"]
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def _group_versions(admin):
    groups = admin.request("GET", "/apis")["groups"]
    return next((group["versions"] for group in groups if group["name"] == "kubeflow.org"), [])
