"""What happens to a job, step by step, each as soon as the one before has been carried out.

Every history ends the same whatever befalls the operator: a step is taken only where the job's status has caught up
with its pods. They are generators: `yield` is "look again later". What is done leaves by the admin's own connection.
"""
import datetime

from kube.client import ApiError
from kube.jobs import API, pytorch_job
from world import generation_of

METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                       "averageUtilization": 80}}}]


class Job:
    def __init__(self, world, name, rng):
        self.world, self.name, self.rng = world, name, rng

    # -- what is

    @property
    def pods(self):
        return self.world.pods.get(self.name, [])

    @property
    def status(self):
        return self.world.status(self.name)

    @property
    def restarts(self):
        return self.status.get("restarts", {})

    def is_in(self, state):
        return bool(self.status.get("conditions")) and self.status["conditions"][-1]["type"] == state

    def is_whole(self, size):
        """All pods of the present generation run, each has its service, and the status says so."""
        if sorted(self.world.services.get(self.name, [])) != sorted(pod["metadata"]["name"] for pod in self.pods):
            return False
        active = sum(counts.get("active", 0) for counts in self.status.get("replicaStatuses", {}).values())
        generation = self.restarts.get("generation", 1)
        return (self.is_in("Running") and active == size == len(self.pods) and
                all(generation_of(pod) == generation and pod["status"]["phase"] == "Running" for pod in self.pods))

    # -- waits

    def until(self, condition):
        while not condition():
            yield

    def until_whole(self, size=3, restarts=None):
        yield from self.until(lambda: self.is_whole(size) and restarts in (None, self.restarts.get("count", 0)))

    def until_in(self, state):
        yield from self.until(lambda: self.is_in(state))

    @property
    def uid(self):
        return self.world.jobs.get(self.name, {}).get("metadata", {}).get("uid")

    # -- what is done to it

    def create(self, **spec):
        self.world.admin.create(pytorch_job(self.name, self.world.namespace, **spec))

    def change(self, spec, subresource=None):
        self.world.admin.patch(API, "PyTorchJob", self.name, {"spec": spec}, self.world.namespace, subresource)

    def end(self, place, exit_code):
        pod = next(pod for pod in self.pods if pod["metadata"]["name"] == f"{self.name}-{place}")
        self.world.kubelet.set_phase(pod, "Failed" if exit_code else "Succeeded", exit_code)

    def delete(self):
        try:
            self.world.admin.delete(API, "PyTorchJob", self.name, self.world.namespace)
        except ApiError as error:
            if error.status != 404:
                raise


def succeeds(policy):
    def history(job):
        job.create(run_policy={"cleanPodPolicy": policy})
        yield from job.until_whole()
        job.end("master-0", 0)
        yield from job.until_in("Succeeded")
    return history


def spends_its_budget(job):
    job.create(run_policy={"backoffLimit": 1, "cleanPodPolicy": "Running"})
    yield from job.until_whole()
    job.end("worker-1", 1)
    yield from job.until_whole(restarts=1)
    job.end("worker-0", 1)
    yield from job.until_in("Failed")


def never_restarts(job):
    job.create(restart_policy="Never")
    yield from job.until_whole()
    job.end("worker-0", 7)
    yield from job.until_in("Failed")


def restarts_on_failure(job):
    job.create()
    yield from job.until_whole()
    for count in (1, 2):  # the second time it waits for 10 s
        job.end(job.rng.choice(["master-0", "worker-0", "worker-1"]), 1)
        yield from job.until_whole(restarts=count)


def restarts_by_exit_code(job):
    job.create(restart_policy="ExitCode", run_policy={"cleanPodPolicy": "All"})
    yield from job.until_whole()
    job.end("worker-1", 137)
    yield from job.until_whole(restarts=1)
    job.end("worker-1", 1)
    yield from job.until_in("Failed")


def restarts_one_replica(job):
    job.create(annotations={"trainyard.dev/restart-scope": "replica"})
    yield from job.until_whole()
    for count in (1, 2):
        job.end("worker-0", 1)
        yield from job.until_whole(restarts=count)


def loses_a_pod(job):
    job.create()
    yield from job.until_whole()
    job.world.admin.delete("v1", "Pod", f"{job.name}-worker-0", job.world.namespace, grace=0)
    yield from job.until(lambda: job.is_whole(3) and job.restarts.get("disruptions") == 1)


def lives_on_for_a_while(job):
    job.create(run_policy={"ttlSecondsAfterFinished": 2})
    yield from job.until_whole()
    job.end("master-0", 0)
    yield from job.until(lambda: job.uid is None)


def has_a_deadline(job):
    job.create(run_policy={"cleanPodPolicy": "Running"})
    yield from job.until_whole()
    # The operator's calendar wrote the start; how long ago that is by the true one says what the deadline must be.
    started = datetime.datetime.fromisoformat(job.status["startTime"])
    ran_for = (datetime.datetime.now(datetime.timezone.utc) - started).total_seconds()
    job.change({"runPolicy": {"activeDeadlineSeconds": max(0, int(ran_for)) + 3}})
    yield from job.until_in("Failed")


def is_suspended(job):
    job.create(run_policy={"suspend": job.rng.random() < 0.5})
    yield from job.until(lambda: job.is_in("Suspended") or job.is_whole(3))
    if not job.is_in("Suspended"):
        job.change({"runPolicy": {"suspend": True}})
        yield from job.until(lambda: job.is_in("Suspended") and not job.pods)
    job.change({"runPolicy": {"suspend": False}})
    yield from job.until_whole()


def is_elastic(job):
    job.create(elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "metrics": METRICS})
    yield from job.until_whole()
    for workers in (4, 1):
        job.change({"replicas": workers}, "scale")
        yield from job.until_whole(workers + 1)
    if job.rng.random() < 0.5:
        job.end("master-0", 0)
        yield from job.until_in("Succeeded")


def is_scaled(job):
    job.create()
    yield from job.until_whole()
    for workers in (3, 1):
        job.change({"pytorchReplicaSpecs": {"Worker": {"replicas": workers}}})
        yield from job.until_whole(workers + 1)


def begins_anew(job):
    """Deleted in the midst, and another of its name created."""
    job.create(elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "metrics": METRICS})
    for _ in range(job.rng.randrange(12)):
        yield
    yield from job.until(lambda: job.uid)
    first = job.uid
    job.delete()
    yield from job.until(lambda: job.uid is None)
    job.create()
    yield from job.until(lambda: job.uid != first and job.is_whole(3))


def comes_and_goes(job):
    """For as long as the world wants more to happen."""
    while True:
        job.create(run_policy={"cleanPodPolicy": "Running"})
        yield from job.until_whole()
        job.end("worker-0", 1)
        yield from job.until_whole(restarts=1)
        job.delete()
        yield from job.until(lambda: job.uid is None and not job.pods)
        if not job.world.wants_more():
            return


HISTORIES = {
    "succeeds-none": succeeds("None"), "succeeds-running": succeeds("Running"), "succeeds-all": succeeds("All"),
    "budget": spends_its_budget, "never": never_restarts, "on-failure": restarts_on_failure,
    "exit-code": restarts_by_exit_code, "replica": restarts_one_replica, "disrupted": loses_a_pod,
    "ttl": lives_on_for_a_while, "deadline": has_a_deadline, "suspended": is_suspended, "elastic": is_elastic,
    "scaled": is_scaled, "anew": begins_anew, "churn": comes_and_goes,
}
