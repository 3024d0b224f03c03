#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Filters and views of memprof report: their sums agree, and the examples in the documents work."""
import json
import re
import shlex
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml

import jsonschema

import memprof_test as t

PROGRAM = """
import ctypes, threading, time
libc = ctypes.CDLL("libc.so.6")
for f in ("malloc", "calloc", "realloc"):
    getattr(libc, f).restype = ctypes.c_void_p
    getattr(libc, f).argtypes = [ctypes.c_size_t] * (1 if f == "malloc" else 2)
libc.free.argtypes = [ctypes.c_void_p]
libc.mallopt(-3, 1 << 17)
def work(n):
    libc.prctl(15, b"worker", 0, 0, 0)
    for i in range(n):
        p = libc.malloc(100 + i)
        for size in (200, 1500, 40000):
            p = libc.realloc(p, size)
        if i % 3:
            libc.free(p)
    libc.malloc(300000)
threads = [threading.Thread(target=work, args=(40 * (i + 1),)) for i in range(2)]
for x in threads:
    x.start()
    time.sleep(0.2)
for x in threads:
    x.join()
"""

# One thread, one block that is leaked, one that is freed.  Ends when its input does.
ONE = """
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	kept = malloc(100);
	free(malloc(5000));
	kept = NULL;
	(void)!write(1, "ready\\n", 6);
	return (int)read(0, (char[1]){0}, 1);
}
"""


class Report(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.recording = cls.shared + "/rec.memprof"
        subprocess.run([t.MEMPROF, "run", "-q", "--lossless", "--history", "-o", cls.recording, "--", "/usr/bin/python3", "-c",
                        PROGRAM], check=True, stdout=subprocess.DEVNULL, timeout=120)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def view(self, *more):
        return json.loads(self.memprof("report", self.recording, "--json", *more).stdout)

    FILTERS = ([], ["--size-min", "1000"], ["--lifetime", "only_leaked"], ["--thread", "worker"],
               ["--function-regex", "realloc"], ["--chain-length-min", "2", "--lifetime", "only-chain-leaked"],
               ["--from", "30%", "--to", "80%"], ["--allocator", "mmapped"], ["--size-min", "1T"])

    def test_sums_agree(self):
        """all views of a filtered recording have the same sums, to the byte"""
        for f in self.FILTERS:
            with self.subTest(filter=" ".join(f)):
                whole = self.view("--leaks", *f)
                totals = whole["totals"]
                lists = {
                    "groups": [x["only_matched"] for x in self.view("--view", "groups", *f)["allocations"]],
                    "libraries": [x["direct"] for x in self.view("--view", "libraries", *f)["libraries"]],
                    "threads": self.view("--view", "threads", *f)["threads"],
                    "sizes": self.view("--view", "sizes", *f)["sizes"],
                }
                for name, rows in lists.items():
                    for key, total in (("allocated_count", "allocations"), ("size", "allocated_bytes"),
                                       ("leaked_count", "leaked_count"), ("leaked_size", "leaked_bytes"),
                                       ("temporary_count", "temporary")):
                        self.assertEqual(sum(r[key] for r in rows), totals[total], f"{name} {key}")
                for name in ("groups", "libraries"):
                    self.assertEqual(sum(r["peak_size"] for r in lists[name]), totals["peak_bytes"])
                self.assertEqual(sum(b["size"] for b in whole["leaks"]), totals["leaked_bytes"])
                points = whole["timeline"]
                self.assertEqual(sum(p["allocations"] for p in points), totals["allocations"])
                self.assertEqual(sum(p["freed_bytes"] for p in points),
                                 totals["allocated_bytes"] - totals["leaked_bytes"])
                self.assertEqual(max(p["peak_bytes"] for p in points), totals["peak_bytes"])
                self.assertEqual(points[-1]["live_bytes"], totals["leaked_bytes"])
                alone = self.view("--view", "allocations", "--count", "all", *f)
                self.assertEqual(alone["total_count"], totals["allocations"])
                self.assertEqual(len(alone["allocations"]), totals["allocations"])
                self.assertEqual(sum(a["size"] for a in alone["allocations"]), totals["allocated_bytes"])
                folded = self.memprof("report", self.recording, "--collapsed", *f).stdout.splitlines()
                self.assertEqual(sum(int(x.rsplit(" ", 1)[1]) for x in folded), totals["allocated_bytes"])
                if totals["allocations"]:
                    self.assertEqual(self.heaptrack(f), totals["allocations"])
                if not f:
                    everything = totals
                self.assertEqual((whole["all"] or totals)["allocations"], everything["allocations"])

    def heaptrack(self, f):
        """The number of allocations that heaptrack_print finds in the heaptrack export."""
        out = self.path("heaptrack")
        self.memprof("report", self.recording, "--heaptrack", "-o", out, *f)
        text = subprocess.run(["heaptrack_print", "-f", out, "-p", "0", "-a", "0", "-T", "0"], text=True,
                              capture_output=True, check=True, timeout=60).stdout
        return int(re.search(r"calls to allocation functions: (\d+)", text).group(1))

    def test_filters_mean(self):
        """filters select the right allocations, also by the chains of their reallocs"""
        for a in self.view("--view", "allocations", "--count", "0", "--size-min", "1500", "--size-max", "40000",
                           "--thread", "worker")["allocations"]:
            self.assertTrue(1500 <= a["size"] <= 40000)
        chains = self.view("--view", "allocations", "--count", "all", "--first-size-max", "200", "--chain-length-min", "4",
                           "--last-size-min", "40000")["allocations"]
        self.assertEqual(len(chains), 4 * 120)
        self.assertEqual({a["position_in_chain"] for a in chains}, {0, 1, 2, 3})
        leaked = self.view("--view", "allocations", "--first-size-max", "200", "--chain-length-min", "4",
                           "--lifetime", "only_leaked")["allocations"]
        self.assertEqual({a["size"] for a in leaked}, {40000})
        self.assertEqual(len(leaked), 14 + 27)
        mapped = self.view("--view", "allocations", "--mmaped", "yes", "--size-min", "300000",
                           "--size-max", "300000")["allocations"]
        self.assertEqual([a["allocator"] for a in mapped], ["mmapped"] * 2)
        self.assertIn(("M_MMAP_THRESHOLD", 1 << 17), [(o["param"], o["value"]) for o in self.view()["mallopts"]])

    def test_order(self):
        """report --view: --sort-by, --order, --skip and --count"""
        def sizes(*more):
            return [a["size"] for a in self.view("--view", "allocations", "--sort-by", "size", *more)["allocations"]]
        everything = sizes("--order", "dsc", "--count", "all")
        self.assertEqual(everything, sorted(everything, reverse=True))
        self.assertEqual(sizes("--order", "dsc", "--skip", "3", "--count", "5"), everything[3:8])
        self.assertEqual(sizes("--count", "7"), sorted(everything)[:7])
        self.assertEqual(sizes("--skip", "1000000000", "--count", "1"), [])
        leaked = [g["all"]["leaked_count"] for g in self.view("--view", "groups", "--sort-by", "all.leaked_count",
                                                              "--order", "dsc")["allocations"]]
        self.assertEqual(leaked, sorted(leaked, reverse=True))

    def test_many_allocations(self):
        """--view allocations --json: each stack once, the first 1000 of many, and a line that says so"""
        f = self.path("many.memprof")
        self.memprof("run", "-q", "--lossless", "--history", "-o", f, "--", f"{t.VICTIMS}/exact", 1, 5000)
        r = self.memprof("report", f, "--view", "allocations", "--json")
        cut, total = json.loads(r.stdout), json.loads(r.stdout)["total_count"]
        self.assertGreater(total, 1000)
        self.assertEqual(len(cut["allocations"]), 1000)
        self.assertIn(f"the list has the first 1,000 of {total:,} allocations; --count N has more, --count all has",
                      r.stderr)
        for count in ("0", "all"):
            r = self.memprof("report", f, "--view", "allocations", "--json", "--count", count)
            self.assertEqual((r.stderr, len(json.loads(r.stdout)["allocations"])), ("", total))
        whole = json.loads(r.stdout)
        with open(t.ROOT + "/doc/allocations.schema.json") as schema:
            jsonschema.validate(whole, json.load(schema))
        ids = [s["backtrace_id"] for s in whole["stacks"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(set(ids), {a["backtrace_id"] for a in whole["allocations"]})
        stacks = {g["backtrace_id"]: g["backtrace"] for g in json.loads(
            self.memprof("report", f, "--json").stdout)["allocation_groups"]}
        for s in whole["stacks"]:
            self.assertEqual(s["backtrace"], stacks[s["backtrace_id"]])
        self.assertFalse(any("backtrace" in a for a in whole["allocations"]))

    def test_nothing_passes(self):
        """a filter that no allocation passes is said to, in one line that names the condition"""
        for argv, why in ((["--thread", "nosuch"], "--thread nosuch: the recording has no such thread"),
                          (["--thread", "1"], "--thread 1: the recording has no such thread"),
                          (["--library", "nosuch"], "--library-regex: no frame matches"),
                          (["--function-regex", "nosuch", "--size-min", "1"], "--function-regex: no frame matches"),
                          (["--negative-library-regex", "."], "--negative-library-regex: every stack has a frame"),
                          (["--from", "1h"], "--from is 3600.000 s, but nothing was allocated after "),
                          (["--to", "10%", "--from", "20%"], "--to is before --from"),
                          (["--marker", "nosuch"], "--marker nosuch: the recording has no such mark"),
                          (["--from-map", "nosuch"], "--from-map nosuch: the recording has no such mapping"),
                          (["--backtraces", "1000000"], "--backtraces: the recording has no such stack"),
                          (["--size-min", "2", "--size-max", "1"], "--size-max is below --size-min"),
                          (["--size-min", "1T"], "none meets all conditions")):
            for form in ([], ["--json"], ["--view", "threads"]):
                r = self.memprof("report", self.recording, *argv, *form)
                self.assertTrue(r.stderr.startswith(
                    f"memprof: {self.recording}: no allocation passes the filters: {why}"), (argv, r.stderr))
                self.assertEqual(r.stderr.count("\n"), 1)
        tid = next(th["thread"] for th in self.view()["threads"] if th["allocations"])
        self.assertEqual(self.memprof("report", self.recording, "--thread", tid).stderr, "")
        self.assertEqual(self.memprof("report", self.recording, "--thread", tid, "--thread", "x").stderr, "")
        r = self.memprof("diff", self.recording, self.recording, "--thread", "nosuch")
        self.assertEqual(r.stderr.count("no allocation passes the filters: --thread nosuch: "), 2)

    def test_errors(self):
        """report: a bad value or an unknown option is an error that names the field"""
        for args, words in (
                (["--size-min", "10q"], "report: --size-min: '10q' is not a size"),
                (["--siez-min", "10"], "--siez-min"), (["--from", "yesterday"], "--from: 'yesterday' is not a time"),
                (["--lifetime", "short"], "--lifetime: 'short' is not one of all"),
                (["--function-regex", "(a"], "--function-regex: missing closing parenthesis"),
                (["--size-min", "1", "--size-min", "2"], "report: --size-min: given twice"),
                (["--arena", "third"], "--arena: 'third' is neither main nor non_main"),
                (["--view", "groups", "--sort-by", "beauty"], "report: --sort-by: 'beauty' is none of only_matched."),
                (["--view", "all"], "report: --view: 'all'"), (["--view", "sizes", "--order", "asc"], "--order"),
                (["--view", "groups", "--count", "-1"], "report: --count: '-1'"), (["--chain-length-min"], "needs a value"),
                (["--view", "sizes", "--tree"], "--view can be combined with no other format than --json")):
            r = subprocess.run([t.MEMPROF, "report", self.recording, *args], text=True, capture_output=True,
                               timeout=60)
            self.assertEqual(r.returncode, 2, args)
            self.assertIn(words, r.stderr)

    def test_search_limit(self):
        """report: a regular expression that would search for ever is an error that names the field"""
        r = subprocess.run([t.MEMPROF, "report", self.recording, "--source-regex", r"^(([^b]+)*)*$b"], text=True,
                           capture_output=True, timeout=60)
        self.assertEqual(r.returncode, 2)
        self.assertRegex(r.stderr, "--source-regex: the search costs too much")

    def test_plot(self):
        """report --plot is well-formed, with the peak and every panel"""
        svg = self.path("p.svg")
        self.memprof("report", self.recording, "--plot", svg)
        text = " ".join(" ".join(x.itertext()) for x in xml.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}text"))
        for words in ("memprof: ", "pid ", "peak ", "Live blocks", "allocations per second", "highest live bytes"):
            self.assertIn(words, text)

    def test_bottom_up(self):
        """report --tree --bottom-up has the user's functions below the root, with --full-stacks the allocator's;
        both have the same total"""
        down = self.memprof("report", self.recording, "--tree").stdout.splitlines()
        for options, allocator in (((), False), (("--full-stacks",), True)):
            up = self.memprof("report", self.recording, "--tree", "--bottom-up", *options).stdout.splitlines()
            self.assertEqual(down[0], up[0])
            self.assertEqual(bool(re.search(r"(malloc|realloc) \[libc", up[1])), allocator)

    def test_documents(self):
        """every example of doc/filters.md and doc/views.md runs"""
        examples = []
        for name in ("filters.md", "views.md"):
            with open(f"{t.ROOT}/doc/{name}") as f:
                examples += re.findall(r"^    memprof (report .*)$", f.read(), re.M)
        self.assertGreater(len(examples), 15)
        for example in examples:
            with self.subTest(example=example):
                args = [a.replace("rec.memprof", self.recording) for a in shlex.split(example)]
                args = [self.path(a) if a.endswith(".svg") else a for a in args]
                out = self.memprof(*args).stdout
                self.assertTrue(out or "--plot" in args)


class One(t.Case):
    def test_one(self):
        """no command prints "1 blocks" or the like about a program with one thread and one live block"""
        program, f = self.path("one"), self.path("r")
        subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input=ONE, text=True, check=True)
        said = [self.memprof("run", "-o", f, "--", program).stdout]
        p = self.start(program, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        for status, *argv in ((0, "--debug", "attach", "-p", p.pid, "-o", self.path("a"), "--for", "100ms"),
                              (1, "leaks", "-p", p.pid), (0, "heap", "-p", p.pid), (0, "report", f),
                              (0, "report", f, "--quick"), (0, "report", f, "--tree"),
                              (0, "report", f, "--view", "groups"), (0, "diff", f, "--at", "0s", "--at", "100%"),
                              (0, "info", f), (0, "verify", f), (0, "symbolize", f, "-o", self.path("s")),
                              (0, "extract", f, "-o", self.path("x"))):
            r = self.memprof(*argv, status=status)
            said.append(r.stdout + r.stderr)
        said = "\n".join(said)
        self.assertIn("stopped 1 thread\n", said)
        self.assertIn("LEAKED: 1 block, ", said)
        self.assertEqual(re.findall(r"(?<![\w.,])1 (?:[a-z]+ )?[a-z]+s\b", said), [])


if __name__ == "__main__":
    t.main()
