#!/usr/bin/env python3
"""The program as a process: its log, its output, its signals. `process_test.py PROGRAM`.

Every wait has a limit, so that a server that does not answer fails a test instead of holding it up.
"""
import fcntl
import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import unittest

program = ""
LIMIT = 30


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT)
        self.sock.connect(self.path)


class Lines:
    """A pipe's reading end, line by line."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.pending = b""
        self.seen = []

    def next(self):
        """The next line; None at the end."""
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.descriptor], [], [], LIMIT)
            if not ready:
                raise AssertionError("no further line; seen: " + "\n".join(self.seen[-20:]))
            data = os.read(self.descriptor, 65536)
            if not data:
                return None
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        self.seen.append(line.decode())
        return self.seen[-1]

    def until(self, text):
        """The next line that holds the text."""
        while (line := self.next()) is not None:
            if text in line:
                return line
        raise AssertionError(f"no line with {text!r}; seen: " + "\n".join(self.seen[-20:]))

    def rest(self):
        lines = []
        while (line := self.next()) is not None:
            lines.append(line)
        return lines


class Process(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        self.processes = []
        self.descriptors = []

    def tearDown(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
        for descriptor in self.descriptors:
            try:
                os.close(descriptor)
            except OSError:
                pass
        self.folder.cleanup()

    def pipe(self):
        ends = os.pipe()
        self.descriptors += ends
        return ends

    def start(self, *flags, out=subprocess.PIPE, **more):
        """Serves on a socket in a folder of the test's; returns the reading end of its log."""
        log, err = self.pipe()
        self.server = subprocess.Popen(
            [program, "serve", "--listen", f"unix:{self.path}", "--threads", "1", "--reference-background", "off",
             *flags],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder.name, **more)
        self.processes.append(self.server)
        self.close(err)
        if out is subprocess.PIPE:
            Lines(self.server.stdout.fileno()).until("serves MCP")
        return log

    def close(self, descriptor):
        self.descriptors.remove(descriptor)
        os.close(descriptor)

    def ask(self, method, target, body=None, headers=None):
        connection = Connection(self.path)
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def post(self, message, session=None):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if session:
            headers["Mcp-Session-Id"] = session
        return self.ask("POST", "/mcp", json.dumps(message), headers)

    def open_session(self):
        answer, _ = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}})
        self.assertEqual(answer.status, 200)
        return answer.getheader("Mcp-Session-Id")

    def begin_call(self, session, tool, arguments):
        """Sends a call and reads until its first message; the connection and its answer."""
        connection = Connection(self.path)
        connection.request(
            "POST", "/mcp",
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                        "params": {"name": tool, "arguments": arguments}}),
            {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
             "Mcp-Session-Id": session})
        answer = connection.getresponse()
        while b"notifications/message" not in (line := answer.readline()):
            self.assertTrue(line)
        return connection, answer

    def metric(self, name):
        _, text = self.ask("GET", "/metrics")
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
        return float(found[1]) if found else None

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(LIMIT), 0)

    # --- the log

    def fill_the_log(self):
        """Asks until lines are dropped: the pipe is full, and so is what waits for it."""
        for number in range(5000):
            answer, _ = self.ask("GET", "/healthz")
            self.assertEqual(answer.status, 200)
            if number % 50 == 0 and self.metric("belay_log_lines_dropped_total"):
                return
        self.fail("nothing was dropped")

    def test_a_log_whose_reader_has_gone_ends_nothing(self):
        log = self.start("--log-access", "on")
        self.close(log)
        session = self.open_session()
        self.assertEqual(self.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, session)[0].status, 200)
        self.stop()

    def test_a_log_that_nobody_reads_holds_nobody_up(self):
        log = self.start("--log-access", "on", "--log-level", "debug", "--log-queue", "64KiB")
        self.fill_the_log()
        self.open_session()
        # Read at last, it says how much is missing, and goes on.
        lines = Lines(log)
        dropped = int(re.search(r"lines=(\d+)", lines.until("dropped"))[1])
        self.assertGreater(dropped, 0)
        self.ask("GET", "/readyz")
        lines.until("path=/readyz")
        self.assertGreaterEqual(self.metric("belay_log_lines_dropped_total"), dropped)
        self.stop()

    def test_a_log_that_nobody_reads_does_not_hold_the_end_up(self):
        self.start("--log-access", "on", "--log-queue", "64KiB")
        self.fill_the_log()
        self.stop()

    def test_what_is_logged_at_the_end_is_written(self):
        log = self.start()
        self.stop()
        self.assertIn("stopping", Lines(log).rest()[-1])

    def test_the_log_leaves_the_descriptor_as_it_is(self):
        # Its flags are shared with whoever else has the pipe.
        read, write = self.pipe()
        self.server = subprocess.Popen(
            [program, "serve", "--listen", f"unix:{self.path}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=write, cwd=self.folder.name)
        self.processes.append(self.server)
        Lines(self.server.stdout.fileno()).until("serves MCP")
        self.open_session()
        Lines(read).until("session opened")
        self.assertEqual(fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        self.stop()

    def test_bad_settings_are_said_before_the_end(self):
        for flags, text in ((("--threads", "many"), "--threads many"), (("--listen", "256.0.0.1:1"), "256.0.0.1")):
            done = subprocess.run(
                [program, "serve", *flags], capture_output=True, text=True, timeout=LIMIT, cwd=self.folder.name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)

    def test_a_start_that_fails_ends_with_its_status_also_if_nobody_hears_of_it(self):
        read, write = self.pipe()
        self.close(read)
        process = subprocess.Popen(
            [program, "serve", "--listen", f"unix:{self.folder.name}/nowhere/socket"],
            stdin=subprocess.DEVNULL, stdout=write, stderr=write, cwd=self.folder.name)
        self.processes.append(process)
        self.assertEqual(process.wait(LIMIT), 2)

    def until_it_listens(self):
        # The socket's file is there a moment before somebody listens on it.
        while True:
            self.assertIsNone(self.server.poll(), "it has ended")
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(self.path) == 0:
                    return

    def test_an_output_whose_reader_has_gone_ends_nothing(self):
        read, write = self.pipe()
        self.close(read)
        log = Lines(self.start("--log-access", "on", out=write))
        self.until_it_listens()
        self.assertEqual(self.ask("GET", "/healthz")[0].status, 200)
        log.until("path=/healthz")
        self.stop()

    # --- signals

    def settings(self, text):
        with open(os.path.join(self.folder.name, "belay.toml"), "w") as file:
            file.write(text)

    def hang_up(self, log):
        """Sends SIGHUP; the lines up to the one that says what came of it."""
        self.server.send_signal(signal.SIGHUP)
        begin = len(log.seen)
        log.until("settings")
        return log.seen[begin:]

    def test_sighup_reloads_the_log_and_loses_nothing(self):
        self.settings('[log]\nlevel = "warning"\n')
        log = Lines(self.start())
        session = self.open_session()
        connection, answer = self.begin_call(session, "utility-notifications", {"durationSeconds": 1, "intervalMs": 100})
        self.settings('[log]\nlevel = "debug"\naccess = "on"\n')
        said = self.hang_up(log)
        self.assertEqual(len(said), 1, said)
        self.assertIn("log.level", said[0])
        self.assertIn("log.access", said[0])
        self.assertIn(b'"result"', answer.read())
        connection.close()
        log.until("method=POST")
        session = self.open_session()
        log.until("session opened")
        self.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, session)
        self.assertIn("session=", [log.until("method=POST") for _ in range(2)][-1])
        self.settings('[log]\nlevel = "error"\n')
        self.hang_up(log)
        self.open_session()
        self.stop()
        self.assertEqual(log.rest(), [])

    def test_sighup_names_what_needs_a_restart(self):
        self.settings("")
        log = Lines(self.start())
        self.settings('session.max = 7\n[log]\nlevel = "warning"\n')
        said = self.hang_up(log)
        self.assertIn("session.max", "\n".join(said))
        self.assertNotIn("log.format", "\n".join(said))
        # What does not hold yet is named each time.
        self.assertIn("session.max", "\n".join(self.hang_up(log)))
        self.stop()

    def test_sighup_with_a_broken_file_changes_nothing(self):
        self.settings('[log]\naccess = "on"\n')
        log = Lines(self.start())
        self.settings('[log]\naccess = "off"\nlevel = "loud"\n')
        self.assertIn("belay.toml, line 3: log.level", self.hang_up(log)[-1])
        self.ask("GET", "/healthz")
        log.until("path=/healthz")
        self.stop()

    def test_flags_outweigh_the_file_also_on_sighup(self):
        self.settings("")
        log = Lines(self.start("--log-level", "info"))
        self.settings('[log]\nlevel = "error"\n')
        self.assertIn("unchanged", self.hang_up(log)[-1])
        self.open_session()
        log.until("session opened")
        self.stop()

    def test_the_end_of_its_terminal_stops_it_as_a_signal_would(self):
        primary, secondary = pty.openpty()
        self.descriptors += [primary, secondary]
        log = Lines(self.start(
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0)))
        session = self.open_session()
        connection, answer = self.begin_call(session, "utility-notifications", {"durationSeconds": 1, "intervalMs": 100})
        self.close(secondary)
        self.close(primary)
        self.assertIn(b'"result"', answer.read())
        connection.close()
        self.assertEqual(self.server.wait(LIMIT), 0)
        self.assertTrue(any("stopping" in line for line in log.rest()))


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
