#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stacks are right, frame by frame, against an unwinder that reads the full DWARF information."""
import os

import memprof_test as t

# The victim's own functions, and those that start programs and threads.
KNOWN_OUTER = r"spin|sort_some|round_of|thread|^main$|qsort|msort|_start$|^__libc_start|clone|^libc\.so\.6\+"

MIPS = os.uname().machine.startswith("mips")


class Stacks(t.Case):
    def test_frames(self):
        """C++ without frame pointers: recursion, virtual calls, alloca, qsort, exceptions, signals, threads"""
        self.compare("--lossless")

    def test_frames_by_kernel(self):
        """the same by the kernel's probes, from copies of the stacks"""
        self.compare("--via=kernel")

    def as_far_as_libgcc(self, names, have, want):
        """On ARM and MIPS64 libgcc ends where tables do: at signal frames, in parts of libc, before
        the code that starts programs and threads.  What memprof has beyond has to be the way out."""
        self.assertGreaterEqual(len(have) + 1, len(want))
        self.assertRegex(" ".join(names[-6:]), r"\b(main|thread)\b")
        for name in names[len(want):]:
            self.assertRegex(name, KNOWN_OUTER, names)
        # A frame that cannot be unwound is libgcc's last or not there at all.
        return have[:len(want)] if len(have) >= len(want) else have + want[len(have):]

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
                frames = [x for x in reversed(g["backtrace"]) if not x["is_inline"]]
                frames = frames[2:]  # malloc, and record() which calls both
                have, names = [x["address"] for x in frames], [x["function"] for x in frames]
                through_signal += any("on_alarm" in x for x in names) and "main" in names
                if os.uname().machine not in ("x86_64", "aarch64"):
                    have = self.as_far_as_libgcc(names, have, want)
                self.assertEqual(len(have), len(want), line)
                for h, w in zip(have, want):
                    # A return address is looked up one byte before; an interrupted one is exact, to
                    # which libgcc adds 2 on MIPS.
                    self.assertIn(h, (w - 2, w - 1, w) if MIPS else (w - 1, w))
                compared += 1
        self.assertGreaterEqual(compared, 1000)
        self.assertGreaterEqual(through_signal, 100)
        losses = report["losses"]
        self.assertGreaterEqual(losses["stacks_complete"] / losses["stacks_total"], 0.999)


if __name__ == "__main__":
    t.main()
