#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server of a folder: recordings that are there, that appear later, and that other machines send (--gather)."""
import os
import re
import shutil
import subprocess
import tempfile

import memprof_test as t
import server_test
import stream_peer as peer
import stream_test as s


class Folder(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        program = server_test.build(cls.shared)
        cls.recordings = [server_test.record(program, f"{cls.shared}/{i}.memprof") for i in range(3)]

    def setUp(self):
        super().setUp()
        self.folder, self.servers = self.path("folder"), []

    def tearDown(self):
        for x in self.servers:
            x.end()
        super().tearDown()

    def serve(self, *arguments):
        self.servers.append(server_test.Server(*arguments))
        return self.servers[-1]

    def put(self, i, name):
        shutil.copy(self.recordings[i], os.path.join(self.folder, name))
        return s.info_id(self.recordings[i]).hex()

    @staticmethod
    def listed(server):
        return [x["id"] for x in server.get("/list").json()]

    def wait_listed(self, server, ids):
        try:
            t.wait_for(lambda: self.listed(server) == ids)
        except AssertionError:
            self.assertEqual(self.listed(server), ids)


class Watched(Folder):
    def test_later(self):
        """recordings of the folder and those that are put there later; `last` is the newest, also when a worker knew fewer"""
        os.mkdir(self.folder)
        first = self.put(0, "z.memprof")
        server = self.serve(self.folder)
        self.assertEqual(self.listed(server), [first])
        answer = server.get("/data/last/allocations?count=1").body
        second = self.put(1, "a.memprof")
        self.wait_listed(server, [first, second])
        self.assertEqual(server.get(f"/data/{first}/allocations?count=1").body, answer)
        third = self.put(2, "b")
        self.wait_listed(server, [first, second, third])
        for a in (first, second, third):
            r = server.get(f"/data/{a}/diff", {"with": third})
            self.assertEqual(r.status, 200, r.body)

    def test_order(self):
        """the recordings that are there at first are in the order of their last writing"""
        os.mkdir(self.folder)
        ids = [self.put(i, name) for i, name in enumerate(("c", "a", "b"))]
        for name, age in (("c", 300), ("a", 200), ("b", 100)):
            now = os.stat(os.path.join(self.folder, name)).st_mtime
            os.utime(os.path.join(self.folder, name), (now - age, now - age))
        self.assertEqual(self.listed(self.serve(self.folder)), ids)

    def test_other_files(self):
        """what is not a recording is left out: other files, pipes, folders, what is not complete yet, and what was removed"""
        os.mkdir(self.folder)
        os.mkfifo(os.path.join(self.folder, "pipe"))
        os.mkdir(os.path.join(self.folder, "folder"))
        with open(os.path.join(self.folder, "text"), "w") as f:
            f.write("no recording\n" * 1000)
        server = self.serve(self.folder)
        self.assertEqual(self.listed(server), [])
        self.assertEqual(server.get("/data/last/tree").status, 404)
        content = t.read(self.recordings[0])
        with open(os.path.join(self.folder, "grows"), "wb") as f:
            f.write(content[:10])
            f.flush()
            first = self.put(1, "whole")
            self.wait_listed(server, [first])
            f.write(content[10:])
            f.flush()
            self.wait_listed(server, [first, s.info_id(self.recordings[0]).hex()])
        os.remove(os.path.join(self.folder, "whole"))
        self.assertEqual([("error" in x) for x in server.get("/list").json()], [True, False])

    def test_no_folder(self):
        """a folder that does not exist is an error"""
        r = self.memprof("server", "--port", 0, self.path("none"), status=13)
        self.assertIn("none", r.stderr)


class Gathers(Folder):
    def gather(self, *options):
        token = s.write_token(self.path("token"))
        server = self.serve("--gather", token, "--gather-at", "127.0.0.1:0", *options, self.folder)
        return server, int(re.search(r"listening at 127\.0\.0\.1:(\d+)$", server.said, re.M)[1])

    def test_attach(self):
        """attach --to a server: the recording is served while it grows, and in the end complete"""
        server, port = self.gather()
        self.assertEqual(self.listed(server), [])
        p = self.victim("exact", 2, 2000, "wait", stdin=subprocess.PIPE)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "--history", "--to", f"127.0.0.1:{port}", "--token",
                         self.path("token"))
        t.wait_for(lambda: len(self.listed(server)) == 1)
        self.assertEqual(server.get("/list").json()[0]["pid"], p.pid)
        p.stdin.write("go\n")
        p.stdin.flush()
        p.stdout.readline()
        self.memprof("flush", "-p", p.pid)
        self.assertGreater(len(server.get("/data/last/allocations").json()["allocations"]), 1000)
        self.detach(p.pid)
        self.assertEqual(rec.wait(60), 0)
        one = server.get("/list").json()[0]
        self.assertEqual((one["end_reason"], one["truncated"]), ("detached", None))

    def test_copies(self):
        """copies of one recording from several senders are files of their own, and are served once"""
        server, port = self.gather()
        for i in range(3):
            peer.Sender("127.0.0.1", port, s.TOKEN, None, f"{i}.memprof").deliver(t.read(self.recordings[0]))
        self.assertEqual([t.read(os.path.join(self.folder, f"{i}.memprof")) for i in range(3)], [t.read(self.recordings[0])] * 3)
        self.wait_listed(server, [s.info_id(self.recordings[0]).hex()])

    def test_ends_together(self):
        """the receiver ends with the server, also when the server is killed"""
        server, port = self.gather()
        server.end()
        self.servers.remove(server)
        with self.assertRaises(OSError):
            peer.Sender("127.0.0.1", port, s.TOKEN).connect()
        server, port = self.gather()
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
        self.servers.remove(server)
        t.wait_for(lambda: self.closed(port))

    @staticmethod
    def closed(port):
        try:
            peer.Sender("127.0.0.1", port, s.TOKEN).connect()
        except OSError:
            return True
        return False

    def test_usage(self):
        """wrong arguments: status 2, and the folder is not made"""
        token = s.write_token(self.path("token"))
        for arguments in (("--gather", token), ("--gather", token, "a", "b"), ("--gather-at", "0", self.folder),
                          ("--gather", token, "--gather-at", "x:y", self.folder), ("--gather", self.path("none"), self.folder)):
            self.memprof("server", "--port", 0, *arguments, status=2)
            self.assertFalse(os.path.exists(self.folder))


t.main()
