#!/usr/bin/env python3
"""The installed library: the sample program is built against a prefix outside of the build tree, and trains on two ranks.

usage: library_test.py BUILD SAMPLE PROGRAM    PROGRAM: trainyard, which launches its ranks
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SAMPLE, PROGRAM = (Path(argument).resolve() for argument in sys.argv[1:4])
PLACES_A_RANK = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|MASTER_|PET_|GROUP_|TORCHELASTIC_|TRAINYARD_)")


def run(*words, folder):
    environment = {name: value for name, value in os.environ.items() if not PLACES_A_RANK.match(name)}
    done = subprocess.run([str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise AssertionError(f"{words}: code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        run("cmake", "--install", BUILD, "--component", "library", "--prefix", cls.prefix, folder=cls.folder)
        shutil.copytree(SAMPLE, cls.folder / "sample")
        run("cmake", "-S", "sample", "-B", "build", f"-DCMAKE_PREFIX_PATH={cls.prefix}", "-DCMAKE_CXX_COMPILER_LAUNCHER=",
            folder=cls.folder)
        run("cmake", "--build", "build", folder=cls.folder)
        cls.program = cls.folder / "build/fully_shard"

    def check(self, said):
        self.assertRegex(said, r"sharded: layers\.0\.\S+ is float32, 8 of its 16 rows here")
        self.assertRegex(said, r"unsharded: layers\.0\.\S+ is bfloat16, 8 of its 16 rows here")
        self.assertRegex(said, r"sharded again: layers\.0\.\S+ is float32")
        losses = [float(loss) for loss in re.findall(r"step \d+: loss (\S+),", said)]
        self.assertEqual(len(losses), 10)
        self.assertLess(losses[-1], losses[0])
        return losses

    def test_the_sample_trains_on_threads_and_on_processes_with_the_same_losses(self):
        folders = [self.folder / name for name in ("threads", "processes")]
        for folder in folders:
            folder.mkdir()
        threads = self.check(run(self.program, folder=folders[0]))
        processes = self.check(run(PROGRAM, "launch", "--nproc-per-node", 2, self.program, folder=folders[1]))
        self.assertEqual(threads, processes)
        for folder in folders:
            self.assertTrue((folder / "checkpoints/step-10/checkpoint.json").is_file())
            self.assertTrue((folder / "model_state_dict.pt").is_file())

        checkpoints = ("train", "--model", "tutorial", "--training.steps", 10, "--checkpoint.dir", "threads/checkpoints",
                       "--checkpoint.resume", "auto", "--metrics.dir", "m")
        with self.assertRaisesRegex(AssertionError, "(?s)code 2.*holds no place in the data.*--checkpoint.exclude data"):
            run(PROGRAM, *checkpoints, folder=self.folder)
        self.assertIn("Step 10 of 10", run(PROGRAM, *checkpoints, "--checkpoint.exclude", "data", folder=self.folder))

    def test_the_headers_include_each_other_and_the_standard_library_alone(self):
        headers = sorted((self.prefix / "include").rglob("*"))
        self.assertEqual({header.parent.name for header in headers if header.is_file()}, {"trainyard"})
        for header in (header for header in headers if header.is_file()):
            for included in re.findall(r'#include [<"]([^>"]+)[>"]', header.read_text()):
                self.assertTrue(included.startswith("trainyard/") or "/" not in included and "." not in included,
                                f"{header.name}: {included}")

    def test_the_shared_object_shows_what_the_headers_name_and_nothing_below(self):
        library = next(self.prefix.glob("lib*/**/libtrainyard.so"))
        symbols = run("nm", "--dynamic", "--defined-only", "--demangle", library, folder=self.folder)
        ours = [line.split(" ", 2)[2] for line in symbols.splitlines() if " trainyard::" in line]
        self.assertTrue(any("fsdp::fully_shard(" in name for name in ours), symbols[:2000])
        self.assertEqual([name for name in ours if not name.startswith("trainyard::fsdp::")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
