"""Two operators that take the lead from one another, and what befalls their processes."""
import os
import signal
import time

from clock import Clock
from kube import OperatorProcess

FLAGS = ["--gang-scheduler-name", "scheduler-plugins-scheduler"]
# Short, so that the lead moves often: a leader that is stopped is followed after 4 s.
ELECTION = ["--leader-elect", "--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s",
            "--leader-elect-retry-period", "500ms"]
LONGEST_JUMP = 3600


class Replica:
    """One of the operators: a process after another, each with a name and so a token of its own, on one clock."""

    def __init__(self, program, library, folder, number):
        self._program, self._folder, self._number = program, folder, number
        self._starts = 0
        self.clock = Clock(library, folder / f"clock-{number}")
        self.process, self.name = None, ""
        self.next_start = self.paused_until = 0

    def start(self, proxy):
        self._starts += 1
        self.name = f"operator-{self._number}-{self._starts}"
        self.process = OperatorProcess(self._program, proxy.kubeconfig(self.name), self._folder / f"{self.name}.log",
                                       [*FLAGS, *ELECTION], self.clock.environment)
        self.process.start()
        self.paused_until = 0

    def kill(self):
        if self.process and self.process.is_running():
            os.kill(self.process.pid, signal.SIGKILL)

    def must_not_have_failed(self):
        """Killed is well; ended by itself is not."""
        if self.process and not self.process.is_running() and self.process.stop() != -signal.SIGKILL:
            self.process.must_be_running()


class Operators:
    """step() is to be called again and again, by one thread; kill() by any."""

    def __init__(self, program, library, folder, rng, note):
        self.replicas = [Replica(program, library, folder, number) for number in (1, 2)]
        self._rng, self._note = rng, note
        self._next_trouble = time.monotonic()
        self.are_troubled = True

    def kill(self, name):
        for replica in self.replicas:
            if replica.name == name:
                replica.kill()

    def step(self, proxy):
        now = time.monotonic()
        for replica in self.replicas:
            replica.must_not_have_failed()
            if not replica.process or not replica.process.is_running():
                replica.next_start = replica.next_start or now + self._rng.uniform(0, 1.5)
                if now >= replica.next_start:
                    replica.start(proxy)
                    replica.next_start = 0
            elif replica.paused_until and now >= replica.paused_until:
                replica.process.resume()
                replica.paused_until = 0
        if self.are_troubled and now >= self._next_trouble:
            self._next_trouble = now + self._rng.uniform(1, 6)
            self._trouble(self._rng.choice(self.replicas), now)

    def calm(self):
        """Both run on, by the true calendar."""
        self.are_troubled = False
        for replica in self.replicas:
            replica.paused_until = replica.paused_until and time.monotonic()
            replica.clock.set(0)

    def end(self):
        for replica in self.replicas:
            replica.kill()

    def _trouble(self, replica, now):
        what = self._rng.choices(["kill", "stop", "jump", "right"], [2, 2, 3, 2])[0]
        if what == "kill":
            replica.kill()
        elif what == "stop" and replica.process and replica.process.is_running() and not replica.paused_until:
            replica.process.pause()
            replica.paused_until = now + self._rng.uniform(0.2, 7)
        elif what in ("jump", "right"):
            replica.clock.set(0 if what == "right" else self._rng.randint(-LONGEST_JUMP, LONGEST_JUMP))
        self._note(f"{replica.name} {what} clock {replica.clock.offset:+d} s")
