#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks asks threads for their alternate signal stacks, whose addresses only the kernel may have."""
import json
import os
import signal
import subprocess

import memprof_test as t

THREADS = 7
MASK = 0x5a5a5a5a5a5a5a5a  # tests/victims/signal_stacks.c
SIZE, LEAK, SMALL = 16384, 5000, 100
MODES = [[], ["--gentle", "--interval", "100ms"], ["--in-place"], *([] if t.GUEST else [["--pre-copy"]])]
NOTE = "signal stacks: 1 thread could not be asked (sigaltstack); a leaked block of 2 KiB or more can be one"


class SignalStacks(t.Case):
    def threads(self, *more):
        """Starts the victim.  Sets .main: the address of its main thread's signal stack.  Return: its Popen object."""
        p = self.start(f"{t.VICTIMS}/signal_stacks", str(THREADS), *more, stdin=subprocess.PIPE,
                       start_new_session=True)
        word, hidden = p.stdout.readline().split()
        self.assertEqual(word, "ready")
        self.main = int(hidden, 16) ^ MASK
        return p

    def leaks(self, p, *more):
        """Return: what memprof leaks printed, its JSON report, and how many blocks of each size leak."""
        f = self.path("leaks.json")
        out = self.memprof("leaks", "-p", p.pid, "--json", f, *more, status=1).stdout
        return (out, *self.read(f))

    def read(self, path):
        report = json.loads(t.read(path))
        sizes = {}
        for c in report["clusters"]:
            for size, count in ((c["size"], c["count"]), (SMALL, c["indirect_count"])):
                near = min((SMALL, LEAK, SIZE), key=lambda wanted, size=size: abs(wanted - size))
                sizes[near] = sizes.get(near, 0) + count
        return report, {size: n for size, n in sizes.items() if n}

    def test_modes(self):
        """a signal stack, and what only it points to, is no leak; the threads are as before, in each mode"""
        p = self.threads()
        before = t.identity(p.pid)
        for mode in MODES:
            with self.subTest(mode=mode):
                out, report, sizes = self.leaks(p, *mode)
                self.assertEqual(sizes, {LEAK: 1}, out)
                self.assertEqual(report["coverage"]["signal_stacks"], THREADS + 1)
                self.assertEqual(report["coverage"]["threads_not_asked"], 0)
                self.assertNotIn("signal stacks", out)
                self.assertEqual(t.identity(p.pid), before)
        out = self.memprof("leaks", "-p", p.pid, "--why", f"{self.main:x}").stdout
        self.assertIn("the kernel (epoll, a timer or a signal stack)", out)
        self.assertEqual(self.finish(p), "ok\n")

    def test_not_needed(self):
        """each thread is stopped alone to be asked, and only if a leak can be a signal stack"""
        p = self.threads()
        r = self.memprof("--debug", "leaks", "-p", p.pid, status=1)
        self.assertEqual(r.stderr.count("stopped 1 thread\n"), THREADS + 1)
        p = self.victim("verify", 2)
        r = self.memprof("--debug", "leaks", "-p", p.pid)
        self.assertNotIn("stopped 1 thread\n", r.stderr)

    def test_ended(self):
        """a thread that ended before it was asked is reported, since its stack can be among the leaks"""
        p = self.threads()
        f = self.path("leaks.json")
        m = self.start_until("snapshot-taken", "leaks", "-p", p.pid, "--json", f)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "ended\n")
        m.send_signal(signal.SIGCONT)
        out, said = m.communicate(timeout=60)
        self.assertEqual((m.returncode, said), (1, ""), out)
        report, sizes = self.read(f)
        self.assertIn(NOTE + "\n", out)
        self.assertEqual(sizes, {LEAK: 1, SIZE: 1, SMALL: 1}, out)
        self.assertEqual(report["coverage"]["signal_stacks"], THREADS)
        self.assertEqual(report["coverage"]["threads_not_asked"], 1)
        self.assertEqual(self.finish(p), "ok\n")

    def test_fiber(self):
        """a thread on a stack of its own is not asked, because what is below that stack can be another's"""
        p = self.threads("fiber")
        before = t.identity(p.pid)
        fibers = len([i for i in range(1, THREADS + 1) if i % 4 == 3])
        for mode in MODES:
            with self.subTest(mode=mode):
                out, report, _ = self.leaks(p, *mode)
                self.assertIn(NOTE.replace("1 thread", f"{fibers} threads") + "\n", out)
                self.assertEqual(report["coverage"]["signal_stacks"], THREADS + 1 - fibers)
                self.assertEqual(report["coverage"]["threads_not_asked"], fibers)
                self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(self.finish(p), "ok\n")

    def test_killed(self):
        """if memprof is killed while a thread answers, the thread restores itself"""
        p = self.threads()
        before, blocked = t.identity(p.pid), t.masks(p.pid)
        for passing in range(1, THREADS + 2):
            r = subprocess.run([t.FAULTY, "leaks", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=60, env=dict(os.environ, MEMPROF_FAULT=f"signal-stack-asked:{passing}"))
            self.assertEqual(r.returncode, -signal.SIGKILL, r.stderr)
            t.wait_for(lambda: t.masks(p.pid) == blocked and t.identity(p.pid) == before)
        self.assertEqual(self.finish(p), "ok\n")

    def test_core(self):
        """a core file has no addresses of signal stacks, and the report says so"""
        p = self.threads()
        out = self.memprof("leaks", "--core", self.gcore(p), f"{t.VICTIMS}/signal_stacks", status=1).stdout
        self.assertIn("signal stacks: a core file does not have their addresses (sigaltstack); a leaked block of 2 KiB "
                      "or more can be one\n", out)


if __name__ == "__main__":
    t.main()
