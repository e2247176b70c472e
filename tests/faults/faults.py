"""Which fault befalls which request, by a seed.

The n-th request of one kind for one thing meets the same fault in every run of a seed, in whatever order requests come:
so a run can be repeated though its requests race. Each fault is a line of the log.
"""
import collections
import random
import threading
import time

# Weights. A number is an answer given in place of the server's.
ALWAYS = {"dropped before": 3, "dropped after": 3, "late": 3, "slow": 3, "truncated": 3, 429: 1, 500: 2, 503: 2, 504: 2}
OF_WRITES = {**ALWAYS, "sent twice": 4, 409: 2, 410: 1, "killed before": 0.2, "killed after": 0.2}
OF_LISTS = {**ALWAYS, 410: 3, "stale": 16}  # stale: none where nothing older was given
OF_WATCHES = {"dropped before": 1, 410: 2, 429: 1, 500: 1, 503: 1, "cut": 5, "ended": 4, "expired": 3, "hung": 1,
              "paused": 2}
KINDS = {"watch": OF_WATCHES, "write": OF_WRITES, "list": OF_LISTS, "read": ALWAYS}

# Of requests, how many meet one. Of a lease few: without a leader nothing happens that could go wrong.
SHARES = {"watch": 0.8, "write": 0.25, "list": 0.35, "read": 0.2}
SHARES_OF_SOME = {"leases": 0.06, "events": 0.1}


class Faults:
    """Threads may share it."""

    def __init__(self, seed, log):
        self._seed, self._log = seed, log
        self._asked = collections.Counter()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.injected = collections.Counter()
        self.are_on = True

    @property
    def count(self):
        return sum(self.injected.values())

    def choose(self, call):
        """The fault, or None, and a generator for its particulars."""
        with self._lock:
            self._asked[call.key] += 1
            rng = random.Random(f"{self._seed} {call.key} {self._asked[call.key]}")
        share = next((some for word, some in SHARES_OF_SOME.items() if f"/{word}" in call.url), SHARES[call.sort])
        if rng.random() >= share or not self.are_on:
            return None, rng
        weights = KINDS[call.sort]
        return rng.choices(list(weights), weights.values())[0], rng

    def note(self, call, fault):
        """One that has come over a request."""
        self.injected[fault] += 1
        self.say(f"{call.process} {fault}: {call.key} #{self._asked[call.key]}")

    def say(self, line):
        """Into the log, beside the faults."""
        with self._lock:
            self._log.write(f"{time.monotonic() - self._began:8.3f} {line}\n")
            self._log.flush()
