"""What a script tries on a cluster, told as it goes: when, what, and what came of it."""
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/cluster"))

from yard import Cluster, images  # noqa: E402  (they are found by the line above)
from yard.operator import install  # noqa: E402
from kube import WaitedInVain, wait_until  # noqa: E402


class Steps:
    """The first that does not come as expected ends the script with 1."""

    def __init__(self):
        self._began = time.monotonic()
        self.story = lambda: ""  # what one wants to read then

    def chapter(self, title):
        print(f"\n{title}", flush=True)

    def tell(self, what, came=""):
        said = f": {came}" if came != "" else ""
        print(f"{time.monotonic() - self._began:7.1f} s  {what}{said}", flush=True)

    def expect(self, what, came, expected):
        """`expected`: a value, or a predicate of what came."""
        self.tell(what, shown(came))
        if not (expected(came) if callable(expected) else came == expected):
            self._wrong(f"expected {'otherwise' if callable(expected) else shown(expected)}")
        return came

    def until(self, what, condition, timeout=120):
        """The first true value of condition(); says how long it took to come."""
        began = time.monotonic()
        try:
            came = wait_until(what, condition, timeout)
        except WaitedInVain as error:
            self._wrong(str(error))
        self.tell(what, f"after {time.monotonic() - began:.1f} s")
        return came

    def _wrong(self, why):
        print(f"WRONG: {why}\n{self.story()}", flush=True)
        sys.exit(1)


def shown(value):
    text = value if isinstance(value, str) else repr(value)
    text = " ⏎ ".join(text.strip().splitlines())
    return text if len(text) <= 200 else f"{text[:200]} …"


class OnACluster:
    """A cluster of three nodes with this tree's operator: one of its own, which goes with it, or one that is up."""

    def __init__(self, own_name, name=None):
        self._own = name is None
        self._cluster = Cluster(own_name, images=images()) if self._own else Cluster(name)

    def __enter__(self):
        if self._own:
            self._cluster.__enter__()
        elif not self._cluster.is_up():
            sys.exit(f"error: the cluster {self._cluster.name} is not up: ./cluster --name {self._cluster.name} up")
        install(self._cluster)
        return self._cluster

    def __exit__(self, *error):
        if self._own:
            self._cluster.__exit__(*error)
