#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof --debug, which prints each step that changes or stops a process."""
import os
import re
import subprocess

import memprof_test as t


class Debug(t.Case):
    def steps(self, *argv):
        r = subprocess.run([t.MEMPROF, "--debug", *map(str, argv)], text=True, capture_output=True, timeout=120)
        self.assertIn(r.returncode, (0, 1), r.stderr)
        return [m[1] for m in re.finditer(r"^ *[0-9.]+ ms  (.*)$", r.stderr, re.M)]

    def test_attach(self):
        """attach and its end, step by step, in order"""
        p = self.victim("verify", 2)
        threads = len(os.listdir(f"/proc/{p.pid}/task"))
        said = "\n".join(self.steps("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "100ms"))
        self.assertRegex(said, rf"(?s)seized {threads} threads\n.*stopped {threads} threads\n"
                         r".*thread \d+ executes injected.*injected system call.*"
                         r"session block of \d+ KiB at 0x.*released.*hook: malloc in libc.*"
                         r"installed \d+ hooks\n.*restored the text of \d+ hooks, left 0 alone\n"
                         r".*0 threads inside the agent\n.*released")
        self.finish(p)

    def test_leaks(self):
        """leaks prints the chosen mode and each injected system call"""
        p = self.victim("verify", 2)
        said = "\n".join(self.steps("leaks", "-p", p.pid))
        self.assertRegex(said, r"copy: \d+ MiB in \d+ mappings, predicted pause")
        self.assertRegex(said, r"stopped \d+ threads\n")
        self.finish(p)

    def test_quiet(self):
        """without --debug nothing of it is printed"""
        p = self.victim("verify", 2)
        self.assertNotIn("injected", self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "100ms").stderr)
        self.finish(p)


if __name__ == "__main__":
    t.main()
