#!/usr/bin/env python3
"""container/image after a build that was killed: its container, with what is mounted for it, goes with the next build.

usage: image_test.py
"""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

IMAGE = Path(__file__).resolve().parents[2] / "container/image"


class Image(unittest.TestCase):
    def setUp(self):
        self.cache = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.cache / "context").mkdir()
        (self.cache / "context/Containerfile").write_text("FROM scratch\nCOPY Containerfile /file\n")
        self.build()  # makes the store
        self.addCleanup(self.buildah, "rm", "--all")  # unmounts what it has mounted

    def build(self):
        done = subprocess.run([IMAGE, "localhost/trainyard-image-test:1", self.cache / "image.tar", self.cache / "context",
                               "--file", self.cache / "context/Containerfile"],
                              env={**os.environ, "TRAINYARD_CACHE": str(self.cache)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def buildah(self, *words):
        store = self.cache / "containers"
        return subprocess.run(["buildah", "--root", store / "storage", "--runroot", store / "run", *words], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def test_a_container_that_nobody_builds_goes(self):
        self.buildah("mount", self.buildah("from", "scratch").strip())  # as a build leaves it
        self.build()
        self.assertEqual(self.buildah("containers", "--quiet"), "")
        mounts = Path("/proc/self/mountinfo").read_text()
        self.assertNotIn(f"{self.cache}/containers/storage/overlay/", mounts)
        self.assertTrue((self.cache / "image.tar").exists())

    def test_one_of_a_build_that_goes_on_stays(self):
        kept = self.buildah("from", "scratch").strip()
        with open(self.cache / "containers/lock") as lock:
            subprocess.run(["flock", "--shared", str(lock.fileno())], pass_fds=[lock.fileno()], check=True)
            self.build()
        self.assertIn(kept, self.buildah("containers"))


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("buildah"):
        print("SKIPPED: it takes root and buildah")
    else:
        unittest.main()
