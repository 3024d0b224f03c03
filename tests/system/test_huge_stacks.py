#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads with executable stacks in huge pages, which any stack on MIPS can be: there, a write to such a
stack by /proc/PID/mem or ptrace crashes some kernels (doc/mips64.md)."""
import os
import re
import signal

import memprof_test as t

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def huge_code(pid):
    """The huge pages of each writable and executable mapping that has any, in kB."""
    return [int(kb) for kb in re.findall(r"^\S+ rwxp .*\n(?:[A-Z].*\n)*?AnonHugePages: +([1-9]\d*) kB",
                                         t.read(f"/proc/{pid}/smaps").decode(), re.M)]


@t.unittest.skipUnless(os.path.exists(THP) and b"[never]" not in t.read(THP), "the kernel has no huge pages")
class HugeStacks(t.Case):
    def huge(self):
        """Starts the victim.  The stacks of all its threads but the first are in huge pages."""
        p = self.victim("verify", 2, 3600, "huge")
        self.assertGreaterEqual(sum(huge_code(p.pid)), 2 * 2 * 2048)
        return p

    def test_attach(self):
        """attach and detach with stacks in huge pages leave text and mappings unchanged, the pages huge"""
        p = self.huge()
        before, huge = t.identity(p.pid), huge_code(p.pid)
        self.record(p.pid, 0.3)
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(huge_code(p.pid), huge)
        self.assertIn("ok", self.finish(p))

    def test_leaks(self):
        """leaks, which forks a copy from one of the threads, leaves stacks in huge pages intact"""
        p = self.huge()
        self.memprof("leaks", "-p", p.pid)
        self.assertIn("ok", self.finish(p))

    def test_stopped(self):
        """attach to a process with stacks in huge pages in a job-control stop leaves it stopped"""
        p = self.huge()
        p.send_signal(signal.SIGSTOP)
        t.wait_for(lambda: t.stopped(p.pid))
        self.record(p.pid, 0.2)
        self.assertTrue(t.stopped(p.pid))
        p.send_signal(signal.SIGCONT)
        self.assertIn("ok", self.finish(p))


if __name__ == "__main__":
    t.main()
