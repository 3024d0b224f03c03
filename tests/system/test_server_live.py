#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server of recordings in progress: sums, events, requests to the recorder, and how all ends."""
import glob
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

import memprof_test as t
import server_test as s


class Events:
    """The events of live/events, read from a socket."""
    def __init__(self, server, path="/data/last/live/events"):
        host, port = server.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.address}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = dict(line.split(": ", 1) for line in iter(lambda: self.file.readline().decode().strip(), ""))
        self.text = b""

    def line(self):
        """The next line of the body; None at its end."""
        while b"\n" not in self.text:
            size = int(self.file.readline(), 16)
            self.text += self.file.read(size)
            self.file.readline()
            if not size:
                return None
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()

    def next(self):
        """(name, data); None: the events have ended."""
        name = self.line()
        if name is None:
            return None
        data = self.line()
        assert name.startswith("event: ") and data.startswith("data: ") and self.line() == "", (name, data)
        return name[7:], json.loads(data[6:])

    def close(self):
        self.file.close()
        self.socket.close()


class Live(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="memprof-test-")
        cls.shop = s.build(cls.shared.name)

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        super().setUp()
        self.servers = []

    def tearDown(self):
        try:
            for server in self.servers:
                server.end()
        finally:
            super().tearDown()

    def program(self):
        p = self.start(self.shop, stdin=subprocess.PIPE)
        t.settle(p.pid)
        return p

    def work(self, p):
        p.stdin.write("x")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")

    def serve(self, *arguments):
        self.servers.append(s.Server(*arguments))
        return self.servers[-1]

    def get(self, server, endpoint, parameters=(), status=200, **more):
        a = server.get("/data/last/" + endpoint, parameters, **more)
        self.assertEqual(a.status, status, f"{endpoint}: {a.body[:300]}")
        return a

    def json(self, server, endpoint, parameters=(), **more):
        return self.get(server, endpoint, parameters, **more).json()

    def post(self, server, endpoint, parameters=(), status=200, **more):
        return self.get(server, endpoint, parameters, status, method="POST", **more)

    def functions(self, server, **more):
        rows = self.json(server, "live/groups", {"by": "function", **more})["rows"]
        return {r["name"]: r for r in rows}

    def files(self):
        return set(glob.glob("/tmp/memprof-live-*"))

    def check_sums(self, server):
        """What the program made, by function."""
        def has_all():
            rows = self.functions(server)
            return rows if rows.get("open_session", {}).get("live_blocks") == 20 and "large" in rows else None
        rows = t.wait_for(has_all)
        for name, blocks, size in (("open_session", 20, 2000), ("cache", 6, 1800), ("large", 3, 1200000)):
            self.assertEqual((rows[name]["live_blocks"], rows[name]["live_bytes"]), (blocks, size), name)
            self.assertEqual(rows[name]["live_bytes_error"], 0)
        self.assertEqual(rows["cache"]["allocations"], 12)
        # Rows without live blocks leave the table when they do nothing; the report has them.
        groups = [g for g in self.json(server, "live/report")["allocation_groups"] if any(
            "brief" in f["function"] for f in g["backtrace"])]
        self.assertEqual([(g["allocated_count"], g["temporary_count"], g["leaked_count"]) for g in groups], [(30, 30, 0)])

    def test_own_recorder(self):
        """-p: records, serves what was made, and leaves the process as it was, without a file"""
        before, p = self.files(), self.program()
        server = self.serve("-p", p.pid)
        self.work(p)
        self.check_sums(server)
        look = self.json(server, "live")
        self.assertEqual((look["paused"], look["ended"], look["estimated"], look["lost_events"]), (False, False, False, 0))
        rows = self.json(server, "live/groups", {"by": "stack", "count": 1000})["rows"]
        self.assertEqual(sum(r["live_bytes"] for r in rows), self.json(server, "live")["live_bytes"])
        report = self.json(server, "live/report")
        self.assertEqual(sum(g["leaked_bytes"] for g in report["allocation_groups"]), look["live_bytes"])
        self.assertEqual(len(self.files() - before), 1)
        self.servers.pop().end()
        self.assertNotIn("memfd:", t.maps(p.pid))
        self.assertEqual(self.files(), before)
        p.communicate("x", timeout=120)
        self.assertEqual(p.returncode, 0)

    def test_beside_attach(self):
        """FILE while memprof attach records to it: the same; flush makes the file complete; the recorder continues after the server has ended"""
        p = self.program()
        file = self.path("rec.memprof")
        recorder = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", file)
        t.wait_for(lambda: s.recorded(p.pid))
        server = self.serve(file)
        self.work(p)
        self.check_sums(server)
        reached = self.post(server, "flush").json()
        self.assertEqual(reached["file_bytes"], os.stat(file).st_size)
        live = self.json(server, "live")
        groups = self.json(server, "allocation_groups")["allocations"]
        self.assertEqual(sum(g["only_matched"]["leaked_count"] for g in groups), live["live_blocks"])
        self.assertEqual(sum(g["only_matched"]["allocated_count"] for g in groups), live["allocations"])
        self.post(server, "mark", {"name": "after the work & more"})
        self.post(server, "flush")
        self.assertEqual([m["name"] for m in self.json(server, "marks")["markers"]], ["after the work & more"])
        self.servers.pop().end()
        self.assertIsNone(recorder.poll())
        self.memprof("detach", "-p", str(p.pid))
        self.assertEqual(recorder.wait(timeout=120), 0)

    def test_requests(self):
        """pause, resume and detach; wrong methods and other sites are refused; then the recording is no longer live"""
        p = self.program()
        server = self.serve("-p", p.pid)
        self.post(server, "pause")
        t.wait_for(lambda: self.json(server, "live")["paused"])
        self.work(p)
        self.post(server, "flush")
        self.assertNotIn("open_session", self.functions(server))
        self.post(server, "resume")
        t.wait_for(lambda: not self.json(server, "live")["paused"])
        for endpoint in ("flush", "mark", "pause", "resume", "detach"):
            a = self.get(server, endpoint, status=405)
            self.assertEqual(a.headers["Allow"], "POST")
            self.post(server, endpoint, status=403, headers={"Origin": "http://evil.example"})
            self.post(server, endpoint, status=403, headers={"Origin": "null"})
        for endpoint in ("live", "live/events", "report"):
            self.assertEqual(self.post(server, endpoint, status=405).headers["Allow"], "GET, HEAD")
        for name in ("", "x" * 401, "two\nlines"):
            self.assertIn("name", self.post(server, "mark", {"name": name} if name else (), status=400).text)
        self.post(server, "detach", headers={"Origin": server.url})
        t.wait_for(lambda: not s.recorded(p.pid))
        for endpoint in ("live", "live/groups", "live/timeline", "live/report", "live/events"):
            t.wait_for(lambda: server.get("/data/last/" + endpoint).status == 409)
            self.assertIn("not in progress", self.get(server, endpoint, status=409).text)
        self.assertIn("not in progress", self.post(server, "flush", status=409).text)
        # What was recorded is still served.
        self.assertEqual(self.json(server, "info")["pid"], p.pid)

    def test_events(self):
        """live/events: a look about each second for each of 50 clients, also if some leave or do not read; then its end"""
        p = self.program()
        server = self.serve("-p", p.pid)
        clients = [Events(server) for _ in range(50)]
        try:
            self.assertEqual(clients[0].headers["Content-Type"], "text/event-stream")
            first = [c.next() for c in clients]
            self.assertTrue(all(name == "look" and not data["ended"] for name, data in first))
            for c in clients[40:]:
                c.close()
            self.work(p)

            def grown(c):
                while True:
                    name, data = c.next()
                    self.assertEqual(name, "look")
                    if data["live_bytes"] >= 1203800:
                        return data
            seen = [grown(c) for c in clients[:30]]
            self.assertLess(first[0][1]["live_bytes"], 100000)
            self.assertEqual({d["live_blocks"] for d in seen}, {seen[0]["live_blocks"]})
            points = self.json(server, "live/timeline")
            self.assertEqual({len(v) for v in points.values()}, {len(points["xs"])})
            self.assertEqual(points["xs"], sorted(points["xs"]))
            self.assertIn(seen[0]["live_bytes"], points["live_bytes"])
            p.stdin.write("x")
            p.stdin.flush()
            for c in clients[:40]:
                names = []
                while (e := c.next()):
                    names.append(e[0])
                self.assertEqual(names[-1], "end")
        finally:
            for c in clients:
                c.close()

    def test_process_ends(self):
        """the process ends: its recording is served until the server ends, and is then removed"""
        before, p = self.files(), self.program()
        server = self.serve("-p", p.pid)
        self.work(p)
        p.stdin.write("x")
        p.stdin.flush()
        self.assertEqual(p.wait(timeout=120), 0)
        t.wait_for(lambda: server.get("/data/last/live").status == 409)
        groups = t.wait_for(lambda: [g for g in self.json(server, "allocation_groups")["allocations"] if any(
            "open_session" in f.get("function", "") for f in g["backtrace"])])
        self.assertEqual([(g["all"]["leaked_count"], g["only_matched"]["size"]) for g in groups], [(20, 2000)])
        self.servers.pop().end()
        self.assertEqual(self.files(), before)

    def test_killed(self):
        """kill -9 of the server: the process is restored, the recording removed"""
        before, p = self.files(), self.program()
        maps = t.identity(p.pid)
        server = self.serve("-p", p.pid)
        self.json(server, "live")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        self.servers.pop().process.stdout.close()
        t.wait_for(lambda: self.files() == before)
        t.wait_for(lambda: not s.recorded(p.pid))
        t.wait_for(lambda: t.identity(p.pid) == maps)

    def test_killed_after_end(self):
        """kill -9 of the server after the process has ended: the recording is removed"""
        before, p = self.files(), self.program()
        server = self.serve("-p", p.pid)
        p.kill()
        t.wait_for(lambda: server.get("/data/last/live").status == 409)
        self.assertEqual(len(self.files() - before), 1)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        self.servers.pop().process.stdout.close()
        t.wait_for(lambda: self.files() == before)

    def test_two_kept(self):
        """-p A -p B -o: both are served, and kept"""
        a, b = self.program(), self.program()
        server = self.serve("-p", a.pid, "-p", b.pid, "-o", self.path("%p.memprof"))
        self.work(a)
        found = server.get("/list").json()
        self.assertEqual(len(found), 2)
        live = [server.get(f"/data/{r['id']}/live/groups", {"by": "function"}).json()["rows"] for r in found]
        t.wait_for(lambda: "open_session" in [r["name"] for r in server.get(
            f"/data/{found[0]['id']}/live/groups", {"by": "function"}).json()["rows"]])
        self.assertNotIn("open_session", [r["name"] for r in live[1]])
        self.servers.pop().end()
        for p in (a, b):
            self.assertEqual(self.report(self.path(f"{p.pid}.memprof"))["pid"], p.pid)

    def test_table(self):
        """live/groups: rows, order, filter and part of the list"""
        p = self.program()
        server = self.serve("-p", p.pid)
        self.work(p)
        self.check_sums(server)
        names = [r["name"] for r in self.json(server, "live/groups", {"by": "function"})["rows"]]
        self.assertEqual(names[0], "large")
        self.assertEqual([r["name"] for r in self.json(
            server, "live/groups", {"by": "function", "order": "asc", "count": 1000})["rows"]][-1], "large")
        self.assertEqual([r["name"] for r in self.json(
            server, "live/groups", {"by": "function", "skip": 1, "count": 2})["rows"]], names[1:3])
        self.assertEqual(list(self.functions(server, filter="^(cache|large)$")), ["large", "cache"])
        blocks = self.json(server, "live/groups", {"by": "function", "sort_by": "blocks"})["rows"]
        self.assertEqual(blocks[0]["name"], "open_session")
        row = self.functions(server)["cache"]
        self.assertTrue(any("cache" in f.get("function", "") and f["line"] for f in row["backtrace"]), row)
        # Threads that did nothing during the last looks have no rows, and it is not known what they have live.
        self.assertTrue(all("live_bytes" not in r for r in self.json(server, "live/groups", {"by": "thread"})["rows"]))
        for by in ("line", "library", "stack"):
            self.assertTrue(self.json(server, "live/groups", {"by": by})["rows"])
        for name, value in (("by", "colour"), ("sort_by", "x"), ("filter", "("), ("count", "-1")):
            self.assertIn(name, self.get(server, "live/groups", {name: value}, status=400).text)

    def test_refused(self):
        """processes that cannot be recorded: one line, as from attach, and nothing is served"""
        p = self.program()
        self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("rec.memprof"))
        t.wait_for(lambda: s.recorded(p.pid))
        for arguments, status, text in ((("-p", "1" * 9), 3, "no process"), (("-p", "2"), 5, "kernel thread"),
                                        (("-p", str(p.pid), "-o", self.path("other")), 2, "is being recorded already"),
                                        (("-o", "x", self.path("rec.memprof")), 2, "--output"), ((), 2, "which recordings")):
            r = self.memprof("server", "--port", "0", *arguments, status=status)
            self.assertEqual(r.stdout, "")
            self.assertIn(text, r.stderr)
        self.detach(p.pid)

    def test_redis(self):
        """redis-server under load: its keys are found, and the server is as before"""
        socket_path = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", socket_path, "--save", "", stdout=subprocess.DEVNULL)
        t.wait_for(lambda: os.path.exists(socket_path))
        server = self.serve("-p", p.pid)
        subprocess.run(["redis-benchmark", "-s", socket_path, "-t", "set", "-n", "100000", "-r", "100000", "-d", "100", "-q"],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        rows = t.wait_for(lambda: [r for r in self.json(server, "live/groups", {"by": "function"})["rows"]
                                   if r["live_bytes"] > 5000000])
        self.assertTrue(rows)
        threads = self.start("redis-benchmark", "-s", socket_path, "-t", "set", "-n", "100000000", "-q", stdout=subprocess.DEVNULL)
        row = t.wait_for(lambda: [r for r in self.json(server, "live/groups", {"by": "thread"})["rows"]
                                  if r["thread"] == p.pid and r["allocations_per_second"] > 0])[0]
        self.assertNotIn("live_bytes", row)
        threads.kill()
        threads.wait()
        # null until the recorder has looked at the process for the first time, after a second
        look = t.wait_for(lambda: [l for l in [self.json(server, "live")] if l["resident_bytes"] is not None])[0]
        self.assertGreater(look["resident_bytes"], 0)
        self.assertGreater(look["live_bytes"], 5000000)
        self.servers.pop().end()
        self.assertEqual(subprocess.run(["redis-cli", "-s", socket_path, "ping"], capture_output=True, text=True,
                                        timeout=60).stdout, "PONG\n")


if __name__ == "__main__":
    t.main()
