#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every system call and allocation of attach/ and inject/ fails once: a message, and the target as it was.

lib/fault_calls.h makes them fail.  MEMPROF_FULL=1: each at its first passings; else one in nine of them, at its first."""
import os
import re
import subprocess
import zlib

import memprof_test as t

PASSINGS = (1, 2, 4, 8) if t.FULL else (1,)
SHARE = 1 if t.FULL else 9


class Failures(t.Case):
    def run_command(self, p, command, **fail):
        more = ("-q", "-o", self.path("r"), "--for", "1ms") if command[0] == "attach" else command[1:]
        return subprocess.run([t.FAULTY, command[0], "-p", str(p.pid), *more], env=dict(os.environ, **fail), text=True,
                              capture_output=True, timeout=120, stdin=subprocess.DEVNULL)

    def places(self, p, *command):
        """Calls that the command makes if none fails."""
        listed = self.path("places")
        r = self.run_command(p, command, MEMPROF_FAIL_LIST=listed)
        self.assertIn(r.returncode, (0, 15), r.stderr)
        places = sorted({line for line in t.read(listed).decode().split("\n") if line})
        os.remove(listed)
        return [place for place in places if t.FULL or zlib.crc32(place.encode()) % SHARE == 0]

    def nobody_holds(self, pid):
        status = "".join(t.read(f"/proc/{pid}/task/{tid}/status").decode() for tid in os.listdir(f"/proc/{pid}/task"))
        self.assertEqual(set(re.findall(r"^TracerPid:\t(\d+)", status, re.M)), {"0"})

    def copies(self, pid):
        return b"".join(t.read(f"/proc/{pid}/task/{tid}/children") for tid in os.listdir(f"/proc/{pid}/task"))

    def fail_one(self, p, command, where, before):
        r = self.run_command(p, command, MEMPROF_FAIL=where)
        self.assertIsNone(p.poll(), f"died: {r.stderr}")
        self.assertGreaterEqual(r.returncode, 0, r.stderr)
        if r.returncode:
            self.assertRegex(r.stderr, "(?m)^memprof: .+$")
        self.nobody_holds(p.pid)
        self.assertEqual(self.copies(p.pid), b"", "a copy of it is left")
        if t.identity(p.pid) != before:
            self.assertEqual(r.returncode, 15, f"something is left, and it does not say so: {r.stderr}")
            self.detach(p.pid)
        self.assertEqual(t.identity(p.pid), before)
        return r

    def fail_each(self, *command):
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        for place in self.places(p, *command):
            for passing in PASSINGS:
                where = f"{place}:{passing}"
                with self.subTest(" ".join(command), where=where):
                    self.fail_one(p, command, where, before)
        self.assertIn("ok", self.finish(p))

    def test_attach(self):
        """attach, and detach at its end"""
        self.fail_each("attach")

    def test_attach_calls(self):
        """each system call that a thread of the target is to make for attach fails to be made"""
        with open(f"{t.ROOT}/attach/remote.c") as f:
            line = 1 + next(i for i, text in enumerate(f) if "if (ptrace(PTRACE_SYSCALL, r->carrier->tid" in text)
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        failed = 0
        # Short: about where the islands are mapped.
        for passing in range(1, 100) if t.FULL else range(15, 26):
            with self.subTest(passing=passing):
                r = self.fail_one(p, ("attach",), f"attach/remote.c:{line}:{passing}", before)
            if not r.returncode:
                break
            failed += 1
        self.assertGreater(failed, 30 if t.FULL else 10)
        self.assertIn("ok", self.finish(p))

    def test_leaks(self):
        """leaks, by a copy"""
        self.fail_each("leaks")

    def test_leaks_in_place(self):
        """leaks --in-place"""
        self.fail_each("leaks", "--in-place")


if __name__ == "__main__":
    t.main()
