#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every fuzz target with each input of its corpus; make check-all and make fuzz look for new inputs."""
import os
import re
import subprocess

import memprof_test as t

SECONDS = 120 if t.FULL else 0
PROGRAMS = os.environ.get("FUZZERS", t.ROOT + "/build/fuzz")


class Fuzz(t.Case):
    def fuzzed(self, name):
        inputs = len(os.listdir(f"{t.ROOT}/tests/fuzz/corpus/{name}"))
        r = subprocess.run([t.ROOT + "/scripts/fuzz", f"{PROGRAMS}/{name}", str(SECONDS)], cwd=t.ROOT,
                           text=True, capture_output=True, timeout=SECONDS + 240)
        self.assertEqual(r.returncode, 0, r.stderr)
        done = re.search(r"Done (\d+) runs", r.stdout)
        self.assertTrue(done, r.stdout)
        self.assertGreaterEqual(int(done[1]), inputs)

    def test_recording(self):
        """the recording reader, its index, the model and every report format"""
        self.fuzzed("recording")

    def test_elf(self):
        """unwind tables, build-ids and symbols of crafted modules"""
        self.fuzzed("elf")

    def test_tables(self):
        """call frame information, .ARM.exidx and code without tables, of every architecture"""
        self.fuzzed("tables")

    def test_heap(self):
        """heaps, roots and core files"""
        self.fuzzed("heap")

    def test_ring(self):
        """the aggregator, fed by an untrusted producer"""
        self.fuzzed("ring")

    def test_seccomp(self):
        """the evaluator of seccomp filters"""
        self.fuzzed("seccomp")

    def test_procfs(self):
        """texts of /proc"""
        self.fuzzed("procfs")

    def test_text(self):
        """values of options, mangled names"""
        self.fuzzed("text")


if __name__ == "__main__":
    t.main()
