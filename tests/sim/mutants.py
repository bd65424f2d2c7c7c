#!/usr/bin/env python3
"""Bugs that the simulation has to find, each as a change of one place of the engine.

  mutants.py list              their names and the files they are in
  mutants.py make NAME OUT     writes the file with the bug in it
  mutants.py find PROGRAM      runs the simulation that was built with it; fails unless a promise breaks in time
"""
import os
import re
import subprocess
import sys

source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src")
worlds = 1000

mutants = {
    # A wake-up that comes while the follower is busy is forgotten, and nobody repeats it.
    "lost_wake_up": (
        "engine/follower.cpp",
        "    has_news_ = true;\n    advance(out);",
        "    if (is_reading_ || is_writing_)\n        return;\n    has_news_ = true;\n    advance(out);",
    ),
    # One event more than has arrived counts as delivered.
    "delivered_too_far": (
        "engine/follower.cpp",
        "delivered_ = std::max(delivered_, std::prev(open)->sequence);",
        "delivered_ = std::max(delivered_, std::prev(open)->sequence + 1);",
    ),
    # An answer counts as delivered when it is written.
    "delivered_when_written": (
        "engine/follower.cpp",
        "    if (reason == close_reason::finished) // whether the rest arrives is told when it has\n        note(out, false);",
        "    if (reason == close_reason::finished) {\n        delivered_ = position_;\n        note(out, false);\n    }",
    ),
    # The answer is in the log twice.
    "answered_twice": (
        "engine/producer.cpp",
        "        events.push_back(answers_.front());",
        "        events.insert(events.end(), 2, answers_.front());",
    ),
}


def make(name, out):
    path, right, wrong = mutants[name]
    with open(os.path.join(source, path)) as file:
        text = file.read()
    if text.count(right) != 1:
        sys.exit(f"{name}: the place in {path} is not there any more, or more than once")
    with open(out, "w") as file:
        file.write(text.replace(right, wrong))


def find(program):
    run = subprocess.run(
        [program, "--gtest_filter=Simulation.KeepsThePromises"],
        env=dict(os.environ, BELAY_SEEDS=str(worlds)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    broken = re.search(r"^seed \d+: .*", run.stdout, re.MULTILINE)
    if run.returncode == 0 or not broken:
        sys.exit(f"{run.stdout[-2000:]}\nthe bug was not found in {worlds} worlds")
    print("found:", broken.group(0))


if sys.argv[1:] == ["list"]:
    for each, (where, _, _) in mutants.items():
        print(each, where)
elif len(sys.argv) == 4 and sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3])
elif len(sys.argv) == 3 and sys.argv[1] == "find":
    find(sys.argv[2])
else:
    sys.exit(__doc__)
