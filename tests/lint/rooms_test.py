#!/usr/bin/env python3
"""Proves that tools/check_rooms.py can fail: each small house below has exactly one wall broken, or none."""
import subprocess
import sys
import tempfile
from pathlib import Path

checker = Path(__file__).resolve().parents[2] / "tools" / "check_rooms.py"

LINES = """
belay_room(base SOURCES base/clock.cpp)
belay_room(io ASIO USES base SOURCES base/io_loop.cpp)
belay_room(store USES store_types base SOURCES store/memory_store.cpp)
belay_room(store_redis ASIO USES store base io SOURCES store/redis_link.cpp)
belay_room(engine USES store_types base SOURCES engine/follower.cpp)
belay_room(runtime USES engine store base SOURCES runtime/node.cpp)
belay_room(http ASIO USES io base SOURCES http/server.cpp)
"""

# name, file, its text, a part of the finding (None: there is none)
CASES = [
    ("own room", "src/engine/follower.cpp", '#include "engine/follower.hpp"', None),
    ("an open door", "src/engine/follower.cpp", '#include "store/types.hpp"', None),
    ("a part without door", "src/engine/follower.cpp", '#include "store/ports.hpp"', "engine must not use store's ports"),
    ("the ports", "src/runtime/node.cpp", '#include "store/ports.hpp"', None),
    ("a backend", "src/runtime/node.cpp", '#include "store/memory_store.hpp"', "runtime must not use store"),
    ("no door", "src/http/server.cpp", '#include "runtime/node.hpp"', "http must not use runtime"),
    ("app", "src/runtime/node.cpp", '#include "app/http_host.hpp"', "runtime must not use app"),
    ("a door that is not linked", "src/runtime/node.cpp", '#include "protocol/message.hpp"', "does not say protocol"),
    ("Asio behind a wall", "src/engine/follower.cpp", "#include <boost/asio/post.hpp>", "must not know boost/asio"),
    ("Asio", "src/http/server.cpp", "#include <boost/asio/post.hpp>", None),
    ("a parser that rounds", "src/runtime/node.cpp", "#include <boost/json/parse.hpp>", "must not know boost/json/parse"),
    ("the loop with Asio", "src/runtime/node.cpp", '#include "base/io_loop.hpp"', "the loop with Asio"),
    ("a part with a door of its own", "src/store/redis_link.cpp", '#include "base/io_loop.hpp"', None),
    ("a part with a library of its own", "src/store/redis_link.cpp", "#include <hiredis/hiredis.h>", None),
    ("a part's door, for the rest of its room", "src/store/memory_store.cpp", '#include "base/io_loop.hpp"', "with Asio"),
    ("a part's library, elsewhere", "src/http/server.cpp", "#include <hiredis/hiredis.h>", "must not know hiredis"),
    ("a part that is a backend", "src/runtime/node.cpp", '#include "store/redis_store.hpp"', "must not use store"),
    ("a short path", "src/engine/follower.cpp", '#include "follower.hpp"', "from the src/ root"),
    ("a public header", "src/engine/follower.cpp", "#include <belay/error.hpp>", None),
    ("a public header without door", "src/engine/follower.cpp", "#include <belay/server.hpp>", "must not use server"),
    ("a private header in a public one", "include/belay/error.hpp", '#include "base/clock.hpp"', "must not include a private"),
    ("a header without room", "include/belay/other.hpp", "", "belongs to no room"),
    ("a linked wall", "src/CMakeLists.txt", "belay_room(engine USES http SOURCES a.cpp)", "belay_room(engine) uses http"),
]

wrong = 0
for name, path, text, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src").mkdir()
        (root / "src" / "CMakeLists.txt").write_text(LINES)
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        ran = subprocess.run([checker, "--root", root], capture_output=True, text=True)
        as_expected = (
            ran.returncode == 0 and not ran.stderr if expected is None else ran.returncode == 1 and expected in ran.stdout
        )
        if not as_expected:
            wrong += 1
            print(f"{name}: exit status {ran.returncode}, expected {expected!r}\n{ran.stdout}{ran.stderr}")
print(f"{len(CASES)} houses, {wrong} judged wrongly")
sys.exit(1 if wrong else 0)
