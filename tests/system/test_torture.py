#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs with a hard life are attached and let go again and again, and live on.

MEMPROF_FULL=1 makes 10,000 cycles on 64 threads, and 200 of each other kind."""
import os
import signal
import subprocess
import time

import memprof_test as t

CYCLES = 10000 if t.FULL else 5
STORM = 200 if t.FULL else 3
ENDINGS = 100 if t.FULL else 2


class Torture(t.Case):
    def cycle(self, p, *more, status=(0,)):
        """One attach, record, detach.  A process that made threads faster than they could be
        stopped was left alone (17)."""
        r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                            "--for", "20ms", *more], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        if r.returncode == 15:
            self.detach(p.pid)
        else:
            self.assertIn(r.returncode, status, r.stdout + r.stderr)
        return r.returncode

    def storm(self, *victim, status=(0,), cycles=STORM):
        """Cycle after cycle; what each ended with."""
        p = self.victim(*victim)
        before = t.identity(p.pid)["text"]
        ends = []
        while len(ends) < cycles or ends.count(0) + ends.count(15) <= cycles // 4:
            ends.append(self.cycle(p, status=status))
            self.assertIsNone(p.poll())
            self.assertLess(len(ends), 4 * cycles + 20, "it could hardly ever be stopped")
        self.assertEqual(t.identity(p.pid)["text"], before)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.assertIn("ok", self.finish(p, timeout=120))
        return ends

    def test_64_threads(self):
        """64 threads that allocate without pause; attached and let go without pause"""
        p = self.victim("verify", 64, 100000 if t.FULL else 600)
        before = t.identity(p.pid)
        for i in range(CYCLES):
            r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                                "--for", "1ms"], text=True, capture_output=True, timeout=120)
            self.assertIn(r.returncode, (0, 15), r.stderr)
            if r.returncode:
                self.detach(p.pid)
            self.assertIsNone(p.poll(), f"died in cycle {i}")
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("ok", self.finish(p, timeout=120))

    def test_clone(self):
        """threads are born and die all the time"""
        self.storm("torture", "clone", status=(0, 17))

    def test_fork(self):
        """children are forked all the time, and allocate"""
        self.storm("torture", "fork")

    def test_spawn(self):
        """posix_spawn and vfork all the time"""
        self.storm("torture", "spawn")

    def test_long_vfork(self):
        """a vfork() that lasts: its parent cannot stop, and is not waited for"""
        p = self.victim("torture", "vfork")
        r = self.report(self.record(p.pid, 0.3))
        self.assertGreater(r["totals"]["allocations"], 100)
        self.assertIn("ok", self.finish(p, timeout=30))

    def test_handlers(self):
        """handlers on smallest alternate stacks, all the time, in malloc and hooks: they are left at once"""
        ends = self.storm("torture", "handlers", cycles=max(STORM, 8))
        self.assertGreaterEqual(ends.count(0), len(ends) * 7 // 8)

    def test_jumps(self):
        """handlers leave malloc and hooks by siglongjmp"""
        self.storm("torture", "jumps")

    def test_cancel(self):
        """threads are cancelled anywhere"""
        self.storm("torture", "cancel", status=(0, 17))

    def test_exceptions(self):
        """exceptions all the time"""
        self.storm("throws")

    def test_fibers(self):
        """fibers whose stacks come and go"""
        self.storm("torture", "fibers")

    def test_leader_gone(self):
        """the first thread has ended, the others live on: /proc/PID is empty"""
        p = self.victim("torture", "leaderless")
        with open(f"/proc/{p.pid}/maps") as maps:
            self.assertEqual(maps.read(), "")
        with open(f"/proc/{p.pid}/status") as status:
            self.assertIn("Z (zombie)", status.read())
        other = max(int(tid) for tid in os.listdir(f"/proc/{p.pid}/task"))
        before = t.identity(other)["text"]
        for _ in range(3):
            self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "200ms")
            self.assertGreater(self.report(self.path("r"))["totals"]["allocations"], 0)
        self.assertEqual(t.identity(other)["text"], before)
        self.assertNotIn("memprof", t.maps(other))
        self.assertIn("ok", self.finish(p, timeout=120))

    def ending(self, mode):
        """It ends by itself while it is being attached or recorded."""
        for i in range(ENDINGS):
            p = self.start(f"{t.VICTIMS}/torture", mode)
            time.sleep(0.3)
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if i % 2:
                time.sleep(1.1)
                rec.send_signal(signal.SIGTERM)  # it ends in the middle of detaching, or not
            out, _ = p.communicate(timeout=60)
            self.assertEqual((p.returncode, out), (0, "ok\n"))
            self.assertIn(rec.wait(timeout=120), (0, 3, 15, 17))
            if rec.returncode == 0:
                r = self.report(self.path("r"))
                if r["runtime"]["secs"] or r["runtime"]["fract_nsecs"] > 200e6:  # else it came too late
                    self.assertGreater(r["totals"]["allocations"], 0)

    def test_exec(self):
        """another thread calls exec while attached: the new program is not touched"""
        self.ending("exec")

    def test_exit(self):
        """another thread calls exit while attached: what was recorded is there"""
        self.ending("exit")


if __name__ == "__main__":
    t.main()
