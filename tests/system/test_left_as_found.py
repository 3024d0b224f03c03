#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""After detach the process is as it was before attach, also when the recorder was killed."""
import random
import signal
import subprocess
import time

import memprof_test as t

CYCLES = 300 if t.FULL else 100 if t.GUEST else 15
KILLS = 100 if t.FULL else 4 if t.GUEST else 25
THREADS = 2 if t.GUEST else 8


class LeftAsFound(t.Case):
    def test_identity(self):
        """after detach, mappings, text, descriptors, threads, signals and copied pages are as before"""
        p = self.victim("verify", THREADS)
        before = t.identity(p.pid)
        self.record(p.pid, 0.5)
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("ok", self.finish(p))

    def test_cycles(self):
        """attach and detach again and again on busy threads leave the process as before"""
        p = self.victim("verify", THREADS, 3600)
        before, n = t.identity(p.pid), len(t.maps(p.pid).split("\n"))
        for i in range(CYCLES):
            self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "10ms")
            self.assertIsNone(p.poll(), f"died in cycle {i}")
            if t.GUEST and i % 10 == 9:
                print(f"# {i + 1} cycles", flush=True)  # a guest without output is ended
        self.assertEqual(t.identity(p.pid), before)
        self.assertLessEqual(len(t.maps(p.pid).split("\n")), n + 2)
        self.assertIn("ok", self.finish(p))

    def test_killed_recorder(self):
        """detach restores the process after its recorder was killed at a random moment"""
        p = self.victim("verify", THREADS)
        before, blocked = t.identity(p.pid), t.masks(p.pid)
        rng = random.Random(1)
        repaired = 0
        for i in range(KILLS):
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL)
            # Every second kill waits for the session, so that there is something to repair on a slow machine.
            while i % 2 and rec.poll() is None and "memprof-session" not in t.maps(p.pid):
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.35))
            rec.send_signal(signal.SIGKILL)
            rec.wait()
            self.assertIsNone(p.poll(), f"died at kill {i}")
            repaired += self.repaired(p, before, blocked)
            self.assertNotIn("memprof", t.maps(p.pid))
        self.assertGreaterEqual(repaired, KILLS // 2)
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("ok", self.finish(p))

    def test_stopped_stays_stopped(self):
        """a process in a job-control stop stays stopped through attach and detach"""
        p = self.victim("verify", 2)
        p.send_signal(signal.SIGSTOP)
        t.wait_for(lambda: t.stopped(p.pid))
        self.record(p.pid, 0.2)
        with open(f"/proc/{p.pid}/stat") as f:
            self.assertEqual(f.read().split()[2], "T")
        p.send_signal(signal.SIGCONT)
        self.assertIn("ok", self.finish(p))

    def test_let_go(self):
        """memprof does not trace the process while it records"""
        p = self.victim("verify", 2)
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            self.assertIsNone(rec.poll())
        self.assertIn("TracerPid:\t0", t.read(f"/proc/{p.pid}/status").decode())
        self.memprof("detach", "-p", p.pid)
        said = rec.communicate(timeout=120)[1]
        self.assertEqual(rec.returncode, 0, said)
        self.assertIn("ok", self.finish(p))


if __name__ == "__main__":
    t.main()
