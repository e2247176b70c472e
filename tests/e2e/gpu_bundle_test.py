#!/usr/bin/env python3
"""bench/gpu/run as somebody meets it who has unpacked a bundle: with programs and a python3 of the test's, in a folder
of its own.

usage: gpu_bundle_test.py
"""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSES = "echo 'All tests passed (9 assertions in 3 test cases)'"


class Bundle:
    def __init__(self, folder):
        self.folder, self.run_file = Path(folder), Path(folder) / "bench/gpu/run"
        self.run_file.parent.mkdir(parents=True)
        for name in ("gpu/run", "gpu/trainyard", "gpu/ops_bench", "alone", "compare_pytorch", "loss_curve", "workload.py"):
            shutil.copy(ROOT / "bench" / name, self.folder / "bench" / name)
        self.path = self.folder / "path"
        for name in ("trainyard", "ops_bench", "tensor_test", "ops_test", "train_test", "comm_test",
                     "comm_conformance_test", "model_parity_test", "trajectory_test"):
            self.program(f"bin/{name}", PASSES)
        self.program("path/nvidia-smi", "echo 'NVIDIA H200'")
        self.program("path/python3", "exit 0")

    def program(self, name, script):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)

    def run(self, *words):
        """(exit code, all that it said)"""
        done = subprocess.run([self.run_file, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120, env={**os.environ, "PATH": f"{self.path}:{os.environ['PATH']}"})
        return done.returncode, done.stdout

    def says(self, *words, code=0, last):
        seen, said = self.run(*words)
        lines = said.strip().splitlines() or [""]
        assert seen == code and last in lines[-1], f"{words}: exit {seen}, and not {code} with '{last}':\n{said}"
        return said


def counts_tests(bundle):
    bundle.says("tests", "ops_test", "comm_test", last="6 passed, 0 failed, 0 skipped")
    bundle.program("bin/comm_test", f"{PASSES}; echo 'SKIPPED: no device'; echo '{'=' * 79}'; "
                   "echo 'test cases: 7 | 5 passed | 2 failed'; exit 2")  # the first line: of a program that it starts
    bundle.says("tests", "ops_test", "comm_test", code=1, last="7 passed, 2 failed, 1 skipped")
    bundle.program("bin/comm_test", "echo 'test cases: 1 | 1 failed'; exit 1")
    bundle.says("tests", "comm_test", code=1, last="0 passed, 1 failed, 0 skipped")
    for ends in (f"{PASSES}; kill -SEGV $$", "exit 0", "exit 1"):
        bundle.program("bin/comm_test", ends)
        bundle.says("tests", "comm_test", code=1, last="1 failed, 0 skipped")
    bundle.says("tests", "comms_test", code=2, last="error: there is no comms_test in")


def goes_through_all(bundle):
    bundle.program("bin/ops_bench", "echo a kernel; exit 2")
    bundle.program("path/timeout", 'shift 3; case "$*" in *train_test) [ -e cut ] || { touch cut; exit 124; };; esac; "$@"')
    results = bundle.folder / "results.txt"
    bundle.says("all", "--minutes", "9", code=1, last="22 of 23 parts, 1 failed")
    once = results.read_text()
    for line in ("NVIDIA H200", "== kernels", "a kernel", "== kernels: failed with 2, 0 s", "== curve: passed, ",
                 "== tests train_test: cut off after "):
        assert f"\n{line}" in once, f"no line '{line}' in\n{once}"
    bundle.says("all", "--minutes", "9", code=1, last="23 of 23 parts, 1 failed")
    again = results.read_text()
    assert again.startswith(once), "what was there is not there any more"
    assert again[len(once):].startswith("== tests train_test\n") and again.count("== curve: passed") == 1, again
    bundle.says("all", "--minutes", "x", code=2, last="error: --minutes takes a whole number, not 'x'")
    results.unlink()
    bundle.says("all", "--minutes", "0", last="0 of 23 parts, 0 failed")


def says_what_is_missing(bundle):
    bundle.program("path/python3", "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1")
    real = "import sys; sys.path.insert(0, sys.argv[1]); import workload; workload.describe_pytorch(sys.argv[2], 'cuda')"
    asked = subprocess.run([shutil.which("python3"), "-c", real, bundle.folder / "bench", bundle.path / "python3"],
                           capture_output=True, text=True)
    assert asked.returncode == 2 and "No module named 'torch'; it needs torch" in asked.stderr, asked
    bundle.program("path/getconf", "echo glibc 2.35")
    bundle.says("kernels", code=2, last="error: the programs need glibc 2.36 or newer, and this machine has 2.35")
    bundle.program("path/getconf", "echo glibc 2.41")
    bundle.says("trainyard", last="All tests passed")
    bundle.says("kernel", code=2, last="error: unknown argument 'kernel'")
    shutil.rmtree(bundle.folder / "bin")
    bundle.says("--help", last="packages.")
    bundle.says("tests", code=2, last="error: there are no programs in ")


for check in (counts_tests, goes_through_all, says_what_is_missing):
    with tempfile.TemporaryDirectory() as folder:
        check(Bundle(folder))
