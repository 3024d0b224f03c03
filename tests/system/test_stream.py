#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof attach --to, against a receiver that was written from doc/streaming.md, and the real one behind a relay that
breaks connections: nothing is lost or doubled, and the process neither waits for the network nor keeps anything of memprof."""
import contextlib
import hashlib
import hmac
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import memprof_test as t
import stream_peer as peer
import stream_test as s

SAFE = re.compile(r"\A[ -~\n]*\Z")


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", t.read(f"/proc/{pid}/status").decode())[1]) << 10


OF_LIBRARY = 3 << 31  # signals 32 and 33


def state(identity):
    """What the program itself does not change.  The C library handles two signals of its own from its first thread on,
    also if they were ignored: a test's runner can leave that to it."""
    signals = [x.split() for x in identity["signals"] if not x.startswith("SigCgt")]
    return dict(identity, signals=[(k, int(v, 16) & ~OF_LIBRARY) for k, v in signals])


def round_of(p):
    """Lets the victim flood or exact do its work once; returns what it counted."""
    p.stdin.write("go\n")
    p.stdin.flush()
    return json.loads(p.stdout.readline())


class Stream(s.Counted):
    def setUp(self):
        super().setUp()
        self.token, self.cwd, self.log = s.write_token(self.path("token")), self.path("cwd"), self.path("log")
        os.mkdir(self.cwd)
        self.ends = []

    def tearDown(self):
        for x in reversed(self.ends):
            x.end()
        super().tearDown()

    def receiver(self, token=s.TOKEN):
        self.ends.append(peer.Receiver(token))
        return self.ends[-1]

    def proxy(self, port):
        self.ends.append(peer.Proxy(port))
        return self.ends[-1]

    def program(self, threads=4, ops=100000):
        p = self.victim("exact", threads, ops, "wait", stdin=subprocess.PIPE)
        self.before = t.identity(p.pid)
        return p

    def arguments(self, p, port, *options):
        return ["attach", "-q", "-p", str(p.pid), "--to", f"127.0.0.1:{port}", "--token", self.token, *map(str, options)]

    def attach(self, p, port, *options, recorded=True):
        """Starts memprof attach --to in a folder of its own; its messages go to a file."""
        with open(self.log, "w") as out:
            rec = self.start(t.MEMPROF, *self.arguments(p, port, *options), cwd=self.cwd, stdout=out, stderr=out)
        if recorded:
            self.wait_recording(p, rec)
        return rec

    def sending(self, *options):
        """Starts a receiver, a program, and memprof, which records the one and sends all events to the other."""
        r, p = self.receiver(), self.program()
        return r, p, self.attach(p, r.port, "--history", "--lossless", *options)

    def wait_recording(self, p, rec):
        def recording():
            self.assertIsNone(rec.poll(), self.said())
            return self.recorder(p.pid)
        t.wait_for(recording)

    def said(self):
        return t.read(self.log).decode()

    def wait_said(self, text):
        t.wait_for(lambda: text in self.said())

    def restored(self, p):
        return "memprof" not in t.maps(p.pid) and state(t.identity(p.pid)) == state(self.before)

    def as_before(self, p):
        self.assertEqual(state(t.identity(p.pid)), state(self.before))
        self.assertEqual(self.recorder(p.pid), 0)

    def ended(self, rec, status=0):
        self.assertEqual(rec.wait(120), status, self.said())
        self.assertRegex(self.said(), SAFE)

    def saved(self, r):
        """The complete recording that a receiver has, as a file."""
        self.assertEqual(r.errors, [])
        self.assertEqual(set(r.files), r.done)
        return self.partial(r)

    def partial(self, r):
        with open(self.path("received"), "wb") as f:
            f.write(r.only())
        return self.path("received")

    def record_exact_to(self, port, *options, meanwhile=lambda: None):
        """Records all work of the victim `exact`.  Return: what it counted.  The process is as before."""
        p = self.program()
        rec = self.attach(p, port, "--history", "--lossless", *options)
        with contextlib.ExitStack() as at_end:
            at_end.callback(meanwhile() or (lambda: None))
            truth = round_of(p)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.as_before(p)
        return truth


class Exact(Stream):
    def test_gather(self):
        """to memprof gather: the recording has what the program counted, its id, and the file is complete"""
        g = s.Gather(self, self.path("out"))
        truth = self.record_exact_to(g.port, "-o", "r.memprof")
        self.exact(truth, self.path("out/r.memprof"))
        g.wait_said(rf"r\.memprof: complete, {os.path.getsize(self.path('out/r.memprof'))} bytes$")
        g.end()
        self.assertNotIn("connection lost", g.out)

    def test_id(self):
        """the id of the stream is that of the recording"""
        r = self.receiver()
        truth = self.record_exact_to(r.port)
        recording = self.saved(r)
        self.exact(truth, recording)
        self.assertEqual(list(r.files), [s.info_id(recording)])

    def test_random_drops(self):
        """the connection breaks at random moments and bytes: nothing is lost or doubled"""
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        rng = random.Random(seed)
        g = s.Gather(self, self.path("out"))
        proxy = self.proxy(g.port)
        stop = threading.Event()

        def drop():
            while not stop.wait(rng.uniform(0.01, 0.3)):
                proxy.cuts = [rng.choice((None, rng.randrange(200), rng.randrange(100000)))]
                proxy.drop()

        def meanwhile():
            proxy.drop()
            dropping = threading.Thread(target=drop, daemon=True)
            dropping.start()

            def end():
                stop.set()
                dropping.join()
                proxy.cuts = []
            return end
        truth = self.record_exact_to(proxy.port, "-o", "r.memprof", meanwhile=meanwhile)
        self.exact(truth, self.path("out/r.memprof"))
        self.assertGreater(proxy.connections, 1)
        self.assertEqual(g.files(), ["r.memprof"])
        g.end()
        self.assertIn("r.memprof: continued at ", g.out)

    def test_cut_at_each_step(self):
        """the connection breaks while it is made, among frames, and before the receiver's last answer: the same"""
        r, p, rec = self.sending()
        for where in ("accept", "hello", "proof", peer.OPEN):
            r.close_at = where
            r.drop()
            t.wait_for(lambda: r.close_at is None)
        r.close_at = ("data", len(r.only()) + 1)
        truth = round_of(p)
        t.wait_for(lambda: r.close_at is None)
        r.close_at = peer.END
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertIsNone(r.close_at)
        self.as_before(p)
        self.exact(truth, self.saved(r))

    def test_changed_on_the_way(self):
        """a bit of a frame is changed on the way: the receiver closes the connection, and gets the right one afterwards"""
        r = self.receiver()
        proxy = self.proxy(r.port)
        p = self.program()
        rec = self.attach(p, proxy.port, "--history", "--lossless")
        name, = r.names.values()
        id = peer.HELLO + peer.PROOF + peer.HEAD  # in OPEN
        second = id + peer.ID + len(name) + peer.CODE + peer.HEAD  # the first byte of the next frame's payload, or its code
        proxy.flips = [id, second]
        proxy.drop()
        truth = round_of(p)
        t.wait_for(lambda: len(r.errors) == 2)
        self.assertTrue(all("the code of frame" in e for e in r.errors), r.errors)
        r.errors.clear()
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_acknowledges_less(self):
        """a receiver that acknowledges less than it has gets the same bytes again when the connection breaks"""
        r = self.receiver()
        r.less = 50000

        def meanwhile():
            def again():
                t.wait_for(lambda: len(r.only()) > r.less)
                r.drop()
                t.wait_for(lambda: r.again)
                r.less = 0
            return again
        truth = self.record_exact_to(r.port, meanwhile=meanwhile)
        self.exact(truth, self.saved(r))

    def test_gather_killed(self):
        """memprof gather is killed and started again with the same folder: the recording continues in its file"""
        g = s.Gather(self, self.path("out"))
        proxy = self.proxy(g.port)
        p = self.program()
        rec = self.attach(p, proxy.port, "--history", "--lossless", "-o", "r.memprof")
        self.memprof("flush", "-p", p.pid)
        g.kill()
        truth = round_of(p)
        g = s.Gather(self, self.path("out"))
        proxy.target = ("127.0.0.1", g.port)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.as_before(p)
        g.wait_said(r"r\.memprof: continued at [1-9][0-9]* bytes, from ")
        self.assertEqual(g.files(), ["r.memprof"])
        self.exact(truth, self.path("out/r.memprof"))
        g.end()

    def test_silent_receiver(self):
        """a connection on which nothing is heard any more is given up, and the recording continues on another"""
        r = self.receiver()

        def meanwhile():
            r.answers = False

            def end():
                t.wait_for(lambda: r.connections > 1)
                r.answers = True
                r.drop()
            return end
        truth = self.record_exact_to(r.port, meanwhile=meanwhile)
        self.exact(truth, self.saved(r))

    def test_two_at_once(self):
        """two processes to one gather, with the same name: two exact files"""
        g = s.Gather(self, self.path("out"), "--recordings", 2)
        both = [self.program(2, 100000) for _ in range(2)]
        recs = [self.attach(p, g.port, "--history", "--lossless", "-o", "same.memprof") for p in both]
        truths = [round_of(p) for p in both]
        for p in both:
            self.memprof("detach", "-p", p.pid)
        for rec in recs:
            self.ended(rec)
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.assertEqual(g.files(), ["same-2.memprof", "same.memprof"])
        by_pid = {self.report(f"{g.folder}/{f}")["pid"]: f"{g.folder}/{f}" for f in g.files()}
        for p, truth in zip(both, truths):
            self.exact(truth, by_pid[p.pid])


class Behind(Stream):
    """Receivers that take less than there is."""
    def flood(self, port, *options):
        """Records a program that allocates faster than a receiver takes.  @self.sums: what it had done before."""
        p = self.victim("flood", 2, 100000, stdin=subprocess.PIPE)
        self.sums = round_of(p)  # creates the threads' arenas and stacks
        self.before = t.identity(p.pid)
        rec = self.attach(p, port, "--history", "--deliver-within", "5m", "--send-buffer", "1M", "--queue-size", "1M",
                          "--ring-size", "64k", *options)
        return p, rec

    def losses(self, p):
        state = next(x for x in json.loads(self.memprof("status", "--json").stdout) if x["pid"] == p.pid)
        return state["lost"] + state["queue_dropped_events"] + state["thinned_allocations"]

    def until_losses(self, p):
        """Lets the program work until something was lost."""
        t.wait_for(lambda: round_of(p) and self.losses(p))

    def all_accounted(self, after, report):
        calls, l = t.calls(report), report["losses"]
        for kind, function, lost in (("mallocs", "malloc", "allocations"), ("frees", "free", "frees")):
            got = calls.get(function, 0) + l[f"lost_{lost}"] + l[f"queue_dropped_{lost}"]
            got += l["stale_frees"] if kind == "frees" else l["stale"] - l["stale_frees"]
            want = after[kind] - self.sums[kind]
            self.assertGreaterEqual(got, want, kind)
            self.assertLessEqual(got, want + 64, kind)  # glibc adds some when threads begin and end

    def test_never_acknowledges(self):
        """no ACK: the program works on, memprof keeps no more than its buffers, and each event is recorded or counted as lost"""
        r = self.receiver()
        r.acks, r.less = False, 1 << 40
        p, rec = self.flood(r.port, "--no-thinning")
        self.until_losses(p)
        # What was not acknowledged must still be in the buffer.
        self.assertLessEqual(len(r.only()), 1 << 20)
        used = resident(rec.pid)
        for _ in range(20):
            after = round_of(p)
        self.assertLess(resident(rec.pid) - used, 8 << 20)
        self.assertLessEqual(len(r.only()), 1 << 20)
        r.acks, r.less = True, 0
        r.drop()
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        recording = self.saved(r)
        self.memprof("verify", recording)
        report = self.report(recording)
        self.assertGreater(sum(report["losses"][k] for k in s.LOSSES), 0)
        self.all_accounted(after, report)

    def test_never_reads(self):
        """a receiver that reads nothing: the program works on and can be released at once; allocations are thinned, and the recording says so"""
        r = self.receiver()
        proxy = self.proxy(r.port)
        p, rec = self.flood(proxy.port)
        proxy.paused = True
        self.until_losses(p)
        used = resident(rec.pid)
        for _ in range(20):
            round_of(p)
        self.assertLess(resident(rec.pid) - used, 8 << 20)
        self.memprof("detach", "-p", p.pid)
        t.wait_for(lambda: self.restored(p))
        self.assertIsNone(rec.poll(), self.said())
        round_of(p)
        proxy.paused = False
        self.ended(rec)
        recording = self.saved(r)
        self.memprof("verify", recording)
        report = self.report(recording)
        self.assertGreater(report["thinning"]["thinned_allocations"] + sum(report["losses"][k] for k in s.LOSSES), 0)

    def test_lossless(self):
        """--lossless: the program waits for a receiver that is away no longer than for a stalled disk, and works on"""
        r = self.receiver()
        p, rec = self.flood(r.port, "--lossless")
        r.away()
        t.wait_for(lambda: round_of(p) and "the process does not wait, events" in self.said())
        after = round_of(p)
        r.back()
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        report = self.report(self.saved(r))
        self.assertGreater(sum(report["losses"][x] for x in ("lost_allocations", "lost_frees", "queue_dropped_events")), 0)
        self.all_accounted(after, report)

    def test_takes_it_slowly(self):
        """a receiver that takes the bytes slowly gets all of them"""
        g = s.Gather(self, self.path("out"))
        proxy = self.proxy(g.port)
        proxy.delay = 0.02
        truth = self.record_exact_to(proxy.port, "-o", "r.memprof", "--deliver-within", "5m")
        self.exact(truth, self.path("out/r.memprof"))
        g.end()


class Refused(Stream):
    """The process is not touched."""
    def fails(self, p, port, *options, status=14, pattern="", token=None):
        r = subprocess.run([t.MEMPROF, *self.arguments(p, port, *options)], capture_output=True, text=True, timeout=120,
                           stdin=subprocess.DEVNULL, cwd=self.cwd)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.assertRegex(r.stderr, rf"^memprof: .*{pattern}")
        self.assertRegex(r.stderr, SAFE)
        self.as_before(p)
        self.assertEqual(t.identity(p.pid), self.before)
        self.assertEqual(os.listdir(self.cwd), [])
        return r.stderr

    def test_no_receiver(self):
        """no receiver listens at the port: status 14"""
        r = self.receiver()
        r.away()
        self.fails(self.program(), r.port, pattern=f"127.0.0.1.*{r.port}|refused")

    def test_no_host(self):
        """a host that does not exist: status 14"""
        p = self.program()
        r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "--to", "no-such-host.invalid", "--token", self.token],
                           capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, cwd=self.cwd)
        self.assertEqual(r.returncode, 14, r.stderr)
        self.assertIn("no-such-host.invalid", r.stderr)
        self.as_before(p)

    def test_wrong_token(self):
        """the receiver has another token: status 14, and both say so"""
        p = self.program()
        g = s.Gather(self, self.path("out"), token=s.write_token(self.path("other"), b"another token, 24 bytes."))
        self.fails(p, g.port, pattern="token")
        t.wait_for(lambda: "refused: " in g.err)
        self.assertEqual(g.files(), [])
        g.end()

    def test_impostor(self):
        """a receiver that accepts any token but cannot prove that it knows it: status 14, and it gets nothing"""
        r = self.receiver()
        r.impostor = True
        self.fails(self.program(), r.port, pattern="token")
        t.wait_for(lambda: r.told is not None)
        self.assertEqual(r.told, b"")

    def test_another_service(self):
        """another service at that port, or one that closes at once: status 14, and strange bytes are not shown"""
        p = self.program()
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 40, b"\x1b]0;title\x07" * 10, b""):
            with socket.create_server(("127.0.0.1", 0)) as service:
                def serve():
                    c, _ = service.accept()
                    c.sendall(answer)
                    c.close()
                serving = threading.Thread(target=serve, daemon=True)
                serving.start()
                self.fails(p, service.getsockname()[1])
                serving.join()

    def test_token_file(self):
        """a token file that others can read, that is too short, or missing"""
        p, r = self.program(), self.receiver()
        for path in (s.write_token(self.path("open"), mode=0o644), s.write_token(self.path("short"), b"short"), self.path("none")):
            self.token = path
            x = subprocess.run([t.MEMPROF, *self.arguments(p, r.port)], capture_output=True, text=True, timeout=120)
            self.assertGreater(x.returncode, 0, x.stderr)
            self.assertIn(os.path.basename(path), x.stderr)
            self.assertNotIn(s.TOKEN.decode(), x.stderr)
            self.as_before(p)
        self.assertEqual(r.connections, 0)

    def test_options(self):
        """options that are not for recordings over the network, and wrong values: status 2, and nothing is connected"""
        p, r = self.program(), self.receiver()
        for options in (("--rotate", "1M"), ("--live-only",), ("--send-buffer", "255K"), ("--send-buffer", "x"),
                        ("--deliver-within", "soon")):
            self.fails(p, r.port, *options, status=2)
        for options in (("--to", f"127.0.0.1:{r.port}"), ("--token", self.token), ("--send-buffer", "1M"),
                        ("--to", "127.0.0.1:0", "--token", self.token), ("--to", "127.0.0.1:65536", "--token", self.token),
                        ("--to", "", "--token", self.token)):
            x = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), *options, "--for", "1s"], capture_output=True, text=True,
                               timeout=120, stdin=subprocess.DEVNULL, cwd=self.cwd)
            self.assertEqual(x.returncode, 2, (options, x.stderr))
            self.as_before(p)
        self.assertEqual(r.connections, 0)

    def test_process_refused(self):
        """a process that cannot be recorded: attach's own status, and no file stays at the receiver"""
        g = s.Gather(self, self.path("out"))
        for arguments, status in ((("-p", "2"), 5), (("-p", "1" * 9), 3)):
            self.memprof("attach", "-q", *arguments, "--to", f"127.0.0.1:{g.port}", "--token", self.token, status=status)
        p = self.program()
        self.record(p.pid, 60, "--background")
        self.memprof(*self.arguments(p, g.port), status=7)
        self.detach(p.pid)
        t.wait_for(lambda: g.files() == [])
        self.assertNotIn("complete", g.out)
        g.end()

    def test_run(self):
        """run --to without a receiver: status 14; the program runs without being recorded, as with a file that cannot be written"""
        r = self.receiver()
        r.away()
        x = subprocess.run([t.MEMPROF, "run", "-q", "--to", f"127.0.0.1:{r.port}", "--token", self.token, "--", "touch",
                            self.path("started")], capture_output=True, text=True, timeout=120)
        self.assertEqual(x.returncode, 14, x.stderr)
        t.wait_for(lambda: os.path.exists(self.path("started")))


class Away(Stream):
    """Receivers that leave or refuse while memprof records."""
    def test_away_at_the_end(self):
        """the receiver is away when the recording ends: the process is restored while memprof still tries; then all arrives"""
        r, p, rec = self.sending("--deliver-within", "5m")
        truth = round_of(p)
        r.away()
        self.memprof("detach", "-p", p.pid)
        t.wait_for(lambda: self.restored(p))
        self.assertEqual(self.recorder(p.pid), 0)
        self.assertIsNone(rec.poll(), self.said())
        r.back()
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_never_back(self):
        """the receiver does not come back: status 14 with the number of bytes that it does not have, and what it has can be read"""
        r, p, rec = self.sending("--deliver-within", "1s")
        round_of(p)
        self.memprof("flush", "-p", p.pid)
        r.away()
        self.memprof("detach", "-p", p.pid, status=0)
        t.wait_for(lambda: self.restored(p))
        self.ended(rec, 14)
        self.assertRegex(self.said(), r"[1-9][0-9,.]* (?:[KM]i?B|bytes)")
        self.as_before(p)
        self.assertEqual(r.done, set())
        self.assertGreater(self.report(self.partial(r))["totals"]["allocations"], 0)

    def test_ctrl_c(self):
        """Ctrl-C while the receiver is away: the process is restored while memprof still tries; then all arrives"""
        r, p, rec = self.sending("--deliver-within", "5m")
        truth = round_of(p)
        r.away()
        rec.send_signal(signal.SIGINT)
        t.wait_for(lambda: self.restored(p))
        self.assertIsNone(rec.poll(), self.said())
        r.back()
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_lost_file(self):
        """the receiver has lost the file: memprof ends with an error, the process is restored"""
        r, p, rec = self.sending()
        self.memprof("flush", "-p", p.pid)
        id, = r.files
        self.assertGreater(r.acknowledged[id], 0)
        r.forget(id)
        self.ended(rec, 14)
        t.wait_for(lambda: self.restored(p))
        self.as_before(p)
        self.assertEqual((r.errors, r.done), ([], set()))
        self.assertEqual(bytes(r.files.get(id, b"")), b"")
        round_of(p)

    def test_fail(self):
        """FAIL is shown, without its control characters, and tried again until the receiver takes the bytes"""
        r, p, rec = self.sending()
        r.fail = "the disk \x1b[31mis\nfull"
        truth = round_of(p)
        t.wait_for(lambda: r.failed >= 2)
        self.wait_said("the disk ")
        r.fail = None
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertIn("full", self.said())
        self.assertNotIn("\nfull", self.said())
        self.exact(truth, self.saved(r))

    def test_fail_at_the_end(self):
        """FAIL in answer to END: the process is restored, and memprof tries again"""
        r, p, rec = self.sending("--deliver-within", "5m")
        truth = round_of(p)
        self.memprof("flush", "-p", p.pid)
        r.fail = "no room"
        self.memprof("detach", "-p", p.pid)
        t.wait_for(lambda: self.restored(p) and r.failed >= 2)
        r.fail = None
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_full_disk(self):
        """memprof gather's disk is full for some time: the same"""
        disk = self.path("disk")
        os.mkdir(disk)
        g = s.Gather(self, disk, prefix=("unshare", "-m", "sh", "-ec", f"mount -t tmpfs -o size=64m tmpfs {disk}; exec \"$@\"", "sh"))
        inside = f"/proc/{g.process.pid}/root{disk}"
        p = self.program()
        rec = self.attach(p, g.port, "--history", "--lossless", "-o", "r.memprof")
        with open(inside + "/filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(1 << 20))
        truth = round_of(p)
        t.wait_for(lambda: "No space" in g.out + g.err and self.said())
        os.remove(inside + "/filler")
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        shutil.copy(inside + "/r.memprof", self.path("received"))
        self.exact(truth, self.path("received"))
        g.end()

    def test_killed(self):
        """memprof is killed: detach restores the process, and the receiver's file can be read"""
        g = s.Gather(self, self.path("out"))
        p = self.program()
        blocked = t.masks(p.pid)
        rec = self.attach(p, g.port, "--history", "--lossless", "-o", "r.memprof")
        truth = round_of(p)
        self.memprof("flush", "-p", p.pid)
        rec.kill()
        rec.wait()
        self.repaired(p, self.before, blocked)
        self.as_before(p)
        g.wait_said(r"r\.memprof: connection lost at [1-9][0-9]* bytes: ")
        self.assertEqual(t.calls(self.report(self.path("out/r.memprof")))["malloc"], truth["malloc"] + 2)
        g.end()


class Ends(Stream):
    def test_flush(self):
        """flush returns when the receiver has acknowledged, and not before"""
        r, p, rec = self.sending()
        r.acks, had = False, len(r.only())
        truth = round_of(p)
        flush = self.start(t.MEMPROF, "flush", "-p", str(p.pid))
        t.wait_for(lambda: len(r.only()) > had)
        time.sleep(0.3)  # in which it would end if it did not wait
        self.assertIsNone(flush.poll())
        r.acks = True
        r.drop()
        self.assertEqual(flush.wait(120), 0)
        self.assertEqual(t.calls(self.report(self.partial(r)))["malloc"], truth["malloc"] + 2)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_flush_away(self):
        """flush while the receiver is away ends: when it is back, or with an error; the recording is complete in the end"""
        r, p, rec = self.sending()
        r.away()
        truth = round_of(p)
        flush = self.start(t.MEMPROF, "flush", "-p", str(p.pid), stderr=subprocess.DEVNULL)
        r.back()
        flush.wait(120)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.exact(truth, self.saved(r))

    def test_signals(self):
        """SIGINT and SIGTERM: status 0, a complete file at the receiver, the process as before"""
        for number in (signal.SIGINT, signal.SIGTERM):
            r = self.receiver()
            p = self.program(2, 50000)
            rec = self.attach(p, r.port, "--history", "--lossless")
            truth = round_of(p)
            rec.send_signal(number)
            self.ended(rec)
            self.as_before(p)
            self.exact(truth, self.saved(r))

    def test_for(self):
        """--for: a complete file"""
        r = self.receiver()
        p = self.program()
        self.memprof(*self.arguments(p, r.port, "--for", "300ms"))
        self.as_before(p)
        self.memprof("verify", self.saved(r))

    def test_exit(self):
        """the process ends, or is killed: a complete file that says so"""
        for end in (lambda p: p.communicate("end\n", timeout=120), lambda p: p.kill()):
            r = self.receiver()
            p = self.program(2, 50000)
            rec = self.attach(p, r.port, "--history", "--lossless")
            truth = round_of(p)
            end(p)
            self.ended(rec)
            recording = self.saved(r)
            self.memprof("verify", recording)
            self.assertGreaterEqual(t.calls(self.report(recording))["malloc"], truth["malloc"] + 2)

    def test_exit_while_away(self):
        """the process ends while the receiver is away: all arrives when it is back"""
        r, p, rec = self.sending("--deliver-within", "5m")
        truth = round_of(p)
        r.away()
        p.communicate("end\n", timeout=120)
        self.assertEqual(p.returncode, 0)
        self.assertIsNone(rec.poll(), self.said())
        r.back()
        self.ended(rec)
        recording = self.saved(r)
        self.memprof("verify", recording)
        self.assertGreaterEqual(t.calls(self.report(recording))["malloc"], truth["malloc"] + 2)

    def test_run(self):
        """run --to: the program's status, and all that it did"""
        r = self.receiver()
        x = self.memprof("run", "-q", "--lossless", "--history", "--to", f"127.0.0.1:{r.port}", "--token", self.token, "--",
                         f"{t.VICTIMS}/exact", 2, 50000)
        truth = json.loads(x.stdout[x.stdout.index("{"):x.stdout.index("}") + 1])
        recording = self.saved(r)
        self.memprof("verify", recording)
        self.assertEqual(t.calls(self.report(recording))["malloc"], truth["malloc"] + 1)

    def test_background(self):
        """--background: returns when it records; the file is complete after detach"""
        g = s.Gather(self, self.path("out"), "--recordings", 1)
        p = self.program()
        self.memprof(*self.arguments(p, g.port, "--history", "--lossless", "--background", "-o", "r.memprof"))
        truth = round_of(p)
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.as_before(p)
        self.exact(truth, self.path("out/r.memprof"))

    def test_no_files(self):
        """memprof makes no file where it runs, in the home folder (but its cache) or among temporary files"""
        r = self.receiver()
        p = self.program()
        home, temporary, cache = self.path("home"), self.path("tmp"), self.path("cache")
        for d in (home, temporary, cache):
            os.mkdir(d)
        with open(self.log, "w") as out:
            rec = self.start(t.MEMPROF, *self.arguments(p, r.port, "--history", "--lossless"), cwd=self.cwd, stdout=out, stderr=out,
                             env=dict(os.environ, HOME=home, TMPDIR=temporary, XDG_RUNTIME_DIR=temporary, XDG_CACHE_HOME=cache))
        self.wait_recording(p, rec)
        truth = round_of(p)
        self.memprof("flush", "-p", p.pid)
        self.assertEqual([os.listdir(d) for d in (self.cwd, home, temporary)], [[], [], []])
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertEqual([os.listdir(d) for d in (self.cwd, home, temporary)], [[], [], []])
        self.exact(truth, self.saved(r))

    def test_names(self):
        """the proposed name: HOSTNAME-PROGRAM-PID-TIME.memprof, or what -o says"""
        p = self.program()
        for options, name in (((), rf"{re.escape(socket.gethostname())}-exact-{p.pid}-[^/]+\.memprof"), (("-o", "x-%e-%p"), f"x-exact-{p.pid}")):
            r = self.receiver()
            self.memprof(*self.arguments(p, r.port, "--for", "100ms", *options))
            self.assertRegex(next(iter(r.names.values())).decode(), rf"\A{name}\Z")
        self.as_before(p)


class Announced(Stream):
    """Two networks that are connected by a cable: the process is recorded in one, gather is in the other."""
    def setUp(self):
        if not shutil.which("ip"):
            self.skipTest("no ip (iproute2)")
        super().setUp()
        own = os.readlink("/proc/self/ns/net")
        self.holders = [self.start("unshare", "--net", "sleep", "infinity") for _ in range(2)]
        for h in self.holders:
            t.wait_for(lambda: h.poll() is not None or os.readlink(f"/proc/{h.pid}/ns/net") != own)
        self.near, self.far = [["nsenter", "--net", "-t", str(h.pid)] for h in self.holders]
        r = subprocess.run([*self.near, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
                            str(self.holders[1].pid)], capture_output=True, text=True)
        if r.returncode:
            self.tearDown()
            self.skipTest(f"the kernel has no veth: {r.stderr.strip()}")
        for where, address in ((self.near, "10.97.43.1"), (self.far, "10.97.43.2")):
            for command in (f"addr add {address}/24 broadcast + dev cable", "link set cable up", "link set lo up"):
                subprocess.run([*where, "ip", *command.split()], check=True)

    def memprof(self, *argv, status=0, timeout=300):
        """Runs memprof in the near network: a recorder's control socket belongs to its network."""
        r = subprocess.run([*self.near, t.MEMPROF, *map(str, argv)], text=True, capture_output=True, timeout=timeout,
                           stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, status, f"memprof {argv}: {r.stdout}{r.stderr}")
        return r

    def announce(self, p, *options):
        with open(self.log, "w") as out:
            return self.start(*self.near, t.MEMPROF, "attach", "-q", "-p", str(p.pid), "--announce", "--token", self.token,
                              "--history", "--lossless", *options, cwd=self.cwd, stdout=out, stderr=out)

    def heard(self):
        """Waits for an announcement, in the far network."""
        x = self.start(*self.far, "/usr/bin/python3", "-c", """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 43512))
s.settimeout(120)
print(s.recv(65536).hex())
""")
        return bytes.fromhex(x.communicate(timeout=150)[0])

    def find(self, *options, token=None):
        return s.Gather(self, self.path("out"), "--find", *options, listen=None, token=token, prefix=self.far)

    def port(self, rec):
        """The TCP port at which a process listens."""
        def listening():
            links = t.links(rec.pid)
            tables = [f"/proc/{rec.pid}/net/{x}" for x in ("tcp", "tcp6")]
            for line in b"".join(t.read(x) for x in tables if os.path.exists(x)).decode().split("\n"):
                f = line.split()
                if len(f) > 9 and f[3] == "0A" and f"socket:[{f[9]}]" in links:
                    return int(f[1].rsplit(":", 1)[1], 16)
            return None
        return t.wait_for(listening)

    def send(self, port, data):
        """Sends bytes to the near network's TCP port from the far one, and waits until the connection is closed."""
        subprocess.run([*self.far, "/usr/bin/python3", "-c", f"""
import contextlib, socket
with contextlib.suppress(ConnectionError):
    s = socket.create_connection(("10.97.43.1", {port}), timeout=120)
    s.sendall(bytes.fromhex("{data.hex()}"))
    while s.recv(1000):
        pass
"""], check=True, timeout=150)

    def test_found(self):
        """--announce waits without touching the process until gather --find receives an announcement and connects; the recording is exact"""
        p = self.program()
        rec = self.announce(p, "-o", "r.memprof")
        self.heard()
        self.heard()
        self.as_before(p)
        self.assertIsNone(rec.poll(), self.said())
        g = self.find("--recordings", 1)
        self.wait_recording(p, rec)
        truth = round_of(p)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.as_before(p)
        self.assertIn("r.memprof: begun, from 10.97.43.1", g.out)
        self.exact(truth, self.path("out/r.memprof"))

    def test_datagram(self):
        """the announcement has id, pid, program and port, and neither the token nor what a HMAC makes from it"""
        p = self.program()
        rec = self.announce(p, "-o", "r.memprof")
        said = self.heard()
        port = self.port(rec)
        self.assertIn(b"exact", said)
        for n in (p.pid, port):
            ways = [str(n).encode()] + [n.to_bytes(size, order) for size in (2, 4) for order in ("little", "big") if n < 1 << 8 * size]
            self.assertTrue(any(w in said for w in ways), n)
        made = [s.TOKEN, s.TOKEN.hex().encode(), hashlib.sha256(s.TOKEN).digest()]
        made += [hmac.new(s.TOKEN, said[i:j], hashlib.sha256).digest() for i in range(len(said)) for j in range(i, len(said) + 1)]
        for secret in made:
            for part in (secret[:8], secret[:8].hex().encode()):
                self.assertNotIn(part, said)
        g = self.find("--recordings", 1)
        self.wait_recording(p, rec)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertEqual(g.process.wait(120), 0, g.err)
        id = s.info_id(self.path("out/r.memprof"))
        self.assertTrue(id in said or id.hex().encode() in said)

    def record_found(self, g, p, rec):
        """Records all work of @p, once the receiver @g has connected; @g ends when that is complete, and it is exact."""
        self.wait_recording(p, rec)
        truth = round_of(p)
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.exact(truth, self.path("out/r.memprof"))

    def test_strangers(self):
        """connections of others, and of a gather with another token, leave the process untouched and do not end the wait"""
        p = self.program()
        rec = self.announce(p, "-o", "r.memprof")
        port = self.port(rec)
        for data in (b"GET / HTTP/1.1\r\n\r\n" + bytes(80), bytes(80), peer.hello(peer.SENDER) + bytes(32),
                     peer.hello(peer.RECEIVER) + os.urandom(32)):
            self.send(port, data)
        stranger = self.find(token=s.write_token(self.path("other"), b"another token, 24 bytes."))
        t.wait_for(lambda: "refused: " in stranger.err)
        stranger.end()
        self.as_before(p)
        self.assertIsNone(rec.poll(), self.said())
        g = self.find("--recordings", 1)
        self.record_found(g, p, rec)

    def test_found_again(self):
        """gather --find is killed and started again: it finds the sender again, and the recording continues"""
        p = self.program()
        rec = self.announce(p, "-o", "r.memprof")
        g = self.find()
        self.wait_recording(p, rec)
        self.memprof("flush", "-p", p.pid)
        g.kill()
        truth = round_of(p)
        g = self.find("--recordings", 1)
        g.wait_said(r"r\.memprof: continued at [1-9][0-9]* bytes, from ")
        self.memprof("detach", "-p", p.pid)
        self.ended(rec)
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.as_before(p)
        self.exact(truth, self.path("out/r.memprof"))

    def test_garbage_announced(self):
        """gather --find survives datagrams of any content, and connects only to senders with the token"""
        g = self.find("--recordings", 1)
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        subprocess.run([*self.near, "/usr/bin/python3", "-c", f"""
import random, socket
r = random.Random({seed})
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for i in range(2000):
    s.sendto(r.randbytes(r.randrange(200)), ("10.97.43.255", 43512))
"""], check=True, timeout=120)
        p = self.program()
        rec = self.announce(p, "-o", "r.memprof")
        self.record_found(g, p, rec)

    def test_ctrl_c(self):
        """Ctrl-C while it waits for a receiver ends memprof; the process was not touched"""
        p = self.program()
        rec = self.announce(p)
        self.heard()
        rec.send_signal(signal.SIGINT)
        rec.wait(120)
        self.as_before(p)


if __name__ == "__main__":
    t.main()
