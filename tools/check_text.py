#!/usr/bin/env python3
"""Looks for words that must not be in the tree.

    tools/check_text.py sleeps       tests wait for events, they do not sleep
    tools/check_text.py unfinished   nothing is left for "now": TODO(now)
    tools/check_text.py revisions    only src/protocol compares revisions; others ask for a fact by its name

Where a test has to sleep, tests/lint/sleeps_allowed.txt says where and why.
"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parent.parent
SOURCES = {".cpp", ".hpp", ".py", ".sh", ".mjs", ".js", ".ts", ".txt", ".md", ".cmake", ""}

SLEEPS = {
    ".cpp": r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>:])sleep\s*\(",
    ".hpp": r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>:])sleep\s*\(",
    ".py": r"\btime\.sleep\b",
    ".sh": r"(^|[;&|(])\s*sleep\s+[\d$]",
    "": r"(^|[;&|(])\s*sleep\s+[\d$]",
    ".mjs": r"await\s+(sleep|delay)\s*\(|setTimeout\(\s*(resolve|done|r)\b",
    ".ts": r"await\s+(sleep|delay)\s*\(|setTimeout\(\s*(resolve|done|r)\b",
}


def files(*folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            parts = path.relative_to(root).parts
            if path.is_file() and path.suffix in SOURCES and not {"build", "node_modules", "corpus"} & set(parts):
                yield path


def lines(path):
    try:
        return list(enumerate(path.read_text().splitlines(), 1))
    except UnicodeDecodeError:
        return []


def sleeps():
    allowed = set()
    listed = root / "tests/lint/sleeps_allowed.txt"
    for line in listed.read_text().splitlines() if listed.exists() else []:
        if line and not line.startswith("#"):
            file, text, _reason = (each.strip() for each in line.split(" | "))
            allowed.add((file, text))
    unused = set(allowed)
    for path in files("tests"):
        pattern = SLEEPS.get(path.suffix)
        if not pattern or path.is_relative_to(root / "tests/lint"):  # where the cases of this check live
            continue
        name = path.relative_to(root).as_posix()
        for number, line in lines(path):
            if not re.search(pattern, line):
                continue
            if (name, line.strip()) in allowed:
                unused.discard((name, line.strip()))
            else:
                yield f"{name}:{number}: {line.strip()}"
    for name, text in sorted(unused):
        yield f"tests/lint/sleeps_allowed.txt: {name} has no line «{text}» any more"


def unfinished():
    word = "TODO" + "(now)"
    for path in files("src", "include", "tests", "examples", "bench", "scripts", "cmake", "docs"):
        for number, line in lines(path):
            if word in line:
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


# Naming a revision is the first half of comparing it. The compiler refuses to order two of them.
COMPARED = r"(==|!=|<=>?|>=|<|>)"
REVISION = r"[\w:]*\b(newest|assumed)_revision\b"
DATE = r'"20\d\d-\d\d-\d\d"'
REVISIONS = "|".join(
    [
        r"\br20\d\d_\d\d_\d\d\b",
        rf"{COMPARED}\s*({REVISION}|{DATE})",
        rf"({REVISION}|{DATE})\s*{COMPARED}",
        rf"static_cast<[\w:]+>\([^()]*\brevision(\(\))?\)\s*{COMPARED}",
    ]
)


def revisions():
    for path in files("src", "include", "examples", "bench"):
        if path.suffix not in {".cpp", ".hpp"} or path.is_relative_to(root / "src/protocol"):
            continue
        for number, line in lines(path):
            if re.search(REVISIONS, re.sub(r"//.*", "", line)):
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


checks = {"sleeps": sleeps, "unfinished": unfinished, "revisions": revisions}
if len(sys.argv) < 2 or sys.argv[1] not in checks:
    sys.exit(__doc__)
found = list(checks[sys.argv[1]]())
for each in found:
    print(each)
print(f"{sys.argv[1]}: {len(found)} findings")
sys.exit(1 if found else 0)
