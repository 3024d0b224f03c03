#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Short-lived blocks are in a recording as sums; every number is as with --history, and what is not says so."""
import json
import os
import subprocess
import time

import memprof_test as t

PERL = """
my %h;
for my $i (1..300000) {
    my $s = "key" . ($i % 503) . " value " . $i;
    my @w = split / /, $s;
    $h{$w[0]} .= $w[2];
    $h{$w[0]} = "" if length($h{$w[0]}) > 200;
    my @x = sort map { $_ . $i } @w;
}
"""
PYTHON = """
import json
words = [str(i * 7919 % 100003) for i in range(8000)]
for turn in range(3):
    table = {}
    for w in words:
        table.setdefault(w[:3], []).append({"word": w, "length": len(w)})
    json.loads(json.dumps(table))
"""
PROGRAMS = {"perl": ["perl", "-w", "program.pl"], "python3": ["/usr/bin/python3", "-c", PYTHON],
            "cc1": ["gcc", "-O1", "-x", "c", "-c", "-o", "/dev/null", "-"]}
ENV = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0", "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
# What a recording without the history has other values of, or more of.
APART = ("culled_count", "culled_bytes")
VIEWS = ("groups", "sizes", "threads", "libraries")


class Culling(t.Case):
    def setUp(self):
        super().setUp()
        with open(self.path("program.pl"), "w") as f:
            f.write(PERL)

    def run_program(self, name, *options):
        f = self.path("-".join((name,) + options).replace(" ", ""))
        subprocess.run([t.MEMPROF, "run", "-q", "--lossless", *options, "-o", f, "--", *PROGRAMS[name]],
                       env=dict(os.environ, **ENV), cwd=self.dir, stdin=subprocess.DEVNULL, check=True,
                       capture_output=True, timeout=120)
        return f

    def totals(self, f):
        return {k: v for k, v in self.report(f)["totals"].items() if k not in APART}

    def test_same_numbers(self):
        """perl and python3: a culled copy of a recording has the same sums, peaks and views as the recording"""
        for name in ("perl", "python3"):
            f = self.run_program(name, "--history")
            self.memprof("strip", f, "-o", f + ".small", "--threshold", "1s")
            self.assertGreater(self.report(f + ".small")["totals"]["culled_count"], 10000)
            self.assertEqual(self.totals(f), self.totals(f + ".small"))
            for view in VIEWS:
                self.assertEqual(self.memprof("report", f, "--view", view, "--json").stdout,
                                 self.memprof("report", f + ".small", "--view", view, "--json").stdout, view)
            lifetimes = [json.loads(self.memprof("info", x, "--json").stdout)["lifetimes"] for x in (f, f + ".small")]
            self.assertEqual(*lifetimes)

    def test_small_by_default(self):
        """perl: a recording without options has the numbers of one with --history, and at most twice
        heaptrack's size"""
        whole, small = self.run_program("perl", "--history"), self.run_program("perl")
        a, b = self.totals(whole), self.totals(small)
        for key in ("allocations", "allocated_bytes", "frees", "leaked_count", "leaked_bytes", "temporary",
                    "temporary_bytes", "peak_bytes", "peak_count"):
            self.assertEqual(a[key], b[key], key)
        self.assertLess(os.path.getsize(small), os.path.getsize(whole) / 10)
        subprocess.run(["heaptrack", "-o", self.path("ht"), *PROGRAMS["perl"]], env=dict(os.environ, **ENV),
                       cwd=self.dir, check=True, capture_output=True, timeout=120)
        peer = [f for f in os.listdir(self.dir) if f.startswith("ht.")]
        self.assertEqual(len(peer), 1)
        self.assertLess(os.path.getsize(small), 2 * os.path.getsize(self.path(peer[0])))

    def test_timeline(self):
        """the timeline of a culled recording has all allocations, frees and the peak"""
        r = self.report(self.run_program("perl"))
        for key, total in (("allocations", "allocations"), ("frees", "frees"), ("allocated_bytes", "allocated_bytes")):
            self.assertEqual(sum(p[key] for p in r["timeline"]), r["totals"][total])
        self.assertEqual(max(p["peak_bytes"] for p in r["timeline"]), r["totals"]["peak_bytes"])
        self.assertEqual(r["timeline"][-1]["live_bytes"], r["totals"]["leaked_bytes"])
        self.assertTrue(r["totals"]["peak_has_culled"])
        self.assertEqual(r["culled_below_ns"], 10 ** 9)

    def test_what_needs_history(self):
        """outputs and filters that need every event say so for a culled recording, and only for that"""
        small, whole = self.run_program("perl"), self.run_program("perl", "--history")
        for options in (("--view", "allocations"), ("--heaptrack", self.path("x")), ("--replay", self.path("y"))):
            self.assertIn("--history", self.memprof("report", small, *options).stderr)
            self.assertEqual(self.memprof("report", whole, *options).stderr, "")
        self.assertIn("--history", self.memprof("diff", small, "--at", "10%", "--at", "90%").stderr)
        self.assertIn("not judged", self.memprof("report", small, "--address-min", "4096").stdout)
        for options in (("--size-min", "20"), ("--lifetime-max", "1ms"), ("--lifetime", "only_temporary"),
                        ("--chain-length-max", "1"), ("--function-regex", "Perl")):
            r = json.loads(self.memprof("report", small, "--json", *options).stdout)
            self.assertEqual(r["all"]["not_judged_count"], 0, options)
            self.assertGreater(r["totals"]["culled_count"], 0, options)
            self.assertFalse(r["totals"]["peak_has_culled"])
        # The same blocks pass, but that lifetimes differ from run to run.
        for options in (("--size-min", "20"), ("--size-max", "19"), ("--lifetime", "only_temporary")):
            counts = [self.report(f, *options)["totals"]["allocations"] for f in (small, whole)]
            self.assertEqual(*counts)

    def test_marks(self):
        """sums end at marks, so that culled blocks are judged by --marker"""
        p = self.victim("churn")
        f = self.path("rec")
        with subprocess.Popen([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "--lossless", "-o", f]) as rec:
            self.wait_recorded(p.pid)
            for name in ("one", "two"):
                time.sleep(0.2)  # allocations between the marks; their number does not matter
                self.memprof("mark", "-p", str(p.pid), name)
            self.memprof("flush", "-p", str(p.pid))
            self.memprof("detach", "-p", str(p.pid))
            self.assertEqual(rec.wait(60), 0)
        r = json.loads(self.memprof("report", f, "--json", "--marker", "one").stdout)
        self.assertEqual(r["all"]["not_judged_count"], 0)
        self.assertGreater(r["totals"]["culled_count"], 0)
        self.assertLess(r["totals"]["allocations"], r["all"]["allocations"])

    def test_history_and_cull(self):
        """of --cull and --history the last one counts; --free-stacks keeps the history"""
        age = lambda *options: self.report(self.run_program("cc1", *options))["culled_below_ns"]
        self.assertEqual(age(), 10 ** 9)
        self.assertEqual(age("--cull=2s", "--history"), 0)
        self.assertEqual(age("--history", "--cull=2s"), 2 * 10 ** 9)
        self.assertEqual(age("--free-stacks"), 0)


if __name__ == "__main__":
    t.main()
