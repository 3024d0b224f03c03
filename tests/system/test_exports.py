#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What other tools read: each format is opened by its real consumer, and all agree to the byte."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

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


class Exports(t.Case):
    @classmethod
    def setUpClass(cls):
        """One recording of a C++ program with threads and exceptions, one of python3."""
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.recordings = {}
        try:
            for name, argv in (("cpp", (f"{t.VICTIMS}/stacks", "/dev/null")),
                               ("python", ("/usr/bin/python3", "-c", PYTHON))):
                f = os.path.join(cls.shared, name)
                subprocess.run([t.MEMPROF, "run", "-q", "--lossless", "-o", f, "--", *argv], check=True,
                               env={**os.environ, "PYTHONMALLOC": "malloc"}, timeout=120,
                               stdout=subprocess.DEVNULL)
                cls.recordings[name] = f
        except BaseException:
            shutil.rmtree(cls.shared)
            raise

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def each(self):
        for name, f in self.recordings.items():
            with self.subTest(recording=name):
                yield f, self.report(f)

    def export(self, recording, *options, name="out"):
        out = self.path(name)
        self.memprof("report", recording, *options, "-o", out)
        return out

    def run_ok(self, *argv):
        r = subprocess.run(argv, text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return r.stdout

    def folded_sum(self, text):
        return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


class Heaptrack(Exports):
    def heaptrack_print(self, f, cost):
        stacks = self.path("stacks")
        text = self.run_ok("heaptrack_print", "--disable-builtin-suppressions", "-m0", "-l1", "-f", f,
                           "-F", stacks, "--flamegraph-cost-type", cost)
        return text, t.read(stacks).decode()

    def test_totals(self):
        """heaptrack_print: allocations, leaked and peak bytes, to the byte"""
        for f, r in self.each():
            out = self.export(f, "--heaptrack", name="x.zst")
            for cost, key in (("allocations", "allocations"), ("leaked", "leaked_bytes"), ("peak", "peak_bytes")):
                text, stacks = self.heaptrack_print(out, cost)
                self.assertEqual(self.folded_sum(stacks), r["totals"][key], cost)
                calls = int(re.search(r"calls to allocation functions: (\d+)", text)[1])
                self.assertEqual(calls, r["totals"]["allocations"])
                self.assertNotIn("failed to parse", text)

    def test_time(self):
        """heaptrack_print: runtime in ms, peak RSS from the samples"""
        f = self.recordings["python"]
        r = self.report(f)
        text, _ = self.heaptrack_print(self.export(f, "--heaptrack", name="x.gz"), "leaked")
        seconds = float(re.search(r"total runtime: ([0-9.]+)s", text)[1])
        runtime = r["runtime"]["secs"] + r["runtime"]["fract_nsecs"] / 1e9
        self.assertAlmostEqual(seconds, runtime, delta=0.01)
        rss = max(x["rss"] for x in r["samples"])
        shown = re.search(r"peak RSS \(including heaptrack overhead\): ([0-9.]+)M", text)[1]
        self.assertAlmostEqual(float(shown), rss / 1e6, delta=0.011)

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
        # No configuration of the user's, nothing written to their home.
        env = {**os.environ, "HOME": self.dir, "PPROF_TMPDIR": self.dir, "GOCACHE": self.dir}
        r = subprocess.run(["go", "tool", "pprof", *options], text=True, capture_output=True, env=env, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def test_totals(self):
        """go tool pprof -raw: the four values of all samples, to the byte"""
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
        """go tool pprof -top: the sites, without the allocator's own frames"""
        f = self.recordings["cpp"]
        r = self.report(f)
        top = self.pprof("-top", "-nodecount=1000", "-nodefraction=0", "-unit=B", "-sample_index=alloc_space",
                         self.export(f, "--pprof", name="x.pb.gz"))
        flat = {line.split(None, 5)[5]: int(line.split()[0][:-1]) for line in top.splitlines()
                if re.match(r" +\d+B ", line)}
        self.assertNotIn("malloc", flat)
        ours = sum(g["size"] for g in r["allocation_groups"]
                   if len(g["backtrace"]) > 1 and g["backtrace"][-2]["function"] == "record")
        self.assertEqual(flat["record"], ours)
        lines = self.pprof("-list=^record$", "-sample_index=alloc_space", f"-source_path={t.ROOT}",
                           self.path("x.pb.gz"))
        self.assertRegex(lines, r"void \*p = malloc\(size\);")


if __name__ == "__main__":
    t.main()
