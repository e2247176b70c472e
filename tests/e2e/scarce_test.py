#!/usr/bin/env python3
"""What runs short, or is asked for without measure: the programs end with code 2 and say what it is.

usage: scarce_test.py TRAINYARD TRAINYARD_OPERATOR
"""
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = 54321  # no user of this machine: its processes are those of this test
TRAIN = ["train", "--model", "tutorial", "--training.steps", "2", "--metrics.dir", "m", "--checkpoint.enabled", "false"]


class Ended:
    def __init__(self, code, text):
        self.code, self.text = code, text

    def __str__(self):
        return f"exit {self.code}\n{self.text}"


def run(*words, limits=(), user=None, **environment):
    def limit():
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        ended = subprocess.run([*map(str, words)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", timeout=240, preexec_fn=limit, env={**os.environ, **environment}, **who)
        return Ended(ended.returncode, ended.stdout)


def check(ended, what, codes=(2,), words=()):
    told = f"{what}: {ended}"
    assert ended.code in codes, told
    assert "defect" not in ended.text, told
    if ended.code == 2:
        assert all(any(one in ended.text for one in word.split("|")) for word in words), f"{told}\nwithout {words}"


def memory(trainyard):
    """Too little of it for a rank, wherever it is asked for: in libraries, kernels, threads, ranks that then miss it."""
    for megabytes in (90, 110, 132, 150):
        for launcher in ([], ["launch", "--nproc-per-node", "2"]):
            ended = run(trainyard, *launcher, *TRAIN, limits=[(resource.RLIMIT_AS, megabytes * 1000 * 1024)], OMP_NUM_THREADS="2")
            check(ended, f"ulimit -v {megabytes}000, {launcher}", codes=(0, 2),
                  words=["out of memory|no further thread|memory is short"])


def descriptors(trainyard, operator):
    for count in range(5, 16):
        ended = run(trainyard, "launch", "--nproc-per-node", "2", *TRAIN, limits=[(resource.RLIMIT_NOFILE, count)])
        check(ended, f"ulimit -n {count}", codes=(0, 2), words=["Too many open files"])
    assert run(trainyard, "launch", "--nproc-per-node", "2", *TRAIN, limits=[(resource.RLIMIT_NOFILE, 8)]).code == 2
    job = Path(__file__).parents[2] / "manifests/examples"
    for count in (4, 6, 8):
        ended = run(operator, "run", "-f", sorted(job.glob("*.yaml"))[0], limits=[(resource.RLIMIT_NOFILE, count)])
        check(ended, f"operator run, ulimit -n {count}", words=["open files"])


def threads(trainyard):
    """RLIMIT_NPROC does not hold for root, and counts all that a user runs: so somebody who runs nothing else."""
    if os.geteuid() != 0:
        print("not root: what happens without threads is left out")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(trainyard, folder)
        os.chmod(program, 0o755)
        for count in (1, 2, 3, 4, 5, 6):
            for launcher in ([], ["launch", "--nproc-per-node", "2"]):
                ended = run(program, *launcher, *TRAIN, user=NOBODY, limits=[(resource.RLIMIT_NPROC, count)],
                            OMP_NUM_THREADS="4", TMPDIR="/tmp")
                check(ended, f"ulimit -u {count}, {launcher}", codes=(0, 2), words=["no further thread or process"])
                assert count > 2 or ended.code == 2, f"ulimit -u {count}: {ended}"


def file_size(trainyard):
    save = [*TRAIN[:-2], "--checkpoint.dir", "c"]
    ended = run(trainyard, *save, limits=[(resource.RLIMIT_FSIZE, 64 << 10)])
    check(ended, "ulimit -f 64", words=["File too large"])


def many_threads(trainyard):
    ended = run(trainyard, *TRAIN, OMP_NUM_THREADS="100000")
    capped = re.search(r"OMP_NUM_THREADS is 100000, and .*: (\d+) threads are taken", ended.text)
    assert ended.code == 0 and capped, ended
    assert f"on {capped[1]} threads a rank" in ended.text, ended
    assert "OMP_NUM_THREADS is" not in run(trainyard, "--version", OMP_NUM_THREADS="16").text


def on_terminal(*words, **environment):
    """What a program writes that has a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([*map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**os.environ, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # its end, as Linux tells it
            pass
    os.close(ours)
    assert process.returncode == 0, text
    return text


def colours(trainyard):
    warned = {"OMP_NUM_THREADS": "100000"}
    assert b"\x1b[" in on_terminal(trainyard, "--version", **warned)
    plain = on_terminal(trainyard, "--version", NO_COLOR="1", **warned)
    assert b"warning" in plain and b"\x1b" not in plain, plain


trainyard, trainyard_operator = sys.argv[1:]
os.environ.pop("NO_COLOR", None)
memory(trainyard)
descriptors(trainyard, trainyard_operator)
threads(trainyard)
file_size(trainyard)
many_threads(trainyard)
colours(trainyard)
