#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --max-pause: predicted with all that a pause has to do, and kept to when it takes longer."""
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
        """A program with n mappings."""
        p = self.start(f"{t.VICTIMS}/mappings", str(n), stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_predicted(self):
        """many mappings make a pause longer, and the prediction says so"""
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
        """on a busy machine the prediction has more room, and what was measured says how much was waiting"""
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
        self.assertGreater(most, 11 * 4 * 16)  # eleven turns of 16 others each
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
        """leaks --max-pause 1s, which is stopped itself for longer at some point, with the process in its
        hand.  What it says."""
        p = self.many(100)
        before = t.identity(p.pid)
        m = self.start(t.FAULTY, "leaks", "-p", str(p.pid), "--max-pause", "1s", *more, stderr=subprocess.STDOUT,
                       env=dict(os.environ, MEMPROF_FAULT=point, MEMPROF_FAULT_SIGNAL=str(int(signal.SIGSTOP))))
        t.wait_for(lambda: t.stopped(m.pid))
        time.sleep(1.2)
        m.send_signal(signal.SIGCONT)
        out, _ = m.communicate(timeout=300)
        self.assertIn(m.returncode, status, out)
        self.assertEqual(children(p.pid), {})
        self.assertEqual(t.identity(p.pid), before)
        return m.returncode, out

    def test_late(self):
        """stopping alone took as long as is allowed: it is let go, and not copied"""
        _, out = self.held_up("snapshot-stopped", [4])
        self.assertRegex(out, r"was released after \d+\.\d ms: copying it would take [0-9.]+ ms more, and --max-pause is "
                              r"1000 ms; --max-pause \d+ms would be enough")

    def test_late_in_place(self):
        """the same without a copy"""
        _, out = self.held_up("snapshot-stopped", [4], "--in-place")
        self.assertRegex(out, "was released after .* nothing was read yet")

    def test_overrun(self):
        """a copy that took longer: said, with the report and a status of its own; it is not stopped again"""
        _, out = self.held_up("copy-born", [7])
        self.assertRegex(out, r"pause: \d+\.\d ms, longer than the 1000 ms of --max-pause; "
                              r"--max-pause \d+ms would be enough")
        self.assertIn("exact", out)
        _, out = self.held_up("copy-born", [7], "--confirm", "2", "--interval", "1ms")
        self.assertRegex(out, "is not stopped again; ")

    def test_overrun_in_place(self):
        """without a copy it is let go at the end of the allowed time, in the middle of the work"""
        status, out = self.held_up("snapshot-taken", [4, 7], "--in-place")
        # The work may have been done when the end of the time was noticed.
        self.assertIn("--max-pause has passed, so the process was released" if status == 4
                      else "longer than the 1000 ms", out)


if __name__ == "__main__":
    t.main()
