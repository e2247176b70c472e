#!/usr/bin/env python3
"""Programs that are started with stdin, stdout or stderr closed, as by a service manager.

usage: closed_streams_test.py TRAINYARD TRAINYARD_OPERATOR
"""
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words, closed="", **named):
    """The exit code of a program whose file descriptors `closed`, as "02", are not there."""
    closing = " ".join(f"{fd}>&-" for fd in closed)
    return subprocess.run(["/bin/sh", "-c", f'"$@" {closing}', "sh", *map(str, words)], capture_output=True, timeout=120,
                          **named).returncode


def end_as_ever(program, words, code):
    for count in (1, 2, 3):
        for closed in map("".join, itertools.combinations("012", count)):
            expected = (code, 2) if "1" in closed else (code,)  # 2: what is asked for cannot be written
            seen = run(program, *words, closed=closed)
            assert seen in expected, f"{program} {words} without {closed}: exit {seen}, and not {expected}"


def leaves_files_alone(trainyard):
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", "--demo", "--training.steps", "3", "--training.batch_size", "1", "--training.sequence_length", "32",
                 "--sample.prompt=", "--metrics.interval", "1", "--metrics.dir", "m", "--checkpoint.enabled", "false"]
        run(trainyard, *words, closed="1", cwd=folder)
        lines = (Path(folder) / "m/metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == [1, 2, 3], lines


trainyard, trainyard_operator = sys.argv[1:]
end_as_ever(trainyard, ["--version"], 0)
end_as_ever(trainyard, ["train"], 2)
end_as_ever(trainyard_operator, ["validate", "-f", "/none"], 2)
leaves_files_alone(trainyard)
