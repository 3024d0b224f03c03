#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stacks agree frame by frame with an unwinder that reads the full DWARF information."""
import re

import memprof_test as t
import true_stacks


class Stacks(t.Case):
    def test_frames(self):
        """stacks of C++ without frame pointers: recursion, alloca, qsort, exceptions, signals, threads"""
        self.compare("stacks", "--lossless")

    def test_a32(self):
        """stacks of C++ in A32 code: recursion, alloca, qsort, exceptions, signals, threads"""
        self.needs_a32()
        self.compare("stacks-a32", "--lossless")

    def test_frames_by_kernel(self):
        """--via=kernel: stacks of C++, unwound from copies: recursion, alloca, qsort, exceptions, signals"""
        # The kernel does not wait for the recorder: the copies of all stacks, 16 KiB each, must have room in the
        # 64 MiB of one processor's ring.
        self.assertLess(self.compare("stacks", "--via=kernel", rounds=20), 3800)

    def test_names_of_many_segments(self):
        """functions of node, whose code is in several executable segments, have names"""
        p = self.node()
        report = self.report(self.record(p.pid, 0.5))
        p.kill()
        names = {f["function"] for g in report["allocation_groups"] for f in g["backtrace"] if f.get("library") == "node"}
        self.assertGreater(len(names), 20)
        self.assertEqual([n for n in names if re.match(r"node\+0x", n)], [])

    def compare(self, victim, *options, rounds=40):
        """Return: the number of allocations in the recording."""
        truth, f = self.path("truth"), self.path("r")
        self.memprof("run", "-q", *options, "-o", f, "--", f"{t.VICTIMS}/{victim}", truth, str(rounds))
        report = self.report(f, "--leaks")
        with open(truth) as lines:
            true_stacks.compare(self, report, lines)
        return report["totals"]["allocations"]


if __name__ == "__main__":
    t.main()
