#!/usr/bin/env python3
"""Checks that each message which a page quotes is one that a program can print.

usage: check_quotes.py ROOT
       check_quotes.py --self-test

A quote is code with a space in it, in a column of a table whose heading is "message", "the message", "what it says" or
"says, for example". Each four or more plain words in a row of it must stand so in one text of the sources, but for one at
either end, which may be a name: these, numbers and punctuation are put in at run time, and a message is often put together
of several texts. Prints one line for each that does not.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

HEADINGS = {"message", "the message", "what it says", "says, for example"}
SOURCES = ("common/*.cpp", "runner/**/*.cpp", "runner/**/*.h", "operator/**/*.cpp", "operator/**/*.h", "bench/gpu/*", "bench/*.py")
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*f?"(?:[^"\\\n]|\\.)*")*')
PUT_IN = re.compile(r"\{[^{}]*\}|\$\{[^}]*\}|\$\w+|\\n")
# What the system, its library and Python say.
ELSEWHERE = [*map(os.strerror, range(1, 134)), "cannot create directories", "No module named"]
FEWEST = 4


def quotes_of(page):
    """(line, quote) of a page."""
    headings = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("|"):
            headings = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if headings is None:
            headings = cells
            continue
        for heading, cell in zip(headings, cells):
            if heading in HEADINGS:
                yield from ((number, quote) for quote in re.findall(r"`([^`]+)`", cell) if " " in quote)


def runs_of(text):
    """The plain words of a text that follow one another, as " this build has no cuda ": a name, a number, a path, a
    single letter and punctuation end a run."""
    for part in re.split(r"[^\w\s./'’-]|(?<=\S)[.,;:](?=\s|$)|…", text):
        run = []
        for word in [*part.split(), ""]:
            if re.fullmatch(r"[A-Za-z’']{2,}", word):
                run.append(word.lower())
            elif run:
                yield f" {' '.join(run)} "
                run = []


def texts_of(root):
    """All that the sources hold in quotes, a run of words a line."""
    runs = {run for text in ELSEWHERE for run in runs_of(text)}
    for file in (file for pattern in SOURCES for file in root.glob(pattern) if file.is_file()):
        for match in LITERALS.finditer(file.read_text(errors="replace")):
            text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0]))
            runs.update(runs_of(PUT_IN.sub(" … ", text)))
    return "\n".join(runs)


def is_printed(run, texts):
    words = run.split()
    return any(f" {' '.join(part)} " in texts for part in (words, words[1:], words[:-1]))


def problems_of(root):
    texts = texts_of(root)
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for line, quote in quotes_of(page) if page.is_file() else ():
            for run in runs_of(quote):
                if len(run.split()) >= FEWEST and not is_printed(run, texts):
                    yield f"{page.name}:{line}: no program prints '{run.strip()}' (`{quote}`)"


def self_test():
    page = "| code | says, for example |\n|---|---|\n" + "".join(f"| 2 | `{quote}` |\n" for quote in (
        "a.txt: 7 tokens, but one sequence takes 65", "checkpoint.dir: … cannot be written", "rank 1 did not come within …",
        "ck cannot be written: No space left on device", "which this build does not offer yet; use …"))
    source = ('fail("{}: {} tokens, but one sequence "\n     "takes {}"); f("{} {} cannot be written: {}");'
              'f("{} did not come within {}"); f("which this {} does not offer yet");')
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in {"docs/a.md": page, "runner/base/a.cpp": source}.items():
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text)
        found = list(problems_of(root))
    if len(found) != 1 or "'which this build does not offer yet'" not in found[0]:
        sys.exit(f"self-test: found {found}")


if len(sys.argv) != 2:
    sys.exit(__doc__)
if sys.argv[1] == "--self-test":
    self_test()
else:
    problems = list(problems_of(Path(sys.argv[1])))
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)
