#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A hostile target: memprof ends in time with a status of its own, and writes only its recording."""
import os
import subprocess

import memprof_test as t

SEEDS = 40 if t.FULL else 3
STATUSES = (0, 1, 3, 14, 15)  # exit statuses that are allowed; death by a signal would be negative


class Hostile(t.Case):
    def recorded(self, mode, seed):
        p = self.victim("scribbler", mode, seed)
        text = t.identity(p.pid)["text"]
        os.mkdir(self.path("out"))
        r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("out/r"), "--for", "1500ms"],
                           text=True, capture_output=True, timeout=120, cwd=self.dir)
        self.assertIn(r.returncode, STATUSES, f"{mode} {seed}: {r.stdout}{r.stderr}")
        self.assertEqual(p.stdout.readline(), "scribbling\n")
        self.assertLessEqual(set(os.listdir(self.path("out"))), {"r"})
        self.assertIsNone(p.poll(), f"{mode} {seed}: the target died")
        self.assertEqual(t.identity(p.pid)["text"].items() & text.items(), text.items())
        return p, r

    def scribbled(self, mode, statuses=(0,)):
        for seed in range(1, SEEDS + 1):
            p, r = self.recorded(mode, seed)
            # The recorder restores the process by its own copy of the journal.
            self.assertIn(r.returncode, statuses, f"{mode} {seed}: {r.stdout}{r.stderr}")
            if r.returncode == 0:
                self.assertNotIn("memprof", t.maps(p.pid))
            self.assertRegex(self.finish(p), r"ok [1-9]")
            r = subprocess.run([t.MEMPROF, "report", self.path("out/r")], text=True, capture_output=True, timeout=120)
            self.assertEqual(r.returncode, 0, f"{mode} {seed}: {r.stderr}")
            os.unlink(self.path("out/r"))
            os.rmdir(self.path("out"))

    def test_control(self):
        """a target that overwrites its control page and journal with random bytes"""
        self.scribbled("control")

    def test_tables(self):
        """a target that overwrites module lists and unwind rules with random bytes"""
        # memprof can then fail to tell whether a signal handler's stack leads into the agent, and leaves the
        # agent's pages mapped (status 15).
        self.scribbled("tables", (0, 15))

    def test_rings(self):
        """a target that forges rings: well-formed records with wrong content"""
        self.scribbled("rings")

    def test_all(self):
        """a target that overwrites its control page, journal, tables and rings at once"""
        self.scribbled("all", (0, 15))

    def test_terminal(self):
        """status escapes control characters that a target has written into its session's strings"""
        p = self.victim("verify", 1)
        self.memprof("attach", "--background", "-p", p.pid, "-o", self.path("r"))
        low = next(int(line.split("-")[0], 16) for line in t.maps(p.pid).split("\n") if "memprof-session" in line)
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(low)
            at = mem.read(256 << 10).index(self.path("r").encode())
            mem.seek(low + at)
            mem.write(b"\x1b[31m\n")
        for more, shown in ([], r"\x1b[31m\x0a"), (["--json"], r"\u001B[31m\n"):
            out = self.memprof("status", *more).stdout
            self.assertIn(shown, out)
            self.assertNotIn("\x1b", out)
        self.memprof("detach", "-p", p.pid)
        self.finish(p)


if __name__ == "__main__":
    t.main()
