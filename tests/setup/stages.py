#!/usr/bin/env python3
"""The stages of ./check, which installs packages and calls this: builds, and runs tests with ctest.

usage: stages.py [--all] [--fast] [--only STAGE] [--from STAGE] [--strict]
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK_LIMIT = 80 * 60  # all of ./check without --all
MOST_FLAKY = 2  # more of them fail the run


@dataclass(frozen=True)
class Build:
    """Targets of a preset; none: all."""
    preset: str
    targets: tuple = ()
    first: tuple = ()  # a command that brings what the build needs


@dataclass(frozen=True)
class Stage:
    """What a stage builds and which tests it runs. `limit`, in seconds: four times what it took from nothing on two
    cores, builds included."""
    name: str
    limit: int
    builds: tuple
    tests: tuple = ()  # ctest's arguments; none: the stage only builds
    environment: dict = field(default_factory=dict)
    builds_behind: bool = False  # later stages' builds may take what its tests leave idle
    repeats: bool = False  # a failed assertion is tried once more, alone
    in_check: bool = True  # False: in --all alone

    @property
    def preset(self):
        return self.builds[0].preset


RELEASE = Build("release")
CUDA = Build("cuda", ("trainyard", "tensor_test", "ops_test", "comm_test", "ops_bench"), ("container/packages/cuda",))
ASAN = Build("asan", ("fast_tests", "fuzzers"))
CLUSTER_PACKAGES = ("container/packages/install", "container/packages/cluster.txt")
# The leak checker's list of threads' dynamic TLS is not safe from threads that end with the process: its scan crashes.
ASAN_ENVIRONMENT = {"ASAN_OPTIONS": "intercept_tls_get_addr=0"}

STAGES = (
    Stage("build", 3600, (RELEASE,)),
    Stage("fast", 1200, (Build("release", ("fast_tests",)),), ("-L", "fast"), repeats=True),
    Stage("slow", 2200, (RELEASE,), ("-L", "slow"), builds_behind=True, repeats=True),
    Stage("cuda", 2400, (CUDA,), ("-R", "^(tensor|ops|comm):", "-E", "^comm: mpi:"), repeats=True),
    Stage("operator", 4800, (RELEASE,), ("-L", "operator"), builds_behind=True, repeats=True),
    Stage("images", 2400, (Build("release", (), CLUSTER_PACKAGES), CUDA), ("-L", "images"), builds_behind=True, in_check=False),
    Stage("cluster", 5600, (Build("release", (), CLUSTER_PACKAGES),), ("-L", "cluster"), builds_behind=True, in_check=False),
    Stage("asan", 4800, (ASAN,), ("-L", "fast"), ASAN_ENVIRONMENT, in_check=False),
    Stage("fuzz", 1800, (ASAN,), ("-L", "fuzz"), ASAN_ENVIRONMENT, in_check=False),
    Stage("tsan", 3600, (Build("tsan", ("threaded_tests",)),), ("-L", "threaded"), in_check=False),
)


class StageFailed(Exception):
    """A stage that could not be carried to its end: its build failed, or its time was up."""


class Deadline:
    """The earlier of two ends: that of the stage, and that of the whole check."""

    def __init__(self, stage, stage_seconds, check_end):
        now = time.monotonic()
        stage_end = now + stage_seconds
        is_stages = stage_end <= check_end
        self.end = stage_end if is_stages else check_end
        self.whose = (f"stage {stage}, which may take {stage_seconds} s," if is_stages
                      else f"./check, which may take {CHECK_LIMIT} s,")

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


def commands_of(build):
    """What brings a build up to date."""
    commands = [list(build.first)] if build.first else []
    if not (ROOT / "build" / build.preset / "build.ninja").exists():
        commands.append(["cmake", "--preset", build.preset])
    return [*commands, ["ninja", "-C", f"build/{build.preset}", "--quiet", *build.targets]]


def run_command(command, deadline, priority=()):
    """Runs a command in silence; shows what it printed where it fails."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([*priority, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        try:
            code = process.wait(deadline.left() if deadline else None)
        except subprocess.TimeoutExpired:
            raise StageFailed(f"{deadline.whose} was ended while this ran: {' '.join(command)}")
        finally:
            if process.poll() is None:
                end(process)
        if code != 0:
            log.seek(0)
            sys.stdout.write(log.read())
            raise StageFailed(f"{' '.join(command)} ended with {code}")


class BuildsBehind:
    """Builds in the background, one after another, with what the tests beside them leave idle. One that fails is made
    again, and told of, by its stage."""

    def __init__(self):
        self.process = None

    def start(self, builds):
        steps = [" && ".join(" ".join(command) for command in commands_of(build)) for build in dict.fromkeys(builds)]
        if not steps:
            return
        # Where the kernel shares its processors out by sessions (autogroup), a policy counts within one only.
        politely = "echo 19 2>/dev/null >/proc/self/autogroup; chrt --idle --pid 0 $$ 2>/dev/null || renice 19 $$"
        self.process = subprocess.Popen(["bash", "-c", "; ".join([politely, *steps])], cwd=ROOT,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def stop(self):
        """A stage that builds in the foreground goes on from what is there."""
        if self.process and self.process.poll() is None:
            end(self.process)
        self.process = None


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


@dataclass
class Row:
    """A line of the table."""
    stage: Stage
    built: float = 0
    ran: float = 0
    results: Results = field(default_factory=Results)


def run_stage(stage, row, later_builds, behind, check_end, is_strict):
    deadline = Deadline(stage.name, stage.limit, check_end)
    began = time.monotonic()
    behind.stop()
    for build in stage.builds:
        for command in commands_of(build):
            run_command(command, deadline)
    row.built = time.monotonic() - began
    if not stage.tests:
        return
    if stage.builds_behind:
        behind.start(later_builds)
    began = time.monotonic()
    folder = ROOT / "build" / stage.preset
    row.results = run_tests(folder, stage.tests, deadline, stage.environment)
    if stage.repeats and not is_strict:
        repeat(folder, row.results, deadline, stage.environment)
    row.ran = time.monotonic() - began


def print_table(rows):
    print("\nstage       built s    ran s   passed   failed  skipped")
    for row in rows:
        results = row.results
        print(f"{row.stage.name:10} {row.built:8.0f} {row.ran:8.0f} {results.passed:8} {len(results.failed):8} {results.skipped:8}")
    seconds = {name: taken for row in rows for name, taken in
               ((f"{row.stage.name}: {test}", taken) for test, taken in row.results.seconds.items())}
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:10]
    if slowest:
        print("the slowest tests:")
    for name in slowest:
        print(f"{seconds[name]:8.1f} s  {name}")
    failed = [name for row in rows for name in row.results.failed]
    flaky = [name for row in rows for name in row.results.flaky]
    for name in flaky:
        print(f"   flaky {name}: it failed, and passed when it ran once more, alone; its first output stands above")
    if len(flaky) > MOST_FLAKY:
        failed.append(f"check: {len(flaky)} tests are flaky, and {MOST_FLAKY} are the most that pass")
    for name in failed:
        print(f"   FAILED {name}")
    print(f"{sum(row.results.passed for row in rows)} passed, {len(failed)} failed, "
          f"{sum(row.results.skipped for row in rows)} skipped", flush=True)
    return len(failed)


def run(request):
    """Runs stages; the exit code. One whose build fails ends the run, as what comes after would test old programs."""
    check_end = time.monotonic() + request.limit
    behind, rows = BuildsBehind(), []
    try:
        for index, stage in enumerate(request.stages):
            print(f"== {stage.name}", flush=True)
            row = Row(stage)
            rows.append(row)
            later = [build for other in request.stages[index + 1:] for build in other.builds if build.preset != stage.preset]
            try:
                run_stage(stage, row, later, behind, check_end, request.is_strict)
            except StageFailed as failure:
                print(f"   FAILED {failure}", flush=True)
                row.results.failed.append(f"{stage.name}: {failure}")
                break
            if stage.tests:
                print(f"   {row.results.passed} passed, {len(row.results.failed)} failed, {row.results.skipped} skipped",
                      flush=True)
            if time.monotonic() >= check_end:
                break
    finally:
        behind.stop()
    return 1 if print_table(rows) else 0


@dataclass(frozen=True)
class Request:
    stages: list
    is_strict: bool  # nothing is repeated

    @property
    def limit(self):
        """Of all stages together, in seconds."""
        is_check = all(stage.in_check for stage in self.stages)
        return CHECK_LIMIT if is_check else sum(stage.limit for stage in self.stages)


def requested(arguments):
    """What a command line asks for. Throws ValueError, with what there is, where it asks for something else."""
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(prog="./check", add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--only", metavar="STAGE", choices=names)
    parser.add_argument("--from", metavar="STAGE", dest="first", choices=names)
    try:
        asked, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        given = re.search(r"invalid choice: '([^']*)'", str(error))
        what = f"unknown stage '{given[1]}'" if given else str(error)
        raise ValueError(f"{what}; the stages are {', '.join(names)}")
    if unknown:
        raise ValueError(f"unknown argument '{unknown[0]}'; ./check --help tells what there is")
    if bool(asked.fast) + bool(asked.only) + bool(asked.first) > 1 or asked.all and (asked.fast or asked.only):
        raise ValueError("--fast, --only and --from exclude each other, and --all goes with --from alone")
    only = "fast" if asked.fast else asked.only
    if only:
        return Request([stage for stage in STAGES if stage.name == only], asked.strict)
    first = names.index(asked.first) if asked.first else 0
    is_all = asked.all or not STAGES[first].in_check
    return Request([stage for stage in STAGES[first:] if is_all or stage.in_check], asked.strict)


def main(arguments):
    try:
        request = requested(arguments)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(request)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
