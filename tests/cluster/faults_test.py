#!/usr/bin/env python3
"""What clusters do to a training, on three nodes: docs/faults.md, row by row.

Whatever happens, the steps that count are those of a run that nothing happened to, each once and with its loss, and no step
is lost beyond the last checkpoint.
"""
import re
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from yard import Cluster, images, skip_where_there_can_be_none
from yard.operator import install, leader
from yard.processes import kill, processes
from yard.training import Training, paced, settings, undisturbed
from kube import wait_until

STEPS, INTERVAL, RANKS = 240, 40, 3


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        train = settings(training={"steps": STEPS}, checkpoint={"interval": INTERVAL})
        cls.train = paced(train, RANKS, seconds=0.05)
        # Over a minute of training: a node is noticed to be gone after up to 36 s, and etcd is away for 30 s.
        cls.slow = paced(train, RANKS, seconds=0.4)
        with ThreadPoolExecutor() as pool:
            reference = pool.submit(undisturbed, cls.train, RANKS)
            cls.cluster = cls.enterClassContext(Cluster("faults", images=images()))
            install(cls.cluster)
            cls.losses = [each["loss"] for each in reference.result()]

    def training(self, name, train=None):
        """Applied, and in the middle of it."""
        job = self.enterContext(Training(self.cluster, name, train or self.train, workers=RANKS - 1))
        job.apply()
        job.wait_for_step(INTERVAL + 10)
        return job

    def assert_as_if_nothing_had_happened(self, job, restarts, disruptions=0):
        job.wait_for("Succeeded", 480)
        self.assertEqual(job.restarts(), (restarts, disruptions), job.story())
        self.assertEqual([each["step"] for each in job.metrics()], list(range(1, STEPS + 1)))
        for there, undisturbed_loss in zip(job.metrics(), self.losses if job.train is self.train else []):
            self.assertAlmostEqual(there["loss"], undisturbed_loss, delta=2e-3, msg=f"step {there['step']}")

    def resumed_at(self, job):
        """The step at which the present generation began."""
        found = re.search(r"Loaded checkpoint from step (\d+)", job.log())
        return int(found[1]) if found else 0

    # -- pods

    def test_a_worker_pod_that_is_deleted_costs_no_step(self):
        job = self.training("worker")
        before = job.last_step()
        job.kubectl("delete", "pod", f"{job.name}-worker-0")
        self.assert_as_if_nothing_had_happened(job, 0, 1)
        self.assertGreaterEqual(self.resumed_at(job), before, "SIGTERM was not used to save a checkpoint")
        self.assertIn("PodDeleted", str(job.status()["restarts"]["lastCause"]))

    def test_a_master_pod_that_is_gone_at_once_costs_what_was_not_saved(self):
        job = self.training("master")
        saved = max(job.checkpoints())
        job.kubectl("delete", "pod", f"{job.name}-master-0", "--force", "--grace-period=0")
        self.assert_as_if_nothing_had_happened(job, 0, 1)
        self.assertGreaterEqual(self.resumed_at(job), saved)

    def test_a_rank_that_is_killed_is_named(self):
        job = self.training("killed")
        saved = max(job.checkpoints())
        kill(job.pod("worker", 1))
        self.assert_as_if_nothing_had_happened(job, 1)
        self.assertGreaterEqual(self.resumed_at(job), saved)
        cause = job.status()["restarts"]["lastCause"]
        self.assertEqual((cause["pod"], cause["exitCode"]), (f"{job.name}-worker-1", 137), job.story())

    def test_memory_that_does_not_suffice_is_said(self):
        limit = {"op": "add", "path": "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/resources",
                 "value": {"requests": {"memory": "24Mi"}, "limits": {"memory": "24Mi"}}}
        with Training(self.cluster, "memory", self.train, patches=[
                limit, {"op": "replace", "path": "/spec/runPolicy/backoffLimit", "value": 0}]) as job:
            job.apply()
            job.wait_for("Failed")
            self.assertIn("OOMKilled", str(job.status()["restarts"]["lastCause"]) + "".join(job.events()))

    # -- nodes

    def test_a_node_whose_kubelet_is_gone_gives_its_place_to_another(self):
        job = self.training("kubelet", self.slow)
        node = job.node_of("worker", 0)
        saved = max(job.checkpoints())
        self.cluster.do("kill", f"{node}/kubelet")
        self.addCleanup(self.cluster.do, "start", f"{node}/kubelet")
        job.wait_until("to start anew", lambda: job.restarts() == (0, 1), 120)
        self.assert_as_if_nothing_had_happened(job, 0, 1)
        self.assertGreaterEqual(self.resumed_at(job), saved)
        self.assertNotEqual(job.node_of("worker", 0), node)

    def test_a_node_that_is_drained_costs_no_step(self):
        job = self.training("drained")
        node, before = job.node_of("worker", 0), job.last_step()
        self.addCleanup(self.cluster.kubectl, "uncordon", node)
        said = self.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", timeout=180)
        self.assertIn("drained", said)
        self.assert_as_if_nothing_had_happened(job, 0, 1)
        self.assertGreaterEqual(self.resumed_at(job), before)

    def test_a_node_without_power_is_left_behind(self):
        job = self.training("power")
        node = job.node_of("worker", 0)
        self.cluster.off(node)
        self.addCleanup(self.power_on, node)
        job.wait_for("Succeeded", 480)
        self.assertEqual(sum(job.restarts()), 1, job.story())
        self.assertEqual([each["step"] for each in job.metrics()], list(range(1, STEPS + 1)))

    def power_on(self, node):
        self.cluster.on(node)
        wait_until(f"{node} to be Ready", lambda: "NotReady" not in self.cluster.kubectl("get", "nodes"), 90)

    # -- networks

    def test_a_short_cut_between_two_nodes_is_waited_for(self):
        job = self.training("cut")
        one, other = job.node_of("master"), job.node_of("worker", 0)
        if one == other:
            other = job.node_of("worker", 1)
        self.cluster.cut(one, other)
        before = job.last_step()
        pause(5)
        self.assertLessEqual(job.last_step(), before + 2, "it trains across a cut")
        self.cluster.mend(one, other)
        self.assert_as_if_nothing_had_happened(job, 0, 0)

    def test_ranks_that_are_left_behind_neither_join_nor_overwrite(self):
        job = self.training("unplugged")
        node = job.node_of("master")
        left_behind = processes(job.pod("master"))
        self.assertTrue(left_behind)
        self.cluster.unplug(node)
        self.addCleanup(self.cluster.plug, node)
        job.wait_until("to start anew", lambda: job.restarts()[1] >= 1, 180)
        job.wait_until("to have its master elsewhere", lambda: job.node_of("master") not in (None, node), 60)
        job.wait_for_step(INTERVAL + 20)
        self.cluster.plug(node)
        self.assert_as_if_nothing_had_happened(job, 0, 1)
        wait_until("the old master to end", lambda: not any(Path(f"/proc/{pid}").exists() for pid in left_behind), 120)
        self.assertEqual([each["step"] for each in job.metrics()], list(range(1, STEPS + 1)), "it wrote after the end")

    # -- the operator and the control plane

    def test_a_leader_killed_amid_a_restart_counts_it_once(self):
        job = self.training("leader")
        first = leader(self.cluster)
        kill(job.pod("worker", 0))
        wait_until("the failure to be seen", lambda: job.pod("worker", 0) is None or job.restarts() != (0, 0), 30)
        kill(self.cluster.client().get("v1", "Pod", first, "kubeflow"))
        self.assert_as_if_nothing_had_happened(job, 1)

    def test_an_api_server_that_restarts_is_not_noticed_by_the_training(self):
        self.train_while_away("api", self.train, "kill", "kube-apiserver", 5)

    def test_etcd_that_is_away_for_half_a_minute_costs_no_step(self):
        # A kubelet's next report, for which a node that nobody heard of meanwhile counts as not ready, may come late.
        install(self.cluster, flags=["--node-lost-grace=60s"])
        self.addCleanup(install, self.cluster)
        self.train_while_away("etcd", self.slow, "stop", "etcd", 30)

    def train_while_away(self, name, train, end, program, seconds):
        job = self.training(name, train)
        self.cluster.do(end, program)
        pause(seconds)
        self.cluster.do("start", program)
        self.cluster.wait_until_ready()
        self.assert_as_if_nothing_had_happened(job, 0)

    # -- what the user does

    def test_suspended_and_resumed_it_goes_on_where_it_was(self):
        job = self.training("suspended")
        before = job.last_step()
        job.change({"op": "add", "path": "/spec/runPolicy/suspend", "value": True})
        wait_until("the pods to go", lambda: not job.pods(), 60)
        self.assertEqual(job.state(), "Suspended")
        self.assertGreaterEqual(max(job.checkpoints()), before)
        job.change({"op": "replace", "path": "/spec/runPolicy/suspend", "value": False})
        self.assert_as_if_nothing_had_happened(job, 0)

    def test_scaled_it_goes_on_with_another_number_of_ranks(self):
        job = self.training("scaled")
        before = job.last_step()
        job.kubectl("scale", "pytorchjob", job.name, "--replicas=1")
        job.wait_for("Succeeded", 480)
        self.assertEqual(job.restarts(), (0, 0), job.story())
        self.assertGreaterEqual(self.resumed_at(job), before)
        self.assertIsNone(job.pod("worker", 1))
        steps = job.metrics()
        self.assertEqual([each["step"] for each in steps], list(range(1, STEPS + 1)))
        self.assertLess(abs(steps[-1]["loss"] - self.losses[-1]), 0.5, "it did not go on learning")


def pause(seconds):
    """How long a fault lasts: that is what is tested, not how long something takes."""
    time.sleep(seconds)


if __name__ == "__main__":
    skip_where_there_can_be_none()
    unittest.main(warnings="ignore", verbosity=2)
