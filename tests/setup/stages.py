#!/usr/bin/env python3
"""The stages of ./check, which installs packages and calls this: builds, and runs tests with ctest.

usage: stages.py [--all] [--fast] [--only STAGE] [--from STAGE] [--strict]
"""
import argparse
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ctest_run import MOST_FLAKY, Deadline, Results, end, repeat, run_tests

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import leftovers  # noqa: E402

CHECK_LIMIT = 80 * 60  # all of ./check without --all
LOCK_PATIENCE = 10 * 60


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
TSAN_ENVIRONMENT = {"TSAN_OPTIONS": f"suppressions='{ROOT / 'tests/setup/tsan.supp'}'"}

# Tests run side by side: threads of OpenMP that wait leave their processor to another test's, and do not spin.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}

STAGES = (
    Stage("build", 3600, (RELEASE,)),
    Stage("fast", 1200, (Build("release", ("fast_tests",)),), ("-L", "fast"), repeats=True),
    Stage("slow", 2200, (RELEASE,), ("-L", "slow"), builds_behind=True, repeats=True),
    Stage("cuda", 2400, (CUDA,), ("-R", "^(tensor|ops|comm):", "-E", "^comm: mpi:"), repeats=True),
    # Its tests mostly wait: for leases, deadlines and what is started again.
    Stage("operator", 4800, (RELEASE,), ("-L", "operator", "--parallel", "4"), builds_behind=True, repeats=True),
    Stage("images", 2400, (Build("release", (), CLUSTER_PACKAGES), CUDA), ("-L", "images"), builds_behind=True, in_check=False),
    Stage("cluster", 5600, (Build("release", (), CLUSTER_PACKAGES),), ("-L", "cluster"), builds_behind=True, in_check=False),
    Stage("asan", 4800, (ASAN,), ("-L", "fast"), ASAN_ENVIRONMENT, in_check=False),
    Stage("fuzz", 1800, (ASAN,), ("-L", "fuzz"), ASAN_ENVIRONMENT, in_check=False),
    Stage("tsan", 3600, (Build("tsan", ("threaded_tests",)),), ("-L", "threaded"), TSAN_ENVIRONMENT, in_check=False),
)


class StageFailed(Exception):
    """A stage that could not be carried to its end: its build failed, or its time was up."""


def commands_of(build):
    """What brings a build up to date."""
    return [*([build.first] if build.first else []), ["cmake/build", build.preset, *build.targets]]


def run_command(command, deadline):
    # Those that install tell on stderr what is wrong, and on stdout what nobody asked.
    stdout = None if command[0] == "cmake/build" else subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stdout)
    try:
        code = process.wait(deadline.left())
    except subprocess.TimeoutExpired:
        raise StageFailed(f"{deadline.whose} was ended while this ran: {' '.join(command)}")
    finally:
        if process.poll() is None:
            end(process)
    if code != 0:
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
class Row:
    """A line of the table."""
    stage: Stage
    built: float = 0
    ran: float = 0
    results: Results = field(default_factory=Results)


def run_stage(stage, row, later_builds, behind, check_deadline, is_strict):
    deadline = min(Deadline(f"stage {stage.name}", stage.limit), check_deadline, key=Deadline.left)
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
    folder, environment = ROOT / "build" / stage.preset, ENVIRONMENT | stage.environment
    row.results = run_tests(folder, stage.tests, deadline, environment)
    if stage.repeats and not is_strict:
        repeat(folder, row.results, deadline, environment)
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
    check_deadline = Deadline("./check", request.limit)
    behind, rows = BuildsBehind(), []
    try:
        for index, stage in enumerate(request.stages):
            print(f"== {stage.name}", flush=True)
            row = Row(stage)
            rows.append(row)
            later = [build for other in request.stages[index + 1:] for build in other.builds if build.preset != stage.preset]
            try:
                run_stage(stage, row, later, behind, check_deadline, request.is_strict)
            except StageFailed as failure:
                print(f"   FAILED {failure}", flush=True)
                row.results.failed.append(f"{stage.name}: {failure}")
                break
            if stage.tests:
                print(f"   {row.results.passed} passed, {len(row.results.failed)} failed, {row.results.skipped} skipped",
                      flush=True)
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


def hold(path, patience):
    """An open file that holds the lock at `path` until this process ends, however it ends. Throws TimeoutError, which
    names the holder, where another process has it for `patience` seconds."""
    path.parent.mkdir(exist_ok=True)
    lock = open(path, "a+")  # not inherited: what a test leaves running holds nothing
    end_of_patience, is_told = time.monotonic() + patience, False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = f"another ./check of this clone ({path.read_text().strip() or 'it has just begun'})"
            if time.monotonic() >= end_of_patience:
                lock.close()
                raise TimeoutError(f"waited {patience} s for {holder}") from None
            if not is_told:
                print(f"waiting for {holder}", flush=True)
            is_told = True
            time.sleep(0.2)
    lock.truncate(0)
    lock.write(f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}")
    lock.flush()
    return lock


def own_temporary_folder():
    """Becomes TMPDIR of all that this check runs: what that leaves there, and those of it that go on, belong to the folder."""
    owned = leftovers.Owned.new("check", tempfile.gettempdir())
    owned.folder.chmod(0o1777)  # some tests run as other users
    os.environ["TMPDIR"] = tempfile.tempdir = str(owned.folder)
    return owned


def main(arguments):
    try:
        request = requested(arguments)
        lock = hold(ROOT / "build/check.lock", LOCK_PATIENCE)  # noqa: F841, held until the end
    except (ValueError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    leftovers.clear()
    owned = own_temporary_folder()
    try:
        code = run(request)
    except KeyboardInterrupt:
        return 130
    if code == 0:  # else it can be looked at, until the next check clears it up
        owned.remove()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
