#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server: exports and lists are what `memprof report` writes; maps, growth, comparisons."""
import json

import memprof_test as t
import server_test as s

LASTING, GONE = 1 << 40, 2 << 40  # addresses
# What grows, what stays, and a mapping of its own in which nothing is allocated.
GROWING = """
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

static void *volatile kept[2000];
static int n;
__attribute__((noinline)) static void grow() { kept[n++] = malloc(1000); }
__attribute__((noinline)) static void fill() { kept[n++] = malloc(3000); }
__attribute__((noinline)) static void *map(unsigned long at, size_t size)
{
	return mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
int main()
{
	char c;
	(void)!read(0, &c, 1);
	void *lasting = map(LASTING, 40 << 20), *gone = map(GONE, 3 << 20);
	memset(lasting, 1, 1 << 20);
	for (int i = 0; i < 20; i++)
		fill();
	for (int i = 0; i < 300; i++) {
		grow();
		usleep(5000);
	}
	munmap(gone, 3 << 20);
	(void)!write(1, "done\\n", 5);
	(void)!read(0, &c, 1);
	return 0;
}
""".replace("LASTING", hex(LASTING)).replace("GONE", hex(GONE))

# Endpoint, parameters, the same of `memprof report`
EXPORTS = (
    ("export/flamegraph", (), "--flamegraph", ()),
    ("export/flamegraph/x.svg", (("cost", "live"),), "--flamegraph", ("--cost", "live")),
    ("export/flamegraph.pl", (), "--collapsed", ()),
    ("export/collapsed", (("cost", "count"),), "--collapsed", ("--cost", "count")),
    ("export/icicle", (("cost", "peak"),), "--icicle", ("--cost", "peak")),
    ("export/heaptrack", (), "--heaptrack", ()),
    ("export/replay", (), "--replay", ()),
    ("export/pprof/x.pb.gz", (), "--pprof", ()),
    ("export/speedscope", (("cost", "temporary"),), "--speedscope", ("--cost", "temporary")),
    ("export/csv", (), "--csv", ()),
    ("export/plot", (), "--plot", ()),
    ("export/json", (), "--json", ()),
    ("report", (), "--json", ()),
    ("allocation_ascii_tree", (), "--ascii-tree", ()),
    ("export/text", (), "-o", ()),
    ("export/text", (("verbose", "true"),), "-o", ("--verbose",)),
    ("libraries", (), "-o", ("--view", "libraries", "--json")),
    ("threads", (), "-o", ("--view", "threads", "--json")),
    ("sizes", (), "-o", ("--view", "sizes", "--json")),
    ("peek", (("function", "session"),), "-o", ("--peek", "session")),
    ("annotate", (("file", "shop.cc"), ("cost", "live")), "-o", ("--annotate", "shop.cc", "--cost", "live")),
)


class Exports(s.Case):
    @classmethod
    def record_all(cls):
        program = s.build(cls.shared)
        return [s.record(program, f"{cls.shared}/{name}") for name in ("first", "second")]

    def report(self, option, more):
        out = self.path("out")
        self.memprof("report", self.recordings[-1], option, out, *more)
        return t.read(out)

    def test_bytes(self):
        """each export and list has the bytes that memprof report writes, without and with filters"""
        for filters, options in ((), ()), ((("size_min", 100), ("lifetime", "only_leaked")),
                                           ("--size-min", "100", "--lifetime", "only_leaked")):
            for endpoint, parameters, option, more in EXPORTS:
                body = self.data(endpoint, parameters + filters).body
                self.assertEqual(body, self.report(option, more + options), f"{endpoint} {parameters} {filters}")
                self.assertGreater(len(body), 100, endpoint)

    def test_types(self):
        """exports have the media types by which browsers and clients know them"""
        for endpoint, want in (("export/flamegraph", "image/svg+xml"), ("export/heaptrack", "application/octet-stream"),
                               ("export/pprof", "application/gzip"), ("export/csv", "text/csv; charset=utf-8"),
                               ("allocation_ascii_tree", "text/plain; charset=utf-8"), ("report", "application/json")):
            self.assertEqual(self.data(endpoint).headers["Content-Type"], want, endpoint)

    def test_parts(self):
        """info, samples, marks and losses say what memprof info and memprof report say"""
        self.assertEqual(self.data("info").text, self.memprof("info", self.recordings[-1], "--json").stdout)
        report = self.data("report").json()
        self.assertEqual(self.data("samples").json(), {"samples": report["samples"]})
        self.assertEqual(self.data("marks").json(), {"markers": report["markers"]})
        losses = self.data("losses").json()
        for key in ("losses", "end_reason", "truncated", "thinning", "estimated"):
            self.assertEqual(losses[key], report[key], key)
        self.assertEqual(losses["losses"]["lost_allocations"], 0)

    def test_diff(self):
        """diff compares with another recording, and two moments, as memprof diff does"""
        first, last = self.recordings
        before = json.loads(self.memprof("info", first, "--json").stdout)["id"]
        want = json.loads(self.memprof("diff", last, first, "--json", "--cost", "count").stdout)
        self.assertEqual(self.data("diff", (("with", before), ("cost", "count"))).json(), want)
        want = json.loads(self.memprof("diff", last, "--at", "0", "--json", "--size-min", "200").stdout)
        got = self.data("diff", (("at", "0"), ("size_min", "200"))).json()
        self.assertEqual(got, want)
        self.assertEqual((got["before"]["cost"], got["after"]["cost"]), (0, self.live(200)))
        self.memprof("diff", last, first, "--flamegraph", self.path("svg"))
        self.assertEqual(self.data("export/diff", (("with", before),)).body, t.read(self.path("svg")))
        self.data("diff", status=400)
        self.data("diff", (("with", "0" * 32),), status=404)
        self.data("diff", (("at", "1h"),), status=400)

    def live(self, least):
        return sum(x["leaked_size"] for x in self.data("sizes", (("size_min", least),)).json()["sizes"])

    def test_refusals(self):
        """what has no answer is refused with the reason"""
        self.assertIn("function=REGEX", self.data("peek", status=400).text)
        self.assertIn("function: no stack", self.data("peek", (("function", "no_such_function"),), status=404).text)
        self.assertIn("page faults", self.data("export/flamegraph", (("cost", "faulted"),), status=400).text)
        self.data("export/flamegraph", (("cost", "nonsense"),), status=400)
        self.data("annotate", (("file", "shop.cc"), ("cost", "count")), status=400)

    def test_no_other_files(self):
        """annotate reads only files that the recording's lines are in"""
        for name in ("/etc/passwd", "../../../../etc/passwd", "passwd", "/etc", self.recordings[-1], "x.cc"):
            a = self.data("annotate", (("file", name),), status=404)
            self.assertIn("file: no stack", a.text)
            self.assertNotIn("root:", a.text)
        self.assertIn("malloc(300)", self.data("annotate", (("file", f"{self.shared}/shop.cc"),)).text)

    def test_from_map(self):
        """from_map=ID selects the blocks inside one map: each of the large ones has its own"""
        maps = self.data("maps", (("sort_by", "size"), ("order", "dsc"), ("size_min", "300000"), ("size_max", "600000"),
                                  ("function_regex", "^large"))).json()["maps"]
        self.assertEqual([m["size"] // 100000 for m in maps], [5, 4, 3])
        for m, size in zip(maps, (500000, 400000, 300000)):
            self.assertEqual((m["name"], m["source"]["backtrace"][-1]["raw_function"][-4:]), ("[anon:glibc]", "mmap"))
            sizes = self.data("sizes", (("from_map", m["id"]),)).json()["sizes"]
            self.assertEqual([(x["allocated_count"], x["size"]) for x in sizes], [(1, size)])
        self.assertIn("no map 9999", self.data("sizes", (("from_map", 9999),), status=400).text)


class Growing(s.Case):
    @classmethod
    def record_all(cls):
        cls.recording = s.record(s.build(cls.shared, "growing", GROWING), f"{cls.shared}/growing.memprof")
        return [cls.recording]

    def test_growth(self):
        """growth lists sites by how fast they grow, with the shape of their live bytes"""
        sites = self.data("growth").json()["sites"]
        by_name = {x["function"]: x for x in sites}
        # Which shape a site has depends on when the program was given a processor; the report decides it alike.
        shapes = {g["backtrace_id"]: g["shape"] for g in self.data("report").json()["allocation_groups"]}
        self.assertEqual({x["function"]: x["shape"] for x in sites},
                         {x["function"]: shapes[x["backtrace_id"]] for x in sites})
        for name, live in (("grow", 300000), ("fill", 60000)):
            self.assertEqual((by_name[name]["leaked_bytes"], by_name[name]["levels"][-1]), (live, live))
            self.assertLessEqual(by_name[name]["growth_bytes"], live)
        rates = [x["growth_per_minute"] for x in sites]
        self.assertEqual(rates, sorted(rates, reverse=True))
        for shape in ("growing", "plateau"):
            only = self.data("growth", (("shape", shape), ("group_by", "function"))).json()["sites"]
            self.assertEqual({x["function"] for x in only}, {x["function"] for x in sites if x["shape"] == shape})
        page = self.data("growth", (("skip", 1), ("count", 1))).json()
        self.assertEqual((page["sites"], page["total_count"]), (sites[1:2], len(sites)))

    def test_maps(self):
        """maps has the program's own mappings: where, how large, by which call, until when"""
        own = self.data("maps", (("function_regex", r"^map\("),)).json()["maps"]
        self.assertEqual([m["size"] for m in own], [40 << 20, 3 << 20])
        lasting, gone = own
        self.assertEqual((lasting["address"], gone["address_s"]), (LASTING, f"{GONE:016X}"))
        self.assertNotIn("deallocation", lasting)
        self.assertIn("map(", lasting["source"]["backtrace"][-2]["function"])
        self.assertEqual((lasting["is_writable"], lasting["is_executable"], lasting["is_shared"]), (True, False, False))
        lived = gone["deallocation"]["timestamp"]["secs"] - gone["timestamp"]["secs"]
        self.assertGreaterEqual(lived, 1)  # 300 pauses of 5 ms
        self.assertEqual([m["id"] for m in self.data("maps", (("id", gone["id"]),)).json()["maps"]], [gone["id"]])
        self.assertEqual(self.data("maps", (("function_regex", r"^map\("), ("lifetime", "only_temporary"))).json()["maps"],
                         [gone])

    def test_older_maps(self):
        """maps has what was mapped before, with the memory that it had"""
        maps = self.data("maps", (("with_usage_history", "true"), ("with_regions", "true"))).json()
        self.assertEqual([m["id"] for m in maps["maps"]], list(range(maps["total_count"])))
        code = [m for m in maps["maps"] if m["name"].endswith("/growing") and m["is_executable"]]
        self.assertEqual(len(code), 1)
        self.assertGreater(code[0]["peak_rss"], 0)
        use = code[0]["usage_history"][0]
        self.assertEqual((use["rss"], use["address_space"]), (code[0]["peak_rss"], code[0]["size"]))
        self.assertEqual([r["name"] for r in code[0]["regions"]], [code[0]["name"]])
        self.assertEqual(self.data("maps", (("bytehound", "only_true"),)).json()["total_count"],
                         sum("memprof-session" in m["name"] for m in maps["maps"]))

    def test_timeline_maps(self):
        """timeline_maps has the memory of the process over time, as the kernel sums it up"""
        got = self.data("timeline_maps").json()
        samples = self.data("samples").json()["samples"]
        for key in ("rss", "anonymous", "swap", "address_space"):
            self.assertEqual(got[key], [x[key] for x in samples], key)
        self.assertEqual(len(got["xs"]), len(samples))
        self.assertGreater(max(got["rss"]), 1 << 20)
        self.assertEqual(set(got["dirty"] + got["clean"]), {None})


if __name__ == "__main__":
    t.main()
