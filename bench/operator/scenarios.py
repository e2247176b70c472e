"""The histories that operators are measured by. Each returns {what: figure}; a figure is None where it was not reached."""
import statistics
import time
import urllib.request

from kube.jobs import API
from stopwatch import (Watched, create_namespace, creation, deletion, job, moved, objects, raw_makes, send_raw,
                       status_change, wait_for)

LIMIT = 240  # seconds, for each thing that is waited for


def warm_up(cluster, count=1000):
    """A fresh API server takes twice the CPU time for its first thousands of objects: whoever comes first would pay."""
    client = cluster.client()
    create_namespace(client, "warm-up")
    pod = {"apiVersion": "v1", "kind": "Pod", **job("x", "warm-up", 0)["spec"]["pytorchReplicaSpecs"]["Master"]["template"]}
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None", "selector": {"a": "b"}}}
    things = [{**thing, "metadata": {"name": f"x-{number}", "namespace": "warm-up"}}
              for number in range(count) for thing in (pod, service)]
    for _ in range(2):
        send_raw(cluster, map(creation, things))
        send_raw(cluster, map(deletion, things))


def one_large_job(cluster, side, replicas=1000):
    """One job: all its pods and services made, then removed when it has succeeded."""
    client, ns = cluster.client(), f"large-{replicas}-{time.monotonic_ns() % 10**6}"
    create_namespace(client, ns)
    wanted = job("large", ns, replicas - 1, cleanPodPolicy="All")
    with side.start(cluster) as operator:
        pods, services = Watched(client, ns, "pods"), Watched(client, ns, "services")
        cpu = operator.cpu_seconds()
        start = time.monotonic()
        client.create(wanted)
        made = wait_for(lambda: pods.count("ADDED") >= replicas and services.count("ADDED") >= replicas, LIMIT)
        if made is not None:
            made = max(pods.last_moment("ADDED"), services.last_moment("ADDED")) - start
        figures = {"pods and services made, s": made, "CPU for it, s": operator.cpu_seconds() - cpu,
                   "resident then, MB": operator.resident_bytes() / 1e6}
        things = objects(client, "Pod", ns) + objects(client, "Service", ns)
        master = next(thing for thing in things if thing["metadata"]["name"] == "large-master-0")
        start = time.monotonic()
        client.patch("v1", "Pod", master["metadata"]["name"], {"status": {"phase": "Succeeded"}}, ns, "status")
        gone = wait_for(lambda: pods.count("DELETED") >= replicas and services.count("DELETED") >= replicas, LIMIT)
        if gone is not None:
            gone = max(pods.last_moment("DELETED"), services.last_moment("DELETED")) - start
        figures["pods and services removed, s"] = gone
        client.delete(API, "PyTorchJob", "large", ns)
    if made is not None:
        figures["raw libcurl makes the same, s"] = raw_makes(cluster, client, f"{ns}-raw", [wanted], things)
        figures["raw libcurl removes the same, s"] = send_raw(
            cluster, [deletion(moved(thing, f"{ns}-raw")) for thing in things])
        client.delete(API, "PyTorchJob", "large", f"{ns}-raw")
    return figures


def many_small_jobs(cluster, side, jobs=500, replicas=4):
    """All jobs at once: their pods and services made, then all pods said to run within a few seconds."""
    client, ns = cluster.client(), f"small-{time.monotonic_ns() % 10**6}"
    create_namespace(client, ns)
    wanted = [job(f"job-{number}", ns, replicas - 1) for number in range(jobs)]
    count = jobs * replicas
    with side.start(cluster) as operator:
        pods, services, followed = (Watched(client, ns, plural) for plural in ("pods", "services", "pytorchjobs"))
        start = time.monotonic()
        send_raw(cluster, map(creation, wanted))
        made = wait_for(lambda: pods.count("ADDED") >= count and services.count("ADDED") >= count, LIMIT)
        figures = {"pods and services made, s": made and max(pods.last_moment("ADDED"),
                                                              services.last_moment("ADDED")) - start}
        things = objects(client, "Pod", ns) + objects(client, "Service", ns)
        if made is not None:
            wait_for(lambda: settled(followed), 10)
            send_raw(cluster, [status_change(thing, "Running") for thing in things if thing["kind"] == "Pod"], parallel=32)
            wait_for(lambda: len(running_moments(followed)) == jobs, LIMIT)
            figures.update(running_figures(pods, followed, jobs))
        figures["resident then, MB"] = operator.resident_bytes() / 1e6
    if made is not None:
        figures["raw libcurl makes the same, s"] = raw_makes(cluster, client, f"{ns}-raw", wanted, things)
    return figures


def settled(watched):
    """Nothing has come for a second."""
    return watched.events and time.monotonic() - watched.events[-1][0] > 1


def running_moments(jobs):
    """Job → when its condition Running was first seen."""
    moments = {}
    for moment, _, thing in jobs.parsed():
        conditions = thing.get("status", {}).get("conditions") or []
        if any(each["type"] == "Running" and each["status"] == "True" for each in conditions):
            moments.setdefault(thing["metadata"]["name"], moment)
    return moments


def running_figures(pods, jobs, count):
    running = running_moments(jobs)
    runs = {thing["metadata"]["name"]: moment for moment, type_, thing in pods.parsed()
            if type_ == "MODIFIED" and thing["status"].get("phase") == "Running"}
    delays = [moment - runs[f"{name}-master-0"] for name, moment in running.items()]
    return {"all Running after the last pod, s":
            max(running.values()) - max(runs.values()) if len(running) == count else None,
            **percentiles("under that load, event to status", delays)}


def percentiles(what, seconds):
    """In milliseconds."""
    if not seconds:
        return {f"{what}, p50 ms": None, f"{what}, p99 ms": None}
    ordered = sorted(seconds)
    return {f"{what}, p50 ms": 1000 * statistics.median(ordered),
            f"{what}, p99 ms": 1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}


def event_to_status(cluster, side, samples=100):
    """A cluster at rest: one worker after the other begins to run, and the status counts it."""
    client, ns = cluster.client(), f"rest-{time.monotonic_ns() % 10**6}"
    create_namespace(client, ns)
    with side.start(cluster):
        pods, jobs = Watched(client, ns, "pods"), Watched(client, ns, "pytorchjobs")
        client.create(job("rest", ns, samples))
        wait_for(lambda: pods.count("ADDED") == samples + 1, LIMIT)
        for pod in ["rest-master-0", *(f"rest-worker-{number}" for number in range(samples))]:
            before = len(jobs.events)
            client.patch("v1", "Pod", pod, {"status": {"phase": "Running"}}, ns, "status")
            wait_for(lambda before=before: len(jobs.events) > before, 30)
            time.sleep(0.02)  # what comes with it (an event, a second write) is over
        active = {}
        for moment, _, thing in jobs.parsed():
            workers = thing.get("status", {}).get("replicaStatuses", {}).get("Worker", {})
            active.setdefault(workers.get("active", 0), moment)
        ran = sorted(moment for moment, type_, thing in pods.parsed()
                     if type_ == "MODIFIED" and "-worker-" in thing["metadata"]["name"])
        delays = [active[number + 1] - moment for number, moment in enumerate(ran) if number + 1 in active]
        client.delete(API, "PyTorchJob", "rest", ns)
    return percentiles("event to status at rest", delays)


def at_rest(cluster, side, jobs=1000, seconds=30):
    """1,000 running jobs that do not change, under an operator that starts when they are there."""
    client, ns = cluster.client(), f"idle-{time.monotonic_ns() % 10**6}"
    create_namespace(client, ns)
    with side.start(cluster):
        pods, followed = Watched(client, ns, "pods"), Watched(client, ns, "pytorchjobs")
        send_raw(cluster, [creation(job(f"job-{number}", ns, 0)) for number in range(jobs)])
        wait_for(lambda: pods.count("ADDED") >= jobs, LIMIT)
        send_raw(cluster, [status_change(pod, "Running") for pod in objects(client, "Pod", ns)])
        wait_for(lambda: settled(followed) and len(running_moments(followed)) == jobs, LIMIT)
    changes = len(followed.events)
    start = time.monotonic()
    with side.start(cluster) as operator:
        ready = wait_for(lambda: reconciled(operator) >= 1, LIMIT)
        figures = {"start to first reconcile, s": ready and time.monotonic() - start}
        wait_for(lambda: reconciled(operator) >= jobs, LIMIT)
        time.sleep(3)
        cpu, began = operator.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        figures["CPU at rest, % of a core"] = 100 * (operator.cpu_seconds() - cpu) / (time.monotonic() - began)
        figures["resident, MB"] = operator.resident_bytes() / 1e6
    figures["writes of jobs that did not change"] = len(followed.events) - changes
    return figures


def reconciled(operator):
    """How many jobs it has looked at since its start; of both operators, by their own metrics."""
    try:
        text = urllib.request.urlopen(operator.metrics_url, timeout=5).read().decode()
    except OSError:
        return 0
    names = ("trainyard_operator_reconcile_seconds_count", "controller_runtime_reconcile_total")
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(names))


def growth(cluster, side, sizes=(100, 1000, 10000)):
    """One job of each size."""
    figures = {}
    for size in sizes:
        found = one_large_job(cluster, side, size)
        for what in ("pods and services made, s", "CPU for it, s", "resident then, MB"):
            figures[f"{size} replicas: {what}"] = found[what]
        figures[f"{size} replicas: raw libcurl, s"] = found.get("raw libcurl makes the same, s")
    return figures


SCENARIOS = {function.__name__.replace("_", "-"): function
             for function in (one_large_job, many_small_jobs, event_to_status, at_rest, growth)}
