#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A thread can be at any instruction of the allocator or of the hooks when memprof attaches and detaches.

A victim is single-stepped through malloc, calloc, realloc, posix_memalign and free, in the main and in
another arena, with its locks, tcache and mmapped chunks.  MEMPROF_FULL=1 tests every distinct pc, otherwise
the tests take a sample, which has all pcs in patched bytes."""
import os
import re
import signal
import subprocess
import time

import memprof_test as t
import ptrace

SAMPLE = 100000 if t.FULL else 6  # of each of the four series
STEPS = 400000


def text_ranges(pid):
    """(start, end, name) of executable mappings; name "" for the agent and the islands."""
    found = []
    for line in t.maps(pid).split("\n"):
        m = re.match(r"(\w+)-(\w+) r-xp \S+ \S+ \d+\s*(\S*)", line)
        if m and m.group(3) not in ("[vdso]", "[vsyscall]"):
            found.append((int(m.group(1), 16), int(m.group(2), 16), m.group(3)))
    return found


class StopAnywhere(t.Case):
    def stepper(self, which):
        p = self.victim("steps", which)
        tids = sorted(int(x) for x in os.listdir(f"/proc/{p.pid}/task"))
        return p, ptrace.Stepper(p.pid, tids[0] if which == "main" else tids[1])

    def distinct(self, s, wanted):
        """Single-steps until no new pcs appear.  Return: the keys that wanted(pc) returned, in the order in
        which they appeared."""
        seen = {}
        quiet = 0
        for _ in range(STEPS):
            key = wanted(s.step())
            quiet += 1
            if key is not None and key not in seen:
                seen[key] = True
                quiet = 0
            if quiet > 60000:
                break
        return list(seen)

    def sample(self, keys, first=()):
        """All keys that are in @first, and an even sample of the others."""
        if len(keys) <= SAMPLE:
            return set(keys)
        stride = len(keys) // SAMPLE + 1
        return set(keys[::stride]) | (set(first) & set(keys))

    def step_to(self, s, left, wanted):
        for _ in range(STEPS):
            key = wanted(s.step())
            if key in left:
                left.discard(key)
                return key
        return None

    def same(self, pid, before, where):
        """Checks text, mappings of code, descriptors and threads; the heap can have grown."""
        now = t.identity(pid)
        for what in ("text", "maps", "fds", "tasks", "copied text"):
            self.assertEqual(now[what], before[what], f"{what} at {where}")

    def windows(self):
        """The offsets in libc of the bytes that can be patched."""
        libc = "/lib/x86_64-linux-gnu/libc.so.6"
        names = "malloc|calloc|realloc|free|posix_memalign" if t.FULL else "malloc|free"
        syms = subprocess.check_output(["nm", "-D", "--defined-only", libc], text=True)
        return {int(value, 16) + i
                for value, _ in re.findall(rf"^(\w+) \w ({names})@@", syms, re.M)
                for i in range(24)}

    def in_allocator(self, which):
        p, s = self.stepper(which)
        before = t.identity(p.pid)
        low, high = next(r[:2] for r in text_ranges(p.pid) if "libc.so" in r[2])
        base = min(int(x.split("-")[0], 16) for x in t.maps(p.pid).split("\n") if "libc.so" in x)

        def wanted(pc):
            return pc - base if low <= pc < high else None

        left = self.sample(self.distinct(s, wanted), self.windows())
        n = len(left)
        self.assertGreaterEqual(n, 6)
        while left:
            key = self.step_to(s, left, wanted)
            if key is None:
                break
            was = s.registers()
            s.leave_stopped()
            if len(left) % 3:
                self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "1ms")
                self.assertEqual(ptrace.state(p.pid, s.tid), "T")
                s.grab()
                self.assertEqual(s.registers(), was, hex(key))
            else:
                self.run_on(p)
                s.grab()
            self.same(p.pid, before, hex(key))
        self.assertLess(len(left), n / 4)
        s.let_go()
        self.assertIn("ok", self.finish(p))

    def run_on(self, p):
        """Installs the hooks with the thread at its pc, lets the program run through them, removes them."""
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while self.session_state(p) != 3:
            self.assertIsNone(rec.poll())
            time.sleep(0.005)
        p.send_signal(signal.SIGCONT)
        time.sleep(0.02)
        rec.send_signal(signal.SIGTERM)
        status = rec.wait(timeout=120)
        self.assertIn(status, (0, 15))
        if status:  # on a busy machine, memprof can miss its deadline, and leave the agent's pages
            self.detach(p.pid)
        self.assertIsNone(p.poll())

    def session_state(self, p):
        r = subprocess.run([f"{t.VICTIMS}/block", str(p.pid)], text=True, capture_output=True)
        m = re.search(r'"state": (\d)', r.stdout)
        return int(m.group(1)) if m else None

    def in_hooks(self, which):
        p, s = self.stepper(which)
        before = t.identity(p.pid)

        def attach():
            # Stopped, so that what it executes once in a session (it takes its slot, for example) is executed
            # in single steps in each session: a pc that was seen in one is seen in the next.
            s.leave_stopped()
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while self.session_state(p) != 3:
                self.assertIsNone(rec.poll())
                time.sleep(0.005)
            # The session is active some moments before memprof has released all threads.
            t.wait_for(lambda: b"\nTracerPid:\t0\n" in t.read(f"/proc/{p.pid}/task/{s.tid}/status"))
            s.grab()
            ours = [r for r in text_ranges(p.pid) if not r[2]]
            self.assertGreaterEqual(len(ours), 2)

            def wanted(pc):
                for i, r in enumerate(ours):
                    if r[0] <= pc < r[1]:
                        return i, pc - r[0]
                return None

            return rec, wanted

        rec, wanted = attach()
        left = self.sample(self.distinct(s, wanted))
        n = len(left)
        self.assertGreaterEqual(n, 6)
        while left:
            key = self.step_to(s, left, wanted)
            if key is None:
                break
            s.leave_stopped()
            rec.send_signal(signal.SIGTERM)
            # memprof restores the text, then waits until the thread has left the agent's code.
            while self.session_state(p) == 3:
                time.sleep(0.002)
            p.send_signal(signal.SIGCONT)
            status = rec.wait(timeout=120)
            self.assertIn(status, (0, 15), key)
            if status:  # on a busy machine, memprof can miss its deadline, and leave the agent's pages
                self.detach(p.pid)
            self.assertIsNone(p.poll(), f"died at {key}")
            s.grab()
            self.same(p.pid, before, key)
            if left:
                rec, wanted = attach()
        print(f"# at {n - len(left)} of {n} pcs of the hooks, {which}", flush=True)
        self.assertLess(len(left), n / 4)
        if rec.poll() is None:
            s.let_go()
            rec.send_signal(signal.SIGTERM)
            rec.wait(timeout=120)
        else:
            s.let_go()
        self.assertIn("ok", self.finish(p))

    def test_allocator_main_arena(self):
        """attach and detach with a thread at each instruction of the allocator, in the main arena"""
        self.in_allocator("main")

    def test_allocator_other_arena(self):
        """attach and detach with a thread at each instruction of the allocator, in a thread's arena"""
        self.in_allocator("other")

    def test_hooks_main_arena(self):
        """detach with a thread at each instruction of the agent and the islands, in the main arena"""
        self.in_hooks("main")

    def test_hooks_other_arena(self):
        """detach with a thread at each instruction of the agent and the islands, in a thread's arena"""
        self.in_hooks("other")


if __name__ == "__main__":
    t.main()
