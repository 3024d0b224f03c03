#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof gather, against a sender that was written from doc/streaming.md: what arrives is exact and complete, whenever
connections break, and a peer without the token neither writes to a file nor keeps others out."""
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import unittest

import memprof_test as t
import stream_peer as peer
import stream_test as s

SILENT = 300
SENDERS = 200
SAFE = re.compile(r"[A-Za-z0-9_+@-][A-Za-z0-9._+@-]{0,199}")


def some(n, seed=0):
    return random.Random(seed).randbytes(n)


def halves(content):
    """Where a recording can be cut: in its first chunk, after it, in the middle, and in its last chunk."""
    first = 12 + 24 + struct.unpack_from("<I", content, 24)[0]
    return [5, first, first + 1, len(content) // 2, len(content) - 1]


class Quiet:
    """Connections that come to nothing, and a sender that has nothing to send but says so.  They are begun before all
    tests, since what they wait for takes 20 seconds, and looked at by the last one."""
    @classmethod
    def begin(cls):
        cls.case = t.Case()
        cls.case.setUp()
        unittest.addModuleCleanup(cls.case.tearDown)
        cls.gather = s.Gather(cls.case, cls.case.path("out"))
        make = cls.gather.sender
        cls.silent = [make().connect() for _ in range(SILENT - 4)]
        cls.after_hello, cls.after_open, cls.half_frame, cls.alive = make(), make(name="o"), make(name="h"), make(name="a")
        cls.after_hello.connect().hello()
        cls.after_open.open()
        cls.half_frame.open()
        cls.half_frame.data(0, b"ten bytes.")
        cls.half_frame.acked(10)
        cls.half_frame.send(cls.half_frame.frame(peer.DATA, 10, b"cut off")[:30])
        cls.alive.open()
        cls.ended = threading.Event()
        cls.pings = threading.Thread(target=cls.ping, daemon=True)
        cls.pings.start()

    @classmethod
    def ping(cls):
        with contextlib.suppress(peer.Closed):
            while not cls.ended.wait(4):
                cls.alive.ping()
                cls.alive.acked(0)

    @classmethod
    def end(cls):
        cls.ended.set()
        cls.pings.join()
        for x in [*cls.silent, cls.after_hello, cls.after_open, cls.half_frame, cls.alive]:
            x.close()


def setUpModule():
    Quiet.begin()


def tearDownModule():
    Quiet.end()


class Gathered(t.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.path("out")
        self.senders = []

    def tearDown(self):
        for x in self.senders:
            x.close()
        super().tearDown()

    def gather(self, *options, **how):
        self.g = s.Gather(self, self.folder, *options, **how)
        return self.g

    def sender(self, **how):
        self.senders.append(self.g.sender(**how))
        return self.senders[-1]

    def refused(self, pattern, *arguments):
        """memprof gather ends at once, with a message on stderr and nothing else."""
        r = subprocess.run([t.MEMPROF, "gather", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                           stdin=subprocess.DEVNULL, cwd=self.dir)
        self.assertGreater(r.returncode, 0, r.stdout + r.stderr)
        self.assertRegex(r.stderr, rf"^memprof: .*{pattern}")
        self.assertEqual(r.stdout, "")
        return r


class Contents(Gathered):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.recording = cls.shared + "/real.memprof"
        subprocess.run([t.MEMPROF, "run", "-q", "--history", "-o", cls.recording, "--", f"{t.VICTIMS}/exact", "2", "20000"],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        cls.content, cls.id = t.read(cls.recording), s.info_id(cls.recording)

    def test_real(self):
        """a recording arrives byte for byte; memprof report reads it while it is incomplete and after; one line says each step"""
        g = self.gather()
        x = self.sender(id=self.id, name="real.memprof")
        self.assertEqual(x.open(), 0)
        half = len(self.content) * 3 // 4
        x.more(self.content, 0, half)
        x.acked(half)
        self.assertEqual(g.read("real.memprof"), self.content[:half])
        self.assertEqual(self.report(f"{self.folder}/real.memprof")["id"], self.id.hex())
        x.close()
        g.wait_said(rf"real\.memprof: connection lost at {half} bytes: \S.*$")
        self.assertEqual(x.deliver(self.content), half)
        whole = f"{self.folder}/real.memprof"
        self.assertEqual(t.read(whole), self.content)
        self.assertEqual(self.report(whole), self.report(self.recording))
        self.memprof("verify", whole)
        g.wait_said(rf"real\.memprof: complete, {len(self.content)} bytes$")
        self.assertRegex(g.out, rf"\Alistening at 127\.0\.0\.1:{g.port}\nreal\.memprof: begun, from 127\.0\.0\.1\S*\n"
                         rf"real\.memprof: connection lost at {half} bytes: .*\nreal\.memprof: continued at {half} bytes, from 127\.0\.0\.1\S*\n"
                         rf"real\.memprof: complete, {len(self.content)} bytes\n\Z")
        self.assertEqual(g.err, "")
        g.end()

    def test_restarted(self):
        """gather is restarted, or killed, with the same folder: a recording continues in its file, wherever it broke off"""
        for how in ("end", "kill"):
            for n in halves(self.content):
                name = f"{how}{n}.memprof"
                g = self.gather()
                x = self.sender(id=self.id, name=name)
                x.open()
                x.more(self.content, 0, n)
                x.acked(n)
                getattr(g, how)()
                self.assertEqual(g.read(name), self.content[:n])
                g = self.gather()
                x = self.sender(id=self.id, name=name)
                # What was acknowledged, the sender does not have any more.
                self.assertEqual(x.deliver(self.content, first=n), n, name)
                self.assertEqual(g.files(), [name])
                self.assertEqual(g.read(name), self.content)
                g.end()
                shutil.rmtree(self.folder)

    def test_restarted_others(self):
        """after a restart, a recording of the same name with another id gets a file of its own"""
        g = self.gather()
        self.sender(id=self.id, name="real.memprof").deliver(self.content)
        g.end()
        g = self.gather()
        self.sender(name="real.memprof").deliver(b"other")
        self.assertEqual(g.read("real.memprof"), self.content)
        self.assertEqual(g.read("real-2.memprof"), b"other")
        g.end()

    def test_changed_index(self):
        """an index that names a file outside the folder, a link, or has any bytes: nothing but recordings in the folder is written to"""
        g = self.gather()
        x = self.sender(name="name-in-the-index")
        x.open()
        x.data(0, b"begun")
        x.acked(5)
        g.end()
        index, right = f"{self.folder}/{s.INDEX}", t.read(f"{self.folder}/{s.INDEX}")
        self.assertIn(b"name-in-the-index", right)
        victim = self.path("victim")
        os.symlink(victim, self.folder + "/link")
        for wrong in (*(right.replace(b"name-in-the-index", n) for n in (b"../victim", victim.encode(), b"link", b"", b"..", b"x\0y")),
                      right[:-3], right[:10], b"", some(5000), b"\n" * 100, b"x" * 100000):
            with open(victim, "wb") as f:
                f.write(b"begun")
            with open(index, "wb") as f:
                f.write(wrong)
            g = self.gather()
            again = self.sender(id=x.id, name="name-in-the-index")
            with contextlib.suppress(peer.Refused, peer.Closed):
                again.deliver(b"begun and ended")
            self.assertEqual(t.read(victim), b"begun", wrong[:100])
            self.sender(name="other").deliver(b"x")
            g.end()

    def test_done_again(self):
        """the connection breaks before DONE arrives: the sender asks again, and gets DONE; also after a restart"""
        g = self.gather()
        x = self.sender(id=self.id, name="real.memprof")
        x.deliver(self.content)
        self.assertEqual(x.deliver(self.content, first=len(self.content)), len(self.content))
        g.end()
        g = self.gather()
        x = self.sender(id=self.id, name="real.memprof")
        self.assertEqual(x.deliver(self.content, first=len(self.content)), len(self.content))
        self.assertEqual(g.files(), ["real.memprof"])
        self.assertEqual(g.read("real.memprof"), self.content)
        g.end()

    def test_modes(self):
        """files are of mode 0600, a folder that gather makes of 0700, whatever the umask"""
        for umask in (0, 0o077, 0o022):
            g = self.gather(umask=umask)
            self.sender().deliver(b"x")
            self.assertEqual(stat.S_IMODE(os.stat(self.folder).st_mode), 0o700)
            for name in os.listdir(self.folder):
                self.assertEqual(stat.S_IMODE(os.stat(f"{self.folder}/{name}").st_mode), 0o600, name)
            g.end()
            shutil.rmtree(self.folder)

    def test_recordings(self):
        """--recordings N ends when N are complete, and not for one that is completed twice; without an END it continues to wait"""
        g = self.gather("--recordings", 2)
        cut = self.sender(name="cut")
        cut.open()
        cut.data(0, b"not all of it")
        cut.acked(13)
        cut.close()
        g.wait_said("cut: connection lost at 13 bytes")
        one = self.sender(name="one")
        one.deliver(b"1")
        one.deliver(b"1")
        self.sender(name="alive").deliver(b"2")
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.assertEqual([g.read(x) for x in ("alive", "cut", "one")], [b"2", b"not all of it", b"1"])

    def test_ended(self):
        """SIGTERM and SIGINT end it with status 0, and what was acknowledged is in the file"""
        for number in (signal.SIGTERM, signal.SIGINT):
            g = self.gather()
            x = self.sender(name=f"{int(number)}")
            x.open()
            x.data(0, some(50000))
            x.acked(50000)
            g.process.send_signal(number)
            self.assertEqual(g.process.wait(120), 0, g.err)
            self.assertEqual(g.read(x.name.decode()), some(50000))
            x.closed()

    def test_acknowledged(self):
        """an ACK for each 256 KiB, and one without more data; never more than the file has"""
        g = self.gather()
        x = self.sender()
        x.open()
        content = some(1 << 20)
        x.more(content, 0, len(content))
        acks = []
        while not acks or acks[-1] < len(content):
            acks.append(x.acked(0))
            self.assertLessEqual(acks[-1], os.stat(self.folder + "/s.memprof").st_size)
        self.assertEqual(acks, sorted(acks))
        self.assertTrue(all(b - a <= 256 << 10 for a, b in zip([0] + acks, acks)), acks)
        x.ping()
        self.assertEqual(x.acked(0), len(content))
        x.finish(len(content))
        g.end()

    def test_many(self):
        """200 senders at once, a frame of each in turn: each file is exact"""
        g = self.gather()
        contents = [some(3000 + 10 * i, i) for i in range(SENDERS)]
        senders = [self.sender(name=f"{i}.memprof") for i in range(SENDERS)]
        for x in senders:
            self.assertEqual(x.open(), 0)
        for at in range(0, 5000, 1000):
            for x, content in zip(senders, contents):
                if content[at:]:
                    x.data(at, content[at:at + 1000])
        for x, content in zip(senders, contents):
            x.end(len(content))
        for x, content in zip(senders, contents):
            while x.answer()[0] != peer.DONE:
                pass
        self.assertEqual([g.read(f"{i}.memprof") == c for i, c in enumerate(contents)], [True] * SENDERS)
        self.assertEqual(g.out.count(": complete, "), SENDERS)
        g.end()


class Names(Gathered):
    def test_names(self):
        """names are cut at the last slash and have no strange characters; nothing is made outside the folder"""
        self.folder = self.path("a/b/out")
        os.makedirs(self.path("a/b"))
        g = self.gather()
        expected = {b"plain-1_2+3@4.memprof": "plain-1_2+3@4.memprof", b"/etc/passwd": "passwd",
                    b"../../outside.memprof": "outside.memprof", b"a b\tc": "a_b_c", b"n\0ul": "n_ul", b"li\nne": "li_ne",
                    b"\x1b[31mred": "__31mred", "\u00e9".encode(): "__", b"a\\b": "a_b", b"$(id)`;'\"": "__id_____"}
        for proposed, name in expected.items():
            self.sender(name=proposed).deliver(proposed)
            self.assertEqual(g.read(name), proposed, proposed)
        for proposed in (b".", b"..", b"...", b"/", b"x/..", b"x/.", b".hidden", s.INDEX.encode(), b"n" * 300, b"x" * 300 + b".memprof",
                         b"y" * 4000, b"\xff" * 250, b"../" * 100, b""):
            before = set(g.files())
            try:
                self.sender(name=proposed).deliver(b"other")
            except (peer.Closed, peer.Refused):  # a name of which nothing is left
                self.assertEqual(set(g.files()), before, proposed)
                self.assertFalse(proposed.rsplit(b"/", 1)[-1].strip(b"."), proposed)
                continue
            made = set(g.files()) - before
            self.assertEqual(len(made), 1, proposed)
            self.assertRegex(made.pop(), SAFE, proposed)
        self.assertTrue(all(SAFE.fullmatch(x) for x in g.files()), g.files())
        self.assertEqual([os.listdir(self.path(x)) for x in ("a", "a/b")], [["b"], ["out"]])
        self.assertFalse(os.path.exists(self.path("outside.memprof")))
        self.assertRegex(g.out, r"\A[ -~\n]*\Z")
        g.end()

    def test_same_name(self):
        """the same name of another id gets -2, then -3, before the suffix; each continues in its own"""
        g = self.gather()
        for name, second, third in (("s.memprof", "s-2.memprof", "s-3.memprof"), ("plain", "plain-2", "plain-3"),
                                    ("a.b.memprof", "a.b-2.memprof", "a.b-3.memprof")):
            senders = [self.sender(name=name) for _ in range(3)]
            for i, x in enumerate(senders):
                x.open()
                x.data(0, f"{i}".encode())
                x.acked(1)
            for i, x in reversed(list(enumerate(senders))):
                x.close()
                self.assertEqual(x.deliver(f"{i} and the rest".encode(), first=1), 1)
            self.assertEqual([g.read(x) for x in (name, second, third)], [f"{i} and the rest".encode() for i in range(3)])
            g.wait_said(re.escape(third) + ": complete, 14 bytes$")
        long = [self.sender(name="n" * 300 + ".memprof") for _ in range(2)]
        before = set(g.files())
        for x in long:
            x.deliver(x.id)
        self.assertEqual({g.read(x) for x in set(g.files()) - before}, {x.id for x in long})
        g.end()

    def test_not_its_own(self):
        """a file, folder, pipe or link of that name that gather has not made stays as it was"""
        os.mkdir(self.folder)
        victim = self.path("victim")
        for path in (victim, self.folder + "/file.memprof"):
            with open(path, "w") as f:
                f.write("precious")
        os.mkdir(self.folder + "/folder.memprof")
        os.mkfifo(self.folder + "/pipe.memprof")
        os.symlink(victim, self.folder + "/link.memprof")
        os.symlink(self.path("nothing"), self.folder + "/dangling.memprof")
        os.link(victim, self.folder + "/second.memprof")
        g = self.gather()
        for name in ("file", "folder", "pipe", "link", "dangling", "second"):
            self.sender(name=name + ".memprof").deliver(name.encode())
            self.assertEqual(g.read(name + "-2.memprof"), name.encode())
        self.assertEqual([t.read(x) for x in (victim, self.folder + "/file.memprof")], [b"precious"] * 2)
        self.assertFalse(os.path.exists(self.path("nothing")))
        g.end()


class Resume(Gathered):
    def test_every_byte(self):
        """the connection is cut after each number of bytes: what the sender adds then completes the file, exactly"""
        self.folder = tempfile.mkdtemp(prefix="memprof-test-", dir="/dev/shm")  # each END waits for the disk
        self.addCleanup(shutil.rmtree, self.folder)
        g = self.gather()
        content = some(30)

        def stream(x):
            x.open()
            x.more(content, 0, len(content), 10)
            x.finish(len(content))
        name, n, cut = b"000.memprof", 0, True
        while cut:
            x, name, cut = self.sender(name=b"%03d.memprof" % n), b"%03d.memprof" % n, False
            x.cut_after(n)
            try:
                stream(x)
            except peer.Closed:
                cut = True
            x.left = None
            x.close()
            self.assertIn(x.deliver(content, 7), range(len(content) + 1), n)
            self.assertEqual(g.read(name.decode()), content, n)
            n += 1
        head = peer.HEAD + peer.CODE
        self.assertEqual(n - 1, peer.HELLO + peer.PROOF + head + peer.ID + len(name) + 3 * (head + 10) + head)
        self.assertEqual(len(g.files()), n)
        g.end()

    def test_later_wins(self):
        """a second connection of an id takes the place of the first, which gets nothing more into the file"""
        g = self.gather()
        content = some(3000)
        first = self.sender()
        first.open()
        first.data(0, content[:1000])
        first.acked(1000)
        second = self.sender(id=first.id)
        self.assertEqual(second.open(), 1000)
        with contextlib.suppress(peer.Closed):
            first.data(1000, b"wrong" * 100)
        self.assertNotIn(peer.DONE, [kind for kind, _, _ in first.closed()])
        second.data(1000, content[1000:])
        second.finish(3000)
        self.assertEqual((g.files(), g.read("s.memprof")), (["s.memprof"], content))
        g.end()

    def test_not_the_bytes_between(self):
        """a sender that has no bytes before an offset beyond the file: nothing is written, the sender gets the file's length, other senders continue"""
        g = self.gather()
        other = self.sender(name="other")
        other.open()
        other.data(0, b"one ")
        known = self.sender(name="known")
        known.open()
        known.data(0, b"known")
        known.acked(5)
        known.close()
        for x, has, first in ((self.sender(name="new"), 0, 1), (self.sender(name="new"), 0, 1 << 63), (known, 5, 6)):
            with contextlib.suppress(peer.Refused):
                self.assertEqual(x.open(first), has)
                with contextlib.suppress(peer.Closed):
                    x.data(first, b"beyond")
                self.assertNotIn(peer.DONE, [kind for kind, _, _ in x.closed()])
            x.close()
        self.assertEqual(g.read("known"), b"known")
        self.assertFalse([f for f in g.files() if f.startswith("new") and g.read(f)])
        other.data(4, b"two")
        other.finish(7)
        self.assertEqual(g.read("other"), b"one two")
        known.deliver(b"known, and more", first=5)
        self.assertEqual(g.read("known"), b"known, and more")
        g.end()

    def test_fresh_start(self):
        """a sender that opens again with all its bytes continues behind what the file has"""
        g = self.gather()
        content = some(100000)
        x = self.sender()
        x.open()
        x.data(0, content[:40000])
        x.acked(40000)
        x.close()
        self.assertEqual(x.deliver(content), 40000)
        self.assertEqual(g.read("s.memprof"), content)
        g.end()


class Proof(Gathered):
    def test_wrong_token(self):
        """a sender with another token gets neither the receiver's proof nor a file, and stderr says so; other senders continue"""
        g = self.gather()
        other = self.sender(name="other")
        other.open()
        for token in (b"another token of more than 16 bytes", s.TOKEN[:-1], s.TOKEN + b"x", b"", s.TOKEN.upper()):
            x = self.sender(token=token)
            x.connect().hello()
            x.send(peer.secret(token, b"sender", x.hellos))
            self.assertEqual(x.closed_early(), b"")
        self.refusals(5)
        other.data(0, b"x")
        other.finish(1)
        self.assertEqual(g.files(), ["other"])
        g.end()

    def refusals(self, n):
        t.wait_for(lambda: len(re.findall(r"(?m)^memprof: 127\.0\.0\.1\S* refused: \S.*$", self.g.err)) >= n)

    def test_no_token(self):
        """without a proof, with the proof of another connection, with the receiver's or with a reflected hello: refused"""
        g = self.gather()
        before = self.sender()
        before.greet()

        def nothing(x):
            x.keys()
            return x.frame(peer.OPEN, 0, x.id + x.name) * 2

        def repeated(x):
            return peer.secret(s.TOKEN, b"sender", before.hellos)

        def receivers(x):
            return peer.secret(s.TOKEN, b"receiver", x.hellos)

        def turned(x):
            return peer.secret(s.TOKEN, b"sender", x.hellos[peer.HELLO:] + x.hellos[:peer.HELLO])

        def almost(x):
            right = peer.secret(s.TOKEN, b"sender", x.hellos)
            return right[:-1] + bytes([right[-1] ^ 1])
        ways = (nothing, repeated, receivers, turned, almost, lambda x: bytes(32))
        for way in ways:
            x = self.sender()
            x.connect().hello()
            x.send(way(x))
            self.assertEqual(x.closed_early(), b"")
        self.refusals(len(ways))
        self.assertEqual(g.files(), [])
        g.end()

    def test_hello(self):
        """a hello of another program, version or role, and one that is cut off: the connection is closed before a proof"""
        g = self.gather()
        hellos = (peer.hello(peer.RECEIVER), peer.hello(peer.SENDER, version=2), peer.hello(peer.SENDER, version=0),
                  peer.hello(peer.SENDER, zero=1), peer.hello(b"bytehoun"), b"GET / HTTP/1.1\r\nHost: localhost:9743\r\n\r\n" * 2,
                  b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(80), bytes(1000), b"\n" * 48)
        for made in hellos:
            x = self.sender()
            x.connect().send(made)
            self.assertLessEqual(len(x.closed_early()), peer.HELLO, made)
        for n in (1, 47):
            x = self.sender()
            x.connect().send(peer.hello(peer.SENDER)[:n])
            x.close()
        self.sender().deliver(b"x")
        self.assertEqual(g.files(), ["s.memprof"])
        g.end()

    def test_token_file(self):
        """a token that others can read, that is too short or too long, or missing is refused, and not shown"""
        for mode in (0o640, 0o604, 0o644, 0o666):
            r = self.refused("open", "--listen", "127.0.0.1:0", "--token", s.write_token(self.path("open"), mode=mode), "-o", "out")
            self.assertNotIn(s.TOKEN.decode(), r.stderr)
        for i, token in enumerate((b"", b"fifteen bytes..", b"fifteen bytes..\n\n", b" " * 20, b"x" * 1025)):
            self.refused(f"bad{i}", "--listen", "127.0.0.1:0", "--token", s.write_token(self.path(f"bad{i}"), token), "-o", "out")
        self.refused("missing", "--listen", "127.0.0.1:0", "--token", self.path("missing"), "-o", "out")
        self.refused("", "--listen", "127.0.0.1:0", "--token", self.dir, "-o", "out")
        self.refused("token", "--listen", "127.0.0.1:0", "-o", "out")
        self.assertFalse(os.path.exists(self.folder))

    def test_token_lengths(self):
        """16 and 1024 bytes are accepted, white space at the end is no part of a token, a mode of 0400 will do"""
        for i, (token, end, mode) in enumerate(((b"sixteen bytes ..", b"", 0o400), (b"x" * 1024, b"\n", 0o600),
                                                (b"white space after", b" \t\r\n\n", 0o600), (b"\0\xff binary\n \0\x01.....", b"\n", 0o600))):
            g = self.gather(token=s.write_token(self.path(f"token{i}"), token + end, mode))
            self.sender(token=token, name=f"{i}").deliver(b"x")
            self.assertEqual(g.read(f"{i}"), b"x")
            g.end()

    def test_new_token(self):
        """--new-token makes a file of mode 0600 with 32 random bytes, that works, and replaces nothing"""
        tokens = []
        for name in ("one", "two"):
            path = self.path(name)
            r = self.start(t.MEMPROF, "gather", "--new-token", path, umask=0, stderr=subprocess.PIPE)
            out, err = r.communicate(timeout=120)
            self.assertEqual(r.returncode, 0, err)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            tokens.append(t.read(path).rstrip())
            self.assertNotIn(tokens[-1].decode("latin1"), out + err)
            before = os.stat(path)
            self.refused("one|two", "--new-token", path)
            self.assertEqual((os.stat(path), t.read(path).rstrip()), (before, tokens[-1]))
        self.assertNotEqual(*tokens)
        self.assertGreaterEqual(min(map(len, tokens)), 16)
        os.symlink(self.path("elsewhere"), self.path("link"))
        self.refused("link", "--new-token", self.path("link"))
        self.assertFalse(os.path.exists(self.path("elsewhere")))
        g = self.gather(token=self.path("two"))
        self.sender(token=tokens[1]).deliver(b"x")
        g.end()


class BadFrames(Gathered):
    """Frames that a correct sender does not send, after ten bytes that it does."""
    def frames(self):
        """What is wrong, and how a sender makes it."""
        D = peer.DATA
        ways = {
            "code": lambda x: x.frame(D, 10, b"x", key=b"another key"),
            "code of the answers": lambda x: x.frame(D, 10, b"x", key=x.answer_key),
            "changed payload": lambda x: x.frame(D, 10, b"xyz").replace(b"xyz", b"xYz"),
            "changed head": lambda x: (lambda f: f[:12] + b"\x09" + f[13:])(x.frame(D, 10, b"xyz")),
            "own answer": lambda x: peer.frame(x.answer_key, 0, peer.ACK, 10),
            "number repeated": lambda x: x.frame(D, 10, b"x", number=x.number - 1),
            "number left out": lambda x: x.frame(D, 10, b"x", number=x.number + 1),
            "number 0": lambda x: x.frame(D, 10, b"x", number=0),
            "second OPEN": lambda x: x.frame(peer.OPEN, 0, x.id + x.name),
            "empty DATA": lambda x: x.frame(D, 10),
            "length of 65537": lambda x: x.frame(D, 10, bytes(65537)),
            "length of 4 GiB": lambda x: x.frame(D, 10, b"x", length=0xffffffff),
            "length too short": lambda x: x.frame(D, 10, b"xyz", length=2),
            "END with payload": lambda x: x.frame(peer.END, 10, b"x"),
            "PING with payload": lambda x: x.frame(peer.PING, 0, b"x"),
            "PING with offset": lambda x: x.frame(peer.PING, 10),
        }
        ways.update({f"type {n}": lambda x, n=n: x.frame(n, 10, b"x")
                     for n in (0, peer.CANCEL, 6, peer.ACK, peer.DONE, peer.FAIL, 19, 0x100 + D, 0xffffffff)})
        ways.update({f"DATA at {n}": lambda x, n=n: x.frame(D, n, b"x")
                     for n in (0, 9, 11, 1 << 32, (1 << 32) + 10, 1 << 63, (1 << 64) - 1)})
        ways.update({f"END at {n}": lambda x, n=n: x.frame(peer.END, n) for n in (0, 9, 11, (1 << 64) - 1)})
        return ways

    def test_frames(self):
        """a wrong code, number, type, length or offset closes the connection; the file and other connections stay as they are"""
        g = self.gather()
        witness, sent = self.sender(name="witness"), b""
        witness.open()
        for what, make in self.frames().items():
            x = self.sender(name=what)
            x.open()
            x.data(0, b"ten bytes.")
            x.acked(10)
            with contextlib.suppress(peer.Closed):
                x.send(make(x) + x.frame(peer.DATA, 10, b"after it"))
            self.assertNotIn(peer.DONE, [kind for kind, _, _ in x.closed()], what)
            name = what.replace(" ", "_")
            self.assertEqual(g.read(name), b"ten bytes.", what)
            g.wait_said(f"{name}: connection lost at 10 bytes: ")
            witness.data(len(sent), what.encode())
            sent += what.encode()
            self.assertEqual(x.deliver(b"ten bytes. And the rest"), 10, what)
            self.assertEqual(g.read(name), b"ten bytes. And the rest", what)
        witness.finish(len(sent))
        self.assertEqual(g.read("witness"), sent)
        g.end()

    def test_first_frame(self):
        """a first frame other than OPEN, and an OPEN without an id: closed, and no file is made"""
        g = self.gather()
        for kind, offset, payload in ((peer.DATA, 0, b"x"), (peer.PING, 0, b""), (peer.END, 0, b""), (peer.ACK, 0, b""),
                                      (0, 0, bytes(20)), (peer.OPEN, 0, b""), (peer.OPEN, 0, bytes(15))):
            x = self.sender()
            x.greet()
            with contextlib.suppress(peer.Closed):
                x.send(x.frame(kind, offset, payload))
            self.assertEqual([a for a in x.closed() if a[0] != peer.FAIL], [], (kind, payload))
        self.assertEqual(g.files(), [])
        g.end()

    def test_repeated_connection(self):
        """the recorded bytes of a whole connection, sent again, do not get beyond the hello"""
        g = self.gather()
        x, sent = self.sender(), []
        send = x.send
        x.send = lambda data: (sent.append(data), send(data))
        x.deliver(b"a recording")
        again = self.sender()
        again.connect()
        with contextlib.suppress(peer.Closed):
            again.send(b"".join(sent))
        self.assertLessEqual(len(again.closed_early()), peer.HELLO)
        self.assertEqual((g.files(), g.read("s.memprof")), (["s.memprof"], b"a recording"))
        g.end()

    def test_after_the_end(self):
        """what comes after END does not change the file"""
        g = self.gather()
        for kind, offset, payload in ((peer.DATA, 5, b"more"), (peer.OPEN, 0, bytes(20)), (peer.DATA, 0, b"again")):
            x = self.sender(name=f"{kind}-{offset}")
            x.open()
            x.data(0, b"whole")
            x.finish(5)
            with contextlib.suppress(peer.Closed):
                x.send(x.frame(kind, offset, payload))
            x.closed()
            self.assertEqual(g.read(f"{kind}-{offset}"), b"whole")
        g.end()

    def test_random(self):
        """any bytes at each place of the protocol: closed, without harm"""
        g = self.gather()
        rng = random.Random(1)
        for i in range(60):
            x = self.sender(name="fuzzed")
            with contextlib.suppress(peer.Closed):
                (x.connect, x.greet, x.open)[i % 3]()
                x.send(rng.randbytes(rng.randrange(1, 3000)))
            x.close()
        self.sender(name="after").deliver(b"x")
        self.assertEqual({f: g.read(f) for f in g.files() if f != "after" and g.read(f)}, {})
        g.end()


class Cancelled(Gathered):
    def test_cancel(self):
        """CANCEL deletes the file that the connection began, and no other; then the id and the name can be used again"""
        g = self.gather()
        other = self.sender(name="s.memprof")
        other.open()
        other.data(0, b"other")
        other.acked(5)
        for content in (b"", b"some bytes"):
            x = self.sender(name="s.memprof")
            x.open()
            if content:
                x.data(0, content)
                x.acked(len(content))
            self.assertEqual(g.read("s-2.memprof"), content)
            x.cancel()
            t.wait_for(lambda: g.files() == ["s.memprof"])
            x.close()
            self.assertEqual(x.deliver(b"anew"), 0)
            self.assertEqual(g.read("s-2.memprof"), b"anew")
            os.remove(self.folder + "/s-2.memprof")
        other.finish(5)
        self.assertEqual(g.read("s.memprof"), b"other")
        g.end()

    def test_not_deleted(self):
        """CANCEL of a connection that continued a recording, that has lost its place, or after the end, deletes nothing"""
        g = self.gather()
        x = self.sender(name="continued")
        x.open()
        x.data(0, b"ten bytes.")
        x.acked(10)
        x.close()
        self.assertEqual(x.open(10), 10)
        x.cancel()
        x.closed()
        x = self.sender(name="ended")
        x.open()
        x.data(0, b"ten bytes.")
        x.finish(10)
        x.cancel()
        x.closed()
        x = self.sender(name="taken")
        x.open()
        x.data(0, b"ten bytes.")
        x.acked(10)
        later = self.sender(id=x.id, name="taken")
        self.assertEqual(later.open(), 10)
        with contextlib.suppress(peer.Closed):
            x.cancel()
        x.closed()
        later.finish(10)
        self.assertEqual({f: g.read(f) for f in g.files()}, dict.fromkeys(("continued", "ended", "taken"), b"ten bytes."))
        g.end()

    def test_not_counted(self):
        """--recordings does not count a cancelled one"""
        g = self.gather("--recordings", 1)
        x = self.sender(name="cancelled")
        x.open()
        x.cancel()
        t.wait_for(lambda: g.files() == [])
        self.sender(name="whole").deliver(b"x")
        self.assertEqual(g.process.wait(120), 0, g.err)
        self.assertEqual(g.files(), ["whole"])


class FullDisk(Gathered):
    def told(self, x, content):
        """The text of FAIL that ends a delivery, also if the sender still sends when the receiver closes."""
        try:
            x.deliver(content)
        except peer.Refused as e:
            x.closed()
            return str(e)
        except peer.Closed:
            return next(payload.decode() for kind, _, payload in x.closed() if kind == peer.FAIL)
        raise AssertionError("the recording is complete on a full disk")

    def test_full(self):
        """a full disk: FAIL with a text, other senders continue, and the recording continues when there is room"""
        # The disk is mounted in a namespace of gather's own, which ends with it.
        disk = self.folder = self.path("disk")
        os.mkdir(disk)
        g = self.gather(prefix=("unshare", "-m", "sh", "-ec", f"mount -t tmpfs -o size=512k tmpfs {disk}; exec \"$@\"", "sh"))
        inside = f"/proc/{g.process.pid}/root{disk}"
        with open(inside + "/filler", "wb") as f:
            f.write(bytes(300 << 10))
        content = some(400 << 10)
        x, other = self.sender(name="r"), self.sender(name="other")
        other.open()
        for _ in range(3):
            text = self.told(x, content)
            self.assertTrue(text.strip() and text.isprintable(), text)
            kept = t.read(inside + "/r")
            self.assertEqual(kept, content[:len(kept)])
            other.ping()
            other.acked(0)
        t.wait_for(lambda: "No space" in g.out + g.err)
        os.remove(inside + "/filler")
        self.assertGreaterEqual(x.deliver(content), len(kept))
        self.assertEqual(t.read(inside + "/r"), content)
        other.data(0, b"x")
        other.finish(1)
        g.end()

    def test_folder_gone(self):
        """the folder is removed: FAIL, or it is made again, and gather continues"""
        g = self.gather()
        self.sender(name="first").deliver(b"x")
        shutil.rmtree(self.folder)
        with contextlib.suppress(peer.Refused):
            self.sender(name="second").deliver(b"x")
            self.assertEqual(g.read("second"), b"x")
        g.end()


class CommandLine(Gathered):
    def test_usage(self):
        """bad arguments: status 2 and one line"""
        token = s.write_token(self.path("token"))
        for arguments in (("--token", token, "--listen", "x:y"), ("--token", token, "--listen", "127.0.0.1:65536"),
                          ("--token", token, "--listen", "127.0.0.1:0", "--recordings", "-1"), ("--token", token, "--nonsense"),
                          ("--token", token, "--listen", "127.0.0.1:0", "surplus"), ()):
            r = self.refused("", *arguments)
            self.assertEqual(r.returncode, 2, (arguments, r.stderr))
        self.assertFalse(os.path.exists(self.folder))

    def test_port_in_use(self):
        """a port that is in use is an error"""
        g = self.gather()
        self.refused(f"{g.port}", "--token", self.path("token"), "--listen", f"127.0.0.1:{g.port}", "-o", self.path("other"))
        g.end()

    def test_port(self):
        """--listen PORT without an address: a sender reaches it at 127.0.0.1"""
        g = self.gather(listen="0")
        self.sender().deliver(b"x")
        self.assertEqual(g.read("s.memprof"), b"x")
        g.end()

    def test_quiet(self):
        """-q: no line for what recordings do"""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        log = self.path("log")
        with open(log, "w") as out:
            p = self.start(t.MEMPROF, "gather", "-q", "--listen", f"127.0.0.1:{port}", "--token", s.write_token(self.path("token")),
                           "-o", self.folder, "--recordings", "1", stdout=out, stderr=out)
        x = peer.Sender("127.0.0.1", port, s.TOKEN, name="quiet")

        def connected():
            self.assertIsNone(p.poll())
            with contextlib.suppress(ConnectionRefusedError):
                return x.connect()
        t.wait_for(connected)
        x.deliver(b"x")
        self.assertEqual(p.wait(120), 0, t.read(log))
        self.assertEqual(t.read(self.folder + "/quiet"), b"x")
        self.assertNotIn(b"quiet", t.read(log))


class Silence(Gathered):
    def test_silence(self):
        """300 connections that send nothing, or stop in between, keep no sender out, and are closed; one that pings is not"""
        self.g = Quiet.gather
        self.assertEqual(self.sender(name="real").deliver(b"x" * 100000), 0)
        self.assertEqual(self.g.read("real"), b"x" * 100000)
        for x in Quiet.silent:
            self.assertLessEqual(len(x.closed_early()), peer.HELLO)
        Quiet.after_hello.closed_early()
        for x in (Quiet.after_open, Quiet.half_frame):
            self.assertNotIn(peer.DONE, [kind for kind, _, _ in x.closed()])
        self.g.wait_said("o: connection lost at 0 bytes: ")
        self.g.wait_said("h: connection lost at 10 bytes: ")
        self.assertEqual(self.g.read("h"), b"ten bytes.")
        Quiet.ended.set()
        Quiet.pings.join()
        Quiet.alive.data(0, b"alive")
        Quiet.alive.finish(5)
        self.assertEqual(self.g.read("a"), b"alive")
        self.assertNotIn("a: connection lost", self.g.out)
        self.g.end()


if __name__ == "__main__":
    t.main()
