#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What memprof server answers: its numbers are those that memprof report has for the same recording and filter."""
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import memprof_test as t

# The sizes say which allocation is which.  It is silent for more than a second after a block of 3 MB was freed.
PROGRAM = r"""
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile last;
struct table { void *p; table(size_t n) : p(malloc(n)) {} };
static table first(5000), second(6001);
template <class T, int N> __attribute__((noinline)) void *make(size_t n) { return last = malloc(n); }
__attribute__((noinline)) void *deep(int n, size_t size)
{
	void *p = n ? deep(n - 1, size) : malloc(size);
	last = p;
	return p;
}
int main()
{
	mallopt(M_ARENA_MAX, 3);
	for (int i = 0; i < 70; i++)
		make<char, 7>(100 + i);
	for (int i = 0; i < 500; i++)
		free(make<int, 8>(77));
	last = realloc(realloc(realloc(malloc(11), 22), 33), 200044);
	free(realloc(malloc(55), 66));
	deep(150, 1234);
	free(make<long, 9>(3000000));
	usleep(1200000);
	make<long, 9>(88);
	return 0;
}
"""


def nanoseconds(v):
    return v["secs"] * 10**9 + v["fract_nsecs"]


def nodes(tree, path=()):
    """Yields each node of a tree with the addresses that lead to it."""
    yield path, tree
    for child in tree["children"]:
        yield from nodes(child, (*path, child["value"]["address"]))


class Answers(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.files = {}
        try:
            program = os.path.join(cls.shared, "program")
            subprocess.run(["g++", "-g", "-O0", "-fno-builtin", "-o", program, "-x", "c++", "-"], input=PROGRAM, text=True,
                           check=True)
            for name, how, argv in (("exact", ("--history",), (program,)),
                                    ("stacks", ("--history", "--free-stacks"), (program,)),
                                    ("culled", ("--cull", "10ms"), (f"{t.VICTIMS}/exact", "2", "20000")),
                                    ("sampled", ("--sample", "1k"), (f"{t.VICTIMS}/exact", "2", "20000"))):
                f = os.path.join(cls.shared, name)
                subprocess.run([t.MEMPROF, "run", "-q", "--lossless", *how, "-o", f, "--", *argv], check=True, timeout=120,
                               stdout=subprocess.DEVNULL)
                cls.files[name] = f
            cls.server = subprocess.Popen([t.MEMPROF, "server", *cls.files.values(), "--port", "0"], text=True,
                                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            cls.base = cls.server.stdout.readline().split()[-1].rstrip("/")
        except BaseException:
            cls.tearDownClass()
            raise
        cls.ids = {name: cls.id_of(f) for name, f in cls.files.items()}

    @classmethod
    def id_of(cls, file):
        r = subprocess.run([t.MEMPROF, "report", file, "--json"], check=True, capture_output=True)
        return json.loads(r.stdout)["id"]

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "server"):
            cls.server.terminate()
            cls.server.wait()
            cls.server.stdout.close()
        shutil.rmtree(cls.shared)

    def get(self, path, **query):
        url = f"{self.base}/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
        with urllib.request.urlopen(url, timeout=120) as r:
            return json.loads(r.read())

    def ask(self, name, endpoint, **query):
        return self.get(f"data/{self.ids[name]}/{endpoint}", **query)

    def view(self, name, view, *options):
        return json.loads(self.memprof("report", self.files[name], "--view", view, "--json", "--count", "all",
                                       *options).stdout)

    def refused(self, path, status, words):
        with self.assertRaises(urllib.error.HTTPError) as e:
            self.get(path)
        self.assertEqual(e.exception.code, status)
        self.assertIn(words, e.exception.read().decode())
        e.exception.close()

    FILTERS = (((), {}), (("--size-min", "50", "--lifetime", "only_leaked"), {"size_min": 50, "lifetime": "only_leaked"}),
               (("--function-regex", "make<"), {"function_regex": "make<"}))

    def each(self):
        for name in self.files:
            for options, query in self.FILTERS[:2 if name in ("culled", "sampled") else 3]:
                with self.subTest(recording=name, filters=query):
                    yield name, options, query


class List(Answers):
    def test_list(self):
        """/list has each recording, in the order of the command line, with the sums of its report"""
        for _ in range(2):  # read, and kept
            answer = self.get("list")
            self.assertEqual([e["id"] for e in answer], list(self.ids.values()))
        for name, e in zip(self.files, answer):
            r = self.report(self.files[name])
            stacks = self.ask(name, "backtraces")
            for key in ("executable", "cmdline", "architecture", "timestamp", "runtime", "pid", "estimated",
                        "culled_below_ns", "end_reason", "sample_interval"):
                self.assertEqual(e[key], r[key], key)
            self.assertEqual(e["final_allocated"], r["totals"]["leaked_bytes"])
            self.assertEqual(e["final_allocated_count"], r["totals"]["leaked_count"])
            self.assertEqual(e["unique_backtrace_count"], stacks["total_count"])
            self.assertEqual(e["maximum_backtrace_depth"], max(map(len, stacks["backtraces"])))
            self.assertEqual(e["lost_events"], 0)

    def test_changed(self):
        """A recording that is gone has an error in /list; one that is back has its data"""
        f = self.path("moving")
        shutil.copy(self.files["exact"], f)
        server = self.start(t.MEMPROF, "server", f, self.files["culled"], "--port", "0")
        base = server.stdout.readline().split()[-1]
        self.addCleanup(setattr, self, "base", self.base)
        self.base = base.rstrip("/")
        both = self.get("list")
        self.assertNotIn("error", both[0])
        os.rename(f, f + ".away")
        gone = self.get("list")
        self.assertEqual((gone[0]["id"], gone[1]), (both[0]["id"], both[1]))
        self.assertIn("No such file", gone[0]["error"])
        os.rename(f + ".away", f)
        self.assertEqual(self.get("list"), both)
        # A recorder that was killed leaves no index.
        with open(f, "r+b") as cut:
            cut.truncate(os.path.getsize(f) * 2 // 3)
        entry, r = self.get("list")[0], self.report(f)
        self.assertEqual(entry["truncated"], r["truncated"])
        self.assertEqual((entry["final_allocated"], entry["final_allocated_count"]),
                         (r["totals"]["leaked_bytes"], r["totals"]["leaked_count"]))


class Allocations(Answers):
    def check_frames(self, frames, expected):
        """Frames are those of report, but for function, which is there only if it differs from the symbol."""
        self.assertEqual(len(frames), len(expected))
        for f, e in zip(frames, expected):
            for key in ("address", "address_s", "is_inline"):
                self.assertEqual(f[key], e[key])
            for key in ("library", "raw_function", "source"):
                self.assertEqual(f.get(key), e.get(key))
            self.assertEqual(f.get("line"), e.get("line") or None)
            self.assertEqual(f.get("function"), e["function"] if e.get("raw_function") not in (None, e["function"]) else None)

    def test_all(self):
        """/allocations has what --view allocations has"""
        for name, options, query in self.each():
            answer, view = self.ask(name, "allocations", **query), self.view(name, "allocations", *options)
            stacks = {s["backtrace_id"]: s["backtrace"] for s in view["stacks"]}
            self.assertEqual(answer["total_count"], view["total_count"])
            self.assertEqual(len(answer["allocations"]), len(view["allocations"]))
            self.assertGreater(len(view["allocations"]), 2)
            for a, v in zip(answer["allocations"][:3000], view["allocations"]):
                self.check_frames(a.pop("backtrace"), stacks[v["backtrace_id"]])
                if "backtrace" in a.get("deallocation", ()):
                    self.check_frames(a["deallocation"].pop("backtrace"), stacks[v["deallocation"]["backtrace_id"]])
                a.pop("represents", None)
                self.assertEqual(a, v)
            r = self.report(self.files[name], *options)
            self.assertEqual(answer.get("culled_count", 0), r["totals"]["culled_count"])
            self.assertEqual(answer.get("estimated", False), r["estimated"])

    def test_represents(self):
        """In a sample, the allocations represent as many as the report has"""
        answer = self.ask("sampled", "allocations")
        self.assertTrue(answer["estimated"])
        self.assertEqual(sum(a["represents"] for a in answer["allocations"]),
                         self.report(self.files["sampled"])["totals"]["allocations"])

    def test_values(self):
        """/allocations: one chain of reallocs, one block of its own mapping"""
        chain = [a for a in self.ask("exact", "allocations", sort_by="timestamp")["allocations"] if a["chain_length"] == 4]
        self.assertEqual([a["size"] for a in chain], [11, 22, 33, 200044])
        self.assertEqual([a["position_in_chain"] for a in chain], [0, 1, 2, 3])
        self.assertEqual(["deallocation" in a for a in chain], [True, True, True, False])
        self.assertEqual([a["is_mmaped"] for a in chain], [False, False, False, True])
        for a, b in zip(chain, chain[1:]):
            self.assertEqual(a["deallocation"]["timestamp"], b["timestamp"])
            self.assertEqual(a["deallocation"]["backtrace_id"], b["backtrace_id"])
        two = [a for a in self.ask("exact", "allocations")["allocations"] if a["chain_length"] == 2]
        self.assertEqual([a["size"] for a in two], [55, 66])
        self.assertEqual(two[0]["chain_deallocation"]["timestamp"], two[1]["deallocation"]["timestamp"])
        self.assertNotIn("chain_deallocation", two[1])
        self.assertEqual(nanoseconds(two[0]["chain_lifetime"]),
                         nanoseconds(two[1]["deallocation"]["timestamp"]) - nanoseconds(two[0]["timestamp"]))
        freed = self.ask("stacks", "allocations", size_min=77, size_max=77)["allocations"][0]
        self.assertIn("main", [f.get("raw_function") for f in freed["deallocation"]["backtrace"]])

    def test_parts(self):
        """skip, count, order and sort_by of /allocations"""
        for key, of in (("timestamp", lambda a: nanoseconds(a["timestamp"])), ("address", lambda a: a["address"]),
                        ("size", lambda a: a["size"])):
            for order in ("asc", "dsc"):
                every = self.ask("exact", "allocations", sort_by=key, order=order)["allocations"]
                keys = [of(a) for a in every]
                self.assertEqual(keys, sorted(keys, reverse=order == "dsc"))
                part = self.ask("exact", "allocations", sort_by=key, order=order, skip=130, count=57)
                self.assertEqual(part["allocations"], every[130:187])
                self.assertEqual(part["total_count"], len(every))
        self.assertEqual(self.ask("exact", "allocations", skip=10**9)["allocations"], [])
        self.assertEqual(self.ask("exact", "allocations", count=0), {"allocations": [], "total_count": len(every)})

    def test_raw(self):
        """/raw_allocations has the addresses of each allocation's stack"""
        raw, every = self.ask("exact", "raw_allocations"), self.ask("exact", "allocations")["allocations"]
        self.assertEqual([a["id"] for a in every], list(range(len(every))))
        self.assertEqual([r["backtrace"] for r in raw],
                         [[f["address_s"] for f in a["backtrace"] if not f["is_inline"]] for a in every])

    def test_regions(self):
        """/regions joins the blocks with their headers"""
        every = self.ask("exact", "allocations", lifetime="only_leaked")["allocations"]
        ranges = sorted((a["address"] - (16 if a["is_mmaped"] else 8), a["address"] + a["size"] + a["extra_space"])
                        for a in every)
        joined = []
        for start, end in ranges:
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        heap = [r for a, r in zip(sorted(every, key=lambda a: a["address"]), ranges) if a["in_main_arena"]]
        low, high = heap[0][0], heap[-1][1]
        self.assertEqual(self.ask("exact", "regions", lifetime="only_leaked"),
                         {"main_heap_start": low, "main_heap_end": high, "main_heap_start_s": str(low),
                          "main_heap_end_s": str(high), "regions": joined})
        self.assertGreater(len(joined), 1)
        self.assertEqual(self.ask("exact", "regions", size_min=10**9),
                         {"main_heap_start": 0, "main_heap_end": 0, "main_heap_start_s": "0", "main_heap_end_s": "0",
                          "regions": []})


class Sums(Answers):
    def test_groups(self):
        """/allocation_groups has what --view groups has, and the sums of the report"""
        for name, options, query in self.each():
            for sort in ("only_matched.min_timestamp", "all.size", "only_matched.leaked_count"):
                answer = self.ask(name, "allocation_groups", sort_by=sort, order="dsc", **query)
                view = self.view(name, "groups", "--sort-by", sort, "--order", "dsc", *options)
                self.assertEqual(answer["total_count"], view["total_count"])
                self.assertEqual([g["backtrace_id"] for g in answer["allocations"]],
                                 [g["backtrace_id"] for g in view["allocations"]])
            for g, v in zip(answer["allocations"], view["allocations"]):
                self.assertEqual(len(g["backtrace"]), len(v["backtrace"]))
                for sums in ("all", "only_matched"):
                    for key in ("min_size", "max_size", "graph_url", "graph_preview_url"):
                        v[sums][key] = g[sums][key]
                    self.assertEqual(g[sums], v[sums])
            r = self.report(self.files[name], *options)
            for mine, theirs in (("size", "allocated_bytes"), ("allocated_count", "allocations"),
                                 ("leaked_count", "leaked_count"), ("leaked_size", "leaked_bytes")):
                self.assertEqual(sum(g["only_matched"][mine] for g in answer["allocations"]), r["totals"][theirs], mine)
            self.assertEqual(answer.get("estimated", False), r["estimated"])

    def test_sizes(self):
        """The smallest and largest size of a group: of those that match, and of all"""
        answer = self.ask("exact", "allocation_groups", function_regex="make<char", size_min=110, size_max=150)
        (g,) = answer["allocations"]
        self.assertEqual((g["all"]["min_size"], g["all"]["max_size"], g["all"]["allocated_count"]), (100, 169, 70))
        self.assertEqual((g["only_matched"]["min_size"], g["only_matched"]["max_size"],
                          g["only_matched"]["allocated_count"]), (110, 150, 41))

    def test_graphs(self):
        """generate_graphs: the address of a graph has the filter, and the group's stack instead of the filter's"""
        query = {"function_regex": "make<[^&+]*", "size_max": 170, "size_min": 110, "generate_graphs": "true"}
        (g,) = self.ask("exact", "allocation_groups", **query)["allocations"]
        url = urllib.parse.urlsplit(g["only_matched"]["graph_url"])
        self.assertEqual(url.path, f"/data/{self.ids['exact']}/export/plot")
        self.assertEqual(urllib.parse.parse_qsl(url.query),
                         [("backtraces", str(g["backtrace_id"])), ("function_regex", "make<[^&+]*"), ("size_max", "170"),
                          ("size_min", "110")])
        self.assertEqual(g["only_matched"]["graph_preview_url"], g["only_matched"]["graph_url"])
        self.assertIsNone(g["all"]["graph_url"])
        (g,) = self.ask("exact", "allocation_groups", backtraces=g["backtrace_id"], generate_graphs="true")["allocations"]
        self.assertEqual(urllib.parse.urlsplit(g["only_matched"]["graph_url"]).query, f"backtraces={g['backtrace_id']}")
        (g,) = self.ask("exact", "allocation_groups", backtraces=g["backtrace_id"])["allocations"]
        self.assertIsNone(g["only_matched"]["graph_url"])

    def test_tree(self):
        """/tree adds up what is below each frame"""
        for name, _, query in self.each():
            tree, groups = self.ask(name, "tree", **query), self.ask(name, "allocation_groups", **query)["allocations"]
            expected = {}
            for g in groups:
                path = ()
                for n in range(len(g["backtrace"]) + 1):
                    path += tuple(f["address"] for f in g["backtrace"][n - 1:n])
                    sums = expected.setdefault(path, [0, 0, [], []])
                    for i, v in enumerate((g["only_matched"]["size"], g["only_matched"]["allocated_count"],
                                           [g["only_matched"]["min_timestamp"]["secs"]],
                                           [g["only_matched"]["max_timestamp"]["secs"]])):
                        sums[i] += v
            found = list(nodes(tree))
            self.assertEqual(len(found), len(expected))
            for path, node in found:
                size, count, first, last = expected[path]
                self.assertEqual((node["size"], node["count"], node["first"], node["last"]),
                                 (size, count, min(first), max(last)))
            self.assertNotIn("value", tree)
        depth = max(len(path) for path, _ in nodes(self.ask("exact", "tree")))
        self.assertGreater(depth, 150)
        self.assertEqual(self.ask("exact", "tree", size_min=10**9),
                         {"size": 0, "count": 0, "first": 0, "last": 0, "children": []})

    def test_timeline(self):
        """/timeline: peak, end, numbers of allocations and frees; a silence has the level, not the peak before it"""
        for name in self.files:
            with self.subTest(recording=name):
                line, r = self.ask(name, "timeline"), self.report(self.files[name])["totals"]
                self.assertEqual({len(v) for k, v in line.items() if k != "estimated"}, {len(line["xs"])})
                self.assertEqual(line["xs"], sorted(line["xs"]))
                self.assertEqual(max(line["allocated_size"]), r["peak_bytes"])
                self.assertEqual((line["allocated_size"][-1], line["allocated_count"][-1]),
                                 (r["leaked_bytes"], r["leaked_count"]))
                self.assertEqual(sum(line["size_delta"]), r["leaked_bytes"])
                self.assertEqual(sum(line["count_delta"]), r["leaked_count"])
                self.assertEqual(line.get("estimated", False), self.report(self.files[name])["estimated"])
        line, r = self.ask("exact", "timeline"), self.report(self.files["exact"])
        self.assertIn(len(line["xs"]), (1001, 1002))
        reallocs = sum(a["position_in_chain"] > 0 for a in self.ask("exact", "allocations")["allocations"])
        self.assertEqual(reallocs, 4)
        self.assertEqual(sum(line["allocations"]), r["totals"]["allocations"] - reallocs)
        self.assertEqual(sum(line["deallocations"]), r["totals"]["frees"] - reallocs)
        start = nanoseconds(r["timestamp"])
        self.assertEqual((line["xs"][0], line["xs"][-1]),
                         (start // 10**6, (start + nanoseconds(r["runtime"])) // 10**6))
        peak = line["allocated_size"].index(r["totals"]["peak_bytes"])
        end, after = line["allocated_size"][-1], line["allocated_size"][peak + 3:]
        self.assertLess(end, r["totals"]["peak_bytes"] - 2900000)
        self.assertEqual(set(after), {end - 88, end})
        self.assertGreater(after.count(end - 88), 300)

    def test_timeline_leaked(self):
        """/timeline_leaked ends with what was not freed, and has each block when it was allocated"""
        for name in self.files:
            with self.subTest(recording=name):
                line, r = self.ask(name, "timeline_leaked"), self.report(self.files[name])["totals"]
                self.assertEqual((line["allocated_size"][-1], line["allocated_count"][-1]),
                                 (r["leaked_bytes"], r["leaked_count"]))
                self.assertEqual(line["allocated_size"], sorted(line["allocated_size"]))
                self.assertEqual(sum(line["allocations"]), r["leaked_count"])
                self.assertEqual(sum(line["deallocations"]), 0)
        leaked = self.ask("exact", "allocations", lifetime="only_leaked")["allocations"]
        line = self.ask("exact", "timeline_leaked")
        for i in range(0, len(line["xs"]) - 1, 100):
            end = line["xs"][i + 1]
            until = [a["size"] for a in leaked if nanoseconds(a["timestamp"]) // 10**6 < end]
            surely = [a["size"] for a in leaked if nanoseconds(a["timestamp"]) // 10**6 < end - 1]
            self.assertTrue(sum(surely) <= line["allocated_size"][i] <= sum(until) + 88, i)


class Stacks(Answers):
    def test_backtraces(self):
        """/backtraces has each stack as /backtrace has it; its conditions are those of report"""
        answer = self.ask("exact", "backtraces")
        self.assertEqual(answer["total_count"], len(answer["backtrace_ids"]))
        for n, frames in zip(answer["backtrace_ids"], answer["backtraces"]):
            self.assertEqual(self.ask("exact", f"backtrace/{n}"), {"frames": frames})
        for query in ({"function_regex": "make<"}, {"negative_function_regex": "make<"}, {"backtrace_depth_min": 100},
                      {"backtrace_depth_max": 9, "source_regex": "stdin"}):
            options = [x for k, v in query.items() for x in ("--" + k.replace("_", "-"), v)]
            some = self.ask("exact", "backtraces", **query)
            used = {g["backtrace_id"] for g in self.view("exact", "groups")["allocations"]}
            self.assertEqual(used & set(some["backtrace_ids"]),
                             {g["backtrace_id"] for g in self.view("exact", "groups", *options)["allocations"]})
            self.assertEqual(len(some["backtraces"]), some["total_count"])
        self.assertTrue(some["total_count"])
        self.refused(f"data/{self.ids['exact']}/backtrace/4000000000", 404, "no backtrace 4000000000")
        self.refused(f"data/{self.ids['exact']}/backtraces?function_regex=(", 400, "function_regex")

    def test_counts(self):
        """A frame counts the allocations of the whole recording, as often as it is in their stacks"""
        groups = self.ask("exact", "allocation_groups")["allocations"]
        expected = {}
        for g in groups:
            for f in g["backtrace"]:
                if not f["is_inline"]:
                    expected[f["address"]] = expected.get(f["address"], 0) + g["all"]["allocated_count"]
        (deep,) = self.ask("exact", "allocation_groups", size_min=1234, size_max=1234)["allocations"]
        for f in deep["backtrace"]:
            self.assertEqual(f["count"], expected[f["address"]])
        self.assertEqual(max(f["count"] for f in deep["backtrace"] if f.get("function", "").startswith("deep")), 150)

    def test_template_arguments(self):
        """strip_template_args"""
        names = {}
        for strip in ("false", "true"):
            (g,) = self.ask("exact", "allocation_groups", function_regex="make<char", strip_template_args=strip)["allocations"]
            names[strip] = [f["function"] for f in g["backtrace"] if "make" in f.get("function", "")]
        self.assertEqual(names, {"false": ["void* make<char, 7>(unsigned long)"], "true": ["void* make<...>(unsigned long)"]})

    def test_mallopts(self):
        """/mallopts"""
        (o,) = self.ask("exact", "mallopts")
        r = self.report(self.files["exact"])["mallopts"][0]
        self.assertEqual((o["raw_param"], o["param"], o["value"], o["result"]), (-8, "M_ARENA_MAX", 3, 1))
        self.assertEqual((o["thread"], o["backtrace_id"], o["timestamp_relative"]),
                         (r["thread"], r["backtrace_id"], r["timestamp_relative"]))
        self.assertIn("main", [f.get("raw_function") for f in o["backtrace"]])

    def test_initializers(self):
        """/dynamic_statics has the live blocks of static initializers by line; /dynamic_constants has none here"""
        answer = self.ask("exact", "dynamic_statics")
        usable = {a["size"]: a["size"] + a["extra_space"] for a in self.ask("exact", "allocations")["allocations"]
                  if a["size"] in (5000, 6001)}
        ((file, sums),) = answer["per_file"].items()
        line = 1 + PROGRAM.splitlines().index("static table first(5000), second(6001);")
        self.assertTrue(file.endswith("<stdin>"), file)
        self.assertEqual((answer["count"], answer["size"]), (2, sum(usable.values())))
        self.assertEqual(sums, {"count": 2, "size": sum(usable.values()),
                                "per_line": {str(line): {"count": 2, "size": sum(usable.values())}}})
        self.assertEqual(self.ask("exact", "dynamic_constants"), {"count": 0, "size": 0, "per_file": {}})
        url = f"{self.base}/data/{self.ids['exact']}/dynamic_statics_ascii_tree/statics.txt"
        with urllib.request.urlopen(url, timeout=120) as r:
            rows = r.read().decode().splitlines()
        self.assertEqual(rows[0].split(), ["SIZE", "COUNT", "SOURCE"])
        self.assertEqual(rows[1].split()[2:], ["2", file])
        self.assertEqual(rows[2].split()[2:], ["2", f"└─<stdin>:{line}"])


if __name__ == "__main__":
    t.main()
