#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""File tools: info, verify, strip, extract, symbolize; each reads what the others write."""
import csv
import json
import os
import re
import shutil
import subprocess
import time

import memprof_test as t

# Totals that culling changes; doc/formats.md.
APART = {"culled_count", "culled_bytes"}


class Files(t.Case):
    def recording(self, *argv, how=("--history",)):
        f = self.path("rec")
        argv = argv or (f"{t.VICTIMS}/exact", 3, 20000)
        self.memprof("run", "-q", "--lossless", *how, "-o", f, "--", *argv)
        return f

    def test_info(self):
        """info shows the counts of the report, and lifetimes that add up"""
        f = self.recording()
        r = self.report(f)
        info = json.loads(self.memprof("info", f, "--json").stdout)
        for key in ("id", "executable", "cmdline", "architecture", "pid", "timestamp", "runtime"):
            self.assertEqual(info[key], r[key], key)
        self.assertEqual(info["items"]["events"], r["totals"]["events"])
        self.assertEqual(sum(info["events"].values()), r["totals"]["events"])
        self.assertEqual(info["leaked_count"], r["totals"]["leaked_count"])
        self.assertEqual(sum(info["lifetimes"].values()), r["totals"]["frees"])
        self.assertEqual(info["file_bytes"], os.path.getsize(f))
        short = self.report(f, "--lifetime-max", "1ms", "--lifetime", "bytehound_only_temporary")["totals"]["allocations"]
        self.assertAlmostEqual(sum(info["lifetimes"][x] for x in ("below_1us", "below_10us", "below_100us", "below_1ms")),
                               short, delta=short // 1000 + 1)
        text = self.memprof("info", f).stdout
        self.assertRegex(text, rf"events +{r['totals']['events']:,}\n")

    def test_verify(self):
        """verify passes whole recordings, and reports cut and damaged ones with status 13"""
        f, bad = self.recording(), self.path("bad")
        self.assertIn("complete and undamaged", self.memprof("verify", f).stdout)
        data = t.read(f)
        middle = len(data) // 2
        for broken in (data[:-1], data[:len(data) // 2], data[:-200] + b"\0" * 100 + data[-100:],
                       data[:middle] + bytes([data[middle] ^ 0xff]) + data[middle + 1:]):
            with open(bad, "wb") as out:
                out.write(broken)
            r = self.memprof("verify", bad, status=13)
            self.assertRegex(r.stderr, r"^memprof: .*(ends at byte|corrupt).*\n$")
        self.memprof("verify", "/etc/passwd", status=13)

    def strip(self, f, *options):
        out = self.path("stripped")
        self.memprof("strip", f, "-o", out, *options)
        self.memprof("verify", out)
        return out

    def same(self, a, b):
        """Checks that two recordings have the same sums, by stack, thread and function.  Return: reports."""
        a, b = (self.report(x) for x in (a, b))
        self.assertEqual({k: v for k, v in a["totals"].items() if k not in APART},
                         {k: v for k, v in b["totals"].items() if k not in APART})
        for key in ("functions", "losses"):
            self.assertEqual(a[key], b[key])
        by_thread = lambda r: {x["thread"]: x for x in r["threads"]}
        self.assertEqual(by_thread(a), by_thread(b))
        keys = ("allocated_count", "size", "usable_size", "freed_count", "leaked_count", "leaked_bytes",
                "temporary_count", "maps", "map_bytes")
        groups = [{g["backtrace_id"]: [g[k] for k in keys] for g in r["allocation_groups"]} for r in (a, b)]
        self.assertEqual(*groups)
        return a, b

    def test_strip(self):
        """strip makes a recording smaller and keeps every sum, also of a stripped or culled recording"""
        f = self.recording()
        for options in ((), ("--threshold", "1ms"), ("--threshold", "0s")):
            out = self.strip(f, *options)
            _, b = self.same(f, out)
            if options != ("--threshold", "0s"):
                self.assertGreater(b["totals"]["culled_count"], 1000)
            if not options:  # the sizes of this program's blocks are random, so a sum has few of them
                self.assertLess(os.path.getsize(out), os.path.getsize(f))
        once = self.path("once")
        shutil.move(self.strip(f, "--threshold", "500us"), once)
        self.same(f, self.strip(once, "--threshold", "5ms"))
        culled = self.path("culled")
        shutil.move(self.recording(how=("--cull", "1ms")), culled)
        self.same(culled, self.strip(culled))

    def test_strip_threshold(self):
        """strip --threshold keeps all blocks that lived at least so long, and all that are live"""
        f = self.recording()
        out = self.strip(f, "--threshold", "2ms")
        self.assertEqual(self.report(f, "--leaks")["leaks"], self.report(out, "--leaks")["leaks"])
        whole, left = (json.loads(self.memprof("info", x, "--json").stdout)["lifetimes"] for x in (f, out))
        for key in ("below_100ms", "below_1s", "below_10s", "longer"):
            self.assertEqual(whole[key], left[key])

    def test_extract(self):
        """extract writes modules, maps, threads and symbols as CSV, which agree with the report"""
        f = self.recording()
        r = self.report(f)
        self.memprof("extract", f)
        out = f + ".extracted"
        rows = {}
        for name in os.listdir(out):
            with open(os.path.join(out, name), newline="") as file:
                rows[name] = list(csv.DictReader(file))
        items = json.loads(self.memprof("info", f, "--json").stdout)["items"]
        for name in ("modules", "maps", "threads"):
            self.assertEqual(len(rows.get(name + ".csv", [])), items[{"maps": "map_usage"}.get(name, name)], name)
        libc = next(m for m in rows["modules.csv"] if "/libc.so" in m["path"])
        notes = subprocess.run(["readelf", "-n", libc["path"]], capture_output=True, text=True).stdout
        self.assertIn(f"Build ID: {libc['build_id']}\n", notes)
        # The report shows the address of the call, the recording has the return address.
        known = {(int(s["address"], 16) - (s["exact"] == "false"), s["function"]) for s in rows["symbols.csv"]}
        for g in r["allocation_groups"]:
            for frame in g["backtrace"]:
                if not frame["function"].startswith(frame["library"] or "?"):
                    self.assertIn((int(frame["address"]), frame["function"]), known)
        self.memprof("extract", f, "-o", self.path("other"))
        self.assertEqual(sorted(os.listdir(out)), sorted(os.listdir(self.path("other"))))
        self.memprof("extract", f, "-o", "/dev/null/x", status=14)
        self.memprof("extract", "/etc/passwd", status=13)

    def test_symbolize(self):
        """symbolize adds names from this machine's files to a recording that has none"""
        f, out = self.recording(f"{t.VICTIMS}/stacks", "/dev/null"), self.path("out")
        self.memprof("symbolize", f, "-o", out)
        self.assertEqual(self.report(f), self.report(out))
        p = self.victim("leaky")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        time.sleep(0.5)
        self.memprof("flush", "-p", p.pid)
        rec.kill()
        rec.wait()
        self.memprof("detach", "-p", p.pid)
        self.finish(p)
        items = json.loads(self.memprof("info", f, "--json").stdout)["items"]
        self.assertEqual(items["symbols"], 0)
        r = self.memprof("symbolize", f, "-o", out)
        self.assertIn("was cut off; so is", r.stderr)
        after = json.loads(self.memprof("info", out, "--json").stdout)["items"]
        self.assertGreater(after["symbols"], 5)
        self.assertEqual(after["events"], items["events"])
        self.assertIn("remember_answer", self.names(out))
        self.memprof("verify", out, status=13)

    def names(self, f):
        return {x["function"] for g in self.report(f)["allocation_groups"] for x in g["backtrace"]}

    def test_debug_dir(self):
        """symbolize -d finds separate debug files by build id"""
        program, debug = self.path("program"), self.path("debug")
        source = self.path("p.c")
        with open(source, "w") as f:
            f.write("#include <stdlib.h>\nvoid *volatile k;\n"
                    "static __attribute__((noinline)) void secret_site(void) { k = malloc(77); }\n"
                    "int main(void) { secret_site(); return 0; }\n")
        subprocess.run(["gcc", "-g", "-O1", "-Wl,--build-id", "-o", program, source], check=True)
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], text=True, check=True,
                                                                 capture_output=True).stdout)[1]
        where = f"{debug}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        os.makedirs(os.path.dirname(where))
        subprocess.run(["objcopy", "--only-keep-debug", program, where], check=True)
        subprocess.run(["strip", program], check=True)
        f, out = self.recording(program), self.path("out")
        self.assertNotIn("secret_site", self.names(f))
        self.memprof("symbolize", f, "-o", out)
        self.assertNotIn("secret_site", self.names(out))
        r = self.memprof("symbolize", f, "-o", out, "-d", debug)
        self.assertIn("secret_site", self.names(out))
        self.assertRegex(r.stdout, r"^\d+ addresses: \d+ with a function \(\d+ before\), \d+ with a line \(\d+ before\)\n$")
        totals = [self.report(x)["totals"] for x in (f, out)]
        self.assertEqual(*totals)

    def test_anonymize(self):
        """symbolize --anonymize removes paths, or all names, from every byte; sums and stack depths stay"""
        f, out = self.recording(f"{t.VICTIMS}/stacks", "/dev/null"), self.path("out")
        whole = self.report(f)
        for how, hidden, kept in (("partial", (b"/victims", b"tests/", b"/dev/null", b"/lib/", b"/usr/"),
                                   ("recurse", "stacks.cc", "libc.so.6")),
                                  ("full", (b"/victims", b"stacks", b"recurse", b"libc", b"stdc", b"main", b".cc"),
                                   ("fn_1", "lib_", "program"))):
            self.memprof("symbolize", f, "-o", out, "--anonymize", how)
            text = self.memprof("report", out, "--json").stdout
            raw = b"".join(t.payloads(out))
            for word in hidden:
                self.assertNotIn(word, raw, how)
            for word in kept:
                self.assertIn(word, text, how)
            r = json.loads(text)
            self.assertEqual(r["totals"], whole["totals"])
            shape = lambda x: [len(g["backtrace"]) for g in x["allocation_groups"]]
            self.assertEqual(shape(r), shape(whole))
        self.assertEqual({x["function"] for x in r["functions"]}, {x["function"] for x in whole["functions"]})

    def test_bad_input(self):
        """file tools refuse bad arguments and their input as output; strip refuses a sampled recording"""
        f = self.recording("/bin/true")
        sample = self.path("sample")
        self.memprof("run", "-q", "--sample", "1k", "-o", sample, "--", "/bin/true")
        before = t.read(f)
        for status, argv, what in ((2, ("strip", f), "new recording with -o"),
                                   (2, ("strip", f, "-o", "x", "--threshold", "y"), "'y'"),
                                   (14, ("strip", f, "-o", f), "over itself"),
                                   (14, ("symbolize", f, "-o", f), "over itself"),
                                   (14, ("symbolize", f, "-o", "/nowhere/x"), "/nowhere/x"),
                                   (2, ("symbolize", f, "-o", "x", "--anonymize", "all"), "'all'"),
                                   (2, ("strip", sample, "-o", self.path("x")), "is a sample"),
                                   (13, ("strip", "/etc/passwd", "-o", self.path("x")), "not a memprof recording"),
                                   (13, ("info", "/nowhere"), "/nowhere"), (2, ("verify",), "which recording"),
                                   (2, ("info", f, f), "unexpected")):
            r = self.memprof(*argv, status=status)
            self.assertIn(what, r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1)
        self.assertEqual(t.read(f), before)
        self.assertFalse(os.path.exists(self.path("x")))


if __name__ == "__main__":
    t.main()
