#!/usr/bin/env python3
"""Counts the tests in the JUnit files that runners write.

    tests/count_results.py STATUS [--programs FOLDER] FILE…    prints how many passed and how many failed, as "12 0"

STATUS is the runner's exit status. A test that is a whole GoogleTest program, for which FOLDER has a file by its name
that was empty before, counts as the tests that it ran; if it failed and none of them did, or if it wrote nothing, as one
failure. A runner that failed without a failed test, a file that is missing or cut off, and a
file in which no test ran count as one failure each; the reason goes to standard error.
"""
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def count_file(path, programs=None):
    """How many passed and failed; skipped tests are neither."""
    passed = failed = 0
    for case in xml.parse(path).iter("testcase"):
        marks = {child.tag for child in case}
        if marks & {"failure", "error"}:
            good, bad = 0, 1
        # ctest and GoogleTest say it with an attribute, too.
        elif "skipped" not in marks and case.get("status") not in {"notrun", "disabled"}:
            good, bad = 1, 0
        else:
            good, bad = 0, 0
        if programs and f"{case.get('name')}.xml" in programs:
            good, bad = count_program(programs[f"{case.get('name')}.xml"], bad)
        passed += good
        failed += bad
    return passed, failed


def count_program(path, has_failed):
    """What a program says of its tests, where its end does not say otherwise."""
    try:
        good, bad = count_file(path)
    except xml.ParseError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return 0, 1
    if good + bad == 0:
        print(f"{path.name}: no test ran", file=sys.stderr)
        return 0, 1
    return good, bad or has_failed


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    status = int(sys.argv[1])
    files = sys.argv[2:]
    programs = None
    if files[0] == "--programs":
        programs = {path.name: path for path in Path(files[1]).glob("*.xml")}
        files = files[2:]
    passed = failed = 0
    for path in map(Path, files):
        reason = None
        try:
            good, bad = count_file(path, programs)
            if good + bad == 0:
                reason = "no test ran"
        except (OSError, xml.ParseError) as error:
            good = bad = 0
            reason = str(error)
        if reason:
            print(f"{path.name}: {reason}", file=sys.stderr)
            bad += 1
        passed += good
        failed += bad
    if status != 0 and failed == 0:
        print(f"no test failed, but the runner ended with {status}", file=sys.stderr)
        failed = 1
    print(passed, failed)


main()
