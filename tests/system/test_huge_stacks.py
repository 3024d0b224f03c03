#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads whose executable stacks are in huge pages, as all stacks of MIPS may be: a write to those by
/proc/PID/mem or ptrace crashes kernels there (doc/mips64.md)."""
import os
import re
import signal

import memprof_test as t

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def huge_code(pid):
    """Of each writable and executable mapping that has them: huge pages, in kB."""
    return [int(kb) for kb in re.findall(r"^\S+ rwxp .*\n(?:[A-Z].*\n)*?AnonHugePages: +([1-9]\d*) kB",
                                         t.read(f"/proc/{pid}/smaps").decode(), re.M)]


@t.unittest.skipUnless(os.path.exists(THP) and b"[never]" not in t.read(THP), "the kernel has no huge pages")
class HugeStacks(t.Case):
    def huge(self):
        """The victim; all of its threads but the first stand on huge pages."""
        p = self.victim("verify", 2, 3600, "huge")
        self.assertGreaterEqual(sum(huge_code(p.pid)), 2 * 2 * 2048)
        return p

    def test_attach(self):
        """attached, recorded, detached: text, mappings and stacks are right, and these still huge"""
        p = self.huge()
        before, huge = t.identity(p.pid), huge_code(p.pid)
        self.record(p.pid, 0.3)
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(huge_code(p.pid), huge)
        self.assertIn("ok", self.finish(p))

    def test_leaks(self):
        """looked at by leaks, which makes a copy from one of its threads"""
        p = self.huge()
        self.memprof("leaks", "-p", p.pid)
        self.assertIn("ok", self.finish(p))

    def test_stopped(self):
        """in a job-control stop: it stays stopped"""
        p = self.huge()
        p.send_signal(signal.SIGSTOP)
        t.wait_for(lambda: t.stopped(p.pid))
        self.record(p.pid, 0.2)
        self.assertTrue(t.stopped(p.pid))
        p.send_signal(signal.SIGCONT)
        self.assertIn("ok", self.finish(p))


if __name__ == "__main__":
    t.main()
