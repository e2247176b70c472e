#!/usr/bin/env python3
"""Holds the #include lines of runner/ or operator/ against docs/architecture.md; one line for each that breaks a rule,
exit code 1.

usage: floors.py FOLDER         check a program's tree
       floors.py --self-test    break each rule in a small tree and see that it is found

A folder may include itself, the folders above its line in the program's CMakeLists.txt (lowest first), and of those only
what its own CMakeLists.txt links, directly or through PUBLIC links. common/ is for both programs, and neither includes the
other's code. No unit (a header and the sources of its name) includes itself by way of others.
"""
import re
import sys
import tempfile
from pathlib import Path

from command import main

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
ACCELERATOR = re.compile(r"^(cuda|cublas|cudnn|curand|nccl|nvml|nvtx)[\w./]*\.(h|hpp|cuh)$|^(cuda|cub|thrust|cutlass)/|^nvtx3/")
# The device's own folders; above them a Tensor knows its device, and nobody else asks.
MAY_INCLUDE_ACCELERATOR = {"tensor", "ops", "comm"}
# Below models/ in order, yet not theirs: a model file knows of no parallelism.
TARGET_PREFIX = {"runner": "trainyard_", "operator": "operator_"}
FORBIDDEN = {"decide": {"kube"},
             "models": {"comm", "rendezvous", "launch", "shard", "config", "context_parallel", "tensor_parallel"},
             "nn": {"comm", "rendezvous", "launch", "config"},
             "autograd": {"comm", "rendezvous", "launch", "config"}}



def without_comments(cmake):
    return re.sub(r"#.*", "", cmake)


def floors_of(program):
    return re.findall(r"add_subdirectory\((\w+)\)", without_comments((program / "CMakeLists.txt").read_text()))


def links_of(folder):
    """(PUBLIC, PRIVATE) floors that the folder's target links; a program's are private."""
    text = without_comments((folder / "CMakeLists.txt").read_text())
    prefix = TARGET_PREFIX[folder.parent.name]
    links = {"PUBLIC": set(), "PRIVATE": set()}
    for body in re.findall(r"(?:trainyard_floor|operator_part|target_link_libraries)\(([^)]*)\)", text):
        scope = None
        for word in body.split():
            if word in links:
                scope = word
            elif scope and word.startswith(prefix):
                links[scope].add(word.removeprefix(prefix))
    return links["PUBLIC"], links["PRIVATE"]


def reachable(floor, links):
    found, todo = set(), [*links[floor][0], *links[floor][1]]
    while todo:
        name = todo.pop()
        if name in links and name not in found:
            found.add(name)
            todo += links[name][0]
    return found


def broken_rule(folder, quoted, angled, order, links):
    """What is wrong with one #include line of `folder`; None where nothing is."""
    header = quoted or angled
    if ACCELERATOR.match(header):
        return None if folder in MAY_INCLUDE_ACCELERATOR else "an accelerator's header outside tensor/, ops/ and comm/"
    if not quoted:
        return None
    floor = header.split("/")[0]
    if "/" not in header or floor not in [*order, "common"]:
        return 'a header in quotes is named from the top of its program on: "floor/file.h"'
    if floor in (folder, "common"):
        return None
    if order.index(floor) > order.index(folder):
        return f"upward: {floor}/ stands below {folder}/ in CMakeLists.txt"
    if floor in FORBIDDEN.get(folder, ()):
        return f"{folder}/ knows nothing of {floor}/"
    if floor not in reachable(folder, links):
        return f"{folder}/CMakeLists.txt does not link {floor}/"
    return None


def units_of(program):
    """The units that each unit includes."""
    units = {}
    for file in sorted(program.rglob("*")):
        if file.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        unit = str(file.relative_to(program).with_suffix(""))
        headers = [match[1] for match in map(INCLUDE.match, file.read_text().splitlines()) if match and match[1]]
        units.setdefault(unit, set()).update(str(Path(header).with_suffix("")) for header in headers)
    return {unit: (included & units.keys()) - {unit} for unit, included in units.items()}


def circle_in(units):
    """Units that include one another in a ring; none where there is no such ring."""
    done = set()

    def visit(unit, way):
        if unit in way:
            return way[way.index(unit):]
        if unit in done:
            return None
        for included in sorted(units[unit]):
            if ring := visit(included, [*way, unit]):
                return ring
        done.add(unit)
        return None

    return next((ring for unit in units if (ring := visit(unit, []))), None)


def check(program):
    order = floors_of(program)
    links = {floor: links_of(program / floor) for floor in order}
    problems = [f"{path.name}/: no line in {program.name}/CMakeLists.txt" for path in sorted(program.iterdir()) if path.is_dir() and path.name not in order]
    for floor in order:
        for file in sorted((program / floor).rglob("*")):
            if file.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                problem = match and broken_rule(floor, match[1], match[2], order, links)
                if problem:
                    problems.append(f"{file.relative_to(program.parent)}:{number}: {line.strip()}: {problem}")
    if ring := circle_in(units_of(program)):
        problems.append(f"{program.name}/: a circle of units: {' -> '.join([*ring, ring[0]])}")
    return problems


def self_test():
    good = {
        "CMakeLists.txt": "# lowest first\nadd_subdirectory(base)\nadd_subdirectory(tensor)\nadd_subdirectory(comm)\nadd_subdirectory(models)\nadd_subdirectory(train)\n",
        "base/CMakeLists.txt": "trainyard_floor(base SOURCES a.cpp)",
        "tensor/CMakeLists.txt": "trainyard_floor(tensor SOURCES a.cpp PUBLIC trainyard_base)",
        "comm/CMakeLists.txt": "trainyard_floor(comm SOURCES a.cpp PRIVATE trainyard_tensor)",
        "models/CMakeLists.txt": "trainyard_floor(models SOURCES a.cpp PUBLIC trainyard_tensor trainyard_comm)",
        "train/CMakeLists.txt": "trainyard_floor(train SOURCES a.cpp\n  PUBLIC trainyard_comm  # and what it brings\n  PRIVATE fmt::fmt)",
        "base/a.cpp": '#include "base/a.h"\n#include <string>\n',
        "base/b.h": '#include "base/a.h"\n',
        "base/a.h": "",
        "tensor/a.h": '#include "base/a.h"\n#include <cuda_runtime.h>\n',
        "train/a.cpp": '#include "comm/a.h"\n',
    }
    bad = {  # what each adds, and what must be said of it
        "upward": ("base/b.cpp", '#include "tensor/a.h"\n', "upward"),
        "upward, indented, in a kernel": ("tensor/cuda/b.cu", '  #  include "train/a.h"\n', "upward"),
        "a model that communicates": ("models/b.cpp", '#include "comm/a.h"\n', "models/ knows nothing of comm/"),
        "a private link of another floor": ("train/b.cpp", '#include "tensor/a.h"\n', "does not link tensor/"),
        "CUDA in the loop": ("train/b.h", "#include <cuda_runtime.h>\n", "accelerator"),
        "NCCL in a model": ("models/b.h", "#include <nccl.h>\n", "accelerator"),
        "a header without its folder": ("comm/b.cpp", '#include "a.h"\n', "named from the top of its program on"),
        "two units that include each other": ("base/a.cpp", '#include "base/b.h"\n', "base/a -> base/b -> base/a"),
        "a folder that nobody builds": ("extra/b.cpp", "", "no line in runner/CMakeLists.txt"),
    }
    failures = []
    for name, (file, text, expected) in {"nothing wrong": (None, None, None), **bad}.items():
        with tempfile.TemporaryDirectory() as folder:
            runner = Path(folder) / "runner"
            for path, content in {**good, **({file: text} if file else {})}.items():
                (runner / path).parent.mkdir(parents=True, exist_ok=True)
                (runner / path).write_text(content)
            found = check(runner)
        if (found != []) if file is None else (len(found) != 1 or expected not in found[0]):
            failures.append(f"self-test, {name}: expected {expected!r}, found {found}")
    return failures


sys.exit(main(__doc__, check, self_test))
