#!/usr/bin/env python3
"""Clusters that are killed with SIGKILL at several moments: the next one starts, and one beside them is not disturbed."""
import contextlib
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from yard import Cluster, skip_where_there_can_be_none
import leftovers  # yard finds it
from kube import wait_until

COMMAND = Path(__file__).resolve().parents[2] / "cluster"
# What is there once a start has come so far, in this order; the name of the moment tells what it has just done.
MOMENTS = {"made its folder": "settings.json", "started its first process": "pid", "started etcd": "control/etcd.log",
           "started a node": "node-1/control.sock", "started a kubelet": "node-1/kubelet.log", "begun to answer": "control.sock"}


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"killed-{os.getpid()}", nodes=1)  # no name that another clone has at the same time
        cls.addClassCleanup(cls.cluster.down)
        cls.beside = cls.enterClassContext(Cluster("beside", nodes=1, gpus=0))
        cls.programs_beside = cls.processes(cls.beside)

    def start(self):
        return subprocess.Popen([COMMAND, "--name", self.cluster.name, "up", "--nodes", "1"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def up(self):
        with self.start() as starter:
            said, _ = starter.communicate(timeout=600)
        self.assertEqual(starter.returncode, 0, said)
        self.assertIn("Kubernetes is ready", said)

    @staticmethod
    def processes(cluster):
        """{number: name of the program} of those that name the cluster's folder, as this machine sees them."""
        folder, found = os.fsencode(cluster.folder), {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended
            if any(word == folder or word.startswith(folder + b"/") for word in words):
                found[int(process.name)] = Path(os.fsdecode(words[0])).name
        return found

    def kill(self, *programs):
        for pid, name in self.processes(self.cluster).items():
            if name.startswith(programs):
                with contextlib.suppress(ProcessLookupError):  # it went with one before it
                    os.kill(pid, signal.SIGKILL)

    def test_1_who_starts_it_is_killed_on_the_way(self):
        for done, file in MOMENTS.items():
            began, path = time.time(), self.cluster.folder / file
            print(f"  killed when it has {done}", flush=True)
            with self.start() as starter:
                wait_until(f"a cluster that has {done}", lambda: starter.poll() is not None or is_newer(path, began), 300)
                starter.kill()
                if starter.wait() == 0:  # it was ready before it was killed
                    self.cluster.down()
                else:
                    self.assertEqual(starter.returncode, -signal.SIGKILL, starter.stdout.read())
        self.up()

    def test_2_its_programs_are_killed_and_then_its_supervisor(self):
        self.cluster.kubectl("run", "sleeper", "--image=localhost/pause:1", "--image-pull-policy=Never")
        wait_until("a pod to run", lambda: "Running" in self.cluster.kubectl("get", "pod", "sleeper"), 120)
        for program in ("kubelet", "containerd", "kube-apiserver", "etcd"):
            self.kill(program)
        self.kill("python")
        self.up()

    def test_3_its_first_process_is_killed(self):
        self.kill("unshare")
        self.up()

    def test_4_everything_is_killed_at_once(self):
        self.kill("")
        self.up()

    def test_5_a_cluster_of_another_name_clears_up_what_is_left(self):
        self.kill("")
        wait_until("all of it to be dead", lambda: not self.processes(self.cluster), 60)
        self.assertTrue(self.cluster.folder.exists())
        with Cluster("another", nodes=1, gpus=0):
            self.assertEqual(list(self.cluster.folder.parent.glob(f"{self.cluster.folder.name}*")), [])
            self.assertEqual([group / self.cluster.folder.name for group in leftovers.hierarchies()
                              if (group / self.cluster.folder.name).exists()], [])

    def test_6_the_one_beside_them_was_not_disturbed(self):
        self.assertEqual(self.processes(self.beside), self.programs_beside)
        self.assertTrue(all(self.beside.status().values()), self.beside.status())
        self.assertIn("node-1", self.beside.kubectl("get", "nodes"))

    def test_7_of_two_of_a_name_the_second_takes_another(self):
        with Cluster("beside", nodes=1, gpus=0) as second:
            self.assertEqual(second.name, "beside-2")
            self.assertTrue(second.is_up())
        self.assertEqual(self.processes(self.beside), self.programs_beside)


def is_newer(path, moment):
    return path.exists() and path.stat().st_mtime > moment


if __name__ == "__main__":
    skip_where_there_can_be_none()
    unittest.main(verbosity=2, warnings="ignore")
