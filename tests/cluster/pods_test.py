#!/usr/bin/env python3
"""Pods that are refused, that do not start, or that end: what the job does, and what its user is told."""
import sys
import unittest
from contextlib import ExitStack

from yard import Cluster, images, skip_where_there_can_be_none
from yard.operator import install
from yard.training import Training, settings
from kube import wait_until

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
MASTER, WORKER = (f"/spec/pytorchReplicaSpecs/{role}" for role in ("Master", "Worker"))
CONTAINER = "/template/spec/containers/0"


def both(path, value, op="replace"):
    return [{"op": op, "path": replica + path, "value": value} for replica in (MASTER, WORKER)]


def script(text):
    return both(f"{CONTAINER}/args/0", text)


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster("pods", images=images()))
        install(cls.cluster)

    def job(self, name, patches=(), **named):
        job = self.enterContext(Training(self.cluster, name, patches=patches, **{"workers": 1, **named}))
        job.apply()
        return job

    def wait_for_trouble(self, job, reason, *said, timeout=60):
        """In status and event: what is wrong, with the words in `said`."""
        def trouble():
            found = [each for each in job.status().get("conditions", []) if each["type"] == "Trouble"]
            return found and found[0]["status"] == "True" and found[0]["reason"] == reason and all(
                words in found[0]["message"] for words in said)
        try:
            wait_until(f"{reason} with {', '.join(said)} in the status of {job.name}", trouble, timeout)
        except Exception as error:
            raise AssertionError(f"{error}\n{job.story()}") from error
        wait_until("the same as an event", lambda: any(each.startswith(f"{reason}: ") for each in job.events()), 30)

    # -- what never starts

    def test_an_image_that_nobody_has_is_named(self):
        job = self.job("image", both(f"{CONTAINER}/image", "trainyard:9.9.9"))
        self.wait_for_trouble(job, "ImagePullFailed", "trainyard:9.9.9", "check its name, tag")

    def test_what_no_node_has_is_said_to_be_impossible(self):
        job = self.job("impossible", both(f"{CONTAINER}/resources/requests/cpu", "64"))
        self.wait_for_trouble(job, "NeverFits", "cpu")

    def test_gpus_are_waited_for_and_where_there_are_too_few_that_is_said(self):
        gpu = both(f"{CONTAINER}/resources/limits", {"nvidia.com/gpu": "1"}, "add")
        job = self.job("gpus", [*script("echo $NVIDIA_VISIBLE_DEVICES; sleep 600"), *gpu], workers=4)
        self.wait_for_trouble(job, "PodUnschedulable", "Insufficient nvidia.com/gpu")  # five of four
        job.kubectl("scale", "pytorchjob", job.name, "--replicas=3")
        job.wait_for("Running", 60)
        self.assertIn("GPU-", job.log())

    def test_a_missing_configmap_is_named_and_the_job_starts_once_it_is_there(self):
        job = self.job("configmap", [*script("cat /etc/trainyard/train.yaml"),
                                     *both("/template/spec/volumes/0", {"name": "config", "configMap": {"name": "absent"}})])
        self.wait_for_trouble(job, "ContainerCreatingStuck", 'configmap "absent" not found')
        job.kubectl("create", "configmap", "absent", "--from-literal=train.yaml=found")
        job.wait_for("Succeeded", 180)
        self.assertIn("found", job.log())

    # -- what is refused

    def test_in_a_restricted_namespace_ours_train(self):
        job = self.job("restricted", labels=RESTRICTED, train=settings(training={"steps": 20}))
        job.wait_for("Succeeded", 180)

    def test_in_a_restricted_namespace_others_are_told_what_they_lack(self):
        job = self.job("unrestricted", both("/template/spec/securityContext", {}), labels=RESTRICTED)
        self.wait_for_trouble(job, "CannotCreate", "violates PodSecurity", "runAsNonRoot")

    def test_a_foreign_job_runs_restricted_with_the_init_container(self):
        job = self.job("foreign", [*script("echo trained"), {"op": "remove", "path": "/metadata/annotations"}],
                       labels=RESTRICTED)
        wait_until("the worker", lambda: job.pod("worker"), 60)
        init = job.pod("worker")["spec"]["initContainers"][0]
        self.assertFalse(init["securityContext"]["allowPrivilegeEscalation"])
        self.assertEqual(init["securityContext"]["capabilities"], {"drop": ["ALL"]})

    def test_a_quota_is_named_and_the_job_starts_once_there_is_room(self):
        with Training(self.cluster, "quota", patches=script("echo trained"), workers=2) as job:
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "quota"},
                     "spec": {"hard": {"pods": "2"}}}
            job.client.apply(quota)
            wait_until("the quota to count", lambda: (job.client.get("v1", "ResourceQuota", "few", "quota").get(
                "status") or {}).get("hard"), 30)
            job.apply()
            self.wait_for_trouble(job, "CannotCreate", "exceeded quota: few")
            job.client.apply({**quota, "spec": {"hard": {"pods": "9"}}})
            job.wait_for("Succeeded", 180)

    # -- what ends

    def test_exit_codes_mean_what_the_restart_policy_says(self):
        """Name: (policy, the code of the first life, (state, restarts)). Lives after the first end with 0."""
        cases = {"on-failure": ("OnFailure", 1, ("Succeeded", 1)), "never": ("Never", 1, ("Failed", 0)),
                 "code-permanent": ("ExitCode", 1, ("Failed", 0)), "code-retryable": ("ExitCode", 130, ("Succeeded", 1))}
        once = "if mkdir /checkpoints/first; then exit {code}; fi; echo again"
        with ExitStack() as all_jobs:
            jobs = {}
            for name, (policy, code, _) in cases.items():
                jobs[name] = all_jobs.enter_context(Training(
                    self.cluster, name, workers=1, patches=[
                        *both("/restartPolicy", policy), *script("sleep 30"),
                        {"op": "replace", "path": f"{MASTER}{CONTAINER}/args/0", "value": once.format(code=code)}]))
                jobs[name].apply()
            for name, (_, code, (state, count)) in cases.items():
                jobs[name].wait_for(state, 120)
                self.assertEqual(jobs[name].restarts(), (count, 0), name)
                self.assertEqual(jobs[name].status()["restarts"]["lastCause"]["exitCode"], code, name)

    def test_sixty_small_pods_are_a_gang_like_any(self):
        job = self.job("sixty", [*script("exec sleep 600"), *both(f"{CONTAINER}/resources/requests", {"cpu": "10m"})],
                       workers=59)
        job.wait_for("Running", 300)
        wait_until("all to run", lambda: sum(pod["status"]["phase"] == "Running" for pod in job.pods()) == 60, 300)
        wait_until("the status to say so", lambda: job.status()["replicaStatuses"]["Worker"]["active"] == 59, 30)
        job.kubectl("delete", "pytorchjob", job.name)
        wait_until("all to be gone", lambda: not job.pods(), 180)


if __name__ == "__main__":
    skip_where_there_can_be_none()
    unittest.main(warnings="ignore", verbosity=2)
