# SPDX-License-Identifier: MIT OR Apache-2.0
"""Heap walkers in a guest of another architecture: the unit test heaps/walkers, which is run as it
is on the machine that builds memprof.  And allocators that have none, but are named."""
import json
import os
import subprocess
import tempfile

import memprof_test as t

WALKERS = f"{t.VICTIMS}/walkers"


@t.unittest.skipUnless(t.GUEST, "the unit test heaps/walkers is run here")
@t.unittest.skipUnless(os.path.exists(WALKERS), "these heaps are walked on x86_64 and aarch64 only")
class Walkers(t.unittest.TestCase):
    def agrees(self, row):
        done = subprocess.run([WALKERS, row], capture_output=True, text=True)
        print(done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"[       OK ] {row}\n", done.stdout + done.stderr)

    def test_jemalloc(self):
        """jemalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("jemalloc")

    def test_tcmalloc(self):
        """tcmalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("tcmalloc")

    def test_mimalloc(self):
        """mimalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("mimalloc")


class Named(t.Case):
    def report(self, victim):
        """What leaks reports of a program that has a block of glibc's malloc."""
        p = self.victim(victim)
        self.assertEqual(p.stdout.readline(), "ready\n")
        with tempfile.TemporaryDirectory() as d:
            self.memprof("leaks", "-p", p.pid, "--json", f"{d}/leaks")
            return json.loads(t.read(f"{d}/leaks"))

    def test_named(self):
        """leaks names PartitionAlloc and Google's tcmalloc beside glibc's malloc, and is not exact then"""
        for victim, name in (("named-partition", "PartitionAlloc"),
                             ("named-google", "Google's tcmalloc")):
            got = self.report(victim)
            self.assertEqual([h["allocator"] for h in got["heaps"]], ["glibc malloc"])
            self.assertEqual(got["unknown_allocator"],
                             f"the process has {name}, whose blocks memprof cannot list")
            self.assertFalse(got["exact"])
            self.assertEqual(got["leaked"]["count"], 0)


if __name__ == "__main__":
    t.main()
