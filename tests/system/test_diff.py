#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof diff: two runs, two builds and two moments of one recording; as table, JSON and flame graph."""
import json
import re
import subprocess
import xml.etree.ElementTree as xml

import jsonschema

import memprof_test as t

PROGRAM = """
%s
#include <stdlib.h>
#include <string.h>
void *volatile kept[1000];
int n;
__attribute__((noinline)) void grow(int size) { kept[n++] = malloc(size); }
__attribute__((noinline)) void stay(int size) { kept[n++] = calloc(1, size); }
__attribute__((noinline)) void shrink(int size) { kept[n++] = malloc(size); }
int main(void)
{
	for (int i = 0; i < GROW; i++) grow(64);
	for (int i = 0; i < 20; i++) stay(100);
	for (int i = 0; i < 30 - GROW; i++) shrink(48);
	return n == 50 ? 0 : 1;
}
"""


class Diff(t.Case):
    def build(self, name, grow, above):
        source, program = self.path(name + ".c"), self.path(name)
        with open(source, "w") as f:
            f.write(PROGRAM % above)
        subprocess.run(["gcc", "-g", "-O1", f"-DGROW={grow}", "-o", program, source], check=True)
        return program

    def run_recorded(self, name, *argv):
        f = self.path(name)
        self.memprof("run", "-q", "-o", f, "--", *argv)
        return f

    def diff(self, *options):
        data = json.loads(self.memprof("diff", *options, "--json").stdout)
        with open(t.ROOT + "/doc/diff.schema.json") as f:
            jsonschema.validate(data, json.load(f))
        for side in ("before", "after"):
            self.assertEqual(sum(g[side] for g in data["groups"]), data[side]["cost"])
            self.assertEqual(sum(g[side + "_count"] for g in data["groups"]), data[side]["count"])
        for g in data["groups"]:
            self.assertEqual(g["after"] - g["before"], g["change"])
        sizes = [abs(g["change"]) for g in data["groups"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        return data

    def changes(self, data):
        return {";".join(f["function"] for f in g["backtrace"][-3:]): (g["change"], g["change_count"])
                for g in data["groups"] if g["change"] or g["change_count"]}

    def test_fail_above(self):
        """--fail-above exits with 19 if one function grew by more, also between builds, else with 0"""
        a = self.run_recorded("a", self.build("one", 10, ""))
        b = self.run_recorded("b", self.build("two", 29, "int unused;\n\n\n"))
        grown = max(c for c, _ in self.changes(self.diff(a, b)).values())
        r = self.memprof("diff", a, b, "--fail-above", grown - 1, status=19)
        self.assertRegex(r.stderr, r"^memprof: grow grew by [0-9.]+ \w*B, more than [0-9.]+ \w*B\n$")
        self.assertIn("before: ", r.stdout)
        self.memprof("diff", a, b, "--fail-above", grown)
        total = [self.report(f)["totals"]["leaked_bytes"] for f in (a, b)]
        r = self.memprof("diff", a, b, "--fail-above", total[1] - total[0] - 1, status=19)
        self.assertRegex(r.stderr, r"^memprof: live bytes grew by .* in all, more than .*\nmemprof: grow grew by ")
        for limit in ("1MB", "1M", "0.5MiB", "1G"):
            self.assertEqual(self.memprof("diff", a, b, "--fail-above", limit).stderr, "")
        self.assertEqual(self.memprof("diff", a, a, "--fail-above", "0").stderr, "")
        self.memprof("diff", a, b, "--fail-above", "0", "--json", "-o", self.path("x"), status=19)
        with open(self.path("x")) as f:
            json.load(f)
        self.memprof("diff", a, b, "--fail-above", "much", status=2)

    def test_addresses(self):
        """diff of two runs of one program at different addresses shows no change"""
        program = self.build("one", 10, "")
        a, b = (self.run_recorded(x, program) for x in ("a", "b"))
        base = [g["backtrace"][0]["address"] for g in (self.report(x)["allocation_groups"][0] for x in (a, b))]
        self.assertNotEqual(base[0], base[1])
        data = self.diff(a, b)
        self.assertEqual(self.changes(data), {})
        self.assertEqual(data["after"]["cost"], self.report(b)["totals"]["leaked_bytes"])
        self.assertIn("nothing grew", self.memprof("diff", a, b).stdout)

    def test_builds(self):
        """diff of two builds with different lines, file names and addresses is exact for each function"""
        a = self.run_recorded("a", self.build("old", 10, ""))
        b = self.run_recorded("b", self.build("new", 25, "int unused[99];" + "\n" * 40))
        data = self.diff(a, b)
        self.assertEqual(self.changes(data), {"main;grow;malloc": (15 * 64, 15), "main;shrink;malloc": (-15 * 48, -15)})
        text = self.memprof("diff", a, b).stdout
        self.assertRegex(text, r"grown most:\n  \+960 B in \+15 blocks \(640 B -> 1.6 KiB\)\n      malloc.*\n    > grow ")
        self.assertRegex(text, r"shrunk most:\n  -720 B in -15 blocks \(960 B -> 240 B\)\n      malloc.*\n    > shrink ")
        self.assertRegex(text, r"    > grow .*\n      main .*\n      _start, \d+ frames of libc\n")
        full = self.memprof("diff", a, b, "--full-stacks").stdout
        self.assertRegex(full, r"    > grow .*\n      main .*\n      __libc_start_call_main.*\n(      .*\n)*      _start ")
        folded = self.memprof("diff", a, b, "--collapsed").stdout.splitlines()
        self.assertIn("main;grow;malloc 640 1600", [re.sub(r"^.*main;", "main;", x) for x in folded])

    def test_graph(self):
        """differential flame graph: growth is red, shrinkage blue, frames are as wide as their larger side"""
        a = self.run_recorded("a", self.build("old", 10, ""))
        b = self.run_recorded("b", self.build("new", 25, ""))
        svg = self.path("d.svg")
        self.memprof("diff", a, b, "--flamegraph", svg)
        frames = {}
        for g in xml.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}g"):
            if g.get("class") == "f":
                name = g[0].text.split(" ")[0]
                frames.setdefault(name, (g[0].text, g[1].get("fill"), float(g.get("data-w"))))
        red, blue = (tuple(map(int, re.findall(r"\d+", frames[x][1]))) for x in ("grow", "shrink"))
        self.assertGreater(red[0], red[2])
        self.assertGreater(blue[2], blue[0])
        self.assertEqual(frames["stay"][1], "#f0f0f0")
        # Black text on the colour has enough contrast (WCAG 2.1, 1.4.3: 4.5).
        for colour in (red, blue):
            parts = [((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
            light = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
            self.assertGreater((light + 0.05) / 0.05, 4.5, colour)
        self.assertIn("+960 B (1.6 KiB, was 640 B)", frames["grow"][0])
        self.assertIn("-720 B (240 B, was 960 B)", frames["shrink"][0])
        self.assertAlmostEqual(frames["grow"][2] / frames["shrink"][2], 1600 / 960, 3)
        self.assertAlmostEqual(frames["all"][2], 1200, 1)

    def test_moments(self):
        """diff --at: the live bytes at two moments of one recording agree with the heaptrack export"""
        p = self.victim("leaky")
        f = self.record(p.pid, 1.5)
        self.finish(p)
        live, now, sizes, at = 0, 0, [], {}
        for line in self.memprof("report", f, "--heaptrack").stdout.splitlines():
            word = line.split(" ")
            if word[0] == "a":
                sizes.append(int(word[1], 16))
            elif word[0] == "c":
                now = int(word[1], 16)
            elif word[0] in "+-":
                live += sizes[int(word[1], 16)] * (1 if word[0] == "+" else -1)
            at[now] = live
        for before, after in ((300, 1200), (0, 900)):
            data = self.diff(f, "--at", f"{before}ms", "--at", f"{after}ms")
            for side, moment in (("before", before), ("after", after)):
                last = max((x for x in at if x < moment), default=None)
                self.assertEqual(data[side]["cost"], at[last] if last is not None else 0)
        self.assertEqual(self.diff(f, "--at", "0%", "--at", "100%")["after"]["cost"],
                         self.report(f)["totals"]["leaked_bytes"])
        grown = self.changes(self.diff(f, "--at", "300ms"))
        self.assertIn("handle_request;remember_answer;malloc", grown)
        self.assertEqual(self.diff(f, "--at", "300ms")["after"]["cost"], self.report(f)["totals"]["leaked_bytes"])

    def test_bad_input(self):
        """diff names bad arguments in one line"""
        f = self.run_recorded("a", "/bin/true")
        for status, options, what in ((2, (f,), "a second recording, or --at TIME"),
                                      (2, (f, "--at", "soon"), "--at: 'soon'"),
                                      (2, (f, "--at", "1h"), "ends at"),
                                      (2, (f, f, "--size-min", "many"), "many"),
                                      (2, (f, f, "--cost", "x"), "--cost: 'x'"),
                                      (2, (f, f, "--json", "--collapsed"), "one format"),
                                      (2, (f, f, f), "unexpected argument"),
                                      (13, (f, "/etc/passwd"), "not a memprof recording"),
                                      (14, (f, f, "-o", "/nowhere/x"), "/nowhere/x")):
            r = self.memprof("diff", *options, status=status)
            self.assertIn(what, r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1)


if __name__ == "__main__":
    t.main()
