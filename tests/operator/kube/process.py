"""Child processes that cannot outlive their parent, and waits that say what they waited for."""
import http.client
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from leftovers import dies_with_parent


class WaitedInVain(Exception):
    pass


class ProcessEnded(Exception):
    pass


def wait_until(what, condition, timeout, processes=()):
    """The first true value of condition(). What a server that is not up yet answers counts as not true.
    `what`: a text, or what makes one of how things stand when it was in vain.

    Throws WaitedInVain after `timeout` seconds, ProcessEnded as soon as one of `processes` is gone.
    """
    deadline = time.monotonic() + timeout
    while True:
        for process in processes:
            process.must_be_running()
        last = ""
        try:
            if value := condition():
                return value
        except (OSError, http.client.HTTPException) as error:
            last = f"; last seen: {error}"
        if time.monotonic() > deadline:
            logs = "".join(f"\n{process.name} says:\n{process.log_tail()}" for process in processes)
            raise WaitedInVain(f"waited {timeout} s for {what() if callable(what) else what}{last}{logs}")
        time.sleep(0.03)


class Process:
    """A server in the background. Its output goes to `log`, which a later start continues."""

    def __init__(self, name, command, log, environment=None):
        self.name, self.command, self.log = name, [str(part) for part in command], Path(log)
        self.environment = environment
        self._child = None

    def start(self):
        with open(self.log, "ab") as log:
            # A session of its own: Ctrl-C is for the test, which then ends its servers in order.
            self._child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                start_new_session=True, preexec_fn=dies_with_parent())

    @property
    def pid(self):
        return self._child.pid

    def is_running(self):
        return self._child is not None and self._child.poll() is None

    def must_be_running(self):
        if not self.is_running():
            how = "was not started" if self._child is None else f"ended with {self._child.returncode}"
            raise ProcessEnded(f"{self.name} {how}:\n{self.log_tail()}")

    def log_tail(self, lines=15):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log)"

    def stop(self, timeout=30):
        """Asks it to end and waits; its exit code. Throws WaitedInVain, and has killed it, if it takes longer."""
        if self.is_running():
            self._child.send_signal(signal.SIGTERM)
            self._child.send_signal(signal.SIGCONT)
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise WaitedInVain(f"waited {timeout} s for {self.name} to end after SIGTERM:\n{self.log_tail()}")
        return self._child.returncode if self._child else None

    def kill(self):
        if self.is_running():
            self._child.kill()
            self._child.wait()

    def pause(self):
        self._child.send_signal(signal.SIGSTOP)

    def resume(self):
        self._child.send_signal(signal.SIGCONT)

    @contextmanager
    def paused(self):
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def resident_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime: the 14th and 15th of all
