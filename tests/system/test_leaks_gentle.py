#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --gentle stops one thread at a time, and still reports no false leak."""
import os
import re
import subprocess

import memprof_test as t
import test_leaks


class Gentle(test_leaks.HeapCase):
    def check(self, mode, leaks):
        p, _ = self.ready("blocks", mode, 6, "leaks", leaks)
        before = t.identity(p.pid)
        for _ in range(5 if t.FULL else 1):
            r, report = self.leaks(p, "--gentle", "--interval", "1s", status=1 if leaks else 0)
            self.assertEqual(report["leaked"]["count"], leaks)
            self.assertEqual(report["mode"], "gentle")
            self.assertFalse(report["exact"])
            self.assertRegex(r.stdout, "approximate because threads ran while it was copied")
        self.unchanged(p, before)
        p.kill()

    def test_running(self):
        """leaks --gentle on threads that allocate all the time finds the planted leaks, and no other"""
        self.check("run", 5)

    def test_running_without_leaks(self):
        """leaks --gentle on threads that allocate all the time and leak nothing finds none"""
        self.check("run", 0)

    def test_parked(self):
        """leaks --gentle on waiting threads finds the planted leaks, and no other"""
        self.check("park", 9)

    def test_held(self):
        """leaks --gentle does not report blocks whose address only a register of a waiting thread has"""
        p, _ = self.ready("held", 6)
        before = t.identity(p.pid)
        self.leaks(p, "--gentle", "--interval", "100ms", status=0)
        self.unchanged(p, before)
        p.kill()

    def test_others_run_on(self):
        """leaks --gentle never traces two threads at a time"""
        p, _ = self.ready("blocks", "run", 4)
        log, traced, seen = self.path("log"), set(), set()
        subprocess.run(["strace", "-e", "trace=ptrace", "-e", "signal=none", "-o", log, t.MEMPROF, "leaks", "-p",
                        str(p.pid), "--gentle", "--interval", "100ms"], capture_output=True, timeout=300)
        for call, tid in re.findall(r"PTRACE_(SEIZE|DETACH), (\d+),.* = 0\n", t.read(log).decode()):
            if call == "SEIZE":
                self.assertEqual(traced, set())
                traced.add(tid)
                seen.add(tid)
            else:
                traced.remove(tid)
        self.assertEqual(traced, set())
        self.assertEqual(seen, set(os.listdir(f"/proc/{p.pid}/task")))
        p.kill()

    def test_usage(self):
        """leaks --gentle refuses --in-place and --max-pause"""
        self.memprof("leaks", "-p", 1, "--gentle", "--in-place", status=2)
        self.memprof("leaks", "-p", 1, "--gentle", "--max-pause", "1ms", status=2)


if __name__ == "__main__":
    t.main()
