"""The command line that all checks of the tree have."""
import sys
from pathlib import Path


def main(usage, check, self_test):
    """Prints what check(FOLDER), or self_test() for --self-test, finds, a line each. The exit code is 1 where there is any."""
    if len(sys.argv) != 2:
        sys.exit(usage)
    problems = self_test() if sys.argv[1] == "--self-test" else check(Path(sys.argv[1]))
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0
