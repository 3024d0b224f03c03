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
        full = self.memprof("report", f, "--leaks", "--verbose", "--top", 1000).stdout
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
            cut.truncate(t.read(f).index(b"MPCK\4\0\0\0"))  # the index (src/formats/FORMAT.md)
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

    def test_no_call(self):
        """the summary of a program that called no allocation function says so and names what records it instead"""
        p = self.start("/bin/sleep", "60")
        t.settle(p.pid)
        f = self.path("r")
        self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--for", "100ms")
        text = self.memprof("report", f).stdout
        self.assertIn("\nno call     the program was idle, or has an allocator of its own\n", text)
        self.assertIn(f"\n  memprof attach -p {p.pid} --event page-faults\n", text)
        self.assertNotIn("svg", text)
        self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--for", "100ms", "--sample", "512k")
        self.assertNotIn("no call", self.memprof("report", f).stdout)  # small allocations can be missing
        self.memprof("attach", "-p", p.pid, "--event", "page-faults", "-o", f, "--for", "100ms")
        p.kill()

    def test_summary(self):
        """the summary and the end of attach fit on a screen and name the next command; --verbose has all sums"""
        p = self.victim("leaky")
        f = self.path("leaky.memprof")
        end = self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--for", "1s").stdout
        full = self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "1s", "--verbose").stdout
        self.finish(p)
        text = self.memprof("report", f).stdout
        verbose = self.memprof("report", f, "--verbose").stdout
        self.assertLessEqual(len(end.splitlines()), 24)
        self.assertLessEqual(len(text.splitlines()), 40)
        self.assertLess(max(map(len, text.replace(f, "FILE").splitlines())), 80)
        self.assertLess(text.index("Not freed, by bytes"), text.index("Allocated, by bytes"))
        self.assertIn(f"\nnext: memprof report {f}\n", end)
        self.assertIn(f"  memprof report {f} --flamegraph live.svg --cost live\n", text)
        for name in ("remember_answer", "open_session"):
            self.assertIn(name, text)
            self.assertIn(name, end)
        for said in ("pauses: attach ", "events: "):
            self.assertIn(said, full)
            self.assertNotIn(said, end)
        for said in ("Allocated, by number", "Temporary", "stacks  "):
            self.assertIn(said, verbose)
            self.assertNotIn(said, text)
        # A request under way at the end is a third site that is not freed.
        site = re.compile(r"^ +[0-9.]+ [KMG]?i?B in ", re.M)
        self.assertGreaterEqual(len(site.findall(text)), 3)
        self.assertEqual(len(site.findall(self.memprof("report", f, "--top", 1).stdout)), 2)

    def test_growth(self):
        """a site that grows steadily is said to do so, in text and JSON, and --only growing reports only such ones"""
        f = self.leaky()
        groups = self.report(f)["allocation_groups"]
        by = {x["function"]: g["shape"] for g in groups for x in g["backtrace"]
              if x["function"] in ("remember_answer", "open_session")}
        self.assertEqual(by, {"remember_answer": "growing", "open_session": "growing"})
        self.assertRegex(self.memprof("report", f).stdout, r"in [0-9,]+ blocks, grows steadily\n")
        only = self.report(f, "--only", "growing")
        self.assertEqual([g["backtrace_id"] for g in only["allocation_groups"] if g["allocated_count"]],
                         [g["backtrace_id"] for g in groups if g["shape"] == "growing"])
        self.assertEqual(only["totals"]["leaked_bytes"],
                         sum(g["leaked_bytes"] for g in groups if g["shape"] == "growing"))
        absent = next(s for s in ("burst", "plateau", "sawtooth") if s not in {g["shape"] for g in groups})
        r = self.memprof("report", f, "--only", absent, "--json")
        self.assertIn(f"no site of {f} is {absent} (--only)", r.stderr)
        self.assertEqual(json.loads(r.stdout)["totals"]["allocations"], 0)
        self.memprof("report", f, "--only", "wild", status=2)
        self.memprof("report", f, "--only", "growing", "--quick", status=2)

    def test_suppress(self):
        """--suppress of report and diff leaves out stacks by LeakSanitizer's lines, and counts them"""
        f, known = self.leaky(), self.path("known.txt")
        with open(known, "w") as s:
            s.write("# sessions are closed at the end\n\nleak:^open_ses*ion$\n")
        whole = self.report(f)
        gone = [g for g in whole["allocation_groups"]
                if any(x["function"] == "open_session" for x in g["backtrace"])]
        r = self.report(f, "--suppress", known)
        self.assertEqual(r["all"]["suppressed_stacks"], len(gone))
        self.assertEqual(r["all"]["suppressed_leaked_bytes"], sum(g["leaked_bytes"] for g in gone))
        self.assertEqual(r["totals"]["leaked_bytes"] + r["all"]["suppressed_leaked_bytes"],
                         whole["totals"]["leaked_bytes"])
        text = self.memprof("report", f, "--suppress", known).stdout
        self.assertNotIn("open_session", text)
        self.assertRegex(text, r"\nsuppressed +\d+ stacks?: .* live in .* blocks, .* allocated\n")
        self.assertIn("memprof: suppressed: ", self.memprof("report", f, "--csv", "--suppress", known).stderr)
        d = json.loads(self.memprof("diff", f, f, "--json", "--suppress", known).stdout)
        self.assertEqual(d["before"]["cost"], r["totals"]["leaked_bytes"])
        self.assertEqual(d["after"]["suppressed_stacks"], len(gone))
        self.assertIn("suppressed after: ", self.memprof("diff", f, f, "--suppress", known).stdout)
        with open(known, "a") as s:
            s.write("race:x\n")
        for command in (("report", f), ("diff", f, f)):
            self.assertIn(f"memprof: {command[0]}: --suppress: {known}, line 4: not a suppression",
                          self.memprof(*command, "--suppress", known, status=2).stderr)
        self.assertIn("cannot read", self.memprof("report", f, "--suppress", self.path("no"), status=2).stderr)

    def test_not_freed(self):
        """--not-freed is the name of what was once --leaks, which is not in the help any more but still works"""
        f = self.leaky()
        self.assertEqual(self.memprof("report", f, "--leaks", "--json").stdout,
                         self.memprof("report", f, "--not-freed", "--json").stdout)
        self.assertNotIn("--leaks", self.memprof("report", "--help").stdout)
        self.assertIn("--not-freed", self.memprof("report", "--help").stdout)

    def test_called(self):
        """a program has the name that it was called by if that is a link to the executable, and else its own"""
        os.symlink(f"{t.VICTIMS}/leaky", self.path("service"))
        for argv0, called in ((self.path("service"), "service"), (self.path("nothing"), None), ("", None)):
            p = self.start(argv0, executable=self.path("service"))
            t.settle(p.pid)
            r = self.report(self.record(p.pid))
            self.finish(p)
            self.assertEqual((r["called"], r["executable"]), (called, os.path.realpath(f"{t.VICTIMS}/leaky")))
            libraries = {x["library"] for g in r["allocation_groups"] for x in g["backtrace"]
                         if x["function"] == "remember_answer"}
            self.assertEqual(libraries, {called or "leaky"})
        copy = self.path("copy")
        os.rename(self.record_called(), self.path("r"))
        self.memprof("symbolize", self.path("r"), "--anonymize=full", "-o", copy)
        self.assertIsNone(self.report(copy)["called"])
        self.memprof("strip", self.path("r"), "-o", copy)
        self.assertEqual(self.report(copy)["called"], "service")

    def record_called(self):
        p = self.start(self.path("service"))
        t.settle(p.pid)
        f = self.record(p.pid)
        self.finish(p)
        return f

    def openings(self, f, *argv):
        """How often memprof report opens the recording @f."""
        log = self.path("log")
        subprocess.run(["strace", "-f", "-e", "trace=openat,open", "-o", log, t.MEMPROF, "report", f, *argv],
                       check=True, timeout=120)
        return t.read(log).decode().count(f'"{f}"')

    def test_many_outputs(self):
        """several formats are written in one reading of the recording, each as when it is written alone"""
        f = self.leaky()
        formats = ("--json", "--flamegraph", "--pprof", "--csv", "--tree", "--collapsed", "--speedscope", "--plot")
        argv = [x for form in formats for x in (form, self.path("all" + form))]
        self.assertEqual(self.openings(f, *argv), self.openings(f, "--json", self.path("one")))
        for form in formats:
            self.memprof("report", f, f"{form}={self.path('one')}")
            self.assertEqual(t.read(self.path("one")), t.read(self.path("all" + form)), form)
        out = self.memprof("report", f, "--csv", self.path("a"), "--tree", "-o", self.path("b")).stdout
        self.assertEqual((out, t.read(self.path("a")), t.read(self.path("b"))),
                         ("", t.read(self.path("all--csv")), t.read(self.path("all--tree"))))

    def test_outputs_refused(self):
        """outputs that would overwrite each other, a recording, or both go to standard output are refused"""
        f = self.leaky()
        before = t.read(f)
        for argv, said in (((f, "--json", f), "is a recording, which would be overwritten"),
                           ((f, "--json", "--csv"), "only one format can be written to standard output"),
                           ((f, "--json", "-", "--csv", "-"), "only one format can be written to standard output"),
                           ((f, "--json", "x", "--csv", "x"), "two formats for the file x"),
                           ((f, "--json", "--json"), "the same format twice"),
                           ((f, "--json", "x", "--csv", "y", "-o", "z"), "-o names the file of one format"),
                           ((f, "--json", "x", "y"), "unexpected argument 'y'"),
                           ((f, f), "unexpected argument")):
            self.assertIn(said, self.memprof("report", *argv, status=2).stderr)
        self.assertEqual(t.read(f), before)

    def test_mode(self):
        """a recording can be read and written by its owner only (mode 600)"""
        self.assertEqual(os.stat(self.leaky()).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    t.main()
