#!/usr/bin/env python3
"""stages.py on a small project of its own: what it counts and shows, and what it says of tests that its limit ends.

usage: stages_test.py [BUILD]      BUILD: a build of the preset release, each of whose tests must belong to one stage
"""
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import ctest_run  # noqa: E402
import stages  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
add_test(NAME "small: passes" COMMAND true)
add_test(NAME "small: fails with much to say" COMMAND bash -c "seq 20000; echo the end; exit 3")
add_test(NAME "small: skips" COMMAND echo "SKIPPED: no such device")
set_tests_properties("small: skips" PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: ")
add_test(NAME "small: is not there" COMMAND ${CMAKE_BINARY_DIR}/nothing)
add_test(NAME "small: crashes" COMMAND bash -c "kill -SEGV $$")
add_test(NAME "small: takes long" COMMAND bash -c "sleep 600")
set_tests_properties("small: takes long" PROPERTIES LABELS long)

# Each fails the first time that it runs in its folder.
foreach(name odd odder other_bits brings)
  add_test(NAME "small: ${name}" COMMAND bash -c "echo what ${name} said; mkdir ${name} && exit 1 || exit 0")
  set_tests_properties("small: ${name}" PROPERTIES LABELS odd)
endforeach()
set_tests_properties("small: other_bits" PROPERTIES LABELS odd_bit_equal)
set_tests_properties("small: brings" PROPERTIES FIXTURES_SETUP thing)
"""


class Ctest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = Path(cls.scratch.name)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)
        subprocess.run(["cmake", "-B", cls.folder / "build", "-S", cls.folder], check=True, stdout=subprocess.DEVNULL)

    def run_tests(self, *arguments, seconds=300.0):
        shown = []
        deadline = ctest_run.Deadline("stage small", seconds)
        results = ctest_run.run_tests(self.folder / "build", arguments, deadline, {}, shown.append)
        return results, shown

    def test_each_outcome_is_counted_and_a_failure_is_shown_whole(self):
        results, shown = self.run_tests("-LE", "long|odd")
        self.assertEqual((results.passed, results.skipped), (1, 1))
        self.assertEqual(sorted(results.failed),
                         ["small: crashes", "small: fails with much to say", "small: is not there"])
        self.assertIn("   skipped small: skips: no such device", shown)
        first = next(i for i, line in enumerate(shown) if line.startswith("   FAILED small: fails with much to say (Failed"))
        output = [line for line in shown[first + 1:] if line][:20001]
        self.assertEqual(output, [*map(str, range(1, 20001)), "the end"])

    def test_what_the_limit_ends_is_named_and_failed_and_none_of_it_goes_on(self):
        began = time.monotonic()
        results, shown = self.run_tests("-L", "long", seconds=5)
        self.assertLess(time.monotonic() - began, 300)
        self.assertEqual(results.failed, ["small: takes long"])
        self.assertIn("   ENDED stage small, which may take 5 s, was ended; these tests were running:", shown)
        self.assertIn("      small: takes long", shown)
        self.assertEqual([pid for pid in ctest_run.descendants(os.getpid())], [])

    def repeated(self, *names):
        for name in ("odd", "odder", "other_bits", "brings"):
            shutil.rmtree(self.folder / "build" / name, ignore_errors=True)
        results, shown = self.run_tests("-R", f"small: ({'|'.join(names)})$")
        deadline = ctest_run.Deadline("stage small", 300)
        ctest_run.repeat(self.folder / "build", results, deadline, {}, shown.append)
        return results, shown

    def test_a_failed_assertion_that_passes_alone_is_flaky(self):
        results, shown = self.repeated("odd", "odder")
        self.assertEqual((results.passed, results.failed), (2, []))
        self.assertEqual(sorted(results.flaky), ["small: odd", "small: odder"])
        self.assertEqual(shown.count("what odd said"), 1)

    def test_what_fails_again_has_failed(self):
        results, _ = self.repeated("fails with much to say")
        self.assertEqual((results.failed, results.flaky), (["small: fails with much to say"], []))

    def test_crashes_bits_and_fixtures_are_not_repeated_and_three_failures_neither(self):
        for names in (("crashes",), ("other_bits",), ("brings",), ("odd", "odder", "other_bits")):
            with self.subTest(names):
                results, shown = self.repeated(*names)
                self.assertEqual((len(results.failed), results.flaky), (len(names), []))
                self.assertFalse(any("once more" in line for line in shown))

    def test_more_than_two_flaky_tests_fail_the_run(self):
        for count, failures in ((2, 0), (3, 1)):
            row = stages.Row(stages.STAGES[0], results=ctest_run.Results(flaky=["odd"] * count))
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(stages.print_table([row]), failures)
            self.assertIn("   flaky odd: it failed, and passed", printed.getvalue())

    def test_no_tests_are_a_failure(self):
        results, shown = self.run_tests("-L", "nothing")
        self.assertEqual(results.failed, ["ctest"])
        self.assertTrue(any("though no test had failed" in line for line in shown))


class Selection(unittest.TestCase):
    def names(self, *arguments):
        return [stage.name for stage in stages.requested(arguments).stages]

    def test_sizes_and_parts(self):
        check = ["build", "fast", "slow", "cuda", "operator"]
        rest = ["images", "cluster", "asan", "fuzz", "tsan"]
        self.assertEqual(self.names(), check)
        self.assertEqual(self.names("--all"), check + rest)
        self.assertEqual(self.names("--fast"), ["fast"])
        self.assertEqual(self.names("--only", "tsan"), ["tsan"])
        self.assertEqual(self.names("--from", "cuda"), ["cuda", "operator"])
        self.assertEqual(self.names("--all", "--from", "operator"), ["operator", *rest])
        self.assertEqual(self.names("--from", "fuzz"), ["fuzz", "tsan"])
        self.assertTrue(stages.requested(["--all", "--strict"]).is_strict)
        self.assertEqual(stages.requested([]).limit, 80 * 60)

    def test_what_is_unknown_is_refused_with_what_there_is(self):
        for arguments, message in ((["--only", "fats"], "unknown stage 'fats'; the stages are build, fast, slow,"),
                                   (["--from", ""], "unknown stage ''; the stages are build,"),
                                   (["--quick"], "unknown argument '--quick'"),
                                   (["fast"], "unknown argument 'fast'"),
                                   (["--fast", "--only", "slow"], "exclude each other"),
                                   (["--all", "--fast"], "--all goes with --from alone"),
                                   (["--only"], "expected one argument")):
            with self.subTest(arguments), self.assertRaises(ValueError) as raised:
                stages.requested(arguments)
            self.assertIn(message, str(raised.exception))


class Lock(unittest.TestCase):
    def test_the_second_names_the_first_waits_and_gives_up_and_one_that_is_killed_holds_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "build/check.lock"
            script = f"import pathlib, stages, time; kept = stages.hold(pathlib.Path({str(path)!r}), 60); print('held', flush=True); time.sleep(600)"
            first = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
            self.addCleanup(first.stdout.close)
            self.addCleanup(first.wait)
            self.addCleanup(first.kill)
            self.assertEqual(first.stdout.readline(), "held\n")
            with contextlib.redirect_stdout(io.StringIO()) as printed, self.assertRaises(TimeoutError) as raised:
                stages.hold(path, 1)
            self.assertIn(f"waiting for another ./check of this clone (process {first.pid}, since ", printed.getvalue())
            self.assertIn(f"waited 1 s for another ./check of this clone (process {first.pid}, since ", str(raised.exception))
            first.kill()
            first.wait()
            stages.hold(path, 60).close()


class Commands(unittest.TestCase):
    def test_one_that_fails_is_named_and_so_is_one_beyond_its_time(self):
        with self.assertRaisesRegex(stages.StageFailed, "false ended with 1"):
            stages.run_command(["false"], ctest_run.Deadline("stage build", 600))
        with self.assertRaisesRegex(stages.StageFailed, "stage build, which may take 1 s, was ended while this ran: sleep 600"):
            stages.run_command(["sleep", "600"], ctest_run.Deadline("stage build", 1))

    def test_the_earlier_limit_ends_a_stage(self):
        for of_check, whose in ((5, "./check, which may take 5 s,"), (80 * 60, "stage build, which may take 60 s,")):
            deadline = min(ctest_run.Deadline("stage build", 60), ctest_run.Deadline("./check", of_check),
                           key=ctest_run.Deadline.left)
            self.assertEqual(deadline.whose, whose)


PRESETS = {"version": 6, "configurePresets": [{"name": "small", "generator": "Ninja", "binaryDir": "${sourceDir}/build/small"}]}
WAITING = """
cmake_minimum_required(VERSION 3.25)
project(waiting NONE)
add_custom_target(waits COMMAND bash -c "touch ${PROJECT_SOURCE_DIR}/waits; until [ -e ${PROJECT_SOURCE_DIR}/go ]; do sleep 0.1; done" VERBATIM)
add_custom_target(fails COMMAND bash -c "echo what is wrong; exit 3" VERBATIM)
add_custom_target(passes COMMAND true)
"""


class Builds(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "cmake").mkdir()
        shutil.copy2(ROOT / "cmake/build", self.folder / "cmake")
        (self.folder / "CMakePresets.json").write_text(json.dumps(PRESETS))
        (self.folder / "CMakeLists.txt").write_text(WAITING)

    def start(self, target):
        process = subprocess.Popen([self.folder / "cmake/build", "small", target], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(ctest_run.end, process)
        return process

    def started(self):
        """A build that is in the middle of its work."""
        process = self.start("waits")
        end = time.monotonic() + 300
        while not (self.folder / "waits").exists():
            self.assertLess(time.monotonic(), end, "the build does not begin")
            time.sleep(0.1)
        return process

    def test_the_second_in_a_folder_waits_until_the_first_has_ended(self):
        first = self.started()
        second = self.start("passes")
        self.assertEqual(second.stderr.readline(), "waiting for another build in build/small\n")
        self.assertIsNone(second.poll())
        (self.folder / "go").touch()
        self.assertEqual((first.wait(300), second.wait(300)), (0, 0))

    def test_one_that_was_killed_keeps_nobody_waiting(self):
        ctest_run.end(self.started(), patience=0)
        self.assertEqual(self.start("passes").wait(300), 0)

    def test_one_that_fails_shows_why(self):
        failing = self.start("fails")
        shown, _ = failing.communicate(timeout=300)
        self.assertNotEqual(failing.returncode, 0)
        self.assertIn("what is wrong", shown)


class Names(unittest.TestCase):
    def test_no_case_of_catch_has_a_semicolon_in_its_name_which_cmake_takes_for_the_end_of_it(self):
        for file in sorted((ROOT / "tests").rglob("*.cpp")):
            for case in re.finditer(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', file.read_text()):
                self.assertNotIn(";", case[1], f"{file}: {case[1]}")


@unittest.skipUnless(BUILD, "no build is given")
class Build(unittest.TestCase):
    def tests(self):
        """With their labels. A program that is not built has cases that are not known yet."""
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, capture_output=True)
        for test in json.loads(listed.stdout)["tests"]:
            labels = next((each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"), [])
            if "_NOT_BUILT" not in test["name"]:
                yield test, labels

    def test_each_test_belongs_to_one_stage(self):
        label_patterns = {stage.name: stage.tests[1] for stage in stages.STAGES
                          if stage.preset == "release" and stage.tests}
        self.assertEqual(list(label_patterns), ["fast", "slow", "operator", "images", "cluster"])
        for test, labels in self.tests():
            owners = [name for name, pattern in label_patterns.items()
                      if any(re.search(pattern, label) for label in labels)]
            self.assertEqual(len(owners), 1, f"{test['name']}, of labels {labels}, belongs to {owners}")

    def test_what_claims_bits_has_their_label(self):
        for test, labels in self.tests():
            if re.search("bit for bit|same bits|to the bit|changes no bit", test["name"]):
                self.assertTrue(any("bit_equal" in label for label in labels), f"{test['name']}: tag it [bit_equal]")


if __name__ == "__main__":
    unittest.main()
