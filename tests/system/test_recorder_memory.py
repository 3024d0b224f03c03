#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The recorder's own memory: --queue-size is the ceiling of all that waits and is sorted in it."""
import os
import re
import signal
import subprocess

import memprof_test as t

THREADS = 24
MIB = 1 << 20
RING = 4 * MIB
QUEUE = 48 * MIB
REST = 24 * MIB  # the program itself, tables of what is live, stacks, the session's tables


def memory(pid, what):
    return int(re.search(what + r":\s+(\d+) kB", t.read(f"/proc/{pid}/status").decode()).group(1)) * 1024


class RecorderMemory(t.Case):
    def peak(self, *options):
        """Peak of a recorder that stood still until the rings were full, without the rings; its losses."""
        p = self.victim("flood", THREADS, 150000, stdin=subprocess.PIPE)

        def round():
            p.stdin.write("go\n")
            p.stdin.flush()
            p.stdout.readline()

        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f, "--ring-size", str(RING),
                         "--queue-size", str(QUEUE), *options)
        self.wait_recorded(p.pid)
        for _ in range(2):
            os.kill(rec.pid, signal.SIGSTOP)
            t.wait_for(lambda: t.stopped(rec.pid))
            round()
            os.kill(rec.pid, signal.SIGCONT)
            self.memprof("flush", "-p", p.pid)
            round()
        high, shared = memory(rec.pid, "VmHWM"), memory(rec.pid, "RssShmem")
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        print(f"# {options}: {high >> 20} MiB, of them the program's rings and tables {shared >> 20}")
        return high - shared, self.report(f)

    def test_ceiling(self):
        """all rings full at once: no more than --queue-size and what the program itself has"""
        used, r = self.peak()
        self.assertGreater(r["totals"]["allocations"], 0)
        self.assertLess(used, QUEUE + REST)

    def test_lossless(self):
        """the same with --lossless"""
        used, r = self.peak("--lossless")
        self.assertLess(used, QUEUE + REST)
        self.assertEqual(r["losses"]["queue_dropped_events"], 0)


if __name__ == "__main__":
    t.main()
