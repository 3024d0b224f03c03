#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every fuzz target with each input of its corpus; make check-all and make fuzz search for new inputs."""
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

    def test_network(self):
        """fuzz: what senders of recordings, and others, send to memprof gather"""
        self.fuzzed("network")

    def test_seccomp(self):
        """fuzz: the evaluator of seccomp filters"""
        self.fuzzed("seccomp")

    def test_procfs(self):
        """fuzz: the parsers of /proc files"""
        self.fuzzed("procfs")

    def test_text(self):
        """fuzz: option values and mangled names"""
        self.fuzzed("text")

    def test_jit(self):
        """fuzz: perf maps and jitdumps"""
        self.fuzzed("jit")

    def test_look(self):
        """fuzz: saved looks at a heap, and their comparison"""
        self.fuzzed("look")

    def test_server_request(self):
        """fuzz: requests to memprof server, and who may send them"""
        self.fuzzed("server_request")


if __name__ == "__main__":
    t.main()
