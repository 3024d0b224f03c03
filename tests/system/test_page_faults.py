#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--event=page-faults records every page fault once, with its page and the stack that touched it."""
import json
import os
import resource
import signal
import subprocess
import sys

import memprof_test as t

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SIZED = tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 11)  # samples contain the page size
ROOMY = ("--ring-size", "64M")  # for tests that need every fault, on a busy machine


def frames(g):
    """The frames of a group that are not inlined, one for each return address, innermost first."""
    return [x for x in reversed(g["backtrace"]) if not x["is_inline"]]


class PageFaults(t.Case):
    def faults(self, *options, stdin=subprocess.DEVNULL, status=0):
        """Records the victim.  Return: the regions that it touched, the recording, memprof's result."""
        f, truth = self.path("r"), self.path("truth")
        r = subprocess.run([t.MEMPROF, "run", "-q", "--event=page-faults", *options, "-o", f, "--",
                            f"{t.VICTIMS}/faults", truth], text=True, capture_output=True, stdin=stdin, timeout=120)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return [json.loads(line) for line in r.stdout.split("\n") if line.startswith("{")], f, r

    def test_exact(self):
        """each page is recorded once, with the function that touched it: memset, system calls, huge pages"""
        truth, f, _ = self.faults(*ROOMY)
        report = self.report(f)
        self.assertEqual(report["event"], "page-faults")
        self.assertEqual(report["losses"]["lost_faults"], 0)
        self.assertFalse(report["user_only"])
        for region in truth:
            end = region["address"] + region["bytes"] - 1
            part = self.report(f, "--address-min", str(region["address"]), "--address-max", str(end))
            self.assertEqual(part["totals"]["faults"], region["faults"], region)
            self.assertEqual(part["all"]["faults"], report["totals"]["faults"])
            for g in part["fault_groups"]:
                self.assertTrue(g["complete"])
                self.assertIn(region["function"], [x["function"] for x in frames(g)[:3]])
            size = report["page_size"] if region["function"] != "touch_huge" else region["bytes"]
            if region["function"] != "touch_huge" or (SIZED and "[never]" not in t.read(THP).decode()):
                self.assertEqual(part["totals"]["bytes"], region["faults"] * size, region)
                self.assertEqual(part["totals"]["huge_faults"], size != report["page_size"])
        if os.path.exists(THP) and report["page_size"] == 4096:
            self.assertEqual(len(truth), 10)  # with the huge page

    def test_stacks(self):
        """stacks of page faults agree with libgcc's unwinder in each frame: recursion, calls through qsort"""
        _, f, _ = self.faults(*ROOMY)
        listed = json.loads(self.memprof("report", f, "--view", "faults", "--json", "--count", "all").stdout)
        stacks = {s["backtrace_id"]: s for s in listed["stacks"]}
        at = {x["address"]: stacks[x["backtrace_id"]] for x in listed["faults"]}
        compared = 0
        with open(self.path("truth")) as lines:
            for line in lines:
                address, *want = (int(x, 16) for x in line.split())
                if want[-1] == 0:
                    want.pop()  # libgcc marks "no caller" with 0
                have = [x["address"] for x in frames(at[address])][1:]
                # memprof subtracts 1 from a return address to look it up.
                self.assertEqual(have[:len(want)], [w - 1 for w in want], line)
                # ARM's tables end at main's caller, so libgcc does not see _start.
                self.assertLessEqual(len(have) - len(want), os.uname().machine.startswith("arm"), line)
                self.assertTrue(at[address]["complete"])
                compared += 1
        self.assertEqual(compared, 120)

    def test_sums_agree(self):
        """page faults: text, JSON, tree, folded stacks and list have the same counts; the schema is valid"""
        import jsonschema  # which the guests' python does not have

        _, f, run = self.faults("--stack-size", "4k")
        report = self.report(f)
        with open(t.ROOT + "/doc/page-faults.schema.json") as schema:
            jsonschema.validate(report, json.load(schema))
        n, size = report["totals"]["faults"], report["totals"]["bytes"]
        self.assertIn(f"page faults: {n:,}, ", run.stdout)
        self.assertIn(f"faults      {n:,}, ", self.memprof("report", f).stdout)
        for key, whole in (("faults", n), ("bytes", size)):
            self.assertEqual(sum(g[key] for g in report["fault_groups"]), whole)
            self.assertEqual(sum(x[key] for x in report["threads"]), whole)
            self.assertEqual(sum(p[key] for p in report["timeline"]), whole)
        for cost, whole in (("faulted", size), ("faults", n)):
            folded = self.memprof("report", f, "--collapsed", "--cost", cost).stdout
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.split("\n") if line), whole)
        self.assertIn(f"{n:,} page faults\n", self.memprof("report", f, "--tree", "--cost", "faults").stdout)
        self.assertEqual(sum(s["bytes"] for s in report["sites"]), size)
        self.assertIn("bytes faulted in\n", self.memprof("report", f, "--peek", "main").stdout)
        listed = json.loads(self.memprof("report", f, "--view", "faults", "--json", "--count", "5").stdout)
        self.assertEqual((len(listed["faults"]), listed["total_count"]), (5, n))
        svg = self.path("f.svg")
        self.memprof("report", f, "--flamegraph", svg)
        self.assertIn("bytes faulted in", t.read(svg).decode())
        info = json.loads(self.memprof("info", "--json", f).stdout)
        self.assertEqual((info["event"], info["events"]["fault"]), ("page-faults", n))
        self.memprof("verify", f)

    def test_attach(self):
        """attach --event=page-faults changes nothing in a running program, and records new threads"""
        p = self.start(f"{t.VICTIMS}/faults", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        before = t.identity(p.pid)
        rec = self.start(t.MEMPROF, "attach", "--event=page-faults", "--stack-size", "4k", *ROOMY, "-p", str(p.pid),
                         "-o", self.path("r"), stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            pass
        after = t.identity(p.pid)
        for what in ("text", "maps", "fds", "tasks", "signals"):
            self.assertEqual(after[what], before[what])
        out, _ = p.communicate("\n", timeout=60)
        rec.communicate(timeout=60)
        self.assertEqual((p.returncode, rec.returncode), (0, 0))
        report = self.report(self.path("r"))
        self.assertEqual(report["losses"]["lost_faults"], 0)
        self.assertGreaterEqual(report["totals"]["faults"], sum(json.loads(x)["faults"] for x in out.splitlines()))
        touched = [g for g in report["fault_groups"] if frames(g)[0]["function"] == "touch_one_by_one"]
        self.assertEqual(sum(g["faults"] for g in touched), 1300)
        self.assertTrue(all(g["complete"] for g in touched))
        born = [x for x in report["threads"] if x["thread"] != p.pid and x["faults"] >= 100]
        self.assertEqual(len(born), 3)

    def test_resident_set(self):
        """page faults: the resident set grows by what was touched and kept"""
        f = self.path("r")
        p = self.start(sys.executable, "-c", GROW, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "--event=page-faults", "--stack-size", "4k", *ROOMY, "-p", str(p.pid),
                         "-o", f, stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            pass
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "grown\n")
        rec.send_signal(signal.SIGINT)
        rec.communicate(timeout=60)
        report = self.report(f)
        rss = [s["rss"] for s in report["samples"]]
        touched = sum(g["bytes"] for g in report["fault_groups"])
        # A recorder that gets no processor time loses faults, and reports how many.
        lost = report["losses"]["lost_faults"] * resource.getpagesize()
        self.assertGreater(touched, 0)
        self.assertGreaterEqual(touched + lost, 32 << 20)
        self.assertGreaterEqual(rss[-1] - rss[0], 32 << 20)
        self.assertIn("resident    ", self.memprof("report", f).stdout)
        p.kill()

    def test_exec(self):
        """page faults: recording ends at execve(), before the faults of the new program"""
        f = self.path("r")
        self.memprof("run", "-q", "--event=page-faults", "-o", f, "--", "/bin/sh", "-c",
                     f"exec {t.VICTIMS}/faults /dev/null < /dev/null")
        report = self.report(f)
        self.assertIn(report["end_reason"], ("execed", "exited"))
        self.assertGreater(report["totals"]["faults"], 0)
        self.assertLess(report["totals"]["faults"], 1500)  # the victim makes more than that

    def test_losses_are_counted(self):
        """page faults lost because of a small ring are counted and reported"""
        truth, f, r = self.faults("--stack-size", "32k", "--ring-size", "64k")
        report = self.report(f)
        lost = report["losses"]["lost_faults"]
        self.assertGreater(lost, 0)
        self.assertGreaterEqual(report["totals"]["faults"] + lost, sum(x["faults"] for x in truth))
        self.assertIn(f"lost: {lost:,} page fault", r.stdout)
        self.assertIn(f"lost        {lost:,} fault", self.memprof("report", f).stdout)

    def test_unprivileged(self):
        """page faults without privileges: only those of system calls are missing, and reports say so"""
        os.chmod(self.dir, 0o777)
        f = self.path("r")
        if int(t.read("/proc/sys/kernel/perf_event_paranoid")) != 2:
            self.skipTest("kernel.perf_event_paranoid is not 2")
        r = subprocess.run([*t.UNPRIVILEGED, t.MEMPROF, "run", "--event=page-faults", "--stack-size", "2k", "-o", f, "--",
                            f"{t.VICTIMS}/faults"], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                           timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("without CAP_PERFMON", r.stderr)
        report = self.report(f)
        self.assertTrue(report["user_only"])
        for region in (json.loads(line) for line in r.stdout.split("\n") if line.startswith("{")):
            part = self.report(f, "--address-min", str(region["address"]),
                               "--address-max", str(region["address"] + region["bytes"] - 1))
            if not report["losses"]["lost_faults"]:
                self.assertEqual(part["totals"]["faults"],
                                 0 if region["function"] == "touch_by_read" else region["faults"])
        self.assertIn("without page faults inside system calls", self.memprof("report", f).stdout)

    def test_refusals(self):
        """page faults: options, filters and formats for allocations are refused by name, and vice versa"""
        for option in ("--via=agent", "--sample=4k", "--cull=1s", "--zero", "--free-stacks", "--lossless",
                       "--follow-fork"):
            r = self.memprof("run", "--event=page-faults", option, "--", "true", status=2)
            self.assertIn(option.split("=")[0], r.stderr)
        self.memprof("run", "--event=magic", "--", "true", status=2)
        _, f, _ = self.faults("--stack-size", "2k")
        for option in (["--lifetime", "only_leaked"], ["--alive-at", "1s"], ["--allocator", "jemalloc"],
                       ["--chain-length-min", "2"], ["--first-size-min", "2"], ["--group-leaked-allocations-min", "1"],
                       ["--cost", "live"], ["--not-freed"], ["--view", "allocations"]):
            r = self.memprof("report", f, *option, status=2)
            self.assertIn(option[0].strip("-").replace("-", "_"), r.stderr.replace("-", "_"))
        for form in ("--heaptrack", "--pprof", "--speedscope", "--csv", "--ascii-tree", "--replay"):
            self.assertIn("page faults", self.memprof("report", f, form, status=2).stderr)
        self.assertIn("page faults", self.memprof("report", f, "--annotate", "faults.cc", status=2).stderr)
        self.memprof("diff", f, f, status=2)
        self.memprof("strip", f, "-o", self.path("s"), status=2)
        a = self.path("a")
        self.memprof("run", "-q", "-o", a, "--", f"{t.VICTIMS}/exact", 1, 100)
        self.memprof("report", a, "--cost", "faulted", status=2)
        self.memprof("report", a, "--view", "faults", status=2)


GROW = """
import sys
print("ready", flush=True)
sys.stdin.readline()
kept = bytearray(32 << 20)
print("grown", flush=True)
sys.stdin.readline()
"""

if __name__ == "__main__":
    t.main()
