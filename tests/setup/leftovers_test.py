#!/usr/bin/env python3
"""leftovers.py: what is cleared up after processes that were killed with SIGKILL, and what is not touched.

usage: leftovers_test.py
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "setup")]
import leftovers  # noqa: E402

OWN = "import leftovers, sys; owned = leftovers.Owned(sys.argv[1])"
GO_ON = "import time; print('ready', flush=True); time.sleep(600)"


class Leftovers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.place = Path(scratch.name)
        self.folder = leftovers.folder_of("kube", "a", self.place)

    def start(self, script, **environment):
        """A Python process that has said that it is ready."""
        process = subprocess.Popen([sys.executable, "-c", script, self.folder], stdout=subprocess.PIPE, text=True,
                                   cwd=self.place, env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'setup'}", **environment})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def killed(self, script=f"{OWN}; {GO_ON}"):
        process = self.start(script)
        process.kill()
        process.wait()

    def clear(self):
        """What is said of it."""
        said = []
        leftovers.clear([self.place], said.append)
        return said

    def test_a_folder_goes_once_its_owner_is_killed_and_not_before(self):
        owner = self.start(f"{OWN}; {GO_ON}")
        (self.folder / "deep").mkdir()
        (self.folder / "deep/file").touch()
        self.assertEqual(self.clear(), [])
        self.assertRaises(leftovers.InUse, leftovers.Owned, self.folder)
        self.assertTrue((self.folder / "deep/file").exists())
        owner.kill()
        owner.wait()
        self.assertEqual(self.clear(), [f"cleared up what a killed process had left: {self.folder}"])
        self.assertEqual(list(self.place.iterdir()), [])

    def test_the_next_owner_of_a_name_finds_an_empty_folder(self):
        self.killed(f"{OWN}; (owned.folder / 'file').touch(); {GO_ON}")
        owned = leftovers.Owned(self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])
        owned.remove()
        self.assertEqual(list(self.place.iterdir()), [])

    def test_a_lock_without_a_folder_goes_too(self):
        self.killed(f"import leftovers, pathlib, time; lock = leftovers._take(pathlib.Path('{self.folder}.lock')); {GO_ON}")
        self.assertEqual(len(self.clear()), 1)
        self.assertEqual(list(self.place.iterdir()), [])

    def test_what_has_no_lock_or_another_name_is_left_alone(self):
        for name in ("trainyard-kube-b", "trainyard-test-c", "other"):
            (self.place / name).mkdir()
        for name in ("trainyard-test-c.lock", "other.lock"):
            (self.place / name).touch()
        before = sorted(self.place.iterdir())
        self.assertEqual(self.clear(), [])
        self.assertEqual(sorted(self.place.iterdir()), before)

    def test_who_inherited_the_lock_keeps_the_folder_when_its_maker_is_killed(self):
        heir = self.place / "heir"
        self.killed(f"{OWN}; import subprocess; child = subprocess.Popen(['sleep', '600'], pass_fds=[owned.fileno()]);"
                    f"open({str(heir)!r}, 'w').write(str(child.pid)); {GO_ON}")
        pid = int(heir.read_text())
        heir.unlink()
        self.assertEqual(self.clear(), [])
        self.assertTrue(self.folder.exists())
        os.kill(pid, signal.SIGKILL)
        self.until_gone(pid)
        self.clear()
        self.assertEqual(list(self.place.iterdir()), [])

    def test_processes_of_a_folder_whose_owner_was_killed_end_and_no_others(self):
        owner = self.start(f"{OWN}; {GO_ON}")
        of_it, beside = self.start(GO_ON, TMPDIR=str(self.folder)), self.start(GO_ON, TMPDIR=f"{self.folder}-b")
        self.clear()
        self.assertEqual((of_it.poll(), beside.poll()), (None, None))
        owner.kill()
        owner.wait()
        self.clear()
        self.assertEqual((of_it.wait(60), beside.poll()), (-signal.SIGKILL, None))

    def test_a_folder_that_nobody_may_write_to_goes(self):
        # Root may write everywhere.
        become_nobody = "import leftovers, os, sys; os.getuid() or os.setuid(65534)"
        self.place.chmod(0o777)
        self.killed(f"{become_nobody}; owned = leftovers.Owned(sys.argv[1]);"
                    f"(owned.folder / 'a/b').mkdir(parents=True); (owned.folder / 'a').chmod(0o500); {GO_ON}")
        self.killed(f"{become_nobody}; leftovers.clear([{str(self.place)!r}], lambda _: None); {GO_ON}")
        self.assertEqual(list(self.place.iterdir()), [])

    @unittest.skipUnless(os.geteuid() == 0, "mounts take root")
    def test_what_is_mounted_below_a_folder_is_not_removed_with_it(self):
        kept = self.place / "kept"
        kept.mkdir()
        (kept / "file").touch()
        self.killed(f"{OWN}; (owned.folder / 'there').mkdir(); {GO_ON}")
        try:
            subprocess.run(["mount", "--bind", kept, self.folder / "there"], check=True, stderr=subprocess.DEVNULL)
        except subprocess.CalledProcessError:
            self.skipTest("this machine does not let anything be mounted")
        self.clear()
        self.assertEqual([path.name for path in self.place.iterdir()], ["kept"])
        self.assertTrue((kept / "file").exists())

    def test_what_a_killed_check_left_running_is_ended_by_the_next_with_what_it_owns(self):
        self.killed(f"import stages, subprocess, sys, tempfile; tempfile.tempdir = {str(self.place)!r};"
                    "owned = stages.own_temporary_folder();"
                    f"script = {f'{OWN}; {GO_ON}'!r};"
                    "child = subprocess.Popen([sys.executable, '-c', script, sys.argv[1]], start_new_session=True,"
                    " stdout=subprocess.PIPE); child.stdout.readline();"
                    f"open('told', 'w').write(f'{{child.pid}} {{owned.folder}}'); {GO_ON}")
        pid, folder = (self.place / "told").read_text().split()
        os.kill(int(pid), 0)  # it goes on
        self.assertTrue(self.folder.exists() and Path(folder).exists())
        self.assertEqual(self.clear(), [f"cleared up what a killed process had left: {each}" for each in (folder, self.folder)])
        self.until_gone(int(pid))
        self.assertEqual([path.name for path in self.place.iterdir()], ["told"])

    def until_gone(self, pid):
        """Nobody of this test is the parent of that process: there is nothing to wait for but that it is gone, or a zombie."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    return
            except OSError:
                return
            time.sleep(0.02)
        self.fail(f"process {pid} goes on")


if __name__ == "__main__":
    unittest.main()
