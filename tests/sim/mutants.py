#!/usr/bin/env python3
"""Bugs that the simulation has to find, each as a change of one place of the engine, the runtime or the store.

  mutants.py list              their names and the files they are in
  mutants.py make NAME OUT     writes the file with the bug in it
  mutants.py find PROGRAM      runs the simulation that was built with it; fails unless a promise breaks in time
"""
import os
import re
import subprocess
import sys

source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src")
worlds = 5000

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
    # Whoever has lost a call goes on writing to it.
    "no_fence": (
        "store/memory_events.cpp",
        "        if (into.is_standalone() || into.fence != fence)\n            return failure(errc::fenced);\n        if (batch",
        "        if (into.is_standalone())\n            return failure(errc::fenced);\n        if (batch",
    ),
    # Of two who want a call, both get it.
    "claim_without_compare": (
        "store/memory_calls.cpp",
        "            if (call.fence != seen)\n                return failure(errc::conflict);\n",
        "",
    ),
    # What arrives twice is kept twice.
    "repetition_not_recognised": (
        "store/memory_events.cpp",
        "        if (batch <= into.last_batch)\n            return into.last_outcome;\n",
        "",
    ),
    # An answer or a cancel is taken, and nobody gets it.
    "letter_dropped": (
        "store/memory_calls.cpp",
        "        to.mail.push_back(std::move(letter));\n",
        "        if (letter.order % 4 != 0)\n            to.mail.push_back(std::move(letter));\n",
    ),
    # Connections of a process that is no more are waited for.
    "reader_not_voided": (
        "store/memory_owners.cpp",
        "        if (share.readers > 0)\n            void_readers(at, share);\n",
        "",
    ),
    # Whoever waits for the end of a stream does not hear of it.
    "hint_lost": (
        "store/memory_events.cpp",
        "    at.wake(into.watchers, growth_bit);\n    return into.top;",
        "    if (!finish)\n        at.wake(into.watchers, growth_bit);\n    return into.top;",
    ),
    # The client is told that its answer is taken before that is so.
    "accepted_too_early": (
        "runtime/call_directory.cpp",
        "    context_.store().post(\n        {session.key, question->stream},",
        "    done({});\n    done = [](result<void>) {};\n    context_.store().post(\n        {session.key, question->stream},",
    ),
    # A tool is not told that its call belongs to someone else.
    "interrupt_forgotten": (
        "runtime/call.cpp",
        "    if (interrupt && !was_ended)\n        interrupt();",
        "    (void)was_ended;",
    ),
    # Whoever goes on with a call does not know how far it was.
    "progress_goes_back": (
        "store/memory_calls.cpp",
        "        claimed.progress = call.progress;\n",
        "",
    ),
    # What was answered under a key is forgotten with its question.
    "answer_forgotten": (
        "store/memory_events.cpp",
        "            if (!question.key)\n                take_letters_of",
        "            take_letters_of",
    ),
    # A call is given up, and whoever stays is not looking.
    "released_and_left": (
        "runtime/recovery.cpp",
        "    if (context_.departures().is_draining()) // whoever stays, or comes, runs it\n        return;",
        "    if (lost.owner.empty())\n        return;",
    ),
    # A call is given up while its handler runs, and is run by two for good.
    "handler_not_told": (
        "runtime/call.cpp",
        "    log(base::log_level::debug, \"call is handed over\", \"its handler is told\");\n    interrupt();",
        "    release();",
    ),
    # A call that runs is taken for one that nobody does.
    "own_call_taken_away": (
        "runtime/recovery.cpp",
        "                if (calls_.runs(each.stream))\n                    continue;",
        "",
    ),
    # The lease is renewed, and those of others are not looked at.
    "nobody_recovers": (
        "runtime/recovery.cpp",
        "            if (!calls_.runs(each.stream)) // else our own lease ran late, and the call is alive\n                consider(each, now);",
        "            (void)each, (void)now;",
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
