# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detach on programs whose stacks memprof cannot unwind, under load: the first one restores the process."""
import json
import os
import shutil
import signal
import unittest

from memprof_test import FULL, VICTIMS, Case, identity, main, settle, wait_for

CHURN = f"{VICTIMS}/Churn.class"
CYCLES = 30 if FULL else 3

# Strings and buffers: V8's heap has its own memory, buffers and the runtime use malloc.
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
"""


class Detach(Case):
    def cycles(self, p, n=CYCLES):
        """Attach and detach without a second try; the process must be the same after each."""
        before = identity(p.pid)
        for i in range(n):
            r = self.memprof("attach", "-q", "-p", p.pid, "-o", self.path(f"r{i}"), "--for", "200ms")
            self.assertIn("is restored", r.stdout)
            self.assertIsNone(p.poll())
        after = identity(p.pid)
        if len(before["tasks"]) > 1:
            after["tasks"] = before["tasks"]  # runtimes start and end threads as they like
        self.assertEqual(after, before)
        self.finish(p)

    def test_musl(self):
        """musl: a thread that sleeps after each pair of calls; its libc has no unwind tables"""
        self.cycles(self.victim("churn-musl", 1, 200))

    def test_musl_static(self):
        """the same, linked statically"""
        self.cycles(self.victim("churn-musl-static", 1, 200))

    def test_cgo(self):
        """Go and C: stacks that end in Go's, signals that preempt goroutines"""
        self.cycles(self.victim("cgo", 8))

    def test_node(self):
        """node: JIT code below malloc"""
        p = self.start(shutil.which("node"), "-e", NODE)
        settle(p.pid)
        self.cycles(p)

    @unittest.skipUnless(FULL and os.path.exists(CHURN), "Java: in make check-all, where there is a JDK")
    def test_java(self):
        """Java under load: JIT code, its own signals"""
        p = self.start("java", "-cp", VICTIMS, "Churn")
        settle(p.pid)
        self.cycles(p, 10)

    def test_busy(self):
        """64 threads that do nothing but allocate and free"""
        self.cycles(self.victim("churn", 64))

    def test_coroutine(self):
        """a coroutine that was switched away inside an allocator: the pages stay for it"""
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
        # What a killed or hindered detach left is taken out by the next attach, too.
        self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("again"), "--for", "100ms")
        self.assertEqual(identity(p.pid), before)
        self.finish(p)

    def wait_allocations(self, p):
        """Until the process has allocated since now: so the agent has seen that a hook was left."""
        def events():
            return json.loads(self.memprof("status", "-p", p.pid, "--json").stdout)[0]["events"]
        self.memprof("flush", "-p", p.pid)
        first = events()
        wait_for(lambda: events() > first)


if __name__ == "__main__":
    main()
