#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks and heap on processes with much more address space than memory: they read only the pages that
were touched, and miss nothing."""
import re
import subprocess

import memprof_test as t

GIB = 1 if t.GUEST else 8192
# System calls that a whole command can make.  Reading untouched pages too took over 10 for each MiB.
CALLS = 20000


class Large(t.Case):
    def reserved(self):
        p = self.start(f"{t.VICTIMS}/reserved", str(GIB), stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def counted(self, *argv):
        """Runs memprof under strace.  Return: its status, its output, how many system calls it made."""
        log = self.path("log")
        r = subprocess.run(["strace", "-f", "-c", "-o", log, t.MEMPROF, *map(str, argv)], text=True,
                           capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        with open(log) as f:
            total = sum(int(line.split()[3]) for line in f
                        if re.match(r" *[0-9.]+ +[0-9.]+ +\d+ +\d+ .*[a-z]$", line) and not line.endswith("total\n"))
        return r.returncode, r.stdout + r.stderr, total

    def test_leaks(self):
        """leaks on huge sparse mappings finds the pointer in the last touched page, and the one leak"""
        p = self.reserved()
        for mode in [(), ("--in-place",)] + ([] if t.GUEST else [("--pre-copy",)]):
            out = self.memprof("leaks", "-p", p.pid, *mode, status=1).stdout
            self.assertRegex(out, r"\b1 (leaked )?block", mode)
            self.assertIn("43.4 KiB", out)

    def test_calls(self):
        """heap and leaks on huge sparse mappings make less than 20000 system calls"""
        if t.GUEST:
            self.skipTest("no strace there")
        p = self.reserved()
        status, out, calls = self.counted("heap", "-p", p.pid)
        self.assertEqual(status, 0, out)
        self.assertLess(calls, CALLS)
        for mode in (), ("--pre-copy",):
            status, out, calls = self.counted("leaks", "-p", p.pid, *mode)
            self.assertEqual(status, 1, out)
            self.assertLess(calls, CALLS, mode)

    def test_account(self):
        """heap on huge sparse mappings: the parts of resident memory add up to what the kernel reports"""
        p = self.reserved()
        out = self.memprof("heap", "-p", p.pid).stdout
        total, rss = (float(re.search(rf"^ *([0-9.]+) MiB .*{what}", out, re.M)[1])
                      for what in ("all of these", "the kernel reports"))
        self.assertAlmostEqual(total, rss, delta=0.5)


class OwnHeap(t.Case):
    def test_said(self):
        """heap says that most memory is in mappings that the program made itself, only if it is"""
        said = "most of it is in mappings that the program made itself"
        p = self.start(f"{t.VICTIMS}/mappings", "2000" if t.GUEST else "20000", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertIn(said, self.memprof("heap", "-p", p.pid).stdout)
        p = self.start(f"{t.VICTIMS}/idle", "1", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertNotIn(said, self.memprof("heap", "-p", p.pid).stdout)


if __name__ == "__main__":
    t.main()
