#!/usr/bin/env python3
"""Proves that tools/check_text.py and tools/check_docs.py can fail."""
import subprocess
import sys
import tempfile
from pathlib import Path

tools = Path(__file__).resolve().parents[2] / "tools"
ALLOWED = "tests/lint/sleeps_allowed.txt"
now = "TODO" + "(now)"

HELLO = "// [part]\n    int a;\n        int b;\n// [/part]\n"
FENCE = "```"

# tool and arguments, files, whether there is something to find
CASES = [
    (["check_text.py", "sleeps"], {"tests/a.cpp": "std::this_thread::sleep_for(1s);"}, True),
    (["check_text.py", "sleeps"], {"tests/a.cpp": "  sleep(1);"}, True),
    (["check_text.py", "sleeps"], {"tests/a.cpp": "co_await call.sleep(1s);"}, False),
    (["check_text.py", "sleeps"], {"tests/a.cpp": "usleep(1);", ALLOWED: "tests/a.cpp | usleep(1); | why"}, False),
    (["check_text.py", "sleeps"], {"tests/a.cpp": "", ALLOWED: "tests/a.cpp | usleep(1); | why"}, True),
    (["check_text.py", "sleeps"], {"tests/run": "sleep 1"}, True),
    (["check_text.py", "sleeps"], {"tests/a.py": "time.sleep(1)"}, True),
    (["check_text.py", "sleeps"], {"tests/node_modules/a.py": "time.sleep(1)"}, False),
    (["check_text.py", "unfinished"], {"src/a.cpp": f"// {now}: this"}, True),
    (["check_text.py", "unfinished"], {"src/a.cpp": "// TODO(perf): this"}, False),
    (["check_text.py", "revisions"], {"src/a.cpp": "if (revision >= protocol::revision::r2025_06_18)"}, True),
    (["check_text.py", "revisions"], {"src/a.cpp": "if (revision != protocol::newest_revision)"}, True),
    (["check_text.py", "revisions"], {"src/a.cpp": "if (protocol::assumed_revision == revision)"}, True),
    (["check_text.py", "revisions"], {"src/a.cpp": 'if (record.version == "2025-11-25")'}, True),
    (["check_text.py", "revisions"], {"src/a.cpp": "if (static_cast<int>(revision) > 2)"}, True),
    (["check_text.py", "revisions"], {"include/belay/a.hpp": "case r2025_06_18: return;"}, True),
    (["check_text.py", "revisions"], {"src/protocol/a.cpp": "if (revision == revision::r2025_06_18)"}, False),
    (["check_text.py", "revisions"], {"src/a.cpp": "if (facts_of(revision).has_titles) // r2025_06_18"}, False),
    (["check_text.py", "revisions"], {"src/a.cpp": "protocol::revision revision = protocol::newest_revision;"}, False),
    (["check_text.py", "revisions"], {"tests/a.cpp": "EXPECT_TRUE(revision == revision::r2025_06_18);"}, False),
    (["check_docs.py"], {"a.cpp": HELLO, "a.md": f"<!-- cut: a.cpp part -->\n{FENCE}cpp\nint a;\n    int b;\n{FENCE}\n"}, False),
    (["check_docs.py"], {"a.cpp": HELLO, "a.md": f"<!-- cut: a.cpp part -->\n{FENCE}cpp\nint a;\n    int c;\n{FENCE}\n"}, True),
    (["check_docs.py"], {"a.cpp": HELLO, "a.md": f"<!-- cut: a.cpp other -->\n{FENCE}cpp\n{FENCE}\n"}, True),
    (["check_docs.py"], {"a.md": f"{FENCE}cpp\nint a;\n{FENCE}\n"}, True),
    (["check_docs.py"], {"a.md": f"{FENCE}sh\nls\n{FENCE}\n"}, False),
    (["check_docs.py"], {"a.md": "[a](b.md)"}, True),
    (["check_docs.py"], {"a.md": "[a](b.md#c) [d](https://example.org)", "b.md": ""}, False),
    (["check_docs.py"], {"docs/scenarios.md": "| AS-01 | a |\n", "tests/a.cpp": "TEST(A, AS01_Reload)"}, False),
    (["check_docs.py"], {"docs/scenarios.md": "| AS-01 | a |\n", "web/a.ts": "test('AS-01: a reload')"}, False),
    (["check_docs.py"], {"docs/scenarios.md": "| AS-01 | a |\n", "tests/a.cpp": "TEST(A, AS02_Other) AS-01"}, True),
    (["check_docs.py"], {"docs/scenarios.md": "| AS-01 | a |\n", "tests/a.mjs": "['reload (AS-02)'] // AS-01"}, True),
    (["check_docs.py"], {"docs/scenarios.md": "| AS-01 | a |\n"}, True),
    (["check_docs.py"], {"src/a.cpp": "// as asked for (Q-12)"}, True),
    (["check_docs.py"], {"src/a.cpp": "// ISO-8601, UTF-16, B-tree, TEST(AS1)"}, False),
    (["check_docs.py", "--belay", "/bin/echo"], {"a.md": "<!-- output: belay settings -->\nsettings\n<!-- end -->\n"}, False),
    (["check_docs.py", "--belay", "/bin/echo"], {"a.md": "<!-- output: belay settings -->\nold\n<!-- end -->\n"}, True),
]

wrong = 0
for command, files, has_findings in CASES:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        arguments = [folder] if command[0] == "check_text.py" else ["--root", folder]
        ran = subprocess.run([tools / command[0], *command[1:], *arguments], capture_output=True, text=True)
        if ran.returncode != (1 if has_findings else 0) or ran.stderr:
            wrong += 1
            print(f"{command} {files}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}")
print(f"{len(CASES)} trees, {wrong} judged wrongly")
sys.exit(1 if wrong else 0)
