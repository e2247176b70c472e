#!/usr/bin/env python3
"""Checks that relative links of pages lead to a file, and #anchors to a heading of it; other hosts are not asked.

usage: check_links.py PAGE.md...
       check_links.py --self-test
"""
import re
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?\s*\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)


def anchors_of(text):
    """What GitHub calls the headings: lower case, punctuation gone, spaces as hyphens, a number from the second on."""
    anchors = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = "".join("-" if c == " " else c for c in words if c.isalnum() or c in " -_")
        number, anchor = 0, slug
        while anchor in anchors:
            number += 1
            anchor = f"{slug}-{number}"
        anchors.add(anchor)
    return anchors


def problems_of(page):
    text = page.read_text()
    prose = CODE.sub("", FENCE.sub(lambda block: "\n" * block[0].count("\n"), text))
    for match in LINK.finditer(prose):
        where = f"{page.name}:{prose.count(chr(10), 0, match.start()) + 1}: {match[1]}"
        if re.match(r"[a-z]+:", match[1]):
            continue
        path, _, anchor = match[1].partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{where}: no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors_of(target.read_text())):
            yield f"{where}: no such heading"


def self_test():
    pages = {  # text, and the links of it that lead nowhere
        "# A `b`, c: [d](x)\n[1](#a-b-c-d) [2](#e)": ["x.md:1: x: no such file", "x.md:2: #e: no such heading"],
        "[here](x.md#twice-1) [https](https://example.org/#x)\n## Twice\n## Twice\n": [],
        "`[code](gone.md)`\n```\n[fence](gone.md)\n```\n[gone](gone.md)": ["x.md:5: gone.md: no such file"],
    }
    for text, expected in pages.items():
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "x.md"
            page.write_text(text)
            found = list(problems_of(page))
        if found != expected:
            yield f"self-test: {text!r}: expected {expected}, found {found}"


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    problems = list(self_test()) if arguments == ["--self-test"] else [
        problem for page in arguments for problem in problems_of(Path(page))]
    print("\n".join(problems) or "all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
