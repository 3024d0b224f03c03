#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that stress threads, signals and stacks survive attaching and detaching many times.

MEMPROF_FULL=1 makes 10,000 cycles on 64 threads, and 200 of each other kind."""
import os
import signal
import subprocess
import time

import memprof_test as t
import ptrace

CYCLES = 10000 if t.FULL else 5
STORM = 200 if t.FULL else 3
ENDINGS = 100 if t.FULL else 2


class Torture(t.Case):
    def cycle(self, p, *more, status=(0,)):
        """Attaches, records, detaches once.  Return: memprof's status; 17 means that memprof could not stop
        the threads within its time (they are created faster, or get no processor time), and left the process alone."""
        r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                            "--for", "20ms", *more], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        if r.returncode == 15:
            self.detach(p.pid)
        else:
            self.assertIn(r.returncode, status, r.stdout + r.stderr)
        if r.returncode:
            print("# " + r.stderr.strip(), flush=True)
        return r.returncode

    def cycles(self, p, n, status=(0,)):
        """Runs @n cycles, and more if the process could be stopped in less than a quarter of them.  Return: the status
        of each."""
        ends = []
        while len(ends) < n or ends.count(0) + ends.count(15) <= n // 4:
            ends.append(self.cycle(p, status=status))
            self.assertIsNone(p.poll(), f"died in cycle {len(ends)}")
            self.assertLess(len(ends), 4 * n + 20, "it could hardly ever be stopped")
        return ends

    def storm(self, *victim, status=(0,), cycles=STORM):
        """Runs many cycles on a process of its own.  Return: the status of each."""
        p = self.busy_victim(*victim)
        before = t.identity(p.pid)["text"]
        ends = self.cycles(p, cycles, status)
        self.assertEqual(t.identity(p.pid)["text"], before)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.assertIn("ok", self.finish(p, timeout=120))
        return ends

    def test_64_threads(self):
        """64 threads that allocate without pause survive attach and detach without pause"""
        p = self.busy_victim("verify", 64, 100000 if t.FULL else 600)
        before = t.identity(p.pid)
        self.cycles(p, CYCLES, status=(0, 17))
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("ok", self.finish(p, timeout=120))

    def test_clone(self):
        """a program that creates and ends threads all the time survives attach and detach"""
        self.storm("torture", "clone", status=(0, 17))

    def test_fork(self):
        """a program that forks children, which allocate, all the time survives attach and detach"""
        self.storm("torture", "fork")

    def test_spawn(self):
        """a program that calls posix_spawn and vfork all the time survives attach and detach"""
        self.storm("torture", "spawn")

    def test_long_vfork(self):
        """attach does not wait for a thread in a long vfork(), which cannot stop; detach waits for one only,
        although the thread calls the next one at once"""
        p = self.start(f"{t.VICTIMS}/torture", "vfork")
        t.wait_for(lambda: ptrace.state(p.pid, p.pid) == "D")
        # It comes to that point if it waits for a vfork().
        m = self.start_until("close-left", "attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "300ms",
                             "--lossless")
        # As on a busy machine: the thread, if it could, would be in the next vfork() by now.
        time.sleep(0.3)
        state = ptrace.state(p.pid, p.pid)
        m.send_signal(signal.SIGCONT)
        _, said = m.communicate(timeout=60)
        self.assertEqual((m.returncode, state), (0, "t"), said)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.assertGreater(self.report(self.path("r"))["totals"]["allocations"], 100)
        self.assertIn("ok", self.finish(p, timeout=30))

    def test_vfork_alone(self):
        """attach waits for the only thread of a program to return from vfork()"""
        p = self.start(f"{t.VICTIMS}/torture", "vfork-alone")
        for _ in range(3):
            t.wait_for(lambda: ptrace.state(p.pid, p.pid) == "D")
            self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "1s", "--lossless")
            self.assertGreater(self.report(self.path("r"))["totals"]["allocations"], 0)
            self.assertNotIn("memprof", t.maps(p.pid))
        self.assertIn("ok", self.finish(p))

    def test_handlers(self):
        """signal handlers on minimal alternate stacks, in malloc and hooks, do not keep detach waiting"""
        ends = self.storm("torture", "handlers", cycles=max(STORM, 8))
        self.assertGreaterEqual(ends.count(0), len(ends) * 7 // 8)

    def test_jumps(self):
        """signal handlers that leave malloc and hooks by siglongjmp survive attach and detach"""
        self.storm("torture", "jumps")

    def test_cancel(self):
        """a program that cancels threads anywhere survives attach and detach"""
        self.storm("torture", "cancel", status=(0, 17))

    def test_exceptions(self):
        """a program that throws exceptions all the time survives attach and detach"""
        self.storm("throws")

    def test_fibers(self):
        """a program with fibers, whose stacks it maps and unmaps, survives attach and detach"""
        self.storm("torture", "fibers")

    def test_leader_gone(self):
        """attach records a process whose first thread has ended, so that /proc/PID/maps is empty"""
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
        """Attaches to a program that ends by itself meanwhile, or while it is recorded or detached."""
        for i in range(ENDINGS):
            p = self.start(f"{t.VICTIMS}/torture", mode)
            time.sleep(0.3)
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if i % 2:
                time.sleep(1.1)
                rec.send_signal(signal.SIGTERM)  # the program can end in the middle of detaching
            out, _ = p.communicate(timeout=60)
            self.assertEqual((p.returncode, out), (0, "ok\n"))
            self.assertIn(rec.wait(timeout=120), (0, 3, 15, 17))
            if rec.returncode == 0:
                r = self.report(self.path("r"))
                if r["runtime"]["secs"] or r["runtime"]["fract_nsecs"] > 200e6:  # else attach came too late
                    self.assertGreater(r["totals"]["allocations"], 0)

    def test_exec(self):
        """a thread calls exec while memprof attaches, records or detaches: the new program is unharmed"""
        self.ending("exec")

    def test_exit(self):
        """a thread calls exit while memprof attaches, records or detaches: the recording can be read"""
        self.ending("exit")


if __name__ == "__main__":
    t.main()
