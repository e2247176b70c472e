"""Volumes for claims of the StorageClass `shared`: folders of this machine, which every node sees, as an NFS server's would be."""
import shutil
import threading
import time
from pathlib import Path

from kube import ApiError

NAME, PROVISIONER = "shared", "trainyard.test/folder"
CLASS = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": PROVISIONER,
         "metadata": {"name": NAME, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
         "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}


def serve(client, folder):
    """Looks twice a second, in a thread, for claims to fill and volumes that nobody claims any more."""
    folder = Path(folder)
    folder.mkdir()
    client.apply(CLASS)
    threading.Thread(target=_look_for_ever, args=(client, folder), daemon=True).start()


def _look_for_ever(client, folder):
    while True:
        try:
            _provide(client, folder)
            _reclaim(client, folder)
        except (OSError, ApiError, ValueError) as error:  # an API server that is away, which tests do to it
            print(f"storage: {error}", flush=True)
        time.sleep(0.5)


def _provide(client, folder):
    for claim in client.list("v1", "PersistentVolumeClaim"):
        if claim["spec"].get("storageClassName") != NAME or claim["status"].get("phase") != "Pending":
            continue
        name = f"pvc-{claim['metadata']['uid']}"
        path = folder / name
        path.mkdir(exist_ok=True)
        path.chmod(0o777)  # who the pods run as is theirs to choose
        volume = {"apiVersion": "v1", "kind": "PersistentVolume",
                  "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
                  "spec": {"capacity": claim["spec"]["resources"]["requests"], "storageClassName": NAME,
                           "accessModes": claim["spec"]["accessModes"], "hostPath": {"path": str(path)},
                           "persistentVolumeReclaimPolicy": "Delete",
                           "claimRef": {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
                           | {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}}}
        try:
            client.create(volume)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def _reclaim(client, folder):
    for volume in client.list("v1", "PersistentVolume"):
        if volume["spec"].get("storageClassName") == NAME and volume["status"].get("phase") in ("Released", "Failed"):
            client.delete("v1", "PersistentVolume", volume["metadata"]["name"])
            shutil.rmtree(folder / volume["metadata"]["name"], ignore_errors=True)
