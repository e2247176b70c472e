#!/usr/bin/env python3
"""Holds runner/ops against what docs/architecture.md says of kernels: their names stand in one list, kernel_list.inc. One
line for each file that lists them again, exit code 1.

usage: kernel_list.py RUNNER    check the tree
       kernel_list.py --self-test    list the kernels again in each way and see that it is found
"""
import re
import sys
import tempfile
from pathlib import Path

from command import main

LIST = Path("ops/kernel_list.inc")
ENTRY = re.compile(r"^TRAINYARD_KERNEL\(\w+, (\w+),", re.MULTILINE)
# A name as a member, an initializer or a declaration has it, and as `cpu::name` or `Kernels::name`; not a definition.
MENTION = re.compile(r"\b(?:\w+::|\.)(\w+)\b|\b(\w+)(?:\([^;{}]*\))?;")
# A file names the kernels of its own op, which are six for images. One that names a quarter of all of them is a list.
MOST = 1 / 4


def mentions(text):
    """The names that `text` mentions in code."""
    code = re.sub(r"//[^\n]*", "", text)
    return {name for match in MENTION.finditer(code) for name in match.groups() if name}


def check(runner):
    kernels = ENTRY.findall((runner / LIST).read_text())
    problems = [f"{LIST}: {name} stands there {kernels.count(name)} times" for name in sorted(set(kernels)) if kernels.count(name) > 1]
    if not kernels:
        problems.append(f"{LIST}: no line begins with TRAINYARD_KERNEL(")
    for file in sorted((runner / LIST.parent).rglob("*")):
        if file.suffix not in {".h", ".inc", ".cpp", ".cu", ".cuh"} or file == runner / LIST:
            continue
        again = mentions(file.read_text()) & set(kernels)
        if len(again) > MOST * len(kernels):
            problems.append(f"{file.relative_to(runner)}: names {len(again)} of the {len(kernels)} kernels; make it from {LIST}")
    return problems


def self_test():
    names = ["add", "cast", "fill", "matmul", "rope", "scale", "sum", "swiglu"]
    entries = "".join(f"TRAINYARD_KERNEL(void, {name}, (Tensor& x,\n                 Tensor& y), Little)\n" for name in names)
    made = "struct Kernels {\n#define TRAINYARD_KERNEL(result, name, arguments, scratch) decltype(&cpu::name) name;\n#include \"ops/kernel_list.inc\"\n};\n"

    def again(line):
        return "".join(line.replace("NAME", name) + "\n" for name in names[:3])

    cases = {  # what a further file says, and how many problems that is
        "what is made from the list": (made, 0),
        "an op that mentions two kernels": ("&Kernels::add, &Kernels::cast", 0),
        "definitions": (again("void NAME(Tensor& x) {\n  x;\n}"), 0),
        "a comment": (again("// cpu::NAME;"), 0),
        "a struct": (again("  decltype(&cpu::NAME) NAME;"), 1),
        "a table": (again("  .NAME = cuda::NAME,"), 1),
        "declarations": (again("void NAME(const Tensor& x,\n  Tensor& y);"), 1),
        "declarations by type": (again("std::remove_pointer_t<decltype(Kernels::NAME)> NAME;"), 1),
        "changes to a table": (again("kernels.NAME = simulated;"), 1),
    }
    failures = []
    for case, (text, expected) in cases.items():
        failures += self_test_of(case, {"kernel_list.inc": entries, "again.h": text}, expected)
    return failures + self_test_of("a kernel twice", {"kernel_list.inc": entries + entries.splitlines()[0]}, 1) + \
        self_test_of("no kernel", {"kernel_list.inc": "// none\n"}, 1)


def self_test_of(case, files, expected):
    with tempfile.TemporaryDirectory() as folder:
        ops = Path(folder) / "ops"
        ops.mkdir()
        for name, text in files.items():
            (ops / name).write_text(text)
        found = check(Path(folder))
    return [] if len(found) == expected else [f"self-test, {case}: expected {expected} problems, found {found}"]


sys.exit(main(__doc__, check, self_test))
