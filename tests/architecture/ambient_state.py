#!/usr/bin/env python3
"""Holds what runner/ or operator/ keeps in no argument and no object (thread_local, statics that change, globals) against
the page that says why: one line for each place whose file docs/architecture.md does not name under "What a thread
carries" or "What a process has once", and for each file that is named there and keeps nothing; exit code 1.

usage: ambient_state.py FOLDER         check a program's tree
       ambient_state.py --self-test    add each kind of state to a small tree and see that it is found
"""
import re
import sys
import tempfile
from pathlib import Path

from command import main

SECTIONS = ("## What a thread carries\n", "## What a process has once\n")
CONSTANT = r"(?!const\b|constexpr\b|inline\b)"
STATE = re.compile(r"^\s*(?:inline )?thread_local\b"
                   # in a function: with a value, or without one; what has ( behind its name is a function
                   rf"|^\s+static {CONSTANT}[\w:<>,&* ]+?\b\w+ ?(?:;|=|\{{)"
                   # at the beginning of a line, and so in no class and no function
                   rf"|^(?:static |inline )?{CONSTANT}(?!using\b|namespace\b|return\b|struct\b|class\b|enum\b|extern\b|friend\b|typedef\b)"
                   r"[\w:]+(?:<[^()]*>)? \**\w+(?: GUARDED_BY\(\w+\))?(?: = [^()]*|\{[^()]*\})?;")
ONCE = re.compile(r"\bstd::once_flag\b")  # it has something done once, and says nothing else
LINK = re.compile(r"\]\(\.\./(\w+)/([\w/]+)\.\w+\)")
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def places_of(program):
    """(unit, place and line) of all state."""
    for file in sorted(program.rglob("*")):
        if file.suffix not in SOURCES:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if STATE.match(line) and not ONCE.search(line):
                yield str(file.relative_to(program).with_suffix("")), f"{file.relative_to(program)}:{number}: {line.strip()}"


def named_on(page, program):
    """Units of the program that the rows of the two sections link to, but for their last column."""
    text = page.read_text()
    sections = [text.partition(heading)[2].partition("\n## ")[0] for heading in SECTIONS]
    return {unit for section in sections for line in section.splitlines() if line.startswith("|")
            for folder, unit in LINK.findall(line.rpartition(" | ")[0]) if folder == program}


def check(program):
    named, places = named_on(program.parent / "docs/architecture.md", program.name), list(places_of(program))
    problems = [f"{place}: docs/architecture.md does not say why" for unit, place in places if unit not in named]
    unused = named - {unit for unit, _ in places}
    return problems + [f"docs/architecture.md: {unit} keeps nothing" for unit in sorted(unused)]


def self_test():
    page = ("".join(f"{heading}\n| what | by | asked by |\n|---|---|---|\n| it | [`X`](../runner/{unit}.h) | [`y`](../runner/a/y.h) |\n\n"
                    for heading, unit in zip(SECTIONS, ("a/thread", "a/process"))) + "## Next\n[`z`](../runner/a/z.h)\n")
    here = {"a/thread.cpp": "thread_local int depth = 0;\n", "a/process.cpp": "Cache& cache() {\n  static Cache cache;\n  return cache;\n}\n"}
    cases = {  # a further file, and how many problems that is
        "nothing more": ("", 0),
        "constants": ("const int most = 3;\nconstexpr int least = 1;\nint f() {\n  static const int once = g();\n  static constexpr int two = 2;\n}\n", 0),
        "members and functions": ("struct S {\n  int x = 0;\n  static int of(int y);\n  static int twice(int y) { return 2 * y; }\n};\nint h(int x);\n", 0),
        "what is done once": ("void f() {\n  static std::once_flag done;\n}\n", 0),
        "a thread's": ("thread_local std::map<int, int> all;\n", 1),
        "a thread's in a function": ("void f() {\n  thread_local std::map<int, int> all;\n}\n", 1),
        "a static with a value": ("void f() {\n  static auto& all = *new All;\n}\n", 1),
        "a static without one": ("void f() {\n  static std::vector<int> all;\n}\n", 1),
        "a global": ("int count = 0;\n", 1),
        "a global of a class": ("std::atomic<int> count{0};\n", 1),
        "a static global": ("static int count;\n", 1),
        "a global with a lock": ("int count GUARDED_BY(lock) = 0;\n", 1),
    }
    failures = []
    for case, (text, expected) in cases.items():
        failures += self_test_of(case, page, {**here, "a/z.cpp": text}, expected)
    failures += self_test_of("state that has gone", page, {"a/thread.cpp": here["a/thread.cpp"]}, 1)
    return failures


def self_test_of(case, page, files, expected):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"docs/architecture.md": page, **{f"runner/{name}": text for name, text in files.items()}}.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        found = check(Path(folder) / "runner")
    return [] if len(found) == expected else [f"self-test, {case}: expected {expected} problems, found {found}"]


sys.exit(main(__doc__, check, self_test))
