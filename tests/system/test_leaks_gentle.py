#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --gentle: one thread stands, the others run on; still no leak is invented."""
import json

import memprof_test as t


class Gentle(t.Case):
    def start_blocks(self, *args):
        p = self.start(f"{t.VICTIMS}/blocks", *map(str, args))
        for line in p.stdout:
            if line.split()[0] == "ready":
                return p
        self.fail("no ready")

    def leaks(self, p, *args, status=1):
        f = self.path("leaks.json")
        out = self.memprof("leaks", "-p", p.pid, "--json", f, *args, status=status).stdout
        with open(f) as j:
            return json.load(j), out

    def check(self, mode, leaks):
        p = self.start_blocks(mode, 6, "leaks", leaks)
        before = t.identity(p.pid)
        for _ in range(5 if t.FULL else 1):
            report, out = self.leaks(p, "--gentle", "--interval", "1s", status=1 if leaks else 0)
            self.assertEqual(report["leaked"]["count"], leaks)
            self.assertEqual(report["mode"], "gentle")
            self.assertFalse(report["exact"])
            self.assertRegex(out, "approximate because (threads ran while it was copied|a thread was changing)")
        self.assertIsNone(p.poll())
        self.assertEqual(t.read(f"/proc/{p.pid}/task/{p.pid}/children"), b"")
        self.assertEqual(t.identity(p.pid), before)
        p.kill()

    def test_running(self):
        """threads that allocate all the time: the planted leaks, none else"""
        self.check("run", 5)

    def test_running_without_leaks(self):
        """threads that allocate all the time and leak nothing: none"""
        self.check("run", 0)

    def test_parked(self):
        """waiting threads"""
        self.check("park", 9)

    def test_others_run_on(self):
        """with all the other threads never traced"""
        p = self.start_blocks("run", 4)
        rec = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), "--gentle", "--interval", "100ms")
        traced = set()
        while rec.poll() is None:
            for tid in t.os.listdir(f"/proc/{p.pid}/task"):
                try:
                    status = t.read(f"/proc/{p.pid}/task/{tid}/status").decode()
                except FileNotFoundError:
                    continue
                if "TracerPid:\t0" not in status:
                    traced.add(int(tid))
        self.assertLessEqual(traced, {p.pid})
        p.kill()

    def test_usage(self):
        """not with what it contradicts"""
        self.memprof("leaks", "-p", 1, "--gentle", "--in-place", status=2)
        self.memprof("leaks", "-p", 1, "--gentle", "--max-pause", "1ms", status=2)


if __name__ == "__main__":
    t.main()
