#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks on a thread that is stopped anywhere inside the allocator: it reports no false leak and no
damage, and gives a reason if the result is not exact.

A victim without leaks is single-stepped through code that holds lists of free blocks in registers:
malloc_consolidate(), with and without the allocator's locks, and the end of a thread with its tcache.
MEMPROF_FULL=1 runs memprof leaks at every second instruction."""
import json
import os
import platform
import subprocess
import unittest

import memprof_test as t
import ptrace

EVERY = 2 if t.FULL else 61


@unittest.skipUnless(platform.machine() == "x86_64", "single steps are written for x86-64")
class Inside(t.Case):
    def standing(self, which, **env):
        """Starts the victim, whose thread waits in read().  Return: the victim, a stepper of its thread."""
        p = self.start(f"{t.VICTIMS}/bursts", which, stdin=subprocess.PIPE, env=dict(os.environ, **env))
        self.assertEqual(p.stdout.readline(), "ready\n")
        tids = sorted(int(x) for x in os.listdir(f"/proc/{p.pid}/task"))
        tid = tids[-1] if which == "ending" else tids[0]
        t.wait_for(lambda: t.read(f"/proc/{p.pid}/task/{tid}/syscall").split()[0] == b"0")
        s = ptrace.Stepper(p.pid, tid)
        p.stdin.write("x")
        p.stdin.flush()
        return p, s

    def look(self, p, where):
        """Runs memprof leaks on the process in its present state, and checks the report."""
        f = self.path("leaks.json")
        self.memprof("leaks", "-p", p.pid, "--json", f, status=0)
        with open(f) as report:
            r = json.load(report)
        heap = r["heaps"][0]
        self.assertEqual(r["leaked"]["count"], 0, where)
        self.assertEqual(heap["damaged"], [], where)
        if not r["exact"]:
            self.assertRegex(heap["doubt"], "a thread was|differs from its counter", where)
        return r

    def step_through(self, p, s, steps):
        """Single-steps and looks repeatedly.  Return: how many reports were exact, and how many not."""
        looks = {True: 0, False: 0}
        for i in range(steps):
            s.step()
            if i % EVERY:
                continue
            was = s.registers()
            s.leave_stopped()
            looks[self.look(p, f"step {i}, pc {was['rip']:#x}")["exact"]] += 1
            s.grab()
            self.assertEqual(s.registers(), was)
        s.let_go()
        return looks

    def consolidated(self, which):
        p, s = self.standing(which, GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
        looks = self.step_through(p, s, 1100)
        self.assertGreater(looks[True], looks[False])
        self.assertGreater(looks[False], 0)  # stopped while it merges chunks

    def test_consolidate(self):
        """no false leak while only a register has a fastbin's chain, with the arena locked"""
        self.consolidated("two")

    def test_consolidate_without_lock(self):
        """no false leak while only a register has a fastbin's chain, in a one-threaded program, unlocked"""
        self.consolidated("one")

    def test_ending_thread(self):
        """no false leak while a thread ends and only a register has its tcache"""
        p, s = self.standing("ending")
        self.step_through(p, s, 3600)


if __name__ == "__main__":
    t.main()
