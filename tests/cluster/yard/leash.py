"""A cluster goes with the process that starts it, however that ends, until it is told to stay: a pipe, which the one holds open
and the other reads to its end."""
import os
import threading

READY, STAY = b"r", b"s"


def watch(pipe, starting):
    """Ends this process where the other end of `pipe` closes before it said STAY. The file `starting` goes when it says
    that the cluster is READY, or is to STAY."""
    threading.Thread(target=_watch, args=(pipe, starting), daemon=True).start()


def _watch(pipe, starting):
    said = b""
    while said != STAY:
        said = os.read(pipe, 1)
        if not said:
            os._exit(1)
        starting.unlink(missing_ok=True)
