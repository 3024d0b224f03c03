# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detach from busy programs, also with stacks that memprof cannot unwind: the first try restores them."""
import json
import os
import shutil
import signal
import unittest

from memprof_test import FULL, VICTIMS, Case, identity, main, settle, wait_for

CHURN = f"{VICTIMS}/Churn.class"
CYCLES = 30 if FULL else 3

# Buffers and the runtime use malloc; V8 maps the memory of its own heap itself.
NODE = """
process.on('SIGTERM', () => { console.log('ok'); process.exit(0) });
let kept = [];
function work() {
  for (let i = 0; i < 200; i++) {
    const b = Buffer.allocUnsafeSlow(100 + i * 10).fill(i);
    kept[i % 50] = b;
    if (kept[(i + 7) % 50] && kept[(i + 7) % 50][0] === undefined) process.exit(1);
  }
  setImmediate(work);
}
require('zlib');
setInterval(() => require('zlib').deflate('x'.repeat(10000), () => {}), 1);
work();
require('zlib').deflate('x', () => console.log('ready'));
"""


class Detach(Case):
    def cycles(self, p, n=CYCLES):
        """Attaches and detaches n times, each detach without a second try; the process must be unchanged."""
        before = identity(p.pid)
        for i in range(n):
            r = self.memprof("attach", "-q", "-p", p.pid, "-o", self.path(f"r{i}"), "--for", "200ms")
            self.assertIn("is restored", r.stdout)
            self.assertIsNone(p.poll())
        after = identity(p.pid)
        if len(before["tasks"]) > 1:
            after["tasks"] = before["tasks"]  # runtimes start and end threads at any time
        self.assertEqual(after, before)
        self.finish(p)

    def test_musl(self):
        """detach from a musl program (no unwind tables) whose thread sleeps after each pair of calls"""
        self.cycles(self.victim("churn-musl", 1, 200))

    def test_musl_static(self):
        """detach from a statically linked musl program"""
        self.cycles(self.victim("churn-musl-static", 1, 200))

    def test_cgo(self):
        """detach from a cgo program: stacks that end in Go code, signals that preempt goroutines"""
        self.cycles(self.victim("cgo", 8))

    def test_node(self):
        """detach from node, whose JIT code calls malloc"""
        p = self.start(shutil.which("node"), "-e", NODE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        settle(p.pid)
        self.cycles(p)

    @unittest.skipUnless(FULL and os.path.exists(CHURN), "Java: in make check-all, where there is a JDK")
    def test_java(self):
        """detach from Java under load, with JIT code and signals of its own"""
        p = self.start("java", "-cp", VICTIMS, "Churn")
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.cycles(p, 10)

    def test_busy(self):
        """detach from 64 threads that do nothing but allocate and free"""
        self.cycles(self.busy_victim("churn", 64))

    def test_coroutine(self):
        """detach keeps the agent for a coroutine parked inside malloc(); the next attach removes it"""
        p = self.victim("coroutine")
        before = identity(p.pid)
        self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--background")
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(p.stdout.readline(), "parked\n")
        self.wait_allocations(p)
        r = self.memprof("detach", "-p", p.pid, status=15)
        self.assertIn("a coroutine was suspended inside an allocator function", r.stderr)
        p.send_signal(signal.SIGUSR2)
        self.assertEqual(p.stdout.readline(), "returned\n")
        # The next attach removes what an incomplete detach has left.
        self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("again"), "--for", "100ms")
        self.assertEqual(identity(p.pid), before)
        self.finish(p)

    def wait_allocations(self, p):
        """Waits until the process has allocated again, so that the agent has seen that the coroutine's hook
        was left without returning."""
        def events():
            return json.loads(self.memprof("status", "-p", p.pid, "--json").stdout)[0]["events"]
        self.memprof("flush", "-p", p.pid)
        first = events()
        wait_for(lambda: events() > first)


if __name__ == "__main__":
    main()
