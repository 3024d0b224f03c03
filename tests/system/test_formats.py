#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Report formats parse and agree with each other; a cut recording loads up to its last whole chunk."""
import json
import os
import random
import re
import subprocess
import xml.etree.ElementTree as xml

import memprof_test as t


class Formats(t.Case):
    def leaky(self):
        p = self.victim("leaky")
        f = self.record(p.pid, 2.2, "--lossless")
        self.finish(p)
        return f

    def test_totals_agree(self):
        """JSON, folded stacks, tree and flame graph agree to the byte"""
        f = self.leaky()
        r = self.report(f, "--leaks")
        totals = r["totals"]
        self.assertEqual(sum(g["leaked_bytes"] for g in r["allocation_groups"]), totals["leaked_bytes"])
        self.assertEqual(sum(b["size"] for b in r["leaks"]), totals["leaked_bytes"])
        self.assertEqual(len(r["leaks"]), totals["leaked_count"])
        self.assertEqual(totals["allocations"] - totals["frees"], totals["leaked_count"])
        self.assertEqual(sum(x["allocations"] for x in r["threads"]), totals["allocations"])
        # The main thread and four more, each recorded once and not each time that the recorder looks at them.
        self.assertLessEqual(json.loads(self.memprof("info", f, "--json").stdout)["items"]["threads"], 5)
        self.assertEqual(sum(g["peak_bytes"] for g in r["allocation_groups"]), totals["peak_bytes"])
        for cost, key in (("live", "leaked_bytes"), ("allocated", "allocated_bytes"),
                          ("count", "allocations"), ("peak", "peak_bytes"), ("temporary", "temporary"),
                          ("mapped", "mapped_bytes")):
            folded = self.memprof("report", f, "--collapsed", "--cost", cost).stdout.splitlines()
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded), totals[key], cost)
        sizes = {b["size"] for b in r["leaks"]}
        self.assertLessEqual({184, 1000}, sizes)
        sites = " ".join(x["function"] for g in r["allocation_groups"] if g["leaked_bytes"]
                         for x in g["backtrace"])
        self.assertIn("open_session", sites)
        self.assertIn("remember_answer", sites)
        tree = self.memprof("report", f, "--leaks", "--tree").stdout
        self.assertIn("remember_answer", tree)
        text = self.memprof("report", f, "--leaks").stdout
        self.assertRegex(text, r"lost +nothing")

    def quick_is_right(self, f, sampled=False):
        """Checks that the index has the sums of all events.  Of a sample, only the bytes are compared: the
        numbers of blocks are estimates, which the index rounds a second time."""
        for form in ("--collapsed", "--tree")[:1 if sampled else 2]:
            self.assertEqual(self.memprof("report", f, "--quick", form).stdout,
                             self.memprof("report", f, form, "--cost", "live").stdout)
        quick = self.memprof("report", f, "--quick", "--top", 1000)
        self.assertNotIn("no index", quick.stderr)
        full = self.memprof("report", f, "--leaks", "--top", 1000).stdout
        said = re.compile("^(?:live|peak|lost) +[0-9a-z.]+ [KMG]?i?B" if sampled else "^(?:live|peak|lost) .*", re.M)
        self.assertEqual(said.findall(full), said.findall(quick.stdout))
        self.assertTrue(said.findall(full))

    def test_quick(self):
        """report --quick shows the same from the index, also of a sample; without an index it reads all"""
        self.quick_is_right(self.leaky())
        for more in (["--sample", "4k"], ["--depth", "2"]):
            f = self.path("run.memprof")
            self.memprof("run", "-q", "-o", f, *more, "--", f"{t.VICTIMS}/exact", 2, 20000)
            self.quick_is_right(f, sampled="--sample" in more)
        for wrong in (["--json"], ["--view", "sizes"], ["--size-min", "1k"], ["--tree", "--cost", "peak"]):
            self.memprof("report", f, "--quick", *wrong, status=2)
        with open(f, "r+b") as cut:
            cut.truncate(os.stat(f).st_size // 2)
        r = self.memprof("report", f, "--quick")
        self.assertIn("no index, so the whole file is read", r.stderr)
        self.assertIn("Allocated, by bytes", r.stdout)

    def test_flame_graph(self):
        """the flame graph is well-formed SVG of the right width, self-contained, and has the totals"""
        f, svg = self.leaky(), self.path("f.svg")
        self.memprof("report", f, "--leaks", "--flamegraph", svg)
        root = xml.parse(svg).getroot()
        ns = "{http://www.w3.org/2000/svg}"
        frames = [g for g in root.iter(ns + "g") if g.get("class") == "f"]
        self.assertGreater(len(frames), 5)
        self.assertAlmostEqual(float(frames[0].get("data-w")), 1200, 1)
        names = " ".join(g.find(ns + "title").text for g in frames)
        self.assertIn("open_session", names)
        # Fixed height: a browser that fits a deep graph into its window makes it unreadable.
        self.assertEqual(root.get("viewBox").split()[3], root.get("height"))
        n = self.report(f)["totals"]["allocations"]
        self.memprof("report", f, "--cost", "count", "--flamegraph", svg)
        titles = [x.text for x in xml.parse(svg).getroot().iter() if x.text]
        self.assertIn(f"memprof: {n:,} allocations", titles)
        self.assertIn(f"all \u2014 {n:,} allocations, 100.00%", titles)
        with open(svg) as s:
            self.assertNotRegex(s.read(), r'(?:href|src)="http')

    def test_cut(self):
        """a recording cut at any of 200 random offsets loads, or report says in one line why not"""
        f, cut = self.leaky(), self.path("cut")
        data, whole = t.read(f), self.report(f)["totals"]["events"]
        rng = random.Random(7)
        loaded = 0
        for at in sorted(rng.randrange(len(data)) for _ in range(200)):
            with open(cut, "wb") as out:
                out.write(data[:at])
            r = subprocess.run([t.MEMPROF, "report", cut, "--json"], text=True, capture_output=True, timeout=60)
            if r.returncode == 0:
                report = json.loads(r.stdout)
                self.assertLessEqual(report["totals"]["events"], whole)
                self.assertIn("ends at byte", report["truncated"])
                loaded += 1
            else:
                self.assertEqual(r.returncode, 13)
                self.assertRegex(r.stderr, r"^memprof: .*(cut off before|not a memprof recording).*\n$")
        self.assertGreater(loaded, 50)

    def test_mode(self):
        """a recording can be read and written by its owner only (mode 600)"""
        self.assertEqual(os.stat(self.leaky()).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    t.main()
