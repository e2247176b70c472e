"""A run of ctest within a time: what it shows while it goes on, and what came of each test."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

MOST_FLAKY = 2  # more of them fail the run


class Deadline:
    """When something that may take so many seconds has to be over, and what it is."""

    def __init__(self, what, seconds):
        self.end = time.monotonic() + seconds
        self.whose = f"{what}, which may take {seconds} s,"

    def left(self):
        return max(self.end - time.monotonic(), 0.0)


def descendants(pid):
    """Processes that `pid` has started, and those that they have, deepest last."""
    children = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has ended
        children.setdefault(parent, []).append(int(status.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found[1:]


def end(process, patience=10):
    """Ends a process with all that it has started."""
    family = [process.pid, *descendants(process.pid)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in family:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            pass


@dataclass
class Results:
    passed: int = 0
    failed: list = field(default_factory=list)
    skipped: int = 0
    seconds: dict = field(default_factory=dict)  # by test
    assertions: dict = field(default_factory=dict)  # of those that failed by an assertion: ctest's number, by test
    flaky: list = field(default_factory=list)  # passed when they ran once more


STARTED = re.compile(r"^\s+Start\s+(\d+): (.*)$")
ENDED = re.compile(r"^\s*\d+/\d+ Test\s+#(\d+): .*?(Passed|\*\*\*(?:Skipped|Not Run|Failed|Timeout|Exception: \S+|\S+))"
                   r".*?\s+([\d.]+) sec")
SUMMARY = re.compile(r"^\d+% tests passed, ")


class Progress:
    """What ctest's lines say. A test that fails is shown at once, whole."""

    def __init__(self, show):
        self.results = Results()
        self.running = {}  # name by number
        self.show = show
        self.is_output_of_failure = False

    def take(self, line):
        if match := STARTED.match(line):
            self.is_output_of_failure = False
            self.running[match[1]] = match[2].strip()
        elif (match := ENDED.match(line)) and match[1] in self.running:
            self.ended(match[1], match[2].removeprefix("***"), float(match[3]))
        elif SUMMARY.match(line):
            self.is_output_of_failure = False
        elif self.is_output_of_failure:
            self.show(line)

    def ended(self, number, how, seconds):
        name = self.running.pop(number)
        self.results.seconds[name] = seconds
        self.is_output_of_failure = how not in ("Passed", "Skipped")
        if how == "Passed":
            self.results.passed += 1
        elif how == "Skipped":
            self.results.skipped += 1
        else:
            self.results.failed.append(name)
            if how == "Failed":
                self.results.assertions[name] = number
            self.show(f"   FAILED {name} ({how}, {seconds:.0f} s)")


def show_skipped(junit, show):
    """Why tests were skipped, by name."""
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return  # ctest was ended
    for case in cases:
        for line in (case.findtext("system-out") or "").splitlines():
            if case.get("status") == "notrun" and "SKIPPED: " in line:
                show(f"   skipped {case.get('name')}: {line.partition('SKIPPED: ')[2]}")
                break


def print_line(line):
    print(line, flush=True)


def run_tests(folder, arguments, deadline, environment, show=print_line):
    """Runs ctest in a build's folder."""
    with tempfile.TemporaryDirectory() as scratch:
        junit = Path(scratch) / "junit.xml"
        ctest = subprocess.Popen(
            ["ctest", "--test-dir", str(folder), "--output-on-failure", "--no-tests=error", "--output-junit", str(junit),
             "--parallel", "2", *arguments],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace")
        progress = Progress(show)
        is_over_time = False

        def at_limit(*_):
            nonlocal is_over_time
            is_over_time = True
            end(ctest)

        previous = signal.signal(signal.SIGALRM, at_limit)
        signal.setitimer(signal.ITIMER_REAL, max(deadline.left(), 0.001))
        try:
            with ctest.stdout:
                for line in ctest.stdout:
                    progress.take(line.rstrip("\n"))
            code = ctest.wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if ctest.poll() is None:
                end(ctest)
        show_skipped(junit, show)
    results = progress.results
    if is_over_time:
        show(f"   ENDED {deadline.whose} was ended; these tests were running:")
        for name in progress.running.values():
            show(f"      {name}")
        results.failed += progress.running.values() or ["a test that had not begun"]
    elif code != 0 and not results.failed:
        show(f"   FAILED ctest ended with {code}, though no test had failed")
        results.failed.append("ctest")
    return results


def never_repeated(folder):
    """Tests whose one failure counts: those that compare bits, and fixtures, which others have waited for."""
    listed = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], check=True, capture_output=True)
    names = set()
    for test in json.loads(listed.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        if "FIXTURES_SETUP" in properties or any("bit_equal" in label for label in properties.get("LABELS", [])):
            names.add(test["name"])
    return names


def repeat(folder, results, deadline, environment, show=print_line):
    """Runs tests that failed by an assertion once more, alone. One that passes now counts as passed, and as flaky. Where
    more than MOST_FLAKY have failed nothing is repeated: the run has failed however that would end."""
    if not results.assertions or len(results.failed) > MOST_FLAKY:
        return
    kept = never_repeated(folder)
    for name, number in results.assertions.items():
        if name in kept:
            continue
        show(f"   once more, alone: {name}")
        again = run_tests(folder, ["-I", f"{number},{number}", "--fixture-exclude-any", "."], deadline, environment, show)
        if again.passed == 1:
            results.failed.remove(name)
            results.passed += 1
            results.flaky.append(name)
