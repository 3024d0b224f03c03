#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings of every architecture can be read on this one.

They are in tests/recordings; make guest-recordings makes them in emulated guests.
"""
import json
import lzma

import memprof_test as t
import true_stacks

FOLDER = t.ROOT + "/tests/recordings"


class Recordings(t.Case):
    def reads(self, arch):
        f = f"{FOLDER}/{arch}.memprof"
        self.assertIn("complete and undamaged", self.memprof("verify", f).stdout)
        info = json.loads(self.memprof("info", f, "--json").stdout)
        self.assertEqual(info["architecture"], arch)
        self.assertIn(f"run, {arch})", self.memprof("info", f).stdout)
        report = self.report(f, "--leaks")
        self.assertEqual(report["architecture"], arch)
        self.assertEqual(report["executable"], "/guest/build/victims/stacks")
        self.assertEqual(report["end_reason"], "exited")
        with lzma.open(f"{FOLDER}/{arch}.truth.xz", "rt") as lines:
            true_stacks.compare(self, report, lines)
        self.text_agrees(f, report)

    def text_agrees(self, f, report):
        """Checks other forms of the report: the index at the file's end, folded stacks, text."""
        folded = self.memprof("report", f, "--collapsed", "--cost", "live").stdout
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()),
                         report["totals"]["leaked_bytes"])
        self.assertEqual(self.memprof("report", f, "--quick", "--collapsed").stdout, folded)
        self.assertRegex(self.memprof("report", f).stdout, r"malloc.*\n +record\(|malloc.*\n.*record")

    def test_x86_64(self):
        """an x86_64 recording: verify, info, JSON and text; the stacks are those that the program wrote"""
        self.reads("x86_64")

    def test_aarch64(self):
        """an aarch64 recording: verify, info, JSON and text; the stacks are those that the program wrote"""
        self.reads("aarch64")

    def test_arm(self):
        """an arm recording: verify, info, JSON and text; the stacks are those that the program wrote"""
        self.reads("arm")

    def test_mips64(self):
        """a mips64 recording: verify, info, JSON and text; the stacks are those that the program wrote"""
        self.reads("mips64")


if __name__ == "__main__":
    t.main()
