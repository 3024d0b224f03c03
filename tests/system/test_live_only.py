#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--live-only: no events are kept; the file is the live heap, written at memprof flush and at the end."""
import json
import os
import re
import resource
import signal
import stat
import subprocess
import urllib.error
import urllib.request

import memprof_test as t

LIBRARY = f"/usr/lib/{os.uname().machine}-linux-gnu/libutil.so.1"


class LiveOnly(t.Case):
    def soak(self, *options):
        """Starts the victim and a recorder.  Return: the victim, the recorder, the path of the recording."""
        os.mkdir(self.path("out"))
        f = self.path("out/r.memprof")
        p = self.victim("soak", LIBRARY, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f, "--lossless", "--live-only", *options)
        self.wait_recorded(p.pid)
        return p, rec, f

    def work(self, p, ms=200):
        """Has the victim work.  Return: what it says is live."""
        p.stdin.write(f"{ms}\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())

    def own(self, f):
        """The groups of the report's live blocks that the victim itself has allocated."""
        return [g for g in self.report(f)["allocation_groups"]
                if any(x["function"] == "fill_slot" for x in g["backtrace"])]

    def check_live(self, truth, f):
        own = self.own(f)
        self.assertEqual(sum(g["leaked_count"] for g in own), truth["blocks"])
        self.assertEqual(sum(g["leaked_bytes"] for g in own), truth["bytes"])
        self.memprof("verify", f)

    def end(self, p, rec):
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)

    def test_exact(self):
        """the file at the end is exactly what a program that counts its own calls has not freed"""
        os.chown(self.dir, 65534, 65534)  # another user's folder, as under sudo
        os.chmod(self.dir, 0o700)
        f = self.path("r")
        out = self.memprof("run", "--lossless", "--live-only", "-o", f, "--", f"{t.VICTIMS}/exact", 3, 100000).stdout
        truth = json.loads(out[out.index("{"):].split("\n")[0])
        self.assertEqual(os.listdir(self.dir), ["r"])
        self.assertEqual(stat.S_IMODE(os.stat(f).st_mode), 0o600)
        r = self.report(f, "--leaks")
        self.assertEqual(r["totals"]["leaked_count"], truth["live_blocks"] + 3 + 1)  # dtvs, stdout's buffer
        live = {(int(b["address"]), b["size"]) for b in r["leaks"]}
        self.assertEqual([b for b in truth["live"] if b[0] and tuple(b) not in live], [])
        times = [b["timestamp_relative"]["secs"] * 10**9 + b["timestamp_relative"]["fract_nsecs"] for b in r["leaks"]]
        self.assertGreater(len(set(times)), len(times) // 2)  # those of the allocations
        self.assertTrue(all(g["backtrace"][0]["function"] for g in r["allocation_groups"]))

    def test_unknown(self):
        """a report says that there are no calls, shows none as 0, and has the peak that the recorder saw"""
        f = self.path("r")
        out = self.memprof("run", "--lossless", "--live-only", "-o", f, "--", f"{t.VICTIMS}/exact", 2, 100000).stdout
        truth = json.loads(out[out.index("{"):].split("\n")[0])
        r = self.report(f)
        self.assertIs(r["live_only"], True)
        for key in ("allocations", "allocated_bytes", "frees", "temporary", "temporary_bytes", "mapped_bytes"):
            self.assertIsNone(r["totals"][key], key)
        self.assertGreater(r["totals"]["peak_bytes"], 0)
        self.assertEqual({g["temporary_count"] for g in r["allocation_groups"]}, {None})
        self.assertEqual({x["calls"] for x in r["functions"]}, {None})
        self.assertEqual(r["timeline"], [])
        for more in ((), ("--verbose",)):
            text = self.memprof("report", f, *more).stdout
            self.assertRegex(text, r"\nlive only   the blocks that were live .*, not the calls before\n")
            self.assertNotRegex(text, r"\n(allocated|freed|temporary) ")
        # The recorder has counted the calls, and the index has their sums.
        quick = self.memprof("report", f, "--quick").stdout.replace(",", "")
        self.assertRegex(quick, rf"allocated .*; {truth['free'] + truth['realloc']} blocks freed")
        self.assertIn("live only", self.memprof("info", f).stdout)
        total = sum(int(x.rsplit(" ", 1)[1]) for x in self.memprof("report", f, "--collapsed").stdout.splitlines())
        self.assertEqual(total, r["totals"]["leaked_bytes"])
        self.assertIn("one [exact.c:", self.memprof("report", f, "--ascii-tree").stdout)  # needs the blocks themselves
        for bad in (("--cost", "allocated"), ("--tree", "--cost", "temporary"), ("--pprof", self.path("x")),
                    ("--heaptrack", self.path("x")), ("--view", "timeline"), ("--csv", self.path("x"))):
            self.assertIn("only the live heap", self.memprof("report", f, *bad, status=2).stderr)

    def test_flush(self):
        """a file appears at each flush, is exact, takes the place of the one before, and does not grow in between"""
        p, rec, f = self.soak()
        self.work(p)
        self.assertEqual(os.listdir(self.path("out")), [])
        self.assertIn("the file is written at memprof flush", self.memprof("status", "-p", p.pid).stdout)
        self.assertNotEqual(self.memprof("mark", "-p", p.pid, "x", status=1).stderr, "")
        before = None
        for _ in range(3):
            truth = self.work(p)
            self.memprof("flush", "-p", p.pid)
            self.check_live(truth, f)
            self.assertEqual(os.listdir(self.path("out")), ["r.memprof"])
            now = os.stat(f)
            self.assertNotEqual(now.st_ino, before)
            before = now.st_ino
            self.work(p)
            self.assertEqual(os.stat(f), now)
        self.assertIn("the recording continues", self.memprof("report", f).stdout)
        truth = self.work(p)
        self.end(p, rec)
        self.check_live(truth, f)
        self.assertIn("; detached", self.memprof("report", f).stdout)

    def test_signals(self):
        """the file is written at SIGINT, SIGTERM and when the program ends"""
        for how in (signal.SIGINT, signal.SIGTERM, None):
            p, rec, f = self.soak()
            truth = self.work(p)
            if how:
                rec.send_signal(how)
            else:
                p.stdin.close()
                p.wait()
            rec.communicate(timeout=120)
            self.check_live(truth, f)
            os.unlink(f)
            os.rmdir(self.path("out"))

    def test_cannot_write(self):
        """if the file cannot be written, the asker is told, the file before stays, and the recording continues"""
        p, rec, f = self.soak()
        truth = self.work(p)
        self.memprof("flush", "-p", p.pid)
        old = t.read(f)
        self.work(p)
        os.rename(self.path("out"), self.path("moved"))
        r = self.memprof("flush", "-p", p.pid, status=1)
        self.assertRegex(r.stderr, "live heap could not be written: No such file or directory; recording continues")
        os.rename(self.path("moved"), self.path("out"))
        resource.prlimit(rec.pid, resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))  # as a full disk
        r = self.memprof("flush", "-p", p.pid, status=1)
        self.assertRegex(r.stderr, "live heap could not be written: File too large; recording continues")
        self.assertEqual(t.read(f), old)
        self.assertEqual(os.listdir(self.path("out")), ["r.memprof"])
        resource.prlimit(rec.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        truth = self.work(p)
        self.memprof("flush", "-p", p.pid)
        self.check_live(truth, f)
        self.end(p, rec)

    def test_sampled(self):
        """with --sample the file has the sample's live blocks, which estimate the live heap"""
        p, rec, f = self.soak("--sample", "4k")
        truth = self.work(p, 500)
        self.end(p, rec)
        r, own = self.report(f), self.own(f)
        self.assertTrue(r["estimated"])
        live, error = (sum(g[k] ** n for g in own) ** (1 / n) for k, n in (("leaked_bytes", 1),
                                                                           ("standard_error_leaked_bytes", 2)))
        self.assertGreater(error, 0)
        self.assertLess(abs(live - truth["bytes"]), 5 * error)

    def test_next_recorder(self):
        """the next recorder continues from the last file when this one was killed, and from the end of --keep"""
        p, rec, f = self.soak()
        truth = self.work(p)
        self.memprof("flush", "-p", p.pid)
        rec.kill()
        rec.wait()
        for i, end in enumerate(("--keep", None)):
            f = self.path(f"out/next{i}")
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f, "--lossless", "--live-only",
                             stderr=subprocess.PIPE)
            self.wait_recorded(p.pid)
            self.memprof("flush", "-p", p.pid)
            self.check_live(truth, f)
            truth = self.work(p)
            self.memprof("detach", "-p", p.pid, *(end or "").split())
            self.assertIn("mismatch 0\n", rec.communicate(timeout=120)[1])
            self.check_live(truth, f)

    def test_leaks(self):
        """memprof leaks finds the stacks of a recorder that has not written a file yet"""
        p, rec, f = self.soak()
        self.work(p)
        self.assertFalse(os.path.exists(f))
        self.memprof("leaks", "-p", p.pid, "--json", self.path("leaks"))
        said = json.loads(t.read(self.path("leaks")))["recording"]
        self.assertEqual((said["path"], said["live"]), (f, True))
        self.assertTrue(os.path.exists(f))
        self.end(p, rec)

    def test_view(self):
        """a view of the recorder, as top and server -p have it, knows the calls; the file's answers say what is missing"""
        p, rec, f = self.soak()
        truth = self.work(p)
        server = self.start(t.MEMPROF, "server", "-p", str(p.pid), "--port", "0")
        at = re.search(r"at (http\S+/)\n", server.stdout.readline()).group(1)

        def get(path):
            with urllib.request.urlopen(at + path, timeout=60) as answer:
                return json.loads(answer.read())

        one, = get("list")
        self.assertIs(one["live_only"], True)
        live = get(f"data/{one['id']}/live")
        self.assertGreaterEqual(live["live_blocks"], truth["blocks"])
        self.assertGreater(live["allocations"], 2 * live["live_blocks"])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            get(f"data/{one['id']}/timeline")
        self.assertEqual(refused.exception.code, 400)
        self.assertIn(b"only the live heap", refused.exception.read())
        server.terminate()
        server.wait()
        self.end(p, rec)

    def test_refused(self):
        """options about events are refused with --live-only, and an output that cannot be written at once"""
        for bad in (("--history",), ("--cull", "1s"), ("--rotate", "1M"), ("--keep", "2"), ("--free-stacks",),
                    ("--event", "page-faults")):
            r = self.memprof("run", "--live-only", *bad, "--", "/bin/true", status=2)
            self.assertRegex(r.stderr, f"{bad[0]}.* cannot be used with --live-only")
        os.mkdir(self.path("d"))
        r = self.memprof("run", "--live-only", "-o", self.path("d"), "--", "/bin/sleep", 1, status=14)
        self.assertIn("not a regular file", r.stderr)
        r = self.memprof("run", "--live-only", "-o", self.path("no/r"), "--", "/bin/sleep", 1, status=14)
        self.assertIn("No such file", r.stderr)


if __name__ == "__main__":
    t.main()
