#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A process with very many mappings: how much of them memprof reads while the process is stopped."""
import subprocess

import memprof_test as t

MANY = 2000 if t.GUEST else 20000


class Mappings(t.Case):
    def many(self, n=MANY):
        """Starts a program with n mappings."""
        p = self.start(f"{t.VICTIMS}/mappings", str(n), stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_read_once(self):
        """attach reads the mappings of a process once in each stop, and the process is as before"""
        p = self.many()
        before = t.identity(p.pid)
        log = self.path("log")
        r = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=ptrace,openat,open", t.MEMPROF, "attach", "-q",
                            "-p", str(p.pid), "-o", self.path("r"), "--for", "1ms"],
                           text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        reads, stopped = [], False
        with open(log) as lines:
            for line in lines:
                if "PTRACE_INTERRUPT" in line and not stopped:
                    stopped = True
                    reads.append(0)
                elif "PTRACE_DETACH" in line:
                    stopped = False
                elif stopped and f'"/proc/{p.pid}/maps"' in line:
                    reads[-1] += 1
        # The three stops: to inject the agent, to install the hooks, to detach.
        self.assertEqual(reads, [1, 1, 1])
        self.assertEqual(t.identity(p.pid), before)


if __name__ == "__main__":
    t.main()
