#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server among clients that are many, slow, malformed or malicious, with recordings that change or are
damaged, and with workers that die."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import memprof_test as t
import server_test as s

HOST = b"Host: localhost\r\n"
END = b"Connection: close\r\n\r\n"
BIG = "/data/last/raw_allocations"  # about 9 MB: more than all buffers between a worker and its client
# In the directories of the recordings of all tests: few allocations, and many.
shared = small = big = None


def setUpModule():
    global shared, small, big
    shared = tempfile.mkdtemp(prefix="memprof-test-")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    small, big = (record(f"{shared}/{n}.memprof", n) for n in (1000, 60000))


def tearDownModule():
    shutil.rmtree(shared)


def record(path, events):
    subprocess.run([t.MEMPROF, "run", "-q", "--lossless", "--history", "-o", path, "--", f"{t.VICTIMS}/exact", "2",
                    str(events)], check=True, capture_output=True, timeout=120)
    return path


def workers(server):
    return t.children(server.process.pid)


def files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def state_of(pid):
    try:
        return t.read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return None


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    t.wait_for(lambda: state_of(pid) == "T")


def connect(server, receive=None):
    host, port = server.address.rsplit(":", 1)
    c = socket.socket()
    if receive:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    c.settimeout(120)
    c.connect((host, int(port)))
    return c


def drain(c):
    """All bytes until the connection ends."""
    got = bytearray()
    while part := c.recv(1 << 20):
        got += part
    return bytes(got)


def talk(server, data):
    """Sends bytes and returns what comes until the server closes the connection; a reset also closes it."""
    with connect(server) as c:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            c.sendall(data)
        got = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while part := c.recv(1 << 20):
                got += part
        return bytes(got)


def request(path, headers=HOST, method="GET", version="1.1"):
    return f"{method} {path} HTTP/{version}\r\n".encode() + headers + END


class Case(s.Case):
    fresh = 1000

    @classmethod
    def record_all(cls):
        return [small, big]

    def tearDown(self):
        # After each test the server still serves, and has not a worker too many or a dead one.
        try:
            if self.server:
                self.still_serves()
        finally:
            super().tearDown()

    def still_serves(self):
        self.assertIn("serves these recordings", self.get("/").text)
        t.wait_for(lambda: len(workers(self.server)) <= 5)  # those that are kept idle, and one that is ending
        t.wait_for(lambda: "Z" not in map(state_of, workers(self.server)))

    def small(self, **parameters):
        """An answer about the small recording."""
        return self.get(f"/data/{self.ids[0]}/allocations", dict(parameters, count=1)).json()["total_count"]

    @property
    def ids(self):
        return [r["id"] for r in self.get("/list").json()]

    def head(self, c):
        """Reads the beginning of an answer; returns its status."""
        got = b""
        while b"\r\n\r\n" not in got:
            part = c.recv(4096)
            self.assertTrue(part, got)
            got += part
        return int(got.split()[1])

    def stopped_worker(self):
        """A path, and the worker that would answer it, but is stopped."""
        Case.fresh += 1
        path = f"/data/last/allocations?count=1&size_min={Case.fresh}"
        before = set(workers(self.server))
        self.get(path)
        pid, = set(workers(self.server)) - before
        # The server can still wait for the end of the answer, and would give the next request to another worker.
        t.wait_for(lambda: not self.is_answering())
        stop(pid)
        return path, pid

    def is_answering(self):
        """Whether a worker was given a request: then the server has only one end of a pipe."""
        pipes = t.links(self.server.process.pid)
        for standard in range(3):
            pipes.remove(os.readlink(f"/proc/{self.server.process.pid}/fd/{standard}"))
        pipes = [f for f in pipes if f.startswith("pipe:")]
        return any(pipes.count(p) == 1 for p in pipes)


class Many(Case):
    def test_concurrent(self):
        """200 clients at once with 200 filters get the right answers"""
        one = self.ids[0]
        sizes = [a["size"] for a in self.get(f"/data/{one}/allocations").json()["allocations"]]
        self.assertGreater(len(sizes), 1000)

        def ask(least):
            return self.server.get(f"/data/{one}/allocations", {"count": 1, "size_min": least})

        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(ask, range(1, 201)))
        for least, a in enumerate(answers, 1):
            self.assertEqual(a.status, 200, a.body[:200])
            self.assertEqual(a.json()["total_count"], sum(size >= least for size in sizes))
        for least in (1, 77, 200):
            self.assertEqual(ask(least).body, answers[least - 1].body)

    def test_slow_headers(self):
        """connections that send their headers byte by byte do not hold up others, and end"""
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(connect(self.server)) for _ in range(600)]
            text = request("/list")[:-4]
            for i in range(5):
                for c in slow[:300]:
                    c.sendall(text[i:i + 1])
            self.assertGreater(self.small(), 1000)
            # Answered while they were connected: more than half of the 1000 places have a patience of seconds.
            self.assertEqual(sum(self.ended(c) for c in slow), 0)
            t.wait_for(lambda: all(self.ended(c) for c in slow))

    @staticmethod
    def ended(c):
        c.setblocking(False)
        try:
            return not c.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def test_unread(self):
        """clients that do not read make room for one that does"""
        with contextlib.ExitStack() as stack:
            unread = [stack.enter_context(connect(self.server, 4096)) for _ in range(20)]
            for c in unread:
                c.sendall(request(BIG))
            t.wait_for(lambda: len(workers(self.server)) >= 8)
            self.assertEqual(self.head(unread[0]), 200)
            self.assertGreater(self.small(size_min=5), 1000)
            # The workers of the first ones were ended: these clients receive what is buffered, without the last chunk.
            self.assertNotEqual(drain(unread[0])[-5:], b"0\r\n\r\n")

    def test_reads_late(self):
        """a client that reads late gets a complete answer, if no other request waits"""
        whole = self.data("raw_allocations").body
        self.assertGreater(len(whole), 8_000_000)
        with connect(self.server, 4096) as c:
            c.sendall(request(BIG))
            self.assertEqual(self.head(c), 200)
            time.sleep(4.5)  # longer than a client may be slow while others wait
            self.assertEqual(drain(c)[-5:], b"0\r\n\r\n")

    def test_disconnects(self):
        """clients that leave at any time leave no worker, file or zombie behind"""
        self.get("/")
        self.small()
        one = self.ids[0]
        before = files(self.server)
        for i in range(48):
            with connect(self.server) as c:
                text = request(BIG if i % 2 else f"/data/{one}/allocations?size_min={i}")
                c.sendall(text[:i] if i % 3 == 0 else text)
                if i % 3 == 2:
                    c.recv(1000)
                if i % 4 == 3:  # with a reset
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.small()
        t.wait_for(lambda: len(workers(self.server)) <= 5)
        t.wait_for(lambda: files(self.server) <= before + 5)  # sockets of idle workers

    def test_half_closed(self):
        """a client that has closed its side gets its answer; one that waits for long does not"""
        with connect(self.server) as c:
            c.sendall(request("/list"))
            c.shutdown(socket.SHUT_WR)
            self.assertIn(b'"id"', drain(c))
        with connect(self.server) as c:
            c.sendall(request(BIG))
            c.shutdown(socket.SHUT_WR)
            self.assertEqual(drain(c)[-5:], b"0\r\n\r\n")
        path, pid = self.stopped_worker()
        with connect(self.server) as c:
            c.sendall(request(path))
            c.shutdown(socket.SHUT_WR)
            self.assertEqual(drain(c), b"")
        t.wait_for(lambda: pid not in workers(self.server))


class Malformed(Case):
    def expect(self, data, *statuses):
        """@statuses: one of these; None: the connection is closed without an answer."""
        got = talk(self.server, data)
        status = int(got.split()[1]) if got else None
        self.assertIn(status, statuses, data[:100])
        return got

    def memory(self):
        """Bytes of the server's data."""
        status = t.read(f"/proc/{self.server.process.pid}/status").decode()
        return int(re.search(r"VmData:\s+(\d+) kB", status)[1]) * 1024

    def test_sizes(self):
        """what is too long is refused"""
        long = b"a" * 70000
        self.expect(b"GET /" + long, 414)
        self.expect(b"GET /" + long + b" HTTP/1.1\r\n" + HOST + END, 414)
        self.expect(request("/?" + "a" * 20000), 414)
        self.expect(request("/" + "a" * 20000), 404, 414)
        self.expect(request("/data/last/" + "a" * 20000), 404, 414)
        self.expect(request("/?" + "a&" * 300), 400)
        self.expect(request("/?" + "&" * 8000), 400, 414, None)
        self.get("/list")
        used = self.memory()
        for _ in range(4):
            with concurrent.futures.ThreadPoolExecutor(50) as clients:
                list(clients.map(lambda _: talk(self.server, request("/?" + "&" * 15000)), range(50)))
        self.assertLess(self.memory(), used + 1_500_000)  # of 3 MB that were sent
        self.expect(request("/", HOST + b"X: " + long + b"\r\n"), 431)
        self.expect(request("/", HOST + b"X: y\r\n" * 9000), 431)
        self.expect(request("/data/last/allocations?function_regex=" + "a" * 15000), 400)
        self.expect(request("/data/last/allocations?function_regex=" + "(" * 5000), 400)

    def test_bodies(self):
        """requests with bodies are refused"""
        for more, body in ((b"Content-Length: 5\r\n", b"12345"), (b"Content-Length: 5\r\n", b""),
                           (b"Content-Length: 5\r\nExpect: 100-continue\r\n", b""),
                           (b"Transfer-Encoding: chunked\r\n", b"5\r\n12345\r\n0\r\n\r\n"),
                           (b"Transfer-Encoding: chunked\r\n", b"zz\r\n"),
                           (b"Content-Length: 99999999999999999999999\r\n", b"")):
            self.expect(request("/", HOST + more) + body, 413)
        self.expect(request("/", HOST + b"Content-Length: -5\r\n"), 400)
        self.expect(request("/", HOST + b"Content-Length: 0\r\n"), 200)
        self.expect(request("/", HOST + b"Content-Length: 5000000\r\n", "POST") + b"x" * 5000000, 413, None)

    def test_encoding(self):
        """bad percent-encoding, NULs and text that is not UTF-8 are refused"""
        for path in ("/%", "/%zz", "/%00", "/data/last/%ff", "/?a=%0", "/?%=1", "/data/last/allocations?size_min=%00",
                     "/data/last/allocations?function_regex=%ff", "list", "*"):
            self.expect(request(path), 400)
        self.expect(request("/data/%6cast/allocations?count=%31"), 200)
        self.expect(b"GET /\0 HTTP/1.1\r\n" + HOST + END, 200, 400, None)
        got = self.expect(request("/?%1b%5d2;x%07=1"), 400)
        self.assertIn(rb"\x1b]2;x\x07", got)
        self.assertNotIn(b"\x1b", got)

    def test_forms(self):
        """old, new and odd forms of requests"""
        self.expect(request("/", b"", version="1.0"), 400)
        self.assertIn(b"serves these", self.expect(request("/", version="1.0"), 200))
        self.expect(b"GET /\r\n\r\n", 400, None)
        self.expect(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
        self.expect(request("/", b""), 400)
        self.assertIn(b"more than one Host", self.expect(request("/", HOST + b"Host: evil.example\r\n"), 400))
        self.assertIn(b"serves these", self.expect(request("http://localhost/"), 200))
        self.assertIn(b"serves these", self.expect(request("http://127.0.0.1:80", b"Host: evil.example\r\n"), 200))
        self.expect(request("http://evil.example/"), 421)
        self.expect(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, None)  # TLS
        self.expect(request("/data/../list"), 404)
        self.expect(request("/data/last/../../list"), 404)

    def test_methods(self):
        """GET and HEAD only; the answer to a HEAD has no body"""
        for method in ("POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH", "BREW"):
            self.assertIn(b"Allow: GET, HEAD", self.expect(request("/", method=method), 405))
        for path in ("/list", BIG):
            got = self.expect(request(path, method="HEAD"), 200)
            self.assertTrue(got.endswith(b"\r\n\r\n") and got.count(b"\r\n\r\n") == 1, got)
            self.assertIn(b"Content-Type: application/json", got)

    def test_connections(self):
        """several requests on one connection, sent one after the other and all at once"""
        c = http.client.HTTPConnection(self.server.address, timeout=120)
        for path, status in (("/list", 200), ("/x", 404), ("/list", 200), ("/?x=1", 400), ("/", 200)):
            c.request("GET", path)
            r = c.getresponse()
            r.read()
            self.assertEqual(r.status, status)
            self.assertFalse(r.will_close)
        c.close()
        first, second = (b"GET " + p + b" HTTP/1.1\r\n" + HOST + b"\r\n" for p in (b"/list", b"/nothing"))
        got = self.expect(first + second + first + request("/"), 200)
        self.assertEqual(got.count(b"HTTP/1.1 200"), 3)
        self.assertEqual(got.count(b"HTTP/1.1 404"), 1)
        self.assertLess(got.index(b'"id"'), got.index(b"HTTP/1.1 404"))
        self.assertIn(b"serves these recordings", got[got.index(b"HTTP/1.1 404"):])

    def test_random(self):
        """random bytes, and requests with random changes"""
        rnd = random.Random(1)
        whole = request("/data/last/allocations?count=1&size_min=5&function_regex=a%2B")
        with contextlib.ExitStack() as stack:
            clients = []
            for i in range(300):
                text = bytearray(rnd.randbytes(rnd.randrange(400)) if i % 3 == 0 else whole)
                for _ in range(rnd.randrange(6) if text else 0):
                    text[rnd.randrange(len(text))] = rnd.randrange(256)
                clients.append(stack.enter_context(connect(self.server)))
                clients[-1].sendall(text)
                clients[-1].shutdown(socket.SHUT_WR)  # which ends a request that is incomplete
            for c in clients:
                with contextlib.suppress(ConnectionResetError):
                    got = drain(c)
                    self.assertTrue(not got or got.startswith(b"HTTP/1."), got[:100])

    def test_expensive_patterns(self):
        """patterns that would search for ever are an error of their parameter"""
        for name in ("function_regex", "negative_function_regex", "library_regex", "source_regex"):
            a = self.get(f"/data/{self.ids[0]}/allocations", {name: "(.+)+(.+)+(.+)+[!?]"}, status=400)
            self.assertTrue(a.text.startswith(f"{name}: the search costs too much"), a.text)
        for pattern in ("(", "a{99999}", "(?C1)\\", "\\C", "(?<n>" * 200):
            a = self.get(f"/data/{self.ids[0]}/allocations", {"function_regex": pattern}, status=400)
            self.assertTrue(a.text.startswith("function_regex: "), a.text)


class Dying(Case):
    def test_killed_before(self):
        """a worker that is killed before it answers: 500"""
        path, pid = self.stopped_worker()
        with connect(self.server) as c:
            c.sendall(request(path))
            t.wait_for(lambda: pid in workers(self.server) and self.is_answering())
            os.kill(pid, signal.SIGKILL)
            got = drain(c)
        self.assertIn(b"HTTP/1.1 500", got)
        self.assertIn(b"ended unexpectedly", got)

    def test_killed_within(self):
        """a worker that is killed in the middle of an answer: the client sees that it is incomplete"""
        for version, cut in (("1.1", None), ("1.0", ConnectionResetError)):
            before = set(workers(self.server))
            with connect(self.server, 65536) as c:
                c.sendall(request(BIG, version=version))
                self.assertEqual(self.head(c), 200)
                for pid in set(workers(self.server)) - before or before:
                    os.kill(pid, signal.SIGKILL)
                if cut:
                    self.assertRaises(cut, drain, c)
                else:
                    self.assertNotEqual(drain(c)[-5:], b"0\r\n\r\n")

    def test_killed_idle(self):
        """a worker that dies while it is idle is not missed"""
        for _ in range(20):
            self.get("/data/last/mallopts")
            for pid in workers(self.server):
                os.kill(pid, signal.SIGKILL)
                t.wait_for(lambda: state_of(pid) in (None, "Z"))
            self.get("/data/last/mallopts")

    def test_inherited(self):
        """a worker has nothing of the server open but its socket"""
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(connect(self.server)).sendall(b"GET")
            _, pid = self.stopped_worker()
            self.assertEqual(sorted(map(int, os.listdir(f"/proc/{pid}/fd")))[:4], [0, 1, 2, 3])
            self.assertEqual([link for link in t.links(pid) if link.startswith("socket:")],
                             [os.readlink(f"/proc/{pid}/fd/3")])
            self.assertNotIn("anon_inode:[eventpoll]", t.links(pid))
            # When memory runs out, the kernel ends it rather than anything else.
            self.assertEqual(t.read(f"/proc/{pid}/oom_score_adj"), b"1000\n")
            os.kill(pid, signal.SIGCONT)


class Limited(t.Case):
    """Tests with servers of their own."""
    def setUp(self):
        super().setUp()
        self.servers = []

    def tearDown(self):
        try:
            for server in self.servers:
                server.end()
        finally:
            super().tearDown()

    def serve(self, *arguments, **more):
        self.servers.append(s.Server(*arguments, **more))
        return self.servers[-1]

    def check(self, server, path, status, *says, **more):
        a = server.get(path, **more)
        self.assertEqual(a.status, status, a.body[:300])
        for text in says:
            self.assertIn(text, a.text)
        return a


class Limits(Limited):
    def test_memory(self):
        """a worker that needs more than --memory: 503 with the option's name, and the server answers the next request"""
        server = self.serve(small, big, "--memory", "40M")
        self.check(server, "/data/last/allocations", 503, "--memory")
        one = self.check(server, "/list", 200).json()[0]["id"]
        self.check(server, f"/data/{one}/allocations?count=1", 200)

    def test_timeout(self):
        """an answer that does not begin in time: 504 with the option's name"""
        server = self.serve(small, "--timeout", "1s")
        self.check(server, "/data/last/mallopts", 200)
        pid, = workers(server)
        stop(pid)
        self.check(server, "/data/last/mallopts", 504, "--timeout")
        t.wait_for(lambda: pid not in workers(server))
        self.check(server, "/data/last/mallopts", 200)

    def test_no_processes(self):
        """no process can be made: 503"""
        os.chmod(shared, 0o755)
        path = self.path("r")
        shutil.copy(small, path)
        os.chmod(self.dir, 0o755)
        os.chmod(path, 0o644)
        user = ("prlimit", "--nproc=1", "setpriv", "--reuid=61234", "--clear-groups", "--inh-caps=-all",
                "--bounding-set=-all")
        server = self.serve(path, prefix=user)
        self.check(server, "/list", 503, "not enough memory or processes")

    def test_no_files(self):
        """no files can be opened: the server serves again when clients leave"""
        server = self.serve(small, prefix=("prlimit", "--nofile=24"))
        self.check(server, "/list", 200)
        with contextlib.ExitStack() as stack:
            others = [stack.enter_context(connect(server)) for _ in range(30)]
            for c in others:
                c.sendall(request("/list"))
            # All that fit get an answer, be it 503, and leave.
            for c in others:
                with contextlib.suppress(ConnectionResetError):
                    got = drain(c)
                    self.assertIn(got.split()[1] if got else None, (b"200", b"503", None))
        self.check(server, "/list", 200)


class Files(Limited):
    def setUp(self):
        super().setUp()
        self.file = self.path("r.memprof")
        shutil.copy(small, self.file)

    def count(self, server, status=200):
        a = self.check(server, "/data/last/allocations?count=1", status)
        return a.json()["total_count"] if status == 200 else a.text

    def replace(self, source, size=None, change=lambda data: None):
        data = bytearray(t.read(source)[:size])
        change(data)
        with open(self.file + ".new", "wb") as f:
            f.write(data)
        os.rename(self.file + ".new", self.file)

    def test_replaced(self):
        """a recording that is replaced is read again; one that is gone is an error until it is back"""
        server = self.serve(self.file)
        n = self.count(server)
        self.assertEqual(self.count(server), n)
        self.replace(big)
        self.assertGreater(self.count(server), 20 * n)
        os.unlink(self.file)
        self.assertIn("No such file", self.count(server, 500))
        self.replace(small)
        self.assertEqual(self.count(server), n)

    def test_replaced_within(self):
        """an answer in the middle of which the recording is replaced is of one of both, or is cut"""
        shutil.copy(big, self.file)
        server = self.serve(self.file)
        with connect(server, 65536) as c:
            c.sendall(request(BIG))
            part = c.recv(1000)
            self.replace(small)
            while more := c.recv(1 << 20):
                part = part[:1000] + more if len(part) < 1000 else more
        self.check(server, "/list", 200)
        self.assertLess(self.count(server), 10000)

    def test_growing(self):
        """a recording that grows: each answer is of at least what was there before"""
        data, counts = t.read(big), []
        with open(self.file, "wb") as f:
            f.write(data[:len(data) // 2])
        server = self.serve(self.file)
        for part in (len(data) // 2, len(data) * 3 // 4, len(data)):
            with open(self.file, "r+b") as f:
                f.seek(0)
                f.write(data[:part])
            counts.append(self.count(server))
        self.assertEqual(counts, sorted(set(counts)))

    def test_damaged(self):
        """damaged recordings: a clear error or what is left of the recording"""
        server = self.serve(self.file)
        rnd = random.Random(2)

        def scratch(data):
            for _ in range(20):
                data[rnd.randrange(16, len(data))] ^= 1 << rnd.randrange(8)

        for i in range(12):
            self.replace(small, None if i % 2 else rnd.randrange(len(t.read(small))), scratch)
            for endpoint in ("allocations", "allocation_groups", "tree", "timeline", "raw_allocations"):
                a = server.get(f"/data/last/{endpoint}")
                self.assertIn(a.status, (200, 500), a.body[:200])
                if a.status == 200:
                    json.loads(a.body)
                else:
                    self.assertNotIn("ended unexpectedly", a.text)
            self.check(server, "/list", 200)
        for data in (b"", b"x", bytes(5000)):
            with open(self.file, "wb") as f:
                f.write(data)
            self.assertTrue(self.count(server, 500))
        os.unlink(self.file)
        os.mkfifo(self.file)
        self.assertTrue(self.count(server, 500))


class Access(Limited):
    def test_token(self):
        """beyond this machine's own programs a token is needed, as a header or as a browser's cookie"""
        server = self.serve(small, "--interface", "0.0.0.0")
        self.assertRegex(server.token, "^[0-9a-f]{32}$")
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        for headers in ({}, {"Authorization": "Bearer " + "0" * 32}, {"Authorization": f"Bearer {server.token}0"},
                        {"Authorization": f"Basic {server.token}"}, {"Cookie": "memprof_token=" + server.token}):
            a = self.check(server, "/list", 401, "token", headers=headers)
            self.assertEqual(a.headers["WWW-Authenticate"], "Bearer")
        self.check(server, "/list", 200, headers={"Authorization": "Bearer " + server.token})
        self.check(server, "/?token=" + "0" * 32, 401)
        self.check(server, f"/list?token={server.token}", 401)
        a = self.check(server, f"/?token={server.token}", 303)
        self.assertEqual(a.headers["Location"], "/")
        cookie = a.headers["Set-Cookie"].split(";")
        self.assertIn(" HttpOnly", cookie)
        self.assertIn(" SameSite=Strict", cookie)
        for path in ("/", "/list"):
            self.check(server, path, 200, headers={"Cookie": cookie[0]})
        self.check(server, "/list", 401, headers={"Cookie": cookie[0] + "0"})
        # A page of another site that a browser sends the cookie for.
        self.check(server, "/list", 403, headers={"Cookie": cookie[0], "Origin": "http://evil.example"})
        self.assertNotIn(server.token, self.check(server, "/", 200, headers={"Cookie": cookie[0]}).text)

    def test_token_wanted(self):
        """--token: also on this machine; without it none is needed"""
        server = self.serve(small, "--token")
        self.check(server, "/list", 401)
        self.check(server, "/list", 200, headers={"Authorization": "Bearer " + server.token})
        self.assertIsNone(self.serve(small).token)

    def test_other_names(self):
        """DNS rebinding: other names than the server's are refused, unless --host has them"""
        server = self.serve(small, "--host", "box.example")
        port = server.address.rsplit(":", 1)[1]
        for name, status in (("evil.example", 421), ("localhost.evil.example", 421), ("localhost", 200),
                             (f"box.example:{port}", 200), ("BOX.example", 200), ("10.0.0.1", 200), ("[::1]:1", 200)):
            self.check(server, "/list", status, headers={"Host": name})

    def test_other_sites(self):
        """pages of other sites are refused, unless --origin has them"""
        server = self.serve(small, "--origin", "https://ui.example")
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://ui.example"},
                        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}):
            a = self.check(server, "/list", 403, "--origin", headers=headers)
            self.assertIsNone(a.headers["Access-Control-Allow-Origin"])
        # A form of another site; browsers send Origin with it, too.
        self.check(server, "/list", 403, method="POST",
                   headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        for headers in ({}, {"Origin": server.url}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}):
            a = self.check(server, "/list", 200, headers=headers)
            self.assertIsNone(a.headers["Access-Control-Allow-Origin"])
        a = self.check(server, "/list", 200, headers={"Origin": "https://ui.example"})
        self.assertEqual(a.headers["Access-Control-Allow-Origin"], "https://ui.example")
        self.assertIn("Origin", a.headers["Vary"])


class Ends(Limited):
    def test_signals(self):
        """after SIGTERM, SIGINT, SIGHUP or SIGKILL no worker is left and the port is free"""
        port = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            server = s.Server(big, port=port)  # the same port each time
            try:
                port = int(server.address.rsplit(":", 1)[1])
                with contextlib.ExitStack() as stack:
                    clients = [stack.enter_context(connect(server, 4096)) for _ in range(40)]
                    for i, c in enumerate(clients):
                        c.sendall(request(BIG) if i % 2 else b"GET /list")
                    self.assertTrue(t.wait_for(lambda: workers(server)))
                    left = workers(server)
                    server.process.send_signal(number)
                    for c in clients[::2]:  # requests that become complete while the server ends
                        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                            c.sendall(b" HTTP/1.1\r\n" + HOST + b"\r\n")
                    status = server.process.wait(timeout=60)
                self.assertEqual(status, -9 if number == signal.SIGKILL else 0)
                t.wait_for(lambda: not any(state_of(pid) not in (None, "Z") for pid in left))
            finally:
                server.process.kill()
                server.process.wait()
                server.process.stdout.close()

    def test_nohup(self):
        """under nohup the end of the terminal does not end the server"""
        server = self.serve(small, prefix=("nohup",))
        server.process.send_signal(signal.SIGHUP)
        self.check(server, "/list", 200)


class Options(Limited):
    def test_port_in_use(self):
        """a port that is in use: the message names --port"""
        port = self.serve(small).address.rsplit(":", 1)[1]
        r = self.memprof("server", small, "--port", port, status=1)
        self.assertIn("--port", r.stderr)
        self.assertIn("in use", r.stderr)

    def test_bad_values(self):
        """bad values of options are refused with the option's name"""
        for option, value in (("--port", "65536"), ("--port", "-1"), ("--port", "x"), ("--port", ""),
                              ("--interface", "eth0"), ("--interface", ""), ("--interface", "127.0.0.1:80"),
                              ("--timeout", "0"), ("--timeout", "x"), ("--memory", "x"), ("--memory", "-1"),
                              ("--memory", "")):
            r = self.memprof("server", small, "--port", "0", option, value, status=2)
            self.assertIn(option, r.stderr)
        r = self.memprof("server", small, *["--host", "a"] * 17, status=2)
        self.assertIn("--host", r.stderr)
        self.assertIn("which recordings", self.memprof("server", status=2).stderr)

    def test_files(self):
        """files that are no recordings are refused; the same recording twice is said"""
        for path in ("/nonexistent", "/dev/null", __file__):
            self.assertIn("memprof: ", self.memprof("server", path, "--port", "0", status=13).stderr)
        server = self.serve(small, small, big)
        self.assertEqual(len(self.check(server, "/list", 200).json()), 2)


if __name__ == "__main__":
    t.main()
