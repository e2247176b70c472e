#!/usr/bin/python3
"""Many jobs of all kinds live through a thousand faults: of the network, of the API server, of the operators' processes
and of their calendars. Each ends as it ends without any: nothing lost, nothing twice, nothing left over.

TRAINYARD_SEED repeats a run, as far as races of processes let it. TRAINYARD_FAULTS_LOGS names a folder in which the
logs of a good run stay, too.

usage: faults_test.py OPERATOR JUMPING_CLOCK
"""
import os
import random
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/operator"))

from clock import Clock  # noqa: E402
from faults import Faults  # noqa: E402
from histories import HISTORIES, Job  # noqa: E402
from kube import Client, ControlPlane, OperatorProcess, WaitedInVain, wait_until  # noqa: E402
from operators import FLAGS, Operators  # noqa: E402
from proxy import Proxy  # noqa: E402
from world import World  # noqa: E402

PROGRAM, JUMPING_CLOCK = sys.argv[1:3]
EACH = {kind: 8 if kind == "churn" else 2 for kind in HISTORIES}  # jobs of each history
FAULTS = 1000
PATIENCE = 600  # seconds for what takes a few, or under faults a minute: machines are slow, and nothing is timed here
MONTH = 30 * 24 * 3600


class History:
    """All jobs of one namespace, each with its own steps."""

    def __init__(self, admin, namespace, seed):
        self.world = World(admin, namespace, random.Random(f"{seed} {namespace}"))
        self.world.wants_more = lambda: False
        self._steps = {}
        for kind, history in HISTORIES.items():
            for name in [f"{kind}-{number}" for number in range(EACH[kind])]:
                self._steps[name] = history(Job(self.world, name, random.Random(f"{seed} {name}")))

    def live(self, meanwhile=lambda: None, say=lambda line: None):
        """Until every job is where its history ends."""
        deadline = time.monotonic() + PATIENCE
        while self._steps:
            meanwhile()
            self.world.look()
            for name in [name for name, steps in self._steps.items() if next(steps, "done") == "done"]:
                say(f"{name} is through; {len(self._steps) - 1} left")
                del self._steps[name]
            if time.monotonic() > deadline:
                seen = {name: picture for name, picture in self.world.picture().items() if name in self._steps}
                raise WaitedInVain(f"waited {PATIENCE} s for {list(self._steps)}: {seen}")
            time.sleep(0.2)

    def picture(self):
        self.world.look()
        return self.world.picture()

    def delete_all(self):
        for name in self.world.jobs:
            Job(self.world, name, None).delete()


class FaultsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.seed = int(os.environ.get("TRAINYARD_SEED") or time.time_ns() % 10**6)
        print(f"TRAINYARD_SEED={cls.seed}", flush=True)
        cls.logs = Path(os.environ.get("TRAINYARD_FAULTS_LOGS") or tempfile.mkdtemp(prefix="trainyard-faults-"))
        crds = [ROOT / "manifests/crd", Path(__file__).parent / "pod_group.yaml"]
        cls.cluster = cls.enterClassContext(ControlPlane(crds=crds, logs=cls.logs))
        cls.admin = Client(cls.cluster.kubeconfig, timeout=PATIENCE)

    def test_every_job_ends_as_without_faults(self):
        try:
            self.expected = self.live_in_peace()
            self.live_through_faults()
        except BaseException:
            print(f"TRAINYARD_SEED={self.seed} repeats it; the logs are in {self.logs}", file=sys.stderr)
            print(*self.last_faults(), sep="\n", file=sys.stderr)
            raise
        if "TRAINYARD_FAULTS_LOGS" not in os.environ:
            self.addClassCleanup(shutil.rmtree, self.logs)

    def last_faults(self, count=20):
        log = self.cluster.folder / "faults.log"
        return log.read_text().splitlines()[-count:] if log.exists() else ["no fault was reached"]

    def live_in_peace(self):
        with OperatorProcess(PROGRAM, self.cluster.kubeconfig, self.cluster.folder / "operator-peace.log", FLAGS):
            history = History(self.admin, "peace", self.seed)
            history.live()
            expected = history.picture()
            self.leave_nothing(history)
        return expected

    def live_through_faults(self):
        with open(self.cluster.folder / "faults.log", "w") as log:
            faults = Faults(self.seed, log)
            operators = Operators(PROGRAM, JUMPING_CLOCK, self.cluster.folder, random.Random(f"{self.seed} operators"),
                                  faults.say)
            clock = Clock(JUMPING_CLOCK, self.cluster.folder / "clock-certificates", -MONTH)
            with Proxy(self.cluster, faults, operators.kill, clock) as proxy:
                try:
                    self.live_and_settle(faults, operators, proxy)
                finally:
                    operators.end()
        print(f"{faults.count} faults: {dict(faults.injected)}")

    def live_and_settle(self, faults, operators, proxy):
        def step():
            self.assertFalse(proxy.defects, "the proxy itself failed")
            operators.step(proxy)

        history = History(self.admin, "faults", self.seed)
        history.world.wants_more = lambda: faults.count < FAULTS
        history.live(step, faults.say)
        faults.are_on = False
        operators.calm()
        self.settle(history, step)
        self.leave_nothing(history, step)
        self.assertGreaterEqual(faults.count, FAULTS)

    def settle(self, history, step):
        """Two looks, as what comes late would be a fault of its own."""
        for pause in (0, 5):
            deadline = time.monotonic() + pause
            while time.monotonic() < deadline:
                step()
                time.sleep(0.1)

            def is_as_expected():
                step()
                return history.picture() == self.expected
            try:
                wait_until("the jobs to be as they are without faults", is_as_expected, PATIENCE / 2)
            except WaitedInVain:
                self.assertEqual(history.picture(), self.expected)

    def leave_nothing(self, history, step=lambda: None):
        history.delete_all()

        def is_empty():
            step()
            return not history.world.left()
        try:
            wait_until("nothing to be left", is_empty, PATIENCE / 2)
        except WaitedInVain:
            self.assertEqual(history.world.left(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
