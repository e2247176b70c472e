"""What benches of operators share: who is measured, when objects come, change and go, and what raw libcurl needs."""
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/operator"))
from kube import OperatorProcess
from kube.jobs import API, pytorch_job

RAW = ROOT / "build/bench/bin/raw_requests"
COLLECTIONS = {"pytorchjobs": f"/apis/{API}", "pods": "/api/v1", "services": "/api/v1"}


class Side:
    """An operator that is measured."""

    def __init__(self, name, program, flags=()):
        self.name, self.program, self.flags = name, program, flags

    def start(self, cluster):
        log = cluster.folder / f"{self.name.replace(' ', '-')}-{time.monotonic_ns()}.log"
        return OperatorProcess(self.program, cluster.kubeconfig, log, self.flags, cluster.environment)


class Watched:
    """The events of a kind in a namespace, with the moment when each came; read by a thread, parsed when asked for.

    A busy API server ends watches that do not keep up, so one is followed by another from the last version seen."""

    def __init__(self, client, namespace, plural):
        self.events = []  # (moment, line)
        self._counts = {"ADDED": 0, "MODIFIED": 0, "DELETED": 0}
        self._client, self._path = client, f"{COLLECTIONS[plural]}/namespaces/{namespace}/{plural}"
        self._version = client.request("GET", self._path, query={"limit": 1})["metadata"]["resourceVersion"]
        self._broken = None
        stream = self._open()
        threading.Thread(target=self._follow, args=[stream], daemon=True).start()

    def _open(self):
        return self._client.stream(self._path, {"watch": "true", "resourceVersion": self._version})

    def _follow(self, stream):
        try:
            while True:
                self._read(stream)
                self._version = json.loads(self.events[-1][1])["object"]["metadata"]["resourceVersion"]
                stream = self._open()
        except Exception as error:  # said by the thread that asks next
            self._broken = error

    def _read(self, stream):
        rest = b""
        while more := stream.read1(1 << 20):
            moment = time.monotonic()
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                self._counts[line[9:line.index(b'"', 9)].decode()] += 1
                self.events.append((moment, line))

    def count(self, what):
        if self._broken:
            raise SystemExit(f"error: the watch of {self._path} broke off: {self._broken!r}")
        return self._counts[what]

    def parsed(self):
        """(moment, type, object) of all so far."""
        for moment, line in list(self.events):
            event = json.loads(line)
            yield moment, event["type"], event["object"]

    def last_moment(self, what):
        """Of the last event of that type."""
        return next(moment for moment, line in reversed(self.events) if line.startswith(b'{"type":"%s"' % what.encode()))


def wait_for(condition, limit):
    """Seconds until it was true, or None after `limit`."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > limit:
            return None
        time.sleep(0.005)
    return time.monotonic() - start


def create_namespace(client, name):
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def job(name, namespace, workers, **run_policy):
    return pytorch_job(name, namespace, workers=workers, run_policy=run_policy)


# ------------------------------------------------------------------------------------------------------ raw libcurl

def creation(thing):
    """The request that creates an object like it."""
    kept = {key: thing["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")
            if key in thing["metadata"]}
    body = {key: value for key, value in {**thing, "metadata": kept}.items() if key != "status"}
    for assigned in ("clusterIP", "clusterIPs"):
        if body["spec"].get(assigned) not in (None, "None", ["None"]):
            del body["spec"][assigned]
    return {"method": "POST", "path": collection(thing), "body": json.dumps(body)}


def deletion(thing):
    return {"method": "DELETE", "path": f"{collection(thing)}/{thing['metadata']['name']}"}


def status_change(pod, phase):
    return {"method": "PATCH", "path": f"{collection(pod)}/{pod['metadata']['name']}/status",
            "type": "application/merge-patch+json", "body": json.dumps({"status": {"phase": phase}})}


def collection(thing):
    plural = {"Pod": "pods", "Service": "services", "PyTorchJob": "pytorchjobs"}[thing["kind"]]
    return f"{COLLECTIONS[plural]}/namespaces/{thing['metadata']['namespace']}/{plural}"


def objects(client, kind, namespace):
    """As `list` leaves out of each item what is the list's."""
    return [{"apiVersion": "v1", "kind": kind, **thing} for thing in client.list("v1", kind, namespace)]


def raw_makes(cluster, client, namespace, jobs, things):
    """Seconds that libcurl takes to make the same jobs, and the same objects for them, in another namespace: in the same
    order, owned by those jobs and watched as here, so that the other controllers have the same work meanwhile."""
    things = sorted(things, key=lambda thing: int(thing["metadata"]["resourceVersion"]))
    create_namespace(client, namespace)
    watched = [Watched(client, namespace, plural) for plural in COLLECTIONS]
    seconds = send_raw(cluster, [creation(moved(each, namespace)) for each in jobs])
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in client.list(API, "PyTorchJob", namespace)}
    seconds += send_raw(cluster, [creation(moved(each, namespace, uids)) for each in things])
    missing = len(jobs) + len(things) - sum(each.count("ADDED") for each in watched)
    if missing > 0 and wait_for(lambda: sum(each.count("ADDED") for each in watched) >= len(jobs) + len(things), 30) is None:
        raise SystemExit("error: what libcurl made did not show up in the watches")
    return seconds


def moved(thing, namespace, uids=None):
    """It in another namespace, owned by the jobs of the same names there."""
    metadata = {**thing["metadata"], "namespace": namespace}
    owners = metadata.pop("ownerReferences", [])
    if uids:
        metadata["ownerReferences"] = [{**owner, "uid": uids[owner["name"]]} for owner in owners]
    return {**thing, "metadata": metadata}


def send_raw(cluster, requests, parallel=64):
    """Seconds that libcurl takes for them. Ends the bench where one was refused."""
    user = json.loads(Path(cluster.kubeconfig).read_text())
    authority = user["clusters"][0]["cluster"]["certificate-authority"]
    identity = user["users"][0]["user"]
    file = cluster.folder / "requests.jsonl"
    file.write_text("".join(json.dumps(request) + "\n" for request in requests))
    done = subprocess.run(
        [RAW, "--server", cluster.server, "--ca", authority, "--cert", identity["client-certificate"],
         "--key", identity["client-key"], "--parallel", str(parallel), file], stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    if unexpected := {status for status in answer["statuses"] if not status.startswith("2")}:
        raise SystemExit(f"error: raw requests were answered with {unexpected}: {answer}")
    return answer["seconds"]
