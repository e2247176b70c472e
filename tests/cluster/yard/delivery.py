"""Brings images to a cluster that is there already: by its own tool, or through a registry."""
import json
import shutil
import subprocess

from .cluster import ClusterError

# What a context is called: the command that loads an archive into that cluster's nodes.
LOADERS = {
    "kind-": lambda name, archive: ["kind", "load", "image-archive", archive, "--name", name.removeprefix("kind-")],
    "k3d-": lambda name, archive: ["k3d", "image", "import", archive, "--cluster", name.removeprefix("k3d-")],
    "minikube": lambda name, archive: ["minikube", "--profile", name, "image", "load", archive],
    "default": lambda _, archive: ["k3s", "ctr", "images", "import", archive],  # k3s calls its context so
}


def deliver(context, archives, registry=None):
    """Returns the `images:` entries that overlays need; none where the images keep their names. Throws ClusterError."""
    archives = [str(archive) for archive in archives if archive.name.startswith("trainyard")]
    if registry:
        return [push(archive, registry) for archive in archives]
    loader = next((command for prefix, command in LOADERS.items() if context.startswith(prefix)), None)
    if not loader:
        raise ClusterError(f"how images get into the nodes of '{context}' is not known (kind's, minikube's, k3d's and k3s's "
                           "are); name a registry that it pulls from: --registry registry.example.org/team")
    for archive in archives:
        run(*loader(context, archive))
    return []


def must_be_there(context):
    """Throws ClusterError where kubectl does not know it."""
    known = run("kubectl", "config", "get-contexts", "--output", "name").split()
    if context not in known:
        raise ClusterError(f"kubectl knows no context '{context}', but {', '.join(known) or 'none at all'}")


def push(archive, registry):
    reference = reference_of(archive)
    repository, _, tag = reference.rpartition("/")[2].partition(":")
    there = f"{registry}/{repository}"
    is_local = registry.split("/")[0].split(":")[0] in ("localhost", "127.0.0.1")
    run("skopeo", "copy", "--quiet", f"--dest-tls-verify={'false' if is_local else 'true'}",
        f"oci-archive:{archive}", f"docker://{there}:{tag}")
    return {"name": repository, "newName": there, "newTag": tag}


def reference_of(archive):
    """docker.io/library/trainyard:0.1.0, as the archive's index names it."""
    index = json.loads(run("tar", "--extract", "--to-stdout", "--file", archive, "index.json"))
    return index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]


def run(*command):
    if not shutil.which(command[0]):
        raise ClusterError(f"{command[0]} is not installed, or not in the PATH")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
