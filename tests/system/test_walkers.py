# SPDX-License-Identifier: MIT OR Apache-2.0
"""Heap walkers in a guest of another architecture: the unit test heaps/walkers, which is run as it
is on the machine that builds memprof."""
import os
import subprocess

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


if __name__ == "__main__":
    t.main()
