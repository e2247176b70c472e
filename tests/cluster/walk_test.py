#!/usr/bin/env python3
"""The walk of docs/quickstart-cluster.md: kubectl alone, on three nodes, with the images of this tree."""
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from yard import Cluster, images, skip_where_there_can_be_none
from yard.training import ROOT, Training, settings, undisturbed
from kube import wait_until

DEMO = ROOT / "kustomize/overlays/cpu-demo"
JOB = "train-cpu-demo"
STEP_LINE = re.compile(r"^step: +(\d+) +loss: ([\d.]+) ", re.M)


class Walk(unittest.TestCase):
    """The steps of one walk, in their order: each stands on those before it."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster("walk", images=images()))
        cls.kubectl = cls.cluster.kubectl

    def test_1_the_operator_is_installed_by_one_command(self):
        self.kubectl("apply", "-k", ROOT / "manifests")
        said = self.kubectl("-n", "kubeflow", "rollout", "status", "deployment", "--timeout=60s")
        self.assertIn("successfully rolled out", said)
        nodes = self.kubectl("-n", "kubeflow", "get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
        self.assertEqual(len(set(nodes)), 2, "both operators are on one node")

    def test_2_a_demonstration_is_applied_and_followed_to_its_end(self):
        self.kubectl("apply", "-k", DEMO)
        watched = Lines(self.cluster, "get", "pytorchjobs", "-w")
        wait_until("the master's container", lambda: self.phase(f"{JOB}-master-0") != "Pending", 60)
        followed = Lines(self.cluster, "logs", "-f", f"{JOB}-master-0")
        wait_until("a line of training", lambda: STEP_LINE.search(followed.text()), 120)
        wait_until("the job's end", lambda: "Succeeded" in watched.text(), 600)
        wait_until("the log to end", followed.have_ended, 30)
        watched.end()
        type(self).watched, type(self).log = watched.text(), followed.text()

    def test_3_kubectl_get_tells_how_far_it_is(self):
        rows = [line.split() for line in self.watched.splitlines()]
        self.assertEqual(rows[0], ["NAME", "STATE", "AGE", "STEP", "LOSS", "TOKENS/S", "ETA", "RESTARTS",
                                   "DISRUPTIONS", "READY", "CHECKPOINT", "TROUBLE"])
        states = [row[1] for row in rows[1:]]
        self.assertEqual(sorted(set(states), key=states.index), ["Created", "Running", "Succeeded"])
        running = [line for line in self.watched.splitlines() if " Running " in line]
        self.assertTrue(any(re.search(r" \d+ +\d\.\d{1,5} +\d+ +(\d+m)?\d+s +0", line) for line in running), self.watched)
        self.assertTrue(rows[-1][1:4:2] == ["Succeeded", "360"], rows[-1])

    def test_4_the_logs_tell_the_training_and_show_what_was_learned(self):
        steps = {int(step): float(loss) for step, loss in STEP_LINE.findall(self.log)}
        self.assertEqual(sorted(steps), list(range(10, 361, 10)))
        self.assertLess(steps[360], steps[10] - 1.5)
        self.assertIn("── sample after training ──", self.log)
        self.assertIn("Training completed! 360 steps", self.log)
        self.assertIn("goes with this pod", self.log, "nobody was told that the checkpoints are in an emptyDir")
        worker = self.kubectl("logs", f"{JOB}-worker-1")
        self.assertNotIn("step:", worker)  # rank 0 speaks for all

    def test_5_describe_tells_the_story(self):
        story = self.kubectl("describe", "pytorchjob", JOB)
        for said in ("Created pod: train-cpu-demo-master-0", "Created service: train-cpu-demo-worker-1",
                     "Pod: default.train-cpu-demo-master-0 exited with code 0",
                     "PyTorchJob train-cpu-demo is successfully completed"):
            self.assertIn(said, story)
        self.assertNotIn("Warning", story)

    def test_6_another_job_continues_from_the_volume_with_another_number_of_workers(self):
        with Training(self.cluster, "onward", settings(training={"steps": 80}), workers=2) as first:
            first.apply()
            first.wait_for("Succeeded")
            self.assertIn(80, first.checkpoints())
            first.kubectl("delete", "pytorchjob", first.name)
            with Training(self.cluster, "onward", settings(training={"steps": 160}), workers=1) as second:
                second.apply()
                second.wait_for("Succeeded")
                log = second.log()
                self.assertIn("step-80", log)
                self.assertIn("Training completed! 160 steps", log)
                self.assertEqual([each["step"] for each in second.metrics()], list(range(1, 161)))
                self.assertLess(abs(second.metrics()[80]["loss"] - second.metrics()[79]["loss"]), 0.5, "it began anew")

    def test_7_layers_are_split_inside_a_pod_and_rows_across_pods(self):
        plain = settings(training={"steps": 20})
        split = settings(training={"steps": 20}, parallel={"tensor": 2, "context": 2})
        two_ranks = {"op": "add", "path": "/spec/nprocPerNode", "value": "2"}
        apart = [{"op": "add", "path": f"/spec/pytorchReplicaSpecs/{role}/template/spec/topologySpreadConstraints",
                  "value": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                             "whenUnsatisfiable": "DoNotSchedule",
                             "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "train-split"}}}]}
                 for role in ("Master", "Worker")]
        with Training(self.cluster, "split", split, workers=1, patches=[two_ranks, *apart]) as job:
            job.apply()
            job.wait_for("Succeeded")
            self.assertNotEqual(job.node_of("master"), job.node_of("worker"), "both pods are on one node")
            self.assertIn("each layer split over 2; each row's tok", job.log())
            for there, alone in zip(job.metrics(), undisturbed(plain, 1), strict=True):
                self.assertAlmostEqual(there["loss"], alone["loss"], delta=1e-3, msg=f"step {there['step']}")

    def test_8_deleted_nothing_is_left(self):
        self.kubectl("delete", "-k", DEMO)
        wait_until("the job's pods and services to go", lambda: self.left() == "", 60)
        self.kubectl("delete", "-k", ROOT / "manifests", timeout=180)
        for kind in ("crds", "clusterroles", "clusterrolebindings", "validatingwebhookconfigurations", "namespaces"):
            self.assertNotRegex(self.kubectl("get", kind, "-o", "name"), "kubeflow|trainyard")

    def test_9_of_the_cluster_nothing_is_left(self):
        self.cluster.down()
        self.assertFalse(self.cluster.folder.exists())
        self.assertEqual(list(Path("/sys/fs/cgroup").glob(f"**/{self.cluster.folder.name}")), [])
        name = str(self.cluster.folder).encode()
        left = [folder.name for folder in Path("/proc").glob("[0-9]*") if name in commandline(folder)]
        self.assertEqual(left, [])

    def phase(self, pod):
        return self.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}", check=False)

    def left(self):
        selector = f"training.kubeflow.org/job-name={JOB}"
        return self.kubectl("get", "pods,services,secrets,configmaps", "-l", selector, "-o", "name") + self.kubectl(
            "get", "secrets", "-o", "name")


def commandline(folder):
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


class Lines:
    """What kubectl prints while it goes on."""

    def __init__(self, cluster, *words):
        self._child = subprocess.Popen(["kubectl", *words], env=cluster.environment, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
        self._lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._child.stdout:
            self._lines.append(line)

    def text(self):
        return "".join(self._lines)

    def have_ended(self):
        return not self._reader.is_alive()

    def end(self):
        self._child.terminate()
        self._reader.join(10)
        self._child.wait(10)
        self._child.stdout.close()


if __name__ == "__main__":
    skip_where_there_can_be_none()
    unittest.main(warnings="ignore", verbosity=2)
