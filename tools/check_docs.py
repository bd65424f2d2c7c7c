#!/usr/bin/env python3
"""Keeps documents true. Checks of every Markdown file of the project:

- `<!-- cut: FILE NAME -->` before a code block: the block is what stands in FILE between lines that contain
  `[NAME]` and `[/NAME]` in a comment, without its common indentation.
- Every block of C++ has such a line before it: what is shown was compiled.
- `<!-- output: COMMAND -->` … `<!-- end -->`: what stands between is what the command prints. Commands:
  `belay settings`, `tools/check_rooms.py --markdown`.
- A relative link leads to a file that exists.

And of the whole tree: the acceptance scenarios that files name are those of docs/scenarios.md, and no other such list is
quoted (B-, C-, E-, F-, Q-, R- and a number): whoever reads a name must be able to look it up.

    tools/check_docs.py [--belay PROGRAM] [--write] [FILE…]

`--write` mends blocks instead of reporting them.
"""
import argparse
import re
import subprocess
import sys
import textwrap
from pathlib import Path

default_root = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description="Keeps documents true.")
parser.add_argument("--root", type=Path, default=default_root)
parser.add_argument("--belay", type=Path, default=default_root / "build/dev/src/belay")
parser.add_argument("--write", action="store_true")
parser.add_argument("files", nargs="*", type=Path)
arguments = parser.parse_args()
root = arguments.root.resolve()

commands = {
    "belay settings": [str(arguments.belay.resolve()), "settings"],
    "tools/check_rooms.py --markdown": [str(root / "tools/check_rooms.py"), "--markdown"],
}
problems = []


def cut(file, name):
    lines = (root / file).read_text().splitlines()
    marks = [i for i, line in enumerate(lines) if re.search(rf"(//|#).*\[/?{re.escape(name)}\]", line)]
    if len(marks) != 2:
        raise ValueError(f"{file} has no part [{name}]")
    return textwrap.dedent("\n".join(lines[marks[0] + 1 : marks[1]])).strip("\n")


def check(path):
    text = path.read_text()
    where = path.relative_to(root)

    def replace_cut(match):
        try:
            wanted = cut(match["file"], match["name"])
        except (OSError, ValueError) as error:
            problems.append(f"{where}: {error}")
            return match[0]
        if match["body"].strip("\n") != wanted and not arguments.write:
            problems.append(f"{where}: the block cut from {match['file']} [{match['name']}] differs from it")
        return f"{match['head']}{wanted}\n```"

    def replace_output(match):
        command = commands.get(match["command"])
        if command is None:
            problems.append(f"{where}: there is no command {match['command']!r} in tools/check_docs.py")
            return match[0]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            problems.append(f"{where}: {match['command']} failed: {ran.stderr.strip()}")
            return match[0]
        wanted = ran.stdout.strip("\n")
        if match["body"].strip("\n") != wanted and not arguments.write:
            problems.append(f"{where}: the output of `{match['command']}` is another one; --write mends it")
        return f"{match['head']}\n\n{wanted}\n\n<!-- end -->"

    fresh = re.sub(
        r"(?P<head><!-- cut: (?P<file>\S+) (?P<name>\S+) -->\n+```\w*\n)(?P<body>.*?)\n?```", replace_cut, text, flags=re.S
    )
    fresh = re.sub(
        r"(?P<head><!-- output: (?P<command>[^\n]*?) -->)\n(?P<body>.*?)<!-- end -->", replace_output, fresh, flags=re.S
    )
    if arguments.write and fresh != text:
        path.write_text(fresh)
        print(f"{where}: mended")

    for found in re.finditer(r"^```(?:cpp|c\+\+)$", fresh, flags=re.M):
        if not re.search(r"<!-- cut: \S+ \S+ -->\n+$", fresh[: found.start()]):
            line = fresh.count("\n", 0, found.start()) + 1
            problems.append(f"{where}: line {line}: a block of C++ that is cut from no file")

    prose = re.sub(r"```.*?```", "", fresh, flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        if not (path.parent / target.split("#")[0]).exists():
            problems.append(f"{where}: a link leads nowhere: {target}")


def documents():
    if arguments.files:
        return [each.resolve() for each in arguments.files]
    return [
        each
        for each in sorted(root.rglob("*.md"))
        if not {"build", "node_modules"} & set(each.relative_to(root).parts)
    ]


def check_scenarios():
    """Both ways: a name without a line, a line without a name."""
    page = root / "docs/scenarios.md"
    known = set(re.findall(r"^\| (AS-\d\d) \|", page.read_text(), flags=re.M)) if page.exists() else set()
    named = set()
    suffixes = {".cpp", ".hpp", ".mjs", ".js", ".ts", ".tsx", ".py", ".sh", ".md", ".txt", ""}
    for folder in ("src", "include", "tests", "web", "docs", "examples", "bench", "scripts"):
        for path in sorted((root / folder).rglob("*")):
            parts = path.relative_to(root).parts
            if {"build", "dist", "node_modules", "corpus", "lint"} & set(parts) or path == page:
                continue
            if path.suffix not in suffixes or not path.is_file():
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                where = f"{path.relative_to(root)}:{number}"
                for name in re.findall(r"\bAS-?(\d\d)(?=\b|_)", line):
                    named.add(f"AS-{name}")
                    if f"AS-{name}" not in known:
                        problems.append(f"{where}: docs/scenarios.md has no line for AS-{name}")
                for other in re.findall(r"\b[BCEFQR]-\d{2,3}\b", line):
                    problems.append(f"{where}: {other} can be looked up nowhere")
    for name in sorted(known - named):
        problems.append(f"docs/scenarios.md: no file names {name}")


checked = documents()
for each in checked:
    check(each)
if not arguments.files:
    check_scenarios()
for each in problems:
    print(each)
print(f"docs: {len(checked)} files, {len(problems)} findings")
sys.exit(1 if problems else 0)
