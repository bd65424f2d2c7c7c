#!/usr/bin/env python3
"""Proves that tests/count_results.py finds what went wrong, in the words of every runner there is."""
import subprocess
import sys
import tempfile
from pathlib import Path

program = Path(__file__).resolve().parents[1] / "count_results.py"

NODE = """<?xml version="1.0" encoding="utf-8"?>
<testsuites>
	<testsuite name="a" tests="3" failures="1" skipped="1">
		<testcase name="good" classname="test"/>
		<testcase name="not today" classname="test"><skipped type="skipped" message="true"/></testcase>
		<testcase name="bad" classname="test" failure="no"><failure type="testCodeFailure" message="no">no</failure></testcase>
	</testsuite>
	<testcase name="alone" classname="test"/>
	<!-- pass 2 -->
</testsuites>
"""
CTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="4" failures="1" disabled="1" skipped="1">
	<testcase name="good" status="run"><system-out>1 passed &lt;failure/&gt;</system-out></testcase>
	<testcase name="bad" status="fail"><failure message="Timeout"/><system-out></system-out></testcase>
	<testcase name="skipped" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
	<testcase name="disabled" status="disabled"/>
</testsuite>
"""
GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" disabled="1" errors="0" name="AllTests">
  <testsuite name="Sim" tests="3" failures="1" disabled="1" skipped="0" errors="0">
    <testcase name="good" status="run" result="completed" classname="Sim"/>
    <testcase name="off" status="notrun" result="suppressed" classname="Sim"/>
    <testcase name="bad" status="run" result="completed" classname="Sim"><failure message="a" type=""/><failure message="b" type=""/></testcase>
  </testsuite>
</testsuites>
"""
VITEST = """<?xml version="1.0" encoding="UTF-8" ?>
<testsuites name="vitest tests" tests="2" failures="0" errors="0">
    <testsuite name="a.test.ts" tests="2" failures="0" errors="0" skipped="0">
        <testcase classname="a.test.ts" name="one"></testcase>
        <testcase classname="a.test.ts" name="two"></testcase>
    </testsuite>
</testsuites>
"""
SKIPPED = '<testsuite><testcase name="a"><skipped/></testcase></testsuite>'

# What ctest says of a program of GoogleTest that is one test, beside another test.
GOOD_PROGRAM = '<testsuite><testcase name="program" status="run"/><testcase name="script" status="run"/></testsuite>'
BAD_PROGRAM = GOOD_PROGRAM.replace('status="run"/>', 'status="fail"><failure message=""/></testcase>', 1)

# the runner's status, its file, what the program has written, what is counted
PROGRAMS = [
    (0, GOOD_PROGRAM, VITEST, "3 0"),
    (8, BAD_PROGRAM, GTEST, "2 1"),
    # A program that crashed at its end, in the middle, or that never ran.
    (8, BAD_PROGRAM, VITEST, "3 1"),
    (8, BAD_PROGRAM, "", "1 1"),
    (0, GOOD_PROGRAM, "", "1 1"),
    (0, GOOD_PROGRAM, "<testsuites/>", "1 1"),
    (0, GOOD_PROGRAM, GTEST, "2 1"),
    # Not asked for by the filter of this run.
    (0, VITEST, "", "2 0"),
]

# the runner's status, its files (None: not written), what is counted
CASES = [
    (1, [NODE], "2 1"),
    (8, [CTEST], "1 1"),
    (1, [GTEST], "1 1"),
    (0, [VITEST], "2 0"),
    (0, [VITEST, VITEST], "4 0"),
    # A failed test is one, whatever the runner says of itself; so is a runner that failed without one.
    (0, [NODE], "2 1"),
    (1, [VITEST], "2 1"),
    # No test.
    (0, ["<testsuites/>"], "0 1"),
    (0, [SKIPPED], "0 1"),
    (0, [VITEST, "<testsuites/>"], "2 1"),
    # No file, half a file, none of the kind.
    (0, [None], "0 1"),
    (0, [VITEST, None], "2 1"),
    (0, [""], "0 1"),
    (0, [VITEST[: len(VITEST) // 2]], "0 1"),
    (0, [VITEST[: VITEST.rindex("</testsuites>")]], "0 1"),
    (0, ["# pass 12\n# fail 0\n"], "0 1"),
]

wrong = 0
for status, files, counted in CASES:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.xml" for number in range(len(files))]
        for path, text in zip(paths, files):
            if text is not None:
                path.write_text(text)
        ran = subprocess.run([program, str(status), *paths], capture_output=True, text=True)
        if ran.returncode != 0 or ran.stdout != f"{counted}\n":
            wrong += 1
            print(f"{status} {files}: {ran.stdout!r} instead of {counted!r}\n{ran.stderr}")
for status, file, inside, counted in PROGRAMS:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ctest.xml"
        path.write_text(file)
        programs = Path(folder) / "programs"
        programs.mkdir()
        (programs / "program.xml").write_text(inside)
        ran = subprocess.run([program, str(status), "--programs", programs, path], capture_output=True, text=True)
        if ran.returncode != 0 or ran.stdout != f"{counted}\n":
            wrong += 1
            print(f"{status} {file} {inside}: {ran.stdout!r} instead of {counted!r}\n{ran.stderr}")
print(f"{len(CASES) + len(PROGRAMS)} results, {wrong} counted wrongly")
sys.exit(1 if wrong else 0)
