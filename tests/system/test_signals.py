#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof does not disturb job control, queued signals and restartable sequences."""
import os
import re
import signal
import subprocess
import sys
import time

import memprof_test as t

CYCLES = 100 if t.FULL else 5 if t.GUEST else 12

# A shell with one job.  For each line on its standard input it prints how many SIGCHLD it received, and what
# waitpid() returned.
SHELL = """
import os, signal, subprocess, sys
chld = []
def on_chld(*_):
    chld.append(1)
signal.signal(signal.SIGCHLD, on_chld)
p = subprocess.Popen(sys.argv[1:], process_group=0, stdout=subprocess.PIPE)
print(p.pid, flush=True)
for line in sys.stdin:
    events = []
    while True:
        pid, status = os.waitpid(p.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not pid:
            break
        events.append("stopped" if os.WIFSTOPPED(status) else
                      "continued" if os.WIFCONTINUED(status) else "ended")
        if events[-1] == "ended":
            break
    told = len(chld)
    print(told, *events, flush=True)
    del chld[:told]  # one may have come meanwhile
"""


class Signals(t.Case):
    def ask(self, shell, *expected):
        """Return: the number of SIGCHLD, and the events, that the shell saw.  Waits until these are as
        expected; if nothing is expected, for a while."""
        end = time.monotonic() + 60
        told = [0]
        while True:
            time.sleep(0.05 if expected else 0.3)
            shell.stdin.write("?\n")
            shell.stdin.flush()
            signals, *events = shell.stdout.readline().split()
            told = [told[0] + int(signals), *told[1:], *events]
            if not expected or told == [1, *expected] or time.monotonic() > end:
                return told

    def heard(self, shell, *events):
        self.assertEqual(self.ask(shell, *events), [len(events), *events])
        self.assertEqual(self.ask(shell), [0], "the parent was told of stops that were none")

    def job(self, stop):
        shell = self.start(sys.executable, "-c", SHELL, f"{t.VICTIMS}/verify", "3",
                           stdin=subprocess.PIPE)
        pid = int(shell.stdout.readline())
        t.settle(pid)
        self.heard(shell)
        os.kill(pid, stop)
        self.heard(shell, "stopped")
        before = t.identity(pid)
        for _ in range(3):
            self.record(pid, 0.05)
        with open(f"/proc/{pid}/stat") as f:
            self.assertEqual(f.read().split()[2], "T")
        self.heard(shell)
        self.assertEqual(t.identity(pid), before)
        os.kill(pid, signal.SIGCONT)
        self.heard(shell, "continued")
        # The job runs: the parent receives nothing from attach and detach.
        self.record(pid, 0.05)
        self.heard(shell)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.ask(shell, "ended"), [1, "ended"])
        shell.stdin.close()
        shell.wait(timeout=120)

    def test_stopped_job(self):
        """a job stopped by ^Z stays stopped through attach, continues by fg; its shell sees only that"""
        self.job(signal.SIGTSTP)

    def test_stopped_by_sigstop(self):
        """a job stopped by SIGSTOP stays stopped through attach, continues by fg; its shell sees only that"""
        self.job(signal.SIGSTOP)

    def test_stop_and_continue_while_recording(self):
        """a process that is stopped while it is recorded stays stopped through detach"""
        p = self.victim("verify", 3)
        before = t.identity(p.pid)
        for _ in range(3):
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL)
            self.wait_recorded(p.pid)
            time.sleep(0.2)
            p.send_signal(signal.SIGSTOP)
            t.wait_for(lambda: t.stopped(p.pid))
            rec.send_signal(signal.SIGTERM)
            # If a thread stopped inside a hook, the agent's pages stay until it continues (status 15).
            status = rec.wait(timeout=120)
            self.assertIn(status, (0, 15))
            with open(f"/proc/{p.pid}/stat") as f:
                self.assertEqual(f.read().split()[2], "T")
            p.send_signal(signal.SIGCONT)
            if status:
                self.detach(p.pid)
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("ok", self.finish(p))

    def cycles(self, mode):
        p = self.victim("signals", mode)
        for _ in range(CYCLES):
            self.record(p.pid, 0.02)
            self.assertIsNone(p.poll())
        self.assertGreater(int(self.finish(p).split()[1]), 100)

    def test_queued(self):
        """queued real-time signals are delivered once, in order, with their siginfo, across attach"""
        self.cycles("queue")

    def test_not_held(self):
        """attach does not trace the program while it builds unwind tables, so signals do not stop it"""
        p = self.victim("signals", "queue")
        rec = self.start_until("tables", "attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "10ms")
        self.assertIn("memprof", t.maps(p.pid))
        tracers = {re.search(r"TracerPid:\t(\d+)", t.read(f"/proc/{p.pid}/task/{tid}/status").decode()).group(1)
                   for tid in os.listdir(f"/proc/{p.pid}/task")}
        rec.send_signal(signal.SIGCONT)
        self.assertEqual(tracers, {"0"})
        _, said = rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0, said)
        self.assertGreater(int(self.finish(p).split()[1]), 100)

    def stopped_meanwhile(self, point, status, command, *more):
        p = self.victim("held", 3)
        env = dict(os.environ, MEMPROF_FAULT=point, MEMPROF_FAULT_OF=str(p.pid),
                   MEMPROF_FAULT_SIGNAL=str(int(signal.SIGSTOP)))
        r = subprocess.run([t.FAULTY, command, "-p", str(p.pid), *more], env=env, text=True, capture_output=True,
                           timeout=120, stdin=subprocess.DEVNULL)
        self.assertIn(r.returncode, status, r.stderr)
        t.wait_for(lambda: t.stopped(p.pid))
        told = t.wait_for(lambda: os.waitpid(p.pid, os.WNOHANG | os.WUNTRACED)[1])
        self.assertTrue(os.WIFSTOPPED(told), hex(told))
        p.send_signal(signal.SIGCONT)
        t.wait_for(lambda: not t.stopped(p.pid))
        if r.returncode == 15:
            self.detach(p.pid)
        self.assertIsNone(p.poll())

    def test_stopped_meanwhile(self):
        """SIGSTOP during injected system calls stops the process afterwards, and its parent is notified"""
        for point in ("remote-parked:1", "remote-runs:1", "remote-entry:1", "remote-exit:1", "remote-runs:4",
                      "remote-done:1"):
            with self.subTest(point):
                self.stopped_meanwhile(point, (0, 15), "attach", "-q", "-o", self.path("r"), "--for", "1ms")
        for point in ("remote-runs:1", "remote-entry:1"):
            with self.subTest(point, command="leaks"):
                # 3: on a busy machine the copy did not stop in time.
                self.stopped_meanwhile(point, (0, 3), "leaks")

    def test_rseq(self):
        """restartable sequences that attach interrupts are restarted"""
        self.cycles("rseq")


if __name__ == "__main__":
    t.main()
