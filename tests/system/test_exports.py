#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exports: each format is opened by the tool that it is made for, and all agree to the byte."""
import base64
import collections
import csv
import functools
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

import jsonschema

import memprof_test as t

PYTHON = """
import json, threading, time
kept = []
def work(n):
    for i in range(n):
        kept.append(json.loads(json.dumps({"key": i, "list": list(range(i % 50))})))
        if i % 3 == 0:
            kept.pop(len(kept) // 2)
threads = [threading.Thread(target=work, args=(400,)) for _ in range(3)]
for x in threads: x.start()
for x in threads: x.join()
time.sleep(1.3)
"""

# One thread.  300 blocks are freed at once.  Each of 200 blocks is freed right after the next one is
# allocated.  400 blocks are freed right after another, older block.  50 blocks are resized and freed at once.
# One large block is resized to a small one at once and stays.  Nothing else is allocated.
TEMPORARY = r"""
#include <stdlib.h>
static void *volatile last;
static void *make(size_t n) { return last = malloc(n); }
int main(void) {
    void *old = NULL, *other[400];
    last = realloc(make(100000), 1000);
    for (int i = 0; i < 300; i++) free(make(10));
    for (int i = 0; i < 200; i++) { void *p = make(20); free(old); old = p; }
    for (int i = 0; i < 400; i++) other[i] = malloc(30);
    for (int i = 0; i < 400; i++) { void *p = malloc(40); free(other[i]); free(p); }
    for (int i = 0; i < 50; i++) free(last = realloc(make(50), 60));
    return 0;
}
"""

# Runs longer than a second, so that a sample of the process, taken once a second, falls between allocations.
STEADY = """
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	static void *block[64];
	for (int i = 0; i < 2000; i++, usleep(500)) {
		free(block[i % 64]);
		block[i % 64] = malloc((size_t)i + 1);
		free(malloc(50));
	}
}
"""


def ms(at):
    return at["secs"] * 1000 + at["fract_nsecs"] // 1000000


RECORDED = (("cpp", ("--history",), (f"{t.VICTIMS}/stacks", "/dev/null")),
            ("python", ("--history",), ("/usr/bin/python3", "-c", PYTHON)),
            ("culled", ("--cull", "10ms"), (f"{t.VICTIMS}/exact", "2", "20000")),
            ("sampled", ("--sample", "1k"), (f"{t.VICTIMS}/exact", "2", "20000")))


@functools.cache
def recordings():
    """Records a C++ program with threads and exceptions, python3, and one program culled and sampled, once for
    all classes.  Return: the files by name."""
    folder = tempfile.mkdtemp(prefix="memprof-test-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    for name, how, argv in RECORDED:
        subprocess.run([t.MEMPROF, "run", "-q", "--lossless", *how, "-o", f"{folder}/{name}", "--", *argv], check=True,
                       env={**os.environ, "PYTHONMALLOC": "malloc"}, timeout=120, stdout=subprocess.DEVNULL)
    return {name: f"{folder}/{name}" for name, _, _ in RECORDED}


@functools.cache
def report_of(*recording):
    """Return: the JSON report of recordings(), as text."""
    return subprocess.run([t.MEMPROF, "report", *recording, "--json"], check=True, capture_output=True, text=True).stdout


class Exports(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.recordings = recordings()

    FILTERS = ((), ("--size-min", "100", "--lifetime-min", "1ms"))

    def each(self):
        """Yields each recording with each filter, and its JSON report."""
        for name, f in self.recordings.items():
            for filters in self.FILTERS:
                with self.subTest(recording=name, filters=filters):
                    r = json.loads(report_of(f, *filters))
                    self.assertGreater(r["totals"]["allocations"], 10)
                    yield (f, *filters), r

    def export(self, recording, *options, name="out"):
        out = self.path(name)
        recording = (recording,) if isinstance(recording, str) else recording
        self.memprof("report", *recording, *options, "-o", out)
        return out

    def run_ok(self, *argv):
        r = subprocess.run(argv, text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return r.stdout

    def folded_sum(self, text):
        return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


class Json(Exports):
    def test_schema(self):
        """report --json is valid by doc/report.schema.json"""
        with open(t.ROOT + "/doc/report.schema.json") as f:
            schema = json.load(f)
        for f, _ in self.each():
            r = self.report(*f, "--leaks")
            jsonschema.validate(r, schema)
            self.assertEqual(len(r["leaks"]) == r["totals"]["leaked_count"], not r["estimated"])
        # The schema must also refuse an invalid report.
        del r["totals"]["frees"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(r, schema)

    def test_mallopt_and_marks(self):
        """report --json with mallopt calls and marks is valid by doc/report.schema.json"""
        with open(t.ROOT + "/doc/report.schema.json") as f:
            schema = json.load(f)
        source, program, f = self.path("m.c"), self.path("m"), self.path("r")
        with open(source, "w") as out:
            out.write("#include <malloc.h>\n#include <unistd.h>\nvoid *volatile k;\n"
                      "int main(void) { for (;;) { mallopt(M_MMAP_THRESHOLD, 100000); k = malloc(9); usleep(1000); } }\n")
        subprocess.run(["gcc", "-o", program, source], check=True)
        p = self.start(program)
        t.settle(p.pid)  # while it is being linked, it has no allocator
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        self.memprof("mark", "-p", p.pid, "here")
        time.sleep(0.2)
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        r = self.report(f)
        jsonschema.validate(r, schema)
        self.assertEqual(r["markers"][0]["name"], "here")
        self.assertEqual(r["mallopts"][0]["value"], 100000)


class Html(Exports):
    def test_data(self):
        """report --html has in it what --json and the lists of --view write, and warns of nothing, because the page does"""
        if subprocess.run([t.MEMPROF, "report", self.recordings["cpp"], "--html", "/dev/null"], capture_output=True,
                          timeout=120, check=False).returncode:
            self.skipTest("memprof was built without the page")
        for f, report in self.each():
            out = self.path("out.html")
            self.assertEqual(self.memprof("report", *f, "--html", out).stderr, "")
            (data,) = re.findall(r'<script id="memprof-data" type="text/plain">([^<]*)</script>', t.read(out).decode())
            got = json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
            self.assertEqual(got["answers"].pop("report"), report)
            growth = got["answers"].pop("growth")
            self.assertEqual((growth["total_count"], len(growth["sites"])), (len(report["sites"]),) * 2)
            for name, answer in got["answers"].items():
                self.assertEqual(answer, json.loads(self.memprof("report", *f, "--view", name, "--json").stdout), name)
            self.assertEqual((got["version"], list(got["answers"])), (1, ["libraries", "threads", "sizes"]))


class Sampled(Exports):
    def test_said(self):
        """reports and exports of a sampled recording say that their numbers are estimates"""
        f = self.recordings["sampled"]
        for option in ("--collapsed", "--csv", "--heaptrack", "--ascii-tree", "--pprof", "--speedscope"):
            r = self.memprof("report", f, option, "-o", self.path("x"))
            self.assertRegex(r.stderr, r"^memprof: \S+ is a sample: .* estimates.*\n$")
        for option in ("--flamegraph", "--icicle", "--plot"):
            self.memprof("report", f, option, self.path("x.svg"))
            self.assertIn("(estimated)</text>", t.read(self.path("x.svg")).decode())
        # With their errors, lines still fit on a screen.
        lines = re.findall(r"^(?:\w+ {3,}| +[\d.]+ [KMG]?i?B ).*\+-.*$", self.memprof("report", f).stdout, re.M)
        self.assertGreater(len(lines), 3)
        for line in lines:
            self.assertLessEqual(len(line), 80, line)
        r = self.memprof("report", self.recordings["cpp"], "--csv", "-o", self.path("x"))
        self.assertEqual(r.stderr, "")
        with open(self.export(f, "--speedscope")) as out:
            self.assertEqual(json.load(out)["profiles"][0]["name"], "live bytes (estimated)")
        self.assertIn("standard error", self.memprof("diff", f, f).stdout)
        data = json.loads(self.memprof("diff", f, f, "--json").stdout)
        totals = self.report(f)["totals"]
        for side in ("before", "after"):
            self.assertEqual(data[side]["sample_interval"], 1024)
            # Both sum the same squares in a different order, so the last digit can differ.
            self.assertAlmostEqual(data[side]["standard_error"], totals["standard_error_leaked_bytes"], delta=1)


class Heaptrack(Exports):
    def heaptrack_print(self, f, cost):
        stacks = self.path("stacks")
        text = self.run_ok("heaptrack_print", "--disable-builtin-suppressions", "-m0", "-l1", "-f", f,
                           "-F", stacks, "--flamegraph-cost-type", cost)
        return text, t.read(stacks).decode()

    def test_totals(self):
        """heaptrack_print shows the report's allocations, leaked and peak bytes, to the byte"""
        for f, r in self.each():
            out = self.export(f, "--heaptrack", name="x.zst")
            for cost, key in (("allocations", "allocations"), ("leaked", "leaked_bytes"), ("peak", "peak_bytes")):
                text, stacks = self.heaptrack_print(out, cost)
                if cost != "peak" or not r["totals"]["culled_count"]:
                    self.assertEqual(self.folded_sum(stacks), r["totals"][key], cost)
                calls = int(re.search(r"calls to allocation functions: (\d+)", text)[1])
                self.assertEqual(calls, r["totals"]["allocations"])
                self.assertNotIn("failed to parse", text)

    def test_time(self):
        """heaptrack_print shows the recording's runtime in ms and the peak RSS of its samples"""
        f = self.recordings["python"]
        r = self.report(f)
        text, _ = self.heaptrack_print(self.export(f, "--heaptrack", name="x.gz"), "leaked")
        seconds = float(re.search(r"total runtime: ([0-9.]+)s", text)[1])
        runtime = r["runtime"]["secs"] + r["runtime"]["fract_nsecs"] / 1e9
        self.assertAlmostEqual(seconds, runtime, delta=0.01)
        rss = max(x["rss"] for x in r["samples"])
        shown = re.search(r"peak RSS \(including heaptrack overhead\): ([0-9.]+)([BKMG])", text)
        unit = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}[shown[2]]
        self.assertAlmostEqual(float(shown[1]), rss / unit, delta=0.011)

    def test_times(self):
        """--heaptrack has each allocation in the right millisecond, and the peak of those that are not culled"""
        program = self.path("steady")
        subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input=STEADY, text=True, check=True)
        for f, how in ((self.path("all"), ("--history",)), (self.path("culled"), ("--cull", "20ms"))):
            self.memprof("run", "-q", "--lossless", *how, "-o", f, "--", program)
            ours = json.loads(self.memprof("report", f, "--view", "allocations", "--json", "--count", "all").stdout)
            want = collections.Counter((ms(b["timestamp_relative"]), b["size"]) for b in ours["allocations"])
            infos, shown, now, live, peak, peak_at = [], collections.Counter(), 0, 0, 0, 0
            with open(self.export(f, "--heaptrack")) as lines:
                for mode, value in (line.split()[:2] for line in lines if line[:2] in ("a ", "c ", "+ ", "- ")):
                    value = int(value, 16)
                    if mode == "a":
                        infos.append(value)
                    elif mode == "c":
                        self.assertGreater(value, now)
                        now = value
                    else:
                        live += infos[value] if mode == "+" else -infos[value]
                        shown[now, infos[value]] += mode == "+"
                    if live > peak:
                        peak, peak_at = live, now
            # The export also has the culled blocks, which the view does not list.
            self.assertEqual(len(want - shown), 0)
            self.assertGreater(max(at for at, _ in want), 1000)
            # Blocks that were culled are freed at once, so the export does not reach their peak.
            totals = self.report(f)["totals"]
            if not totals["culled_count"]:
                self.assertEqual((peak, peak_at), (totals["peak_bytes"], ms(totals["peak_at"])))
            self.assertLessEqual(peak, totals["peak_bytes"])

    def test_temporary(self):
        """heaptrack_print counts as many temporary allocations in memprof's export as in heaptrack's file"""
        program, own, f = self.path("temporary"), self.path("own"), self.path("r")
        subprocess.run(["gcc", "-g", "-x", "c", "-o", program, "-"], input=TEMPORARY, text=True, check=True)
        said = subprocess.run(["heaptrack", "-o", own, program], text=True, capture_output=True, timeout=120).stderr
        self.assertEqual(int(re.search(r"temporary allocations:\s*(\d+)", said)[1]), 301 + 100)
        self.memprof("run", "-q", "--lossless", "--history", "-o", f, "--", program)
        shown = []
        for export in (glob.glob(own + ".*")[0], self.export(f, "--heaptrack", name="x.zst")):
            text, _ = self.heaptrack_print(export, "temporary")
            shown.append(int(re.search(r"temporary memory allocations: (\d+)", text)[1]))
        self.assertEqual(shown[1], 301 + 100 + 199)
        # heaptrack's library loads libstdc++, which allocates the very first block, number 0.  To
        # heaptrack_print, 0 also means "no previous allocation", so its count can be one too high.
        self.assertIn(shown[0] - shown[1], (0, 1))
        totals = self.report(f)["totals"]
        self.assertEqual((totals["allocations"], totals["temporary"]), (1402, 301 + 100 + 400))
        # The stripped recording has only counts of short-lived blocks, not all of which were temporary.
        self.memprof("strip", f, "-o", self.path("stripped"))
        text, _ = self.heaptrack_print(self.export(self.path("stripped"), "--heaptrack", name="y.zst"), "temporary")
        self.assertIn("calls to allocation functions: 1402 ", text)
        stripped = int(re.search(r"temporary memory allocations: (\d+)", text)[1])
        self.assertLess(abs(stripped - (301 + 100 + 400)), 20)

    def test_names(self):
        """heaptrack_print names functions, inlined ones too; the allocator's frame is left out"""
        f = self.recordings["cpp"]
        _, stacks = self.heaptrack_print(self.export(f, "--heaptrack", name="x"), "allocations")
        name = r"[^;]*%s[^;]*"
        path = ";".join(name % x for x in ("main", "round_of", "recurse", "recurse", "record")) + r"; \d+\n"
        self.assertTrue(re.search(path, stacks))
        self.assertFalse(re.search(r";malloc[^;]*; \d", stacks))


class Pprof(Exports):
    TYPES = (("alloc_objects", "allocations"), ("alloc_space", "allocated_bytes"),
             ("inuse_objects", "leaked_count"), ("inuse_space", "leaked_bytes"))

    def pprof(self, *options):
        # pprof reads no configuration of the user and writes nothing to the home directory.
        env = {**os.environ, "HOME": self.dir, "PPROF_TMPDIR": self.dir, "GOCACHE": self.dir}
        r = subprocess.run(["go", "tool", "pprof", *options], text=True, capture_output=True, env=env, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def test_totals(self):
        """go tool pprof -raw shows the report's totals of the four sample values, to the byte"""
        for f, r in self.each():
            raw = self.pprof("-raw", self.export(f, "--pprof", name="x.pb.gz"))
            head = re.search(r"^Samples:\n(.*)$", raw, re.M)[1]
            self.assertEqual(head, "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]")
            rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+): [\d ]+$", raw, re.M)
            for column, (_, key) in enumerate(self.TYPES):
                self.assertEqual(sum(int(row[column]) for row in rows), r["totals"][key], key)
            self.assertIn("Mappings", raw)
            build_id = re.search(r"Build ID: (\w+)", self.run_ok("readelf", "-n", r["executable"]))[1]
            first = re.search(r"^1: 0x\S+ (\S+) (\S+) \[FN\]", raw, re.M)
            self.assertEqual(first.groups(), (os.path.realpath(r["executable"]), build_id))

    def test_top(self):
        """go tool pprof -top shows the allocation sites, without the allocator's own frames"""
        f = self.recordings["cpp"]
        r = self.report(f)
        top = self.pprof("-top", "-nodecount=1000", "-nodefraction=0", "-unit=B", "-sample_index=alloc_space",
                         self.export(f, "--pprof", name="x.pb.gz"))
        flat = {line.split(None, 5)[5]: int(line.split()[0][:-1]) for line in top.splitlines()
                if re.match(r" +\d+B ", line)}
        self.assertNotIn("malloc", flat)
        record = "(anonymous namespace)::record(unsigned long)"
        ours = sum(g["size"] for g in r["allocation_groups"]
                   if len(g["backtrace"]) > 1 and g["backtrace"][-2]["function"] == record)
        self.assertGreater(ours, 0)
        self.assertEqual(flat[record], ours)
        lines = self.pprof("-list=::record\\(", "-sample_index=alloc_space", f"-source_path={t.ROOT}",
                           self.path("x.pb.gz"))
        self.assertRegex(lines, r"void \*p = malloc\(size\);")


class Speedscope(Exports):
    PROFILES = (("live bytes", "leaked_bytes"), ("allocated bytes", "allocated_bytes"),
                ("allocations", "allocations"), ("bytes at the peak", "peak_bytes"),
                ("temporary allocations", "temporary"))
    RELEASE = os.path.join(t.ROOT, "build/npm/node_modules/speedscope/dist/release")

    def setUp(self):
        super().setUp()
        if not os.path.isdir(self.RELEASE) and not os.environ.get("CI"):
            self.skipTest("speedscope is not there: scripts/setup check installs it with npm")

    def test_schema(self):
        """--speedscope is valid by speedscope's own schema, and each profile's weights add up"""
        with open(f"{self.RELEASE}/file-format-schema.json") as f:
            schema = json.load(f)
        for f, r in self.each():
            with open(self.export(f, "--speedscope")) as out:
                data = json.load(out)
            if len(f) == 1:  # the validator is slow, and filters do not change the form
                jsonschema.validate(data, schema)
            self.assertEqual(len(data["profiles"]), len(self.PROFILES))
            used = set()
            for profile, (name, key) in zip(data["profiles"], self.PROFILES):
                self.assertEqual(profile["name"], name + (" (estimated)" if r["estimated"] else ""))
                self.assertEqual(sum(profile["weights"]), r["totals"][key])
                self.assertEqual(profile["endValue"], r["totals"][key])
                self.assertEqual(len(profile["weights"]), len(profile["samples"]))
                used.update(x for sample in profile["samples"] for x in sample)
            self.assertLess(max(used), len(data["shared"]["frames"]))

    def test_opens(self):
        """speedscope opens the export and shows the totals"""
        f = self.recordings["python"]
        totals = self.report(f)["totals"]
        name = self.path("load.js")
        data = base64.b64encode(t.read(self.export(f, "--speedscope", "--cost", "count"))).decode()
        with open(name, "w") as out:
            out.write(f"speedscope.loadFileFromBase64('x.speedscope.json', '{data}')")
        page = self.run_ok("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
                           f"--user-data-dir={self.dir}/chromium", "--virtual-time-budget=5000", "--dump-dom",
                           f"file://{self.RELEASE}/index.html#localProfilePath={name}&view=sandwich")
        shown = dict(re.findall(r'<tr title="([^"]+)"[^>]*>.*?<td[^>]*>([\d.,]+[^<]*)</td></tr>', page))
        self.assertEqual(shown["allocations"], f"{totals['allocations']:,}")
        self.assertEqual(shown["temporary allocations"], f"{totals['temporary']:,}")
        value, unit = shown["live bytes"].split()
        self.assertEqual(value, f"{totals['leaked_bytes'] / {'KB': 1 << 10, 'MB': 1 << 20}[unit]:.2f}")
        self.assertRegex(page, r"<span>allocations <span[^>]*>\(3/5\)")


class Tables(Exports):
    def test_text(self):
        """the text report writes "1 block", not "1 blocks", and no library twice in a line"""
        text = self.memprof("report", self.recordings["python"], "--verbose", "--top", 100000).stdout
        self.assertRegex(text, r" in 1 block\n")
        self.assertNotRegex(text, r" in 1 \w+s\n")
        self.assertRegex(text, r"\n +(\S+)\+0x[0-9a-f]+\n")
        self.assertNotRegex(text, r"\n +(\S+)\+0x[0-9a-f]+  \[\1\]\n")

    def test_csv(self):
        """--csv: python's csv module reads it, columns add up, backtraces are those of --collapsed --full-stacks"""
        for f, r in self.each():
            with open(self.export(f, "--csv"), newline="") as out:
                rows = list(csv.DictReader(out, strict=True))
            for column, key in (("allocated_count", "allocations"), ("size", "allocated_bytes"),
                                ("usable_size", "allocated_usable_bytes"), ("freed_count", "frees"),
                                ("leaked_count", "leaked_count"), ("leaked_bytes", "leaked_bytes"),
                                ("temporary_count", "temporary"), ("temporary_bytes", "temporary_bytes"),
                                ("peak_bytes", "peak_bytes")):
                self.assertEqual(sum(int(row[column]) for row in rows), r["totals"][key], column)
            groups = {g["backtrace_id"]: g for g in r["allocation_groups"]}
            self.assertEqual({int(row["backtrace_id"]) for row in rows}, set(groups))
            folded = sorted(line.rsplit(" ", 1)[0] for line in
                            self.memprof("report", *f, "--collapsed", "--full-stacks", "--cost",
                                         "count").stdout.splitlines())
            self.assertEqual(folded, sorted(row["backtrace"] for row in rows if int(row["allocated_count"])))
            sizes = [int(row["size"]) for row in rows]
            self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_ascii_tree(self):
        """--ascii-tree has bytehound's columns; the root has the total, its children add up to it"""
        units = {"": 1, "KB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9}
        for f, r in self.each():
            for options, size, count in (((), "allocated_bytes", "allocations"),
                                         (("--leaks",), "leaked_bytes", "leaked_count")):
                with open(self.export(f, "--ascii-tree", *options)) as out:
                    head, *lines = out.read().splitlines()
                self.assertRegex(head, r"^SIZE {7}COUNT +FIRST LAST SOURCE$")
                column = head.index("SOURCE")
                self.assertEqual(lines[0][column:], "\u2592")
                self.assertEqual(int(lines[0][10:].split()[0]), r["totals"][count])
                value, unit = lines[0][:8].strip(), lines[0][8:10].strip()
                self.assertAlmostEqual(float(value) * units[unit], r["totals"][size], delta=units[unit] / 2000 + 1)
                self.assertRegex(lines[0][10:column], r"^ \d+ +\d\ds +\d\ds +$")
                children = {}
                for line in lines[1:]:
                    label = line[column:]
                    depth = re.search("[\u251c\u2514]", label).start()
                    self.assertRegex(label, r"^[| ]*[\u251c\u2514]\S")
                    if depth == 0:
                        children[label] = int(line[10:].split()[0])
                self.assertEqual(sum(children.values()), r["totals"][count])

    def test_icicle(self):
        """--icicle is the flame graph upside down"""
        f = self.recordings["cpp"]
        rows = {}
        for option in ("--icicle", "--flamegraph"):
            svg = self.path("x.svg")
            self.memprof("report", f, option, svg)
            frames = [g for g in xml.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "f"]
            rows[option] = [(g[0].text, g[1].get("x"), g.get("data-w"), int(g[1].get("y"))) for g in frames]
        bottom = rows["--flamegraph"][0][3]
        top = rows["--icicle"][0][3]
        self.assertEqual([(*x[:3], top + bottom - x[3]) for x in rows["--icicle"]], rows["--flamegraph"])


if __name__ == "__main__":
    t.main()
