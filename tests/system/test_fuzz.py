#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every fuzz target for a short time, from its corpus (`make fuzz` runs them for longer)."""
import os
import subprocess

import memprof_test as t

SECONDS = 120 if t.FULL else 4
# The short run has a fixed seed and must pass each time.  Seed 0 means a random one, which finds new inputs.
SEED = "0" if t.FULL else "1"
PROGRAMS = os.environ.get("FUZZERS", t.ROOT + "/build/fuzz")


class Fuzz(t.Case):
    def fuzzed(self, name):
        r = subprocess.run([t.ROOT + "/scripts/fuzz", f"{PROGRAMS}/{name}", str(SECONDS)], cwd=t.ROOT,
                           text=True, capture_output=True, timeout=SECONDS + 240,
                           env=dict(os.environ, FUZZ_SEED=SEED))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertRegex(r.stdout, r"Done [1-9][0-9]* runs")

    def test_recording(self):
        """fuzz: the recording reader, its index, the model and every report format"""
        self.fuzzed("recording")

    def test_elf(self):
        """fuzz: unwind tables, build-ids and symbols of crafted modules"""
        self.fuzzed("elf")

    def test_tables(self):
        """fuzz: call frame information, .ARM.exidx and code without tables, of every architecture"""
        self.fuzzed("tables")

    def test_heap(self):
        """fuzz: heaps, roots and core files"""
        self.fuzzed("heap")

    def test_ring(self):
        """fuzz: the aggregator, fed by an untrusted producer"""
        self.fuzzed("ring")

    def test_seccomp(self):
        """fuzz: the evaluator of seccomp filters"""
        self.fuzzed("seccomp")

    def test_procfs(self):
        """fuzz: the parsers of /proc files"""
        self.fuzzed("procfs")

    def test_text(self):
        """fuzz: option values and mangled names"""
        self.fuzzed("text")


if __name__ == "__main__":
    t.main()
