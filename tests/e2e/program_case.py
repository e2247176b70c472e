"""Tests that run a program and look at how it ended. Standard library only."""
import subprocess
import unittest


class ProgramCase(unittest.TestCase):
    """A subclass has `program`, `folder` (where it runs) and environment(**more)."""

    def run_it(self, *arguments, **more):
        return subprocess.run([self.program, *map(str, arguments)], env=self.environment(**more), cwd=self.folder, text=True,
                              capture_output=True, timeout=120)

    def run_well(self, *arguments, **more):
        ended = self.run_it(*arguments, **more)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.holds_no_secret(ended)
        return ended

    def fails(self, code, words, *arguments, **more):
        """It ends with `code` and one error, which has all the words."""
        ended = self.run_it(*arguments, **more)
        self.assertEqual(ended.returncode, code, ended.stderr)
        errors = [line for line in ended.stderr.splitlines() if line.startswith("trainyard: ")]
        self.assertEqual(len(errors), 1, ended.stderr)
        for word in words:
            self.assertIn(word, errors[0])
        self.holds_no_secret(ended)
        return ended

    def holds_no_secret(self, ended):
        for secret in self.secrets:
            self.assertNotIn(secret, ended.stdout + ended.stderr)
