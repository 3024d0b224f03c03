#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--overhead: everything is recorded while that costs less than asked for, and else samples, whose
estimates are right within their stated errors; the cost is kept, and shown."""
import json
import math
import os
import subprocess
import time

import memprof_test as t
from memprof_test import wait_for

LEAKS, LEAK = 10000, 777
# An unbiased estimate is further than this from the truth once in a million runs.
ERRORS = 5

# Makes 1000 blocks of 5000 bytes that are freed at once, and keeps 300 of 7000, whenever it is told to; in
# between it is not idle, so that its CPU time grows.
STEPS = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(1000):
        libc.free(libc.malloc(5000))
    for _ in range(300):
        libc.malloc(7000)
    print("done", flush=True)
"""


class Overhead(t.Case):
    def status(self, p):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == p.pid)

    def level(self, p):
        return self.status(p)["overhead"]["interval_bytes"]

    def near(self, estimate, truth, error):
        self.assertLessEqual(abs(estimate - truth), ERRORS * error + 0.5, f"{estimate} for {truth} +- {error}")

    def nothing_lost(self, report):
        for lost in ("lost_allocations", "lost_frees", "lost_reallocs", "stale", "mismatches",
                     "queue_dropped_events"):
            self.assertEqual(report["losses"][lost], 0, lost)

    def compare(self, truth, report, others=0):
        """@others: the most bytes that the program's libraries can have allocated."""
        totals = report["totals"]
        self.assertIs(report["estimated"], True)
        self.nothing_lost(report)
        self.assertEqual(totals["foreign_frees"] + totals["foreign_reallocs"], 0)
        calls = sum(truth[k] for k in ("malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"))
        self.near(totals["allocated_bytes"], truth["allocated_bytes"],
                  totals["standard_error_allocated_bytes"] + others / ERRORS)
        self.near(totals["allocations"], calls, totals["standard_error_allocations"])
        self.near(totals["leaked_bytes"], truth["live_bytes"],
                  totals["standard_error_leaked_bytes"] + others / ERRORS)
        # No free of a recorded block was missed, and no recorded block was wrongly taken for freed.
        live = {address: size for address, size in truth["live"]}
        ours = [b for b in report["leaks"] if b["address"] in live]
        self.assertTrue(ours)
        for b in ours:
            self.assertEqual(b["size"], live[b["address"]])
        self.assertLessEqual(sum(b["size"] for b in report["leaks"] if b["address"] not in live), others)

    # The budget needs a second to find its level.  A shorter program has too few samples for its standard
    # errors to be near the true ones.
    def run_exact(self, threads, ops, budget="100%", env=None, others=20000):
        f = self.path("r")
        r = subprocess.run([t.MEMPROF, "run", "-q", "--overhead", budget, "-o", f, "--",
                            f"{t.VICTIMS}/exact", str(threads), str(ops)], env=env, text=True,
                           capture_output=True, timeout=300)
        self.assertEqual(r.returncode, 0, r.stderr)
        truth = json.loads(r.stdout[r.stdout.index("{"):r.stdout.index("}") + 1])
        report = self.report(f, "--leaks")
        self.assertAlmostEqual(report["overhead_budget"], float(budget.strip("%")) / 100)
        self.compare(truth, report, others)
        return r.stdout

    def test_four_threads(self):
        """4 threads that do nothing else: the estimates agree with the program's own counts"""
        text = self.run_exact(4, 1000000)
        self.assertRegex(text, r"\ncost: [\d.]+ % of the process's CPU time \([\d.]+ % in the process, "
                               r"[\d.]+ % in memprof\); at most 100 % was asked for\n")
        self.assertRegex(text, r"\nsampled: about [\d,]+ allocations of .* were not recorded: estimates")

    def test_many_threads(self):
        """40 threads, not all of which have a countdown of their own in the gate"""
        self.run_exact(40, 50000, others=60000)

    def test_preloaded_allocators(self):
        """jemalloc and tcmalloc, whose new and calloc call malloc: no call counts twice"""
        for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
            env = dict(os.environ, LD_PRELOAD="/usr/lib/x86_64-linux-gnu/" + library)
            self.run_exact(4, 1000000, env=env, others=1 << 20)

    def test_attached(self):
        """attached to a running program it estimates right, and leaves it as before"""
        truth, report = self.record_exact("--overhead", "100%")
        self.compare(truth, report, others=20000)

    def test_calm_is_exact(self):
        """a program that allocates little is recorded exactly, with its temporary blocks"""
        p = self.start("/usr/bin/python3", "-c", STEPS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.path("r")
        self.memprof("attach", "-p", p.pid, "--overhead", "10%", "--background", "-o", f)
        wait_for(lambda: self.level(p) == 0)
        # The thread's countdown from before ends after 128 KiB.
        for _ in range(2):
            p.stdin.write("\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "done\n")
        self.memprof("detach", "-p", p.pid)
        p.stdin.close()
        p.wait()
        of = self.report(f, "--size-min", "5000", "--size-max", "5000", "--from", "0.5")["totals"]
        self.assertGreaterEqual(of["allocations"], 1000)
        self.assertEqual(of["temporary"], of["allocations"])
        exact = self.report(f, "--size-min", "7000", "--size-max", "7000")
        # All of the second round, and some of the first one.
        self.assertGreaterEqual(exact["totals"]["leaked_count"], 300)
        self.assertLessEqual(exact["totals"]["leaked_count"], 600)
        self.assertEqual(exact["totals"].get("standard_error_leaked_count", 0), 0)

    def drown(self, *options):
        self.p = self.victim("drown", 4, stdin=subprocess.PIPE)
        self.assertEqual(self.p.stdout.readline(), "ready\n")
        self.f = self.path("rec.memprof")
        self.memprof("attach", "-p", self.p.pid, "-o", self.f, "--background", *options)

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def group(self, report, function):
        """The live blocks of all stacks that contain a function, and their error."""
        at = [g for g in report["allocation_groups"]
              if any(function in (fr["function"] or "") for fr in g["backtrace"])]
        return (sum(g["leaked_count"] for g in at),
                math.sqrt(sum(g.get("standard_error_leaked_count", 0) ** 2 for g in at)))

    def test_leak_under_load(self):
        """four threads flat out: the hooks alone cost more than asked for, and a leak is found"""
        self.drown("--overhead", "2%")
        wait_for(lambda: self.level(self.p) > 1 << 16)
        self.say(f"leak {LEAKS}")
        self.say("grow 3000")
        status = self.status(self.p)
        self.assertEqual(status["overhead"]["budget"], 0.02)
        self.assertGreater(status["overhead"]["cost"], 0)
        self.assertRegex(self.memprof("status", "-p", self.p.pid).stdout,
                         r"cost [\d.]+ % of at most 2\.00 %; recorded now: one allocation per [\d.]+ .iB")
        self.memprof("detach", "-p", self.p.pid)
        report = self.report(self.f)
        self.nothing_lost(report)
        self.near(self.group(report, "leak_one")[0], LEAKS, self.group(report, "leak_one")[1])
        self.near(self.group(report, "grow_one")[0], 3000, self.group(report, "grow_one")[1])
        text = self.memprof("report", self.f, "--verbose").stdout
        self.assertRegex(text, r"\nsampled +for a cost of at most 2\.00 %: about [\d,]+ allocations of .* were not "
                               r"recorded; others represent them, \+- their standard error\n")
        self.assertRegex(text, r"from \d+\.\d\d s to \d+\.\d\d s: 1 in ")

    def test_bursts(self):
        """from calm to flat out and back, several times: nothing is lost, and the estimates are right"""
        self.drown("--overhead", "50%")
        for _ in range(3):
            self.say("calm")
            wait_for(lambda: self.level(self.p) == 0)
            self.say("churn")
            time.sleep(1)
            self.say("leak 1000")
        self.say("calm")
        self.memprof("detach", "-p", self.p.pid)
        report = self.report(self.f)
        self.nothing_lost(report)
        self.near(self.group(report, "leak_one")[0], 3000, self.group(report, "leak_one")[1])
        # Each thread keeps 16 blocks.
        self.near(self.group(report, "churn")[0], 64 + 3000, self.group(report, "churn")[1])

    def test_cost_is_kept(self):
        """a program whose whole recording would cost more than asked for is sampled for that cost"""
        p = self.start("/usr/bin/python3", "-c",
                       "while True:\n x = [bytearray(2000) for _ in range(100)]\n sum(range(30000))")
        self.memprof("attach", "-p", p.pid, "--overhead", "5%", "--background", "-o", self.path("r"))
        wait_for(lambda: self.status(p)["overhead"]["cost"] > 0)
        # The figure is of the last ten seconds.
        wait_for(lambda: 0.005 < self.status(p)["overhead"]["cost"] <= 0.05, 60)
        self.memprof("detach", "-p", p.pid)

    def test_next_recorder(self):
        """the next recorder of a session keeps the budget, or sets another one"""
        self.drown("--overhead", "2%")
        self.say(f"leak {LEAKS}")
        self.memprof("detach", "-p", self.p.pid, "--keep")
        two = self.path("two")
        self.memprof("attach", "-p", self.p.pid, "-o", two, "--background")
        self.assertEqual(self.status(self.p)["overhead"]["budget"], 0.02)
        self.memprof("detach", "-p", self.p.pid, "--keep")
        three = self.path("three")
        self.memprof("attach", "-p", self.p.pid, "-o", three, "--background", "--overhead", "3%")
        self.assertEqual(self.status(self.p)["overhead"]["budget"], 0.03)
        self.say("calm")
        self.memprof("detach", "-p", self.p.pid)
        self.near(self.group(self.report(three), "leak_one")[0], LEAKS, self.group(self.report(three), "leak_one")[1])

    def test_pieces(self):
        """weights are carried over from one piece of a rotated recording to the next"""
        self.drown("--overhead", "50%", "--history", "--rotate", "256k")
        self.say(f"leak {LEAKS}")
        wait_for(lambda: len([n for n in os.listdir(self.path("")) if n.startswith("rec-")]) > 1)
        self.say("calm")
        self.memprof("detach", "-p", self.p.pid)
        pieces = sorted((n for n in os.listdir(self.path("")) if n.startswith("rec-")), key=lambda n: (len(n), n))
        last = self.report(self.path(pieces[-1]))
        self.near(self.group(last, "leak_one")[0], LEAKS, self.group(last, "leak_one")[1])

    def test_refused(self):
        """bad parts, and options that decide otherwise what is recorded"""
        for bad in ("0", "0.01%", "101%", "x", "1 %", "-1", "1k"):
            self.assertIn("--overhead", self.memprof("run", "--overhead", bad, "--", "true", status=2).stderr)
        for option in (["--sample", "1k"], ["--lossless"], ["--no-thinning"], ["--zero"], ["--free-stacks"],
                       ["--via=kernel"], ["--event=page-faults"]):
            r = self.memprof("run", "--overhead", "1%", *option, "--", "true", status=2)
            self.assertIn("--overhead", r.stderr)
            self.assertIn(option[0].split("=")[0], r.stderr)


if __name__ == "__main__":
    t.main()
