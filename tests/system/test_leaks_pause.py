#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --max-pause: the predicted pause includes all work of the pause, and the limit is kept."""
import json
import os
import re
import signal
import subprocess
import time

import memprof_test as t
from test_leaks_safe import children

MANY = 2000 if t.GUEST else 20000


class Pause(t.Case):
    def many(self, n):
        """Starts a program with n mappings."""
        p = self.start(f"{t.VICTIMS}/mappings", str(n), stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_predicted(self):
        """leaks predicts a longer pause for many mappings, and --max-pause refuses it"""
        predicted = []
        for n in (10, MANY):
            p = self.many(n)
            for mode in ((), ("--pre-copy",), ("--in-place",)):
                if mode == ("--pre-copy",) and t.GUEST:
                    continue
                out = self.memprof("leaks", "-p", p.pid, "--dry-run", *mode).stdout
                self.assertIn(f"{n // 1000},0" if n >= 1000 else " mappings", out)
                predicted.append(float(re.search(r"about ([0-9.]+) ms predicted", out)[1]))
        for few, many in zip(predicted, predicted[len(predicted) // 2:]):
            self.assertGreater(many, few + 1e-3 * MANY)
        out = self.memprof("leaks", "-p", p.pid, "--max-pause", "1ms", status=4).stderr
        self.assertRegex(out, r"left alone; --max-pause \d+ms would be enough")

    def test_busy(self):
        """leaks on a busy machine predicts a longer pause, and reports how long it waited for a processor"""
        def look():
            out = self.memprof("leaks", "-p", p.pid, "--dry-run").stdout
            found = re.search(r"at most ([0-9,.]+) ms with the present load: ([0-9,]+) threads? for (\d+) processor",
                              out)
            return [float(x.replace(",", "")) for x in found.groups()]

        p = self.victim("verify", 8)
        busy = [self.start("/bin/sh", "-c", "while :; do :; done") for _ in range(16 * os.cpu_count())]
        most, running, processors = look()
        self.assertEqual(processors, os.cpu_count())
        self.assertGreaterEqual(running, len(busy))
        self.assertGreater(most, 11 * 4 * 16)  # eleven waits for 16 other threads, 4 ms each
        r = self.memprof("leaks", "-p", p.pid, "--budget", "1GB", "--json", self.path("leaks"))
        report = json.loads(t.read(self.path("leaks")))
        self.assertGreater(report["pause_predicted_most_ns"], 11 * 4 * 16 * 1e6)
        self.assertGreater(report["longest_processor_wait_ns"], 1e6)
        self.assertLessEqual(report["longest_processor_wait_ns"], report["longest_pause_ns"])
        self.assertRegex(r.stdout, r"pause: [0-9.]+ ms measured, up to [0-9.]+ ms of it waiting for a processor; the copy")
        for b in busy:
            b.kill()
        self.assertIn("ok", self.finish(p))

    def held_up(self, point, status, *more):
        """Runs leaks --max-pause 1s, which is itself stopped for longer at a fault point, while it holds the
        process.  Return: its status, its output."""
        p = self.many(100)
        before = t.identity(p.pid)
        m = self.start_until(point, "leaks", "-p", p.pid, "--max-pause", "1s", *more, stderr=subprocess.STDOUT)
        time.sleep(1.2)
        m.send_signal(signal.SIGCONT)
        out, _ = m.communicate(timeout=300)
        self.assertIn(m.returncode, status, out)
        self.assertEqual(children(p.pid), {})
        self.assertEqual(t.identity(p.pid), before)
        return m.returncode, out

    def test_slow_seize(self):
        """leaks on a machine so busy that seizing a thread takes longer than 2 ms reports as usual"""
        p = self.victim("verify", 2)
        # strace delays the first PTRACE_SEIZE; the timer that limits its time expires meanwhile.
        r = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=ptrace",
                            "-e", "inject=ptrace:delay_enter=20000:when=1", t.MEMPROF, "leaks", "-p", str(p.pid)],
                           text=True, capture_output=True, timeout=120)
        self.assertIn(r.returncode, (0, 1), r.stderr)
        self.assertNotIn("--max-pause", r.stderr)
        self.finish(p)

    def test_late(self):
        """leaks --max-pause releases the process without a copy if stopping it took all of the time"""
        _, out = self.held_up("snapshot-stopped", [4])
        self.assertRegex(out, r"was released after \d+\.\d ms: copying it would take [0-9.]+ ms more, and --max-pause is "
                              r"1000 ms; --max-pause \d+ms would be enough")

    def test_late_in_place(self):
        """leaks --in-place --max-pause releases the process unread if stopping it took all of the time"""
        _, out = self.held_up("snapshot-stopped", [4], "--in-place")
        self.assertRegex(out, "was released after .* nothing was read yet")

    def test_overrun(self):
        """leaks whose copy exceeds --max-pause reports with status 7, and does not stop the process again"""
        _, out = self.held_up("copy-born", [7])
        self.assertRegex(out, r"pause: \d+\.\d ms, longer than the 1000 ms of --max-pause; "
                              r"--max-pause \d+ms would be enough")
        self.assertIn("exact", out)
        _, out = self.held_up("copy-born", [7], "--confirm", "2", "--interval", "1ms")
        self.assertRegex(out, "is not stopped again; ")

    def test_overrun_in_place(self):
        """leaks --in-place releases the process when --max-pause ends, in the middle of the work"""
        status, out = self.held_up("snapshot-taken", [4, 7], "--in-place")
        # memprof can have finished the work before it noticed the end of the time (status 7).
        self.assertIn("--max-pause has passed, so the process was released" if status == 4
                      else "longer than the 1000 ms", out)


if __name__ == "__main__":
    t.main()
