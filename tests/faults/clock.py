"""A calendar that jumps, for programs that are started with it: jumping_clock.cpp, preloaded."""
import mmap
import os
import struct
from pathlib import Path


class Clock:
    def __init__(self, library, file, offset=0):
        self._library, self._file = library, Path(file)
        self._file.write_bytes(bytes(8))
        with open(self._file, "r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 8)
        self.set(offset)

    def set(self, seconds):
        """How far the calendar is ahead of the true one, from now on."""
        self.offset = seconds
        self._shared[:] = struct.pack("=q", seconds)

    @property
    def environment(self):
        return {**os.environ, "LD_PRELOAD": str(self._library), "TRAINYARD_TEST_CLOCK": str(self._file)}
