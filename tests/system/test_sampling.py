#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--sample: estimates are near the truth, and frees of sampled blocks are exact."""
import json
import os
import subprocess
import unittest

import memprof_test as t
import ptrace

INTERVAL = 16 << 10


class Sampling(t.Case):
    def near(self, estimate, truth, error):
        self.assertGreater(error, 0)
        self.assertLess(abs(estimate - truth), 5 * error, f"{estimate} for {truth} +- {error}")

    def compare(self, truth, report, others=0):
        """@others: the most bytes that the program's libraries can have allocated."""
        totals = report["totals"]
        self.assertEqual(report["sample_interval"], INTERVAL)
        self.assertIs(report["estimated"], True)
        for lost in ("lost_allocations", "lost_frees", "lost_reallocs", "stale", "mismatches"):
            self.assertEqual(report["losses"][lost], 0, lost)
        self.assertEqual(totals["foreign_frees"] + totals["foreign_reallocs"], 0)
        self.near(totals["allocated_bytes"], truth["allocated_bytes"],
                  totals["standard_error_allocated_bytes"])
        calls = sum(truth[k] for k in ("malloc", "calloc", "realloc", "posix_memalign",
                                       "aligned_alloc"))
        self.near(totals["allocations"], calls, totals["standard_error_allocations"])
        self.near(totals["leaked_bytes"], truth["live_bytes"],
                  totals["standard_error_leaked_bytes"])
        # No free of a sampled block was missed, and no sampled block was wrongly taken for freed.
        live = {address: size for address, size in truth["live"]}
        ours = [b for b in report["leaks"] if b["address"] in live]
        self.assertGreater(len(ours), 20)
        for b in ours:
            self.assertEqual(b["size"], live[b["address"]])
        self.assertLessEqual(sum(b["size"] for b in report["leaks"] if b["address"] not in live),
                             others)

    def test_four_threads(self):
        """--sample with 4 threads: the estimates agree with the program's own counts"""
        f = self.path("r")
        out = self.memprof("run", "-q", "--sample", "16k", "-o", f, "--", f"{t.VICTIMS}/exact", 4,
                           1000000).stdout
        truth = json.loads(out[out.index("{"):out.index("}") + 1])
        self.compare(truth, self.report(f, "--leaks"), others=20000)

    def test_many_threads(self):
        """--sample with 40 threads, not all of which have a countdown of their own in the gate"""
        f = self.path("r")
        out = self.memprof("run", "-q", "--sample", "16k", "-o", f, "--", f"{t.VICTIMS}/exact", 40,
                           50000).stdout
        truth = json.loads(out[out.index("{"):out.index("}") + 1])
        self.compare(truth, self.report(f, "--leaks"), others=60000)

    def test_attached(self):
        """attach --sample to a running program estimates right, and leaves it as before"""
        truth, report = self.record_exact("--sample", "16k")
        self.compare(truth, report, others=20000)

    def test_live_counts(self):
        """--sample: numbers of live blocks have no bias, and their stated errors are right"""
        f = self.path("r")
        phases = 20 if t.GUEST else 100
        self.memprof("run", "-q", "--sample", "1k", "-o", f, "--", f"{t.VICTIMS}/kept", phases)
        report = self.report(f)
        live, variance = {}, {}
        for g in report["allocation_groups"]:
            for frame in g["backtrace"]:
                name = frame["function"]
                live[name] = live.get(name, 0) + g["leaked_count"]
                variance[name] = variance.get(name, 0) + g["standard_error_leaked_count"] ** 2
        for name in ("keep_in_one_thread", "keep_in_many_threads", "keep_grown", "keep_of_many"):
            error = variance[name] ** 0.5
            self.near(live[name], 1000 * phases, error)
            # The error of Poisson samples of blocks of 100 bytes: sqrt(N (1 - p) / p), p = 0.093.
            self.assertLess(abs(error / (1000 * phases * 9.75) ** 0.5 - 1), 0.1, name)
        totals = report["totals"]
        self.near(totals["leaked_count"], 4000 * phases, totals["standard_error_leaked_count"])
        text = self.memprof("report", f, "--verbose").stdout
        self.assertRegex(text, r"live +[\d.]+ MiB \+- [\d.]+ .iB in [\d,]+ blocks \+- [\d,]+ at")
        self.assertRegex(text, r"\d MiB \+- [\d.]+ KiB in [\d,]+ \+- [\d,]+ blocks[;,\n]")

    def test_preloaded_allocators(self):
        """--sample with jemalloc and tcmalloc, whose new and calloc call malloc, counts no call twice"""
        for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
            f = self.path(library)
            env = dict(os.environ, LD_PRELOAD="/usr/lib/x86_64-linux-gnu/" + library)
            r = subprocess.run([t.MEMPROF, "run", "-q", "--sample", "16k", "-o", f, "--",
                                f"{t.VICTIMS}/exact", "4", "300000"], env=env, text=True,
                               capture_output=True, timeout=120)
            self.assertEqual(r.returncode, 0, r.stderr)
            truth = json.loads(r.stdout[r.stdout.index("{"):r.stdout.index("}") + 1])
            self.compare(truth, self.report(f, "--leaks"), others=1 << 20)

    def instructions_of_a_round(self, depth):
        """Instructions from one call of tick() by the victim to the next one, while nothing is sampled."""
        p = self.victim("deep", depth)
        tick = int(p.stdout.readline(), 16)
        rec = self.start(t.MEMPROF, "attach", "-q", "--sample", "1024G", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        stepper = ptrace.Stepper(p.pid, p.pid)
        counts, n = [], None
        while len(counts) < 5:
            n = None if n is None else n + 1
            if stepper.step() == tick:
                counts += [] if n is None else [n]
                n = 0
        stepper.let_go()
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        return min(counts)

    @unittest.skipUnless(os.uname().machine == "x86_64", "single-steps x86-64")
    def test_nested_calls(self):
        """the cost of a call that the allocator makes itself does not depend on the depth of the stack"""
        self.assertEqual(self.instructions_of_a_round(5), self.instructions_of_a_round(200))

    def test_text(self):
        """the text report of a sample says so, and shows its standard errors"""
        f = self.path("r")
        self.memprof("run", "-q", "--sample", "16k", "-o", f, "--", f"{t.VICTIMS}/exact", 1, 100000)
        self.assertRegex(self.memprof("report", f).stdout, r"sampled +one point per 16\.0 KiB; .* estimates\n")
        text = self.memprof("report", f, "--verbose").stdout
        self.assertRegex(text, r"sampled +on average one point per 16\.0 KiB requested; .* estimates")
        self.assertRegex(text, r"allocated +[\d.]+ MiB \+- [\d.]+ .iB in [\d,]+ allocations \+- ")

    def test_bad_interval(self):
        """--sample refuses bad intervals, and --cull"""
        r = self.memprof("run", "--sample", "64k", "--cull", "1s", "--", "true", status=2)
        self.assertIn("--cull", r.stderr)
        for bad in ("0", "-1", "x", "2000G"):
            r = self.memprof("run", "--sample", bad, "--", "true", status=2)
            self.assertIn("--sample", r.stderr)


if __name__ == "__main__":
    t.main()
