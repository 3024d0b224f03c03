#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports point at the line to change: which frames are shown, and how the lines of the user's code are found."""
import csv
import gzip
import json
import os
import re
import subprocess
import xml.etree.ElementTree as xml

import jsonschema

import memprof_test as t

SOURCE = f"{t.ROOT}/tests/victims/sites.cc"


def line(comment):
    """Return: the number of the line of the victim that has the comment."""
    with open(SOURCE) as f:
        return next(n for n, text in enumerate(f, 1) if re.search(f"// {comment}$", text))


class Sites(t.Case):

    def setUp(self):
        super().setUp()
        self.rec = self.path("rec.memprof")
        self.memprof("run", "-q", "-o", self.rec, "--", f"{t.VICTIMS}/sites")

    def text(self, *options):
        return self.memprof("report", self.rec, *options).stdout

    def run_ok(self, *argv):
        r = subprocess.run(argv, text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def stack_at(self, text, comment):
        """Return: the lines of the first stack in which the line with the comment is marked as the site."""
        lines = text.splitlines()
        at = next(i for i, x in enumerate(lines) if re.match(rf" +> .*sites\.cc:{line(comment)}\b", x))
        while re.match(" {14}|  +> ", lines[at - 1]):
            at -= 1
        end = at
        while end < len(lines) and re.match(" {14}|  +> ", lines[end]):
            end += 1
        return [x.strip() for x in lines[at:end]]


class Stacks(Sites):
    def test_folded(self):
        """runs of frames of libc and the C++ library are one line, and the user's first frame is marked"""
        stack = self.stack_at(self.text("--leaks", "--top", 100, "--frames", 6), "vector")
        self.assertRegex(stack[0], r"^std::vector<\.\.\.>::reserve, \d+ frames of libstdc\+\+ and libc$")
        self.assertRegex(stack[1], rf"^> shop::Basket::fill  \S*sites\.cc:{line('vector')}$")
        self.assertRegex(stack[2], rf"^main  \S*sites\.cc:{line('fill')}$")
        self.assertRegex(stack[3], r"^_start, \d+ frames of libc$")
        self.assertEqual(len(stack), 4)
        full = self.stack_at(self.text("--leaks", "--top", 100, "--full-stacks"), "vector")
        hidden = sum(int(x) - 1 for x in re.findall(r", (\d+) frames", " ".join(stack)))
        self.assertEqual(len(full), len(stack) + hidden)
        self.assertIn("std::vector<char, std::allocator<char> >::reserve(unsigned long)", " ".join(full))

    def test_frames(self):
        """--frames limits the lines of a stack, and still shows the site; "... N more" counts what is hidden"""
        full = self.stack_at(self.text("--leaks", "--top", 100, "--full-stacks"), "vector")
        for n in (1, 2, 3, 5):
            short = self.stack_at(self.text("--leaks", "--top", 100, "--full-stacks", "--frames", n), "vector")
            shown = [x for x in short if not x.startswith("...")]
            more = sum(int(re.match(r"\.\.\. (\d+) more", x)[1]) for x in short if x.startswith("..."))
            self.assertEqual(len(shown), n)
            self.assertEqual(n + more, len(full))
        short = self.stack_at(self.text("--leaks", "--top", 100, "--frames", 2), "vector")
        folded = int(re.search(r"(\d+) frames", short[0])[1])
        self.assertEqual(short[2], f"... {len(full) - 1 - folded} more")
        for wrong in ("0", "x", "-1"):
            r = self.memprof("report", self.rec, "--frames", wrong, status=2)
            self.assertIn("--frames", r.stderr)

    def test_summary(self):
        """what run prints at the end shows stacks in the same way"""
        r = self.memprof("run", "-o", self.rec, "--", f"{t.VICTIMS}/sites")
        self.assertRegex(r.stdout + r.stderr, r"\n +std::vector<\.\.\.>::reserve, \d+ frames of libstdc\+\+ and libc\n"
                                              rf" +> shop::Basket::fill  {SOURCE}:{line('vector')}\n")

    def test_callback(self):
        """a run of the runtime's frames between frames of the user's is one entry, and the site is the callback"""
        stack = self.stack_at(self.text("--leaks", "--top", 100, "--frames", 6), "callback")
        self.assertRegex(stack[0], r"^calloc ")
        self.assertRegex(stack[1], "^> each ")
        self.assertRegex(stack[2], r"^std::for_each<\.\.\.>")
        self.assertRegex(stack[3], "^main ")

    def test_self(self):
        """--bottom-up, --speedscope and --pprof attribute the cost to the user's code, unless --full-stacks is given"""
        up = self.text("--tree", "--bottom-up", "--leaks")
        roots = re.findall(r"^[|`]- +\S+ \S+ +\S+ (.*)$", up, re.M)
        self.assertTrue(any(re.match(rf"two \S*:{line('second')} ", x) for x in roots), roots)
        self.assertIn("operator new(unsigned long)", self.text("--tree", "--bottom-up", "--leaks", "--full-stacks"))
        report = self.report(self.rec)
        scope = self.path("x.json")
        for options, expected in (((), "fill"), (("--full-stacks",), "malloc")):
            self.memprof("report", self.rec, "--speedscope", "-o", scope, *options)
            data = json.loads(t.read(scope))
            names = [f["name"] for f in data["shared"]["frames"]]
            leaves = {names[s[-1]] for s in data["profiles"][1]["samples"]}
            self.assertEqual("malloc" in leaves and "shop::Basket::fill" not in leaves, expected == "malloc",
                             leaves)
            self.assertEqual(sum(data["profiles"][1]["weights"]), report["totals"]["allocated_bytes"])
        plain, full = (gzip.decompress(self.pprof(*o)) for o in ((), ("--full-stacks",)))
        self.assertIn(rb"|operator\ new", plain)
        self.assertNotIn(rb"operator\ new", full)

    def pprof(self, *options):
        out = self.path("x.pb.gz")
        self.memprof("report", self.rec, "--pprof", "-o", out, *options)
        return t.read(out)

    def test_pprof_keeps(self):
        """pprof shows callbacks of the C++ library, and the user's functions as what costs"""
        self.pprof()
        env = dict(os.environ, HOME=self.dir, PPROF_TMPDIR=self.dir, XDG_CONFIG_HOME=self.dir)
        r = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", "-nodefraction=0",
                            "-sample_index=inuse_space", self.path("x.pb.gz")],
                           text=True, capture_output=True, env=env, timeout=120)
        flat = {x.split(None, 5)[5]: int(x.split()[0][:-1]) for x in r.stdout.splitlines()
                if re.match(r" +\d+B ", x)}
        self.assertEqual(flat["shop::Basket::fill(unsigned long)"], 5000)
        self.assertEqual(flat["two()"], 4 * 3000)
        self.assertEqual(flat["worker()"], 7777)
        self.assertEqual(flat["each(int)"], 1300)
        self.assertEqual(flat["deep(int)"], 3000)

    def test_json(self):
        """every frame is in JSON, and user_frame is the index of the user's first frame"""
        groups = self.report(self.rec)["allocation_groups"]
        fill = [g for g in groups if any(f["function"] == "shop::Basket::fill(unsigned long)"
                                         for f in g["backtrace"])]
        self.assertEqual(len(fill), 1)
        site = fill[0]["backtrace"][fill[0]["user_frame"]]
        self.assertEqual((site["function"], site["line"]), ("shop::Basket::fill(unsigned long)", line("vector")))
        self.assertEqual(fill[0]["backtrace"][-1]["function"], "malloc")
        self.assertIn(None, [g["user_frame"] for g in groups])  # the C++ library's own start

    def test_two_sites(self):
        """two calls of malloc in one function are two nodes of the tree and of the graph, with their lines"""
        tree = self.text("--tree", "--leaks", "--least", 0)
        for comment, size in (("first", "3.9 KiB"), ("second", "7.8 KiB")):
            self.assertRegex(tree, rf"- {size} +\S+ two \S*sites\.cc:{line(comment)} \[sites\]\n")
        svg = self.path("x.svg")
        self.memprof("report", self.rec, "--leaks", "--flamegraph", svg)
        titles = [x.text for x in xml.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}title")]
        for comment in ("first", "second", "vector", "callback"):
            self.assertEqual(len([x for x in titles if f"sites.cc:{line(comment)} [sites]" in x]), 1)

    def test_lines(self):
        """--lines adds the source lines to folded stacks, also in CSV; without it they have none"""
        want = re.compile(rf"two(\(\))? \S*sites\.cc:{line('first')}(;|$)")
        folded = [x.rsplit(" ", 1) for x in self.text("--collapsed", "--lines", "--cost", "live").splitlines()]
        self.assertEqual(sum(int(n) for stack, n in folded if want.search(stack)), 4000)
        self.assertNotIn("sites.cc", self.text("--collapsed"))
        rows = list(csv.DictReader(self.text("--csv", "--lines").splitlines(True), strict=True))
        self.assertEqual(sum(int(r["leaked_bytes"]) for r in rows if want.search(r["backtrace"])), 4000)
        mine = [r for r in rows if r["source"] == SOURCE and r["line"] == str(line("first"))]
        self.assertEqual(sum(int(r["leaked_bytes"]) for r in mine), 4000)
        self.assertEqual({r["function"] for r in mine}, {"two()"})
        self.assertIn("", {r["function"] for r in rows})
        self.assertNotIn("sites.cc", next(csv.reader([self.text("--csv").splitlines()[1]]))[-1])


class Groups(Sites):
    def entries(self, *options):
        """Return: for each entry of the list of what was not freed: its first line, and its site's text."""
        text = self.text("--leaks", "--top", 1000, *options).split("Not freed, by bytes\n")[1]
        found = re.findall(r"^ +([0-9.]+ [KM]?i?B in \d+ blocks?.*)\n((?: {14}.*\n| +> .*\n)+)", text, re.M)
        return [(head, re.findall("> (.*)", stack)) for head, stack in found]

    def test_line(self):
        """a line is one entry, whatever leads to it; the number of stacks and the heaviest one are shown"""
        entries = {site[0].rsplit(":", 1)[1]: head for head, site in self.entries() if site}
        self.assertEqual(entries[str(line("recursion"))], "2.9 KiB in 10 blocks; 10 stacks, the one with most (300 B):")
        self.assertRegex(entries[str(line("first"))], r"^3\.9 KiB in 4 blocks")
        self.assertRegex(entries[str(line("second"))], r"^7\.8 KiB in 4 blocks")
        self.assertEqual(entries[str(line("vector"))], "4.9 KiB in 1 block")

    def test_kinds(self):
        """--group-by function, library, class and stack"""
        heads = [head for head, _ in self.entries("--group-by", "function")]
        self.assertEqual(len([h for h in heads if re.match(r"11\.7 KiB in 8 blocks: two  \[sites\]", h)]), 1, heads)
        heads = [head for head, _ in self.entries("--group-by", "library")]
        self.assertEqual(len([h for h in heads if ": sites" in h]), 1, heads)
        heads = [head for head, _ in self.entries("--group-by", "class")]
        self.assertIn("4.9 KiB in 1 block: shop::Basket", heads)
        self.assertEqual(len([h for h in heads if ": (no class)" in h]), 1, heads)
        heads = [head for head, _ in self.entries("--group-by", "stack")]
        self.assertEqual(len([h for h in heads if h == "300 B in 1 block"]), 10)
        r = self.memprof("report", self.rec, "--group-by", "colour", status=2)
        self.assertIn("'colour' is none of line, function, library, class, stack", r.stderr)
        r = self.memprof("report", self.rec, "--group-by", "line", "--tree", status=2)
        self.assertIn("--group-by is for the lists", r.stderr)

    def test_json(self):
        """the sums of all sites are the totals; each group names its site, and a site has its stacks' sums"""
        with open(f"{t.ROOT}/doc/report.schema.json") as f:
            schema = json.load(f)
        for by in ("line", "function", "library", "class", "stack"):
            r = self.report(self.rec, "--group-by", by)
            jsonschema.validate(r, schema)
            self.assertEqual(r["group_by"], by)
            for key, total in (("size", "allocated_bytes"), ("leaked_bytes", "leaked_bytes"), ("temporary_count", "temporary")):
                self.assertEqual(sum(s[key] for s in r["sites"]), r["totals"][total])
            for i, s in enumerate(r["sites"]):
                mine = [g for g in r["allocation_groups"] if g["site"] == i]
                self.assertEqual(len(mine), s["stacks"])
                self.assertEqual(sum(g["size"] for g in mine), s["size"])
                best = next(g for g in mine if g["backtrace_id"] == s["backtrace_id"])
                self.assertEqual(best["size"], max(g["size"] for g in mine))
            if by == "line":
                of = {s["line"]: s for s in r["sites"]}
                self.assertEqual((of[line("recursion")]["stacks"], of[line("recursion")]["leaked_bytes"]), (10, 3000))
                self.assertEqual((of[line("temporary")]["temporary_count"], of[line("temporary")]["size"]), (20, 1000))

    def test_no_lines(self):
        """without line information, two calls of malloc in one function are still two sites"""
        bare = self.path("bare")
        self.run_ok("strip", "-g", "-o", bare, f"{t.VICTIMS}/sites")
        self.memprof("run", "-q", "-o", self.rec, "--", bare)
        two = [s for s in self.report(self.rec)["sites"] if s["function"] == "two"]
        self.assertEqual(sorted(s["leaked_bytes"] for s in two), [4000, 8000])
        tree = self.text("--tree", "--leaks", "--least", 0)
        self.assertEqual(len(set(re.findall(r" two \[bare\+0x[0-9a-f]+\]", tree))), 2)


class Functions(Sites):
    def test_peek(self):
        """--peek shows callers and callees with their lines; recursion counts once; the parts add up"""
        text = self.text("--leaks", "--peek", "^two$")
        self.assertRegex(text, r"\ntwo \[sites\]: 11\.7 KiB in 8 blocks, [0-9.]+% of all; 11\.7 KiB as the site\n")
        self.assertRegex(text, rf"called by\n +11\.7 KiB 100\.0%  main  \S*:{line('call of two')}\n")
        self.assertRegex(text, rf"calls\n +7\.8 KiB  66\.7%  malloc  \S*:{line('second')}\n"
                               rf" +3\.9 KiB  33\.3%  malloc  \S*:{line('first')}\n")
        text = self.text("--leaks", "--peek", "deep")
        self.assertRegex(text, rf"deep \[sites\]: 2\.9 KiB in 10 blocks.*\n  called by\n"
                               rf" +2\.9 KiB 100\.0%  main  \S*:{line('call of deep')}\n  calls\n"
                               rf" +2\.9 KiB 100\.0%  malloc  \S*:{line('recursion')}\n$")
        text = self.text("--cost", "count", "--top", 1, "--peek", ".")
        self.assertRegex(text, r"\n\.\.\. \d+ more functions; --top \d+ shows them\n")

    def test_peek_none(self):
        """--peek with a name that no stack has is an error that says so, and so is a bad pattern"""
        r = self.memprof("report", self.rec, "--peek", "nosuch", status=2)
        self.assertIn("has a function that matches 'nosuch'", r.stderr)
        self.assertIn("--full-stacks", r.stderr)
        self.assertEqual(r.stdout, "")
        r = self.memprof("report", self.rec, "--peek", "(", status=2)
        self.assertIn("--peek: ", r.stderr)
        self.memprof("report", self.rec, "--peek", "operator new", "--full-stacks")


SMALL = """#include <stdlib.h>
static void *volatile kept;
int main(void)
{
	kept = malloc(4096);
	return 0;
}
"""


class Annotated(Sites):
    def rows(self, text):
        """Return: {line: (live, allocated, temporary, through, source)}."""
        found = re.findall(r"^(.{10}) (.{10}) (.{10}) (.{10}) +(\d+)(?:  (.*))?$", text, re.M)
        return {int(x[4]): (*(y.strip() for y in x[:4]), x[5]) for x in found}

    def test_lines(self):
        """--annotate shows the whole source, with the bytes of each line beside it"""
        for name in ("sites.cc", "victims/sites.cc", SOURCE):
            rows = self.rows(self.text("--annotate", name))
            with open(SOURCE) as f:
                self.assertEqual([r[4] for r in rows.values()], f.read().expandtabs(8).splitlines())
        self.assertEqual(rows[line("vector")][:4], ("4.9 KiB", "4.9 KiB", "", "4.9 KiB"))
        self.assertEqual(rows[line("second")][:4], ("7.8 KiB", "7.8 KiB", "", "7.8 KiB"))
        self.assertEqual(rows[line("temporary")][:4], ("", "1000 B", "1000 B", "1000 B"))
        self.assertEqual(rows[line("call of two")][:4], ("", "", "", "11.7 KiB"))
        self.assertEqual(rows[line("recursion")][:4], ("2.9 KiB", "2.9 KiB", "", "2.9 KiB"))
        self.assertEqual(rows[line("call of deep")][:4], ("", "", "", "2.9 KiB"))
        self.assertEqual({r[:4] for n, r in rows.items() if n < line("vector")}, {("", "", "", "")})
        live = self.rows(self.text("--annotate", "sites.cc", "--leaks"))
        self.assertEqual(live[line("temporary")][:4], ("", "1000 B", "1000 B", ""))

    def test_refused(self):
        """a file that no stack has, and costs that are no bytes, are errors"""
        r = self.memprof("report", self.rec, "--annotate", "ites.cc", status=2)
        self.assertIn("no stack has a line of a file 'ites.cc'", r.stderr)
        self.memprof("report", self.rec, "--annotate", "sites.cc", "--cost", "count", status=2)
        self.memprof("report", self.rec, "--source-prefix", "/", status=2)
        self.memprof("report", self.rec, "--annotate", "sites.cc", *["--source-prefix", "/"] * 17, status=2)

    def small(self):
        """Records a program made of SMALL.  Return: its folder and its source."""
        folder = self.path("build")
        os.mkdir(folder)
        source = f"{folder}/small.c"
        with open(source, "w") as f:
            f.write(SMALL)
        self.run_ok("cc", "-g", "-o", f"{folder}/small", source)
        self.memprof("run", "-q", "-o", self.rec, "--", f"{folder}/small")
        return folder, source

    def test_newer(self):
        """a source that is newer than the program is shown with a warning"""
        folder, source = self.small()
        self.assertNotIn("WARNING", self.text("--annotate", "small.c"))
        built = os.stat(f"{folder}/small").st_mtime
        os.utime(source, (built + 100, built + 100))
        text = self.text("--annotate", "small.c")
        self.assertIn(f"WARNING: this file is newer than {folder}/small: its lines can have moved\n", text)
        self.assertEqual(self.rows(text)[5][:4], ("4.0 KiB", "4.0 KiB", "", "4.0 KiB"))
        os.unlink(f"{folder}/small")
        self.assertIn("WARNING: this file was changed after the recording", self.text("--annotate", "small.c"))
        with open(source, "w") as f:
            f.write("int main(void)\n")
        rows = self.rows(self.text("--annotate", "small.c"))
        self.assertEqual((rows[1][4], rows[5][4]), ("int main(void)", "(the file has no such line)"))

    def test_elsewhere(self):
        """--source-prefix finds sources that are elsewhere; without it the lines are shown without text"""
        folder, source = self.small()
        other = self.path("other")
        os.makedirs(f"{other}/build")
        os.rename(source, f"{other}/build/small.c")
        text = self.text("--annotate", "small.c")
        self.assertIn("WARNING: this file cannot be read here: --source-prefix", text)
        self.assertEqual(self.rows(text), {5: ("4.0 KiB", "4.0 KiB", "", "4.0 KiB", "")})
        for prefix in (f"{folder}={other}/build", f"{folder}/={other}/build/", other, f"{other}/build"):
            text = self.text("--annotate", "small.c", "--source-prefix", "/nosuch", "--source-prefix", prefix)
            self.assertIn(f"{source} (read from {other}/build/small.c)\n", text)
            self.assertEqual(self.rows(text)[5][4], "        kept = malloc(4096);")
        os.mkfifo(source)
        self.assertIn("WARNING: this file cannot be read", self.text("--annotate", "small.c"))


if __name__ == "__main__":
    t.main()
