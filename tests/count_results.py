#!/usr/bin/env python3
"""Counts the tests in the JUnit files that runners write.

    tests/count_results.py STATUS FILE…    prints how many passed and how many failed, as "12 0"

STATUS is the runner's exit status. A runner that failed without a failed test, a file that is missing or cut off, and a
file in which no test ran count as one failure each; the reason goes to standard error.
"""
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def count_file(path):
    """How many passed and failed; skipped tests are neither."""
    passed = failed = 0
    for case in xml.parse(path).iter("testcase"):
        marks = {child.tag for child in case}
        if marks & {"failure", "error"}:
            failed += 1
        # ctest and GoogleTest say it with an attribute, too.
        elif "skipped" not in marks and case.get("status") not in {"notrun", "disabled"}:
            passed += 1
    return passed, failed


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    status = int(sys.argv[1])
    passed = failed = 0
    for path in map(Path, sys.argv[2:]):
        reason = None
        try:
            good, bad = count_file(path)
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
