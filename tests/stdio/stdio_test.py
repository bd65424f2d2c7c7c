#!/usr/bin/env python3
"""The program over standard input and output: `stdio_test.py PROGRAM`.

Every wait has a limit, so that a server that does not answer fails a test instead of holding it up.
"""
import json
import os
import select
import signal
import subprocess
import sys
import unittest

program = ""
LIMIT = 30


class Server:
    def __init__(self, *flags):
        self.process = subprocess.Popen(
            # What the reference server says unasked would come between the answers.
            [program, "serve", "--stdio", "--reference-background", "off", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pending = b""

    def send(self, *messages):
        for message in messages:
            self.send_raw((json.dumps(message) + "\n").encode())

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_until_held_back(self, message):
        """Sends the message again and again until nobody takes it, and reads nothing; says how often it went."""
        line = (json.dumps(message) + "\n").encode()
        os.set_blocking(self.process.stdin.fileno(), False)
        sent = 0
        while sent < 100_000:
            try:
                sent += os.write(self.process.stdin.fileno(), line) // len(line)
            except BlockingIOError:
                # The pipe is full: nobody has read it for as long as it takes to be sure.
                _, writable, _ = select.select([], [self.process.stdin], [], 2)
                if not writable:
                    os.set_blocking(self.process.stdin.fileno(), True)
                    return sent
        raise AssertionError(f"{sent} lines were taken")

    def receive(self):
        """The next message; None at the end."""
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
            if not ready:
                raise AssertionError("no answer")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                assert self.pending == b"", "a line without an end"
                return None
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def answer(self, number):
        """The answer to a request, and what came before it."""
        before = []
        while True:
            message = self.receive()
            assert message is not None, "the server ended"
            if message.get("id") == number and "method" not in message:
                return message, before
            before.append(message)

    def request(self, number, method, params=None):
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return self.answer(number)

    def initialize(self, version="2025-11-25", capabilities=None):
        answer, _ = self.request(0, "initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "0"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def end(self):
        """Closes the input; gives what still came, and the status."""
        self.process.stdin.close()
        rest = []
        while (message := self.receive()) is not None:
            rest.append(message)
        status = self.process.wait(LIMIT)
        self.log = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return rest, status


def call(tool, arguments=None, meta=None):
    params = {"name": tool, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return params


class Stdio(unittest.TestCase):
    def setUp(self):
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.process.kill()
                server.process.communicate()

    def start(self, *flags):
        self.servers.append(Server(*flags))
        return self.servers[-1]

    def test_every_revision(self):
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            with self.subTest(version):
                server = self.start()
                self.assertEqual(server.initialize(version)["protocolVersion"], version)
                answer, _ = server.request(1, "tools/call", call("echo", {"message": "hi"}))
                self.assertEqual(answer["result"]["content"][0]["text"], "Echo: hi")
                self.assertEqual(server.end(), ([], 0))

    def test_a_call_with_progress_and_messages(self):
        server = self.start()
        server.initialize()
        answer, before = server.request(
            7, "tools/call",
            call("utility-notifications", {"durationSeconds": 0.3, "intervalMs": 100}, {"progressToken": "p"}))
        self.assertEqual(json.loads(answer["result"]["content"][0]["text"])["notificationsSent"], 5)
        logs = [each for each in before if each["method"] == "notifications/message"]
        progress = [each["params"]["progress"] for each in before if each["method"] == "notifications/progress"]
        self.assertEqual(len(logs), 5)
        self.assertEqual(progress, [1, 2, 3])

    def test_nothing_before_initialize_but_ping(self):
        server = self.start()
        self.assertEqual(server.request(1, "ping")[0]["result"], {})
        self.assertEqual(server.request(2, "tools/list")[0]["error"]["code"], -32000)
        server.initialize()
        self.assertIn("tools", server.request(3, "tools/list")[0]["result"])

    def test_bad_lines_get_an_error_and_lose_nothing(self):
        server = self.start("--max-body", "64KiB")
        server.initialize()
        server.send_raw(b"nonsense\n\n   \n[1]\n" + b"x" * 100_000 + b"\n")
        codes = [server.receive()["error"]["code"] for _ in range(3)]
        self.assertEqual(codes, [-32700, -32600, -32600])
        self.assertEqual(server.request(1, "ping")[0]["result"], {})

    def test_what_is_no_message_is_answered_with_its_id(self):
        server = self.start()
        server.initialize()
        for line, expected in (({"jsonrpc": "2.0", "id": 6, "method": "ping", "params": [1]}, 6),
                               ({"id": "seven", "method": "ping"}, "seven"),
                               ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None)):
            server.send(line)
            answer = server.receive()
            self.assertEqual(answer["id"], expected)
            self.assertIn("error", answer)

    def test_a_batch(self):
        server = self.start()
        server.initialize("2025-03-26")
        server.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"},
                     {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("echo", {"message": "b"})}])
        got = {message["id"]: message["result"] for message in (server.receive(), server.receive())}
        self.assertEqual(got[1], {})
        self.assertEqual(got[2]["content"][0]["text"], "Echo: b")

    def test_cancel(self):
        server = self.start()
        server.initialize()
        server.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                     "params": call("utility-notifications", {"durationSeconds": 600})})
        self.assertEqual(server.receive()["method"], "notifications/message")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        self.assertEqual(server.answer(5)[0]["error"]["code"], -32800)

    def test_the_end_of_input_interrupts_what_runs(self):
        server = self.start()
        server.initialize()
        server.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                     "params": call("utility-notifications", {"durationSeconds": 600})})
        self.assertEqual(server.receive()["method"], "notifications/message")
        rest, status = server.end()
        self.assertEqual(status, 0)
        self.assertEqual(rest[-1]["id"], 5)
        self.assertEqual(rest[-1]["result"]["_meta"]["belay/ended"]["reason"], "interrupted")

    def test_what_runs_shortly_still_finishes_after_the_input(self):
        server = self.start("--stdio-grace", "10m")
        server.initialize()
        server.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                     "params": call("utility-notifications", {"durationSeconds": 0.1, "intervalMs": 100})})
        rest, status = server.end()
        self.assertEqual(status, 0)
        self.assertIn("result", rest[-1])
        self.assertNotIn("_meta", rest[-1]["result"])

    def test_a_signal_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                server = self.start()
                server.initialize()
                server.process.send_signal(number)
                self.assertIsNone(server.receive())
                self.assertEqual(server.process.wait(LIMIT), 0)
                server.process.communicate()

    def test_a_signal_ends_it_also_while_its_client_does_not_read(self):
        server = self.start()
        server.initialize()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                     "params": call("burst", {"count": 5000, "bytes": 1000})})
        server.send_until_held_back({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(LIMIT), 0)
        server.process.communicate()

    def test_a_call_with_a_key_is_not_made_in_a_batch(self):
        server = self.start()
        server.initialize("2025-03-26")
        key = {"_meta": {"belay/idempotencyKey": "k"}}
        server.send([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("echo", {"message": "a"}) | key}])
        self.assertEqual(server.receive()["error"]["code"], -32602)
        # Nor is the key spent.
        server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("echo", {"message": "b"}) | key})
        self.assertIn("result", server.receive())

    def test_a_client_that_does_not_read_is_not_read_either(self):
        server = self.start()
        server.initialize()
        sent = server.send_until_held_back({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        for _ in range(sent):  # every line that was taken is answered
            self.assertIn("result", server.receive())

    def test_a_tool_waits_for_a_reader_that_does_not_read(self):
        # Kept are 1000 messages of a call: one that ran ahead of its reader would lose all but those.
        count = 20000
        server = self.start("--flow-stall", "10m")
        server.initialize()
        server.send({"jsonrpc": "2.0", "id": "burst", "method": "tools/call", "params": call("burst", {"count": count})})
        pings = server.send_until_held_back({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        numbers = []
        answers = []
        while len(answers) < pings + 1:
            message = server.receive()
            if "method" in message:
                numbers.append(int(message["params"]["data"].split("/")[0].split()[1]))
            else:
                answers.append(message["id"])
        self.assertEqual(numbers, list(range(1, count + 1)))
        self.assertEqual(answers.count("burst"), 1)


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
