#!/usr/bin/env python3
"""The operator is killed at random points while gangs fail and restart, and two replicas of it take the lead from one
another: at the end every place has one pod of the present generation, each failure was counted once, and nothing is left
over. The seed is printed, and taken from TRAINYARD_SEED where that is set.

usage: crash_test.py OPERATOR
"""
import os
import random
import sys
import time
import unittest
from pathlib import Path

from kube import ControlPlane, OperatorProcess, wait_until
from kube.jobs import API, Kubelet, pytorch_job

ROOT = Path(__file__).resolve().parents[2]
JOBS = [f"job-{number}" for number in range(8)]
PODS = 4
ROUNDS = 12


def env_of(pod, name):
    entries = pod["spec"]["containers"][0]["env"]
    return next(entry["value"] for entry in entries if entry["name"] == name)


class Crashes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        seed = int(os.environ.get("TRAINYARD_SEED") or time.time_ns() % 10**6)
        print(f"TRAINYARD_SEED={seed}", flush=True)
        cls.random = random.Random(seed)
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"]))
        cls.admin = cls.cluster.client()

    def setUp(self):
        self.namespace = f"team-{id(self) % 10**6}"
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self.kubelet = Kubelet(self.admin, self.namespace)
        self.failures = dict.fromkeys(JOBS, 0)

    def operator(self, *flags):
        log = self.cluster.folder / f"operator-{len(list(self.cluster.folder.glob('operator-*')))}.log"
        return OperatorProcess(sys.argv[1], self.cluster.kubeconfig, log, flags)

    def create_jobs(self):
        for name in JOBS:
            self.admin.create(pytorch_job(name, self.namespace, workers=PODS - 1))

    def fail_one_pod_of(self, job):
        """Of a gang that runs whole, so that it is known which generation the failure ends."""
        pods = self.kubelet.pods(job)
        generation = self.kubelet.status(job).get("restarts", {}).get("generation", 1)
        whole = len(pods) == PODS and all(env_of(pod, "TRAINYARD_GENERATION") == str(generation) for pod in pods)
        if not whole or not all(pod["status"].get("phase") == "Running" for pod in pods):
            return
        if self.kubelet.state(job) == "Running" and self.kubelet.set_phase(
                self.random.choice(pods), "Failed", exit_code=1):
            self.failures[job] += 1

    def settled(self, job):
        pods = self.kubelet.pods(job)
        restarts = self.kubelet.status(job).get("restarts", {})
        generations = {env_of(pod, "TRAINYARD_GENERATION") for pod in pods}
        return (len(pods) == PODS and generations == {str(restarts.get("generation", 1))}
                and restarts.get("count", 0) == self.failures[job] and self.kubelet.state(job) == "Running")

    def standing(self, job):
        pods = {pod["metadata"]["name"]: (env_of(pod, "TRAINYARD_GENERATION"), pod["status"].get("phase"))
                for pod in self.kubelet.pods(job)}
        return f"{pods}, {self.kubelet.status(job)}"

    def check_all_settle(self, *operators):
        for job in JOBS:
            def there():
                self.kubelet.run_all(job)
                return self.settled(job)
            # The back-off of the worst case: three failures in a row wait 10 and 20 s.
            wait_until(lambda job=job: f"{job} to settle with {self.failures[job]} failures: {self.standing(job)}",
                       there, 120, operators)
        self.assertEqual(len(self.admin.list("v1", "Service", self.namespace)), PODS * len(JOBS))
        self.assertEqual(len(self.admin.list("v1", "Pod", self.namespace)), PODS * len(JOBS))
        for job in JOBS:
            self.admin.delete(API, "PyTorchJob", job, self.namespace)
        for kind in ["Pod", "Service", "Secret"]:
            wait_until(f"no {kind} to be left", lambda kind=kind: not self.admin.list("v1", kind, self.namespace), 60)

    def test_killed_at_random_points(self):
        self.create_jobs()
        for _ in range(ROUNDS):
            operator = self.operator()
            operator.start()
            time.sleep(self.random.uniform(0.02, 1.0))  # what is tested is that the moment does not matter
            for job in JOBS:
                self.kubelet.run_all(job)
                if self.failures[job] < 3:
                    self.fail_one_pod_of(job)
            time.sleep(self.random.uniform(0.0, 0.3))
            operator.kill()
        with self.operator() as last:
            self.check_all_settle(last)

    def test_a_leader_that_was_stopped_and_wakes_up_does_no_harm(self):
        with self.operator("--leader-elect") as first:
            self.create_jobs()
            for job in JOBS:
                self.kubelet.wait_for_pods(job, PODS)
                self.kubelet.run_until_running(job)
            second = self.operator("--leader-elect")
            with second:
                first.pause()
                for job in JOBS:
                    self.fail_one_pod_of(job)
                wait_until("the second to take over", lambda: all(
                    self.kubelet.status(job).get("restarts", {}).get("count") == 1 for job in JOBS), 15 + 2 + 60)
                first.resume()
                self.check_all_settle(second)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
