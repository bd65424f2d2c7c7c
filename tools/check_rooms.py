#!/usr/bin/env python3
"""Holds the walls of the house: which room may use which.

Reads the include lines of src/ and include/belay/ and the belay_room() lines of src/CMakeLists.txt against the
table below, which is the one in ARCHITECTURE.md (`--markdown` prints it). Exit status 1 with findings.

    tools/check_rooms.py [--root DIR] [--markdown]
"""
import argparse
import re
import sys
from pathlib import Path

# Two rooms have a part with a door of its own:
#   io           base/io_loop.hpp: the loop that brings Asio
#   store_redis  store/redis_*: the backend that other machines have too; the one part of store with Asio
#   store_types  store/types.hpp: the store's words without its ports
#   store_ports  types and store/ports.hpp, but no backend
PARTS = {"io": "base", "store_types": "store", "store_ports": "store", "store_redis": "store"}
PART_OF_FILE = {
    "base/io_loop.hpp": "io",
    "store/types.hpp": "store_types",
    "store/ports.hpp": "store_ports",
}
PART_OF_PREFIX = {"store/redis_": "store_redis"}
# What a part may use beside what its room may.
PART_DOORS = {"store_redis": ["io"]}
# A part that is implied by another.
IMPLIED = {"store": {"store_ports", "store_types"}, "store_ports": {"store_types"}}

ROOMS = {
    "base": ("clock, timer wheel, ids, errors, logging as a value", []),
    "observe": ("metrics, access log", ["base"]),
    "json": ("codec between described structs and JSON, JSON Schema", ["base"]),
    "protocol": ("JSON-RPC, revisions, message types, error tables: pure functions", ["json", "base"]),
    "store": ("value types, the ports, the backends; knows keys, bytes and time, not MCP", ["base", "observe"]),
    "http": ("listener, parser, SSE writer, limits; knows nothing of MCP", ["base", "io", "observe"]),
    "engine": ("sessions, streams, calls and cursors as machines without I/O", ["protocol", "store_types", "base"]),
    "runtime": (
        "drivers that perform the engine's actions on store ports and timers; the `service` port",
        ["engine", "store_ports", "protocol", "base", "observe"],
    ),
    "server": (
        "tools, resources, prompts, completions, dispatch, the call context; implements `service`",
        ["runtime", "engine", "protocol", "json", "base", "io", "observe"],
    ),
    "auth": ("bearer validation, principals", ["http", "json", "store_ports", "base", "io", "observe"]),
    "transport": (
        "streamable HTTP, a pipe for stdio and tests; sees protocol types only",
        ["runtime", "engine", "protocol", "http", "auth", "base", "io", "observe"],
    ),
    "client": ("client of any MCP server", ["transport", "protocol", "json", "base", "io", "observe"]),
    "gateway": (
        "fronts other MCP servers",
        ["server", "client", "transport", "protocol", "auth", "json", "observe", "base", "io"],
    ),
    "app": ("`belay::run`, the `belay` program, settings, the reference tools: builds the whole", None),  # everything
}

# Public headers belong to the room that implements them.
PUBLIC = {
    "error.hpp": "base",
    "log_field.hpp": "base",
    "log_level.hpp": "base",
    "json.hpp": "json",
    "schema.hpp": "json",
    "task.hpp": "server",
    "blocking.hpp": "server",
    "call.hpp": "server",
    "caller.hpp": "server",
    "tool_result.hpp": "server",
    "detail/boost_version.hpp": "base",
    "detail/handler_shape.hpp": "server",
    "detail/tool_shape.hpp": "server",
    "content.hpp": "server",
    "prompt.hpp": "server",
    "question.hpp": "server",
    "resource.hpp": "server",
    "testing.hpp": "app",
    "server.hpp": "server",
    "host.hpp": "app",
    "run.hpp": "app",
}

# Libraries with walls of their own: only rooms with a door to `io` see Asio, and only tests see the HTTP library.
IO_FILES = {"src/base/io_loop.hpp", "src/base/io_loop.cpp", "src/base/asio_impl.cpp"}
LIBRARIES = {
    "boost/asio": lambda room, file: may_use(part_of(file, room), "io") or file in IO_FILES,
    "boost/beast": lambda room, file: False,
    "boost/json/parse": lambda room, file: room == "json",  # its doubles are not exact: json/parse.hpp
    "prometheus/": lambda room, file: room == "observe",
    "hiredis/": lambda room, file: part_of(file, room) == "store_redis",
    "openssl/": lambda room, file: part_of(file, room) == "store_redis",
    "CLI/": lambda room, file: room == "app",
    "toml++/": lambda room, file: room == "app",
}


def part_of(relative, room):
    """The part of the room that a file of src/ belongs to, or the room."""
    inside = relative.removeprefix("src/")
    return next((part for prefix, part in PART_OF_PREFIX.items() if inside.startswith(prefix)), room)


def doors(room):
    """What the table lets a room or a part use, parts included."""
    uses = ROOMS[PARTS.get(room, room)][1]
    if uses is None:
        uses = [each for each in ROOMS if each != room] + ["io"]
    found = set(uses) | set(PART_DOORS.get(room, []))
    for each in uses:
        found |= IMPLIED.get(each, set())
    return found


def may_use(room, target):
    return target in doors(room)


def described(target):
    part_names = {"io": "the loop with Asio (io)", "store_types": "store's value types", "store_ports": "store's ports"}
    return part_names.get(target, target)


def markdown():
    lines = ["| room | what lives there | may use |", "| --- | --- | --- |"]
    for room, (what, uses) in ROOMS.items():
        if not (root / "src" / room).is_dir():
            continue
        text = "everything" if uses is None else ", ".join(described(each) for each in uses if exists(each))
        for prefix, part in PART_OF_PREFIX.items():
            if PARTS[part] == room and uses is not None:
                text += f"; `{prefix.split('/')[1]}*` also {', '.join(described(each) for each in PART_DOORS[part])}"
        lines.append(f"| {room} | {what} | {text} |")
    return "\n".join(lines)


def exists(target):
    return target in PARTS or (root / "src" / target).is_dir()


def room_lines():
    """The belay_room() lines: room or part → what it links."""
    text = (root / "src" / "CMakeLists.txt").read_text()
    text = re.sub(r"#[^\n]*", "", text)
    found = {}
    for body in re.findall(r"belay_room\(([^)]*)\)", text):
        words = body.split()
        uses, current = [], None
        for word in words[1:]:
            if word in ("USES", "LIBS", "SOURCES", "ASIO"):
                current = word
            elif current == "USES":
                uses.append(word)
        found[words[0]] = uses
    return found


def check():
    problems = []
    links = room_lines()

    for name, uses in links.items():
        room = PARTS.get(name, name)
        if room not in ROOMS:
            problems.append(f"src/CMakeLists.txt: belay_room({name}): there is no such room in the table")
            continue
        for each in uses:
            if PARTS.get(each, each) == room:
                continue  # a part of itself
            # Linking store is how its ports are linked; which of its headers may be seen is checked below.
            wanted = "store_ports" if each == "store" else each
            if not may_use(name, wanted):
                problems.append(f"src/CMakeLists.txt: belay_room({name}) uses {each}; the table does not let it")

    def check_use(where, room, target, header):
        if PARTS.get(target, target) == room:
            return
        part = part_of(where, room)
        if not may_use(part, target):
            problems.append(f"{where}: {part} must not use {described(target)} ({header})")
            return
        linked = set(links.get(part, [])) | ({"store_types", "store_ports"} if "store" in links.get(part, []) else set())
        if target not in linked:
            problems.append(f"{where}: {part} uses {header}, but its belay_room() line does not say {target}")

    files = sorted((root / "src").rglob("*.[ch]pp")) + sorted((root / "include" / "belay").rglob("*.hpp"))
    for file in files:
        relative = file.relative_to(root).as_posix()
        is_public = relative.startswith("include/")
        room = PUBLIC.get(relative.removeprefix("include/belay/")) if is_public else relative.split("/")[1]
        if room not in ROOMS:
            problems.append(f"{relative}: belongs to no room of the table in tools/check_rooms.py")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if not include:
                continue
            quote, header = include.groups()
            where = f"{relative}:{number}"
            if quote == '"':
                if is_public:
                    problems.append(f'{where}: a public header must not include a private one ("{header}")')
                    continue
                if "/" not in header or header.split("/")[0] not in ROOMS:
                    problems.append(f'{where}: includes are written from the src/ root, as "room/file.hpp" ("{header}")')
                    continue
                target = header.split("/")[0]
                check_use(where, room, PART_OF_FILE.get(header, target), header)
            elif header.startswith("belay/"):
                target = PUBLIC.get(header.removeprefix("belay/"))
                if target is None:
                    problems.append(f"{where}: <{header}> belongs to no room of the table in tools/check_rooms.py")
                else:
                    check_use(where, room, target, header)
            else:
                for prefix, allowed in LIBRARIES.items():
                    if header.startswith(prefix) and not allowed(room, relative):
                        problems.append(f"{where}: {room} must not know {prefix.rstrip('/')} (<{header}>)")
    return problems, len(files)


parser = argparse.ArgumentParser(description="Checks which room uses which.")
parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
parser.add_argument("--markdown", action="store_true", help="print the table and exit")
arguments = parser.parse_args()
root = arguments.root

if arguments.markdown:
    print(markdown())
    sys.exit(0)
found, count = check()
for each in found:
    print(each)
print(f"rooms: {count} files, {len(found)} findings")
sys.exit(1 if found else 0)
