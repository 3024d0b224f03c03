#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings of every architecture, and of an older memprof, can be read on this one.

They are in tests/recordings; make guest-recordings makes those of the architectures in emulated guests.
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

    def test_chunk_refers_back(self):
        """a file of memprof before 26 November 2026 whose last chunks cannot be read without the first one"""
        f = FOLDER + "/chunk-refers-back.memprof"
        self.assertIn("complete and undamaged: 61 events", self.memprof("verify", f).stdout)
        totals = self.report(f)["totals"]
        self.assertEqual((totals["allocations"], totals["frees"], totals["leaked_bytes"]), (38, 23, 840))
        self.assertEqual(self.report(f, "--to", "100%")["totals"]["leaked_bytes"], 840)
        merged = self.path("merged")
        self.memprof("merge", "-o", merged, f, FOLDER + "/x86_64.memprof")
        of = [g for g in self.report(merged)["allocation_groups"] if g["backtrace"][0]["library"] == "example"]
        self.assertEqual([(g["allocated_count"], g["freed_count"], g["leaked_bytes"]) for g in of], [(38, 23, 840)])


if __name__ == "__main__":
    t.main()
