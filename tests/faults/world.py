"""What a namespace has of its jobs, as the API server says it, and the kubelet in it."""
import collections

from kube.jobs import API, JOB_LABEL, Kubelet

POD_GROUPS = ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
LEFT_BEHIND = [("v1", "Pod"), ("v1", "Service"), ("v1", "Secret"), ("autoscaling/v2", "HorizontalPodAutoscaler"),
               POD_GROUPS]


def generation_of(pod):
    entries = pod["spec"]["containers"][0]["env"]
    return int(next(entry["value"] for entry in entries if entry["name"] == "TRAINYARD_GENERATION"))


class World:
    """`rng` decides when pods begin to run. Nothing here goes through the proxy."""

    def __init__(self, admin, namespace, rng):
        self.admin, self.namespace, self.rng = admin, namespace, rng
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.kubelet = Kubelet(admin, namespace)
        self.jobs, self.pods, self.services = {}, {}, {}

    def look(self):
        """Jobs by name, and the pods and services of each. A kubelet that is slow at times begins to run what is new."""
        # Jobs first: a status is then never newer than the pods that are held against it.
        self.jobs = {job["metadata"]["name"]: job for job in self.admin.list(API, "PyTorchJob", self.namespace)}
        self.pods = collections.defaultdict(list)
        for pod in self.admin.list("v1", "Pod", self.namespace):
            self.pods[pod["metadata"]["labels"][JOB_LABEL]].append(pod)
            if pod["status"].get("phase") == "Pending" and self.rng.random() < 0.6:
                self.kubelet.set_phase(pod, "Running")
        self.services = self._names_by_job("v1", "Service")

    def status(self, job):
        return self.jobs.get(job, {}).get("status", {})

    def picture(self):
        """All that must not depend on the faults of the way there, by job. Call look() before."""
        owned = {kind: self._names_by_job(api, kind) for api, kind in LEFT_BEHIND if kind != "Pod"}
        return {job: {**self._picture_of_status(job), "pods": self._pods_of(job),
                      **{kind: sorted(names[job]) for kind, names in owned.items()}}
                for job in {*self.jobs, *(job for names in owned.values() for job in names), *self.pods}}

    def left(self):
        """Names of what is there of any job."""
        return [f"{kind} {thing['metadata']['name']}" for api, kind in LEFT_BEHIND
                for thing in self.admin.list(api, kind, self.namespace)]

    def _picture_of_status(self, job):
        status = self.status(job)
        restarts = status.get("restarts", {})
        counts = {replica: {key: count for key, count in counted.items() if key != "selector" and count}
                  for replica, counted in status.get("replicaStatuses", {}).items()}
        return {"is there": job in self.jobs,
                "conditions": [(each["type"], each["status"], each["reason"]) for each in status.get("conditions", [])],
                "restarts": {key: restarts.get(key, 0) for key in ("count", "disruptions", "generation")},
                "counts": counts, "has ended": "completionTime" in status}

    def _pods_of(self, job):
        return sorted((pod["metadata"]["name"], pod["status"].get("phase"), generation_of(pod))
                      for pod in self.pods.get(job, []))

    def _names_by_job(self, api_version, kind):
        names = collections.defaultdict(list)
        for thing in self.admin.list(api_version, kind, self.namespace):
            metadata = thing["metadata"]
            for owner in metadata.get("ownerReferences", []):
                # A Secret's name has its job's uid in it, which is another in each run.
                names[owner["name"]].append(metadata["name"].replace(owner["uid"], "UID") if kind != "Secret" else kind)
        return names
