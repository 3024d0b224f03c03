#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stacks are right, frame by frame, against an unwinder that reads the full DWARF information."""
import os

import os

import memprof_test as t

BEYOND_TABLES = 3  # __libc_start_call_main, __libc_start_main, _start


class Stacks(t.Case):
    def test_frames(self):
        """C++ without frame pointers: recursion, virtual calls, alloca, qsort, exceptions, signals, threads"""
        self.compare("--lossless")

    def test_frames_by_kernel(self):
        """the same by the kernel's probes, from copies of the stacks"""
        self.compare("--via=kernel")

    def compare(self, *options):
        truth, f = self.path("truth"), self.path("r")
        self.memprof("run", "-q", *options, "-o", f, "--", f"{t.VICTIMS}/stacks", truth)
        report = self.report(f, "--leaks")
        blocks = {b["address"]: b["backtrace_id"] for b in report["leaks"]}
        groups = {g["backtrace_id"]: g for g in report["allocation_groups"]}
        compared, through_signal = 0, 0
        with open(truth) as lines:
            for line in lines:
                address, *want = (int(x, 16) for x in line.split())
                if want[-1] == 0:
                    want.pop()  # libgcc's word for "no caller"
                self.assertIn(address, blocks, "an allocation is missing")
                g = groups[blocks[address]]
                self.assertTrue(g["complete"])
                # Innermost first; every return address has one frame that is not inlined.
                have = [x["address"] for x in reversed(g["backtrace"]) if not x["is_inline"]]
                have = have[2:]  # malloc, and record() which calls both
                # libgcc ends where tables do: of arm and mips64, before the code that starts
                # programs and threads.
                if os.uname().machine not in ("x86_64", "aarch64"):
                    self.assertGreaterEqual(len(have), len(want), line)
                    self.assertLessEqual(len(have), len(want) + BEYOND_TABLES, line)
                    have = have[:len(want)]
                # libgcc on ARM does not tell of the outermost frame, which cannot be unwound.
                if os.uname().machine == "armv7l" and len(have) == len(want) + 1:
                    have.pop()
                self.assertEqual(len(have), len(want), line)
                for h, w in zip(have, want):
                    # A return address is looked up one byte before; an interrupted one is exact.
                    self.assertIn(h, (w - 1, w))
                    through_signal += h == w
                compared += 1
        self.assertGreaterEqual(compared, 1000)
        self.assertGreaterEqual(through_signal, 100)
        losses = report["losses"]
        self.assertGreaterEqual(losses["stacks_complete"] / losses["stacks_total"], 0.999)


if __name__ == "__main__":
    t.main()
