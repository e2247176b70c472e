"""What a process owns on this machine, and clearing up after one that was killed.

Who owns a folder holds the lock beside it, FOLDER.lock, until it ends, however it ends: a folder whose lock can be taken is
a leftover. Cgroups of the folder's name belong to it, mounts below it, and processes that have it as their TMPDIR.
What has no such lock, or another user's, is left alone.
"""
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

# What folders are for; it stands in their names. Those of a check come first: its processes may own the others.
KINDS = ("check", "cluster", "kube", "trial")
CGROUPS = Path("/sys/fs/cgroup")
_PATIENCE = 30  # seconds: what was killed may take so long to be gone
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class InUse(Exception):
    """A folder's owner lives."""


class Owned:
    """A new folder, for this user alone, that belongs to this process and to those that inherit fileno(), as long as one of
    them lives. What a dead owner left in its place goes first. Throws InUse where an owner lives, and StillThere."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._lock = _take(lock_of(self.folder))
        try:
            _clear(self.folder)
            self.folder.mkdir(mode=0o700)
        except BaseException:
            self._lock.close()
            raise

    @classmethod
    def new(cls, kind, parent):
        """Of a name that no other has."""
        return cls(folder_of(kind, uuid.uuid4().hex[:10], parent))

    def fileno(self):
        return self._lock.fileno()

    def release(self):
        """It belongs only to those that have inherited the lock."""
        self._lock.close()

    def remove(self):
        """With all that belongs to it. Throws StillThere where something cannot be removed."""
        _clear(self.folder)
        lock_of(self.folder).unlink(missing_ok=True)
        self._lock.close()


class StillThere(Exception):
    """What could not be removed."""


def folder_of(kind, name, parent):
    assert kind in KINDS
    return Path(parent) / f"trainyard-{kind}-{name}"


def lock_of(folder):
    return Path(f"{folder}.lock")


def clear(places=None, say=print):
    """Removes what dead processes of this user have left: folders of all KINDS, and what belongs to them."""
    places = dict.fromkeys(map(Path, places or ("/var/tmp", "/dev/shm", tempfile.gettempdir())))
    for kind in KINDS:
        for lock in sorted(lock for place in places for lock in place.glob(f"trainyard-{kind}-*.lock")):
            _clear_behind(lock, say)


def _clear_behind(lock, say):
    try:
        if lock.stat().st_uid != os.geteuid():
            return
        Owned(lock.with_suffix("")).remove()
        say(f"cleared up what a killed process had left: {lock.with_suffix('')}")
    except (InUse, FileNotFoundError):
        pass  # its owner lives, or has just removed it
    except (OSError, StillThere) as error:
        say(f"what a killed process had left could not be cleared up: {error}")


def _take(path):
    """The file at `path`, locked. Throws InUse."""
    while True:
        lock = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                return lock
        except BlockingIOError:
            lock.close()
            raise InUse(f"{path} is held by a process that lives") from None
        lock.close()  # its last owner has removed it meanwhile


def _clear(folder):
    end = time.monotonic() + _PATIENCE
    while left := _end_processes(folder) or _remove_cgroups(folder.name) or _unmount(folder) or _remove_files(folder):
        if time.monotonic() > end:
            raise StillThere(f"{', '.join(map(str, left))} of {folder}")
        time.sleep(0.03)


# Each of these returns what was still there when it had done what it can.


def _end_processes(folder):
    mark, found = f"TMPDIR={folder}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        try:
            handle = os.pidfd_open(pid)  # the number may be another's before it is killed, the handle cannot
        except OSError:
            continue
        try:
            if mark in (process / "environ").read_bytes().split(b"\0") and pid != os.getpid():
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                found.append(f"process {pid}")
        except OSError:
            pass  # it has ended, or is another user's
        finally:
            os.close(handle)
    return found


def hierarchies():
    """The folders of all hierarchies of cgroups of this machine: of version 2, else of version 1, which has several."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [each for each in CGROUPS.glob("*") if each.is_dir() and not each.is_symlink()]


def _remove_cgroups(name):
    groups = [each / name for each in hierarchies() if (each / name).exists()]
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass  # it is gone, or processes in it are about to end
    return [group for group in groups if group.exists()]


def _unmount(folder):
    """Where something is mounted there may be this machine's own files."""
    for point in _mounts_below(folder):
        subprocess.run(["umount", "--lazy", point], stderr=subprocess.DEVNULL)
    return _mounts_below(folder)


def _mounts_below(folder):
    """The innermost first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in reversed(points) if f"{point}/".startswith(f"{folder}/")]


def _remove_files(folder):
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # tests make folders that nobody may write to
        subprocess.run(["chmod", "--recursive", "u+rwX", folder], stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
    return [folder] if folder.exists() else []


def dies_with_parent(end=signal.SIGKILL):
    """A preexec_fn: the kernel sends `end` when the thread that started the child is gone, however it ended."""
    parent = os.getpid()

    def ask_kernel():
        _libc.prctl(_PR_SET_PDEATHSIG, end)
        if os.getppid() != parent:  # it was gone before the kernel was asked
            os._exit(1)

    return ask_kernel
