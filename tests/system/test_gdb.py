#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/session.py, the command for gdb that prints a session block."""
import os
import re
import subprocess

import memprof_test as t


class Gdb(t.Case):
    def gdb(self, pid, command, status=0):
        r = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-x", f"{t.ROOT}/scripts/session.py", "-ex", command],
                           text=True, capture_output=True, timeout=120, env={**os.environ, "DEBUGINFOD_URLS": ""})
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout + r.stderr

    def test_session(self):
        """memprof-session prints the journal, the hooks and the threads of a recorded process, and nothing without one"""
        p = self.victim("verify", 2)
        self.assertIn("has no memprof session", self.gdb(p.pid, "memprof-session", 1))
        self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--background")
        head = self.gdb(p.pid, "memprof-session")
        self.assertRegex(head, rf"recorder_pid +{self.recorder(p.pid)}\n")
        self.assertIn(self.path("r"), head)
        self.assertRegex(self.gdb(p.pid, "memprof-session hooks"), r"patched 0x[0-9a-f]+ slot 0x[0-9a-f]+ malloc in libc")
        slots = re.findall(r"slot \d+: thread (\d+),", self.gdb(p.pid, "memprof-session threads"))
        self.assertLessEqual(set(slots), set(os.listdir(f"/proc/{p.pid}/task")))
        self.assertTrue(slots)
        self.detach(p.pid)
        self.finish(p)


if __name__ == "__main__":
    t.main()
