#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports are the same, byte for byte, whether one processor makes them or several."""
import glob
import os
import unittest

import memprof_test as t

REPORTS = [
    ("report", "F", "--verbose"), ("report", "F", "--json"), ("report", "F", "--not-freed", "--json"),
    ("report", "F", "--csv"), ("report", "F", "--heaptrack"), ("report", "F", "--pprof"),
    ("report", "F", "--view", "timeline", "--json"),
    ("report", "F", "--view", "allocations", "--count", "all", "--json"),
    ("report", "F", "--view", "groups", "--json", "--count", "all"),
    ("report", "F", "--only", "growing"), ("info", "F"), ("verify", "F"),
]
FILTERS = [
    ("--size-min", "64"), ("--lifetime-min", "1ms"), ("--lifetime", "only_temporary"), ("--lifetime", "only_leaked"),
    ("--lifetime", "only_chain_leaked"), ("--function-regex", "a"), ("--chain-length-min", "2"),
]


@unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "only one processor")
class Processors(t.Case):
    def run_both(self, argv):
        """Return: the status and the output of a command, which do not depend on the processors."""
        every = os.sched_getaffinity(0)
        got = []
        for processors in (every, {min(every)}):
            r = t.subprocess.run([t.MEMPROF, *argv], capture_output=True, stdin=t.subprocess.DEVNULL, timeout=300,
                                 preexec_fn=lambda: os.sched_setaffinity(0, processors))
            got.append((r.returncode, r.stdout, r.stderr))
        self.assertEqual(*got, argv)
        return got[0]

    def same(self, f):
        """Checks all reports of the recording @f.  Return: their outputs."""
        reports = REPORTS + [("report", "F", "--json", *x) for x in FILTERS]
        return [self.run_both([f if a == "F" else a for a in argv]) for argv in reports]

    def record(self, *options, argv=("exact", 3, 60000), **env):
        f = self.path("recording")
        t.subprocess.run([t.MEMPROF, "run", "-q", "--lossless", *options, "-o", f, "--",
                          t.VICTIMS + "/" + argv[0], *map(str, argv[1:])],
                         check=True, capture_output=True, timeout=120, env=dict(os.environ, **env))
        return f

    def check_all(self, f):
        for status, out, _ in self.same(f)[:3]:
            self.assertEqual(status, 0)
            self.assertTrue(out)

    def test_every_event(self):
        """a recording of every event"""
        self.check_all(self.record("--history"))

    def test_culled(self):
        """a culled recording"""
        self.check_all(self.record())

    def test_sampled(self):
        """a sample"""
        self.check_all(self.record("--sample", "500"))

    def test_pieces(self):
        """a piece of a recording, and the pieces merged"""
        self.record("--history", "--rotate", "200k")
        files = sorted(glob.glob(self.path("recording*")))
        self.check_all(files[1])
        self.memprof("merge", *files, "-o", self.path("merged"))
        self.check_all(self.path("merged"))

    def test_several_processes(self):
        """recordings of several processes, merged"""
        files = [self.record("--history")]
        os.rename(files[0], self.path("first"))
        self.memprof("merge", self.path("first"), self.record("--history"), "-o", self.path("merged"))
        self.check_all(self.path("merged"))

    def test_damaged(self):
        """a recording that was cut off, or damaged, at any place: also the same messages"""
        f = self.record("--history")
        with open(f, "rb") as whole:
            data = whole.read()
        for part in (3, 5, 8):
            at = len(data) * part // 9
            for bad in (data[:at], data[:at] + b"damage" + data[at + 6:]):
                with open(self.path("bad"), "wb") as out:
                    out.write(bad)
                status, _, err = self.run_both(["report", self.path("bad"), "--verbose"])
                self.assertEqual(status, 0, err)
                if part == 5:
                    self.same(self.path("bad"))
                else:
                    self.run_both(["report", self.path("bad"), "--json", "--lifetime-min", "1ms"])


if __name__ == "__main__":
    t.main()
