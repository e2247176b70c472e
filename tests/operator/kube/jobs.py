"""PyTorchJobs for tests, and who plays the kubelet for their pods."""
from .client import ApiError
from .process import wait_until

API = "kubeflow.org/v1"
JOB_LABEL = "training.kubeflow.org/job-name"


def pytorch_job(name, namespace, workers=2, run_policy=None, restart_policy="OnFailure", annotations=None, **spec):
    def replica(count):
        return {"replicas": count, "restartPolicy": restart_policy,
                "template": {"spec": {"containers": [{"name": "pytorch", "image": "example.org/train:1"}]}}}

    return {"apiVersion": API, "kind": "PyTorchJob",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
            "spec": {"runPolicy": run_policy or {}, **spec,
                     "pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(workers)}}}


class Kubelet:
    """Writes pods' states, as their node would. Pods stay unbound, so that a deleted one is gone at once."""

    def __init__(self, client, namespace):
        self.client, self.namespace = client, namespace

    def pods(self, job):
        return self.client.list("v1", "Pod", self.namespace, f"{JOB_LABEL}={job}")

    def set_phase(self, pod, phase, exit_code=None):
        """False where the pod is gone meanwhile, or another has its name."""
        status = {"phase": phase}
        if exit_code is not None:
            status["containerStatuses"] = [{
                "name": "pytorch", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                "state": {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}}}]
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            self.client.patch("v1", "Pod", pod["metadata"]["name"], change, self.namespace, "status")
            return True
        except ApiError as error:
            now = self.client.get("v1", "Pod", pod["metadata"]["name"], self.namespace)
            if error.status == 409 or now is None or now["metadata"]["uid"] != pod["metadata"]["uid"]:
                return False
            raise

    def run_all(self, job):
        for pod in self.pods(job):
            if pod["status"].get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                self.set_phase(pod, "Running")

    def wait_for_pods(self, job, count, timeout=30):
        wait_until(f"{count} pods of {job}", lambda: len(self.pods(job)) == count, timeout)

    def wait_for_state(self, job, state, timeout=30):
        """`state`: the type of the last condition."""
        wait_until(f"{job} to be {state}", lambda: self.state(job) == state, timeout)

    def run_until_running(self, job, timeout=30):
        """Pods of an earlier generation may still be there, and those of the present one come when they come."""
        def runs():
            self.run_all(job)
            return self.state(job) == "Running"
        wait_until(f"{job} to be Running", runs, timeout)

    def status(self, job):
        found = self.client.get(API, "PyTorchJob", job, self.namespace)
        return (found or {}).get("status") or {}

    def state(self, job):
        conditions = self.status(job).get("conditions") or [{"type": None}]
        return conditions[-1]["type"]
