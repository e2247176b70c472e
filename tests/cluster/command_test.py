#!/usr/bin/env python3
"""What ./cluster says: the next steps are those for the cluster that was started, and who waits for another's build says so.

usage: command_test.py
"""
import contextlib
import fcntl
import importlib.machinery
import importlib.util
import io
import subprocess
import tempfile
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ROOT / "container/packages/locked"


def command():
    loader = importlib.machinery.SourceFileLoader("cluster_command", str(ROOT / "cluster"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def hold(lock, limit):
    script = f'. "{LOCKED}"; hold "$1" "builds the images"; echo held'
    return subprocess.run(["bash", "-euc", script, "bash", lock], env={"TRAINYARD_LOCK_SECONDS": str(limit), "PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, timeout=60)


class Command(unittest.TestCase):
    def next_steps(self, name):
        cluster = types.SimpleNamespace(name=name, up=lambda: None, node_names=lambda: ["node-1"])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            command().bring_up(cluster)
        return [line.strip() for line in printed.getvalue().splitlines() if "./cluster" in line]

    def test_next_steps_are_for_the_cluster_that_was_started(self):
        self.assertEqual(self.next_steps("trainyard"), ['eval "$(./cluster env)"', "./cluster down"])
        self.assertEqual(self.next_steps("mine"), ['eval "$(./cluster --name mine env)"', "./cluster --name mine down"])

    def test_the_name_that_is_printed_is_understood(self):
        options = command().parse("--name mine env".split())
        self.assertEqual((options.name, options.command), ("mine", "env"))

    def test_a_free_lock_is_held_without_a_word(self):
        with tempfile.TemporaryDirectory() as folder:
            done = hold(f"{folder}/lock", 1)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "held\n", ""))

    def test_who_waits_for_a_lock_says_for_what_and_not_for_ever(self):
        with tempfile.NamedTemporaryFile() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = hold(lock.name, 1)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        waits, gave_up = done.stderr.splitlines()
        self.assertEqual(waits, f"waiting for another process that builds the images (it holds {lock.name})")
        self.assertIn("error: waited 1 s for another process that builds the images", gave_up)

    def test_scripts_that_build_into_the_cache_use_it(self):
        for script in ("tests/cluster/images/build", "tests/cluster/container_runtime", "tests/cluster/coredns",
                       "tests/operator/kubernetes/build", "tests/operator/go_toolchain", "container/packages/cuda"):
            text = (ROOT / script).read_text()
            self.assertRegex(text, r"(?m)^hold ", script)
            self.assertNotRegex(text, r"(?m)^flock ", script)


unittest.main()
