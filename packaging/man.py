#!/usr/bin/env python3
"""Writes the manual page of a belay program from what it says about itself: its help is the one source.

    packaging/man.py PROGRAM >belay.1
"""
import re
import subprocess
import sys

program = sys.argv[1]


def said(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=20).stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


usage = said("--help")
name, purpose = usage.splitlines()[0].split(": ", 1)
version = said("--version").split()[1].rstrip(",")
commands = re.findall(r"^  (belay \S.*?)(?:  +(.*))?$", usage, re.M)

head, _, rest = said("serve", "--help").partition("\nUsage:")
# A flag and its meaning stand in two columns, or on two lines if the flag is long.
column = 30
lines = [line for line in rest.partition("Options:\n")[2].splitlines() if line.strip()]
flags = []
for line, following in zip(lines, lines[1:] + [""]):
    if line.startswith(" " * column):
        flags[-1][1] += line[column:]
    elif following.startswith(" " * column):
        flags.append([line.strip(), ""])
    else:
        flags.append([line[:column].strip(), line[column:]])
if any(not flag.startswith("-") or not meaning for flag, meaning in flags):
    flags = []
if not commands or not flags:
    sys.exit(f"{sys.argv[0]}: cannot read the help of {program}; its form has changed")

out = [f'.TH {name.upper()} 1 "" "{name} {version}" "User Commands"', ".SH NAME", roff(f"{name} - {purpose}")]
out.append(".SH SYNOPSIS")
for command, _ in commands:
    out += [roff(command), ".br"]
out.append(".SH DESCRIPTION")
for command, meaning in commands:
    if meaning:
        out += [".TP", f".B {roff(command)}", roff(meaning)]
out += [".SH OPTIONS OF SERVE"]
for line in head.splitlines()[1:]:
    out += [roff(line), ".br"]
for flag, meaning in flags:
    out += [".TP", f".B {roff(flag)}", roff(meaning)]
out += [".SH FILES", ".TP", ".I belay.toml", "Settings, read from the working directory."]
out += [".SH SIGNALS", ".TP", "SIGTERM, SIGINT"]
out += ["Calls may finish within the time of \\-\\-drain; the second signal does not wait."]
out += [".TP", "SIGHUP", "Reads the settings again and takes over the log's level and whether requests are logged."]
out += [".SH EXIT STATUS", "0 after a clean stop, 2 for bad settings or a command that does not exist."]
print("\n".join(out))
