#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts are exact: memprof agrees with a program that counts its own calls."""
import json
import os
import re
import subprocess
import time

import memprof_test as t

OPS = 5000 if t.GUEST else 2000000


class Exact(t.Case):
    def compare(self, truth, report, extra_blocks=0):
        c = t.calls(report)
        for f in ("malloc", "calloc", "free", "posix_memalign", "mremap"):
            self.assertGreaterEqual(c[f], truth[f], f)
        self.assertEqual(report["losses"]["lost_allocations"], 0)
        self.assertEqual(report["losses"]["lost_frees"], 0)
        self.assertEqual(report["totals"]["foreign_frees"], 0)
        self.assertEqual(report["losses"]["mismatches"], 0)

    def own(self, report):
        """The allocation groups of the program's own functions, without what libc allocates for threads."""
        return [g for g in report["allocation_groups"]
                if not any(f["function"].startswith(("pthread_create", "_dl_", "allocate_"))
                           for f in g["backtrace"])]

    def test_run_from_the_start(self):
        """run with 4 threads: every count and the live bytes agree with the program's own"""
        self.run_from_the_start("exact")

    def test_a32(self):
        """run with 4 threads of A32 code: every count and the live bytes agree with the program's own"""
        self.needs_a32()
        self.run_from_the_start("exact-a32")

    def test_jobs(self):
        """run with a thread that writes the file, and with one that sorts, too: the same"""
        for jobs in (2, 3):
            self.run_from_the_start("exact", "--jobs", jobs)

    def run_from_the_start(self, victim, *options):
        f = self.path("r")
        out = self.memprof("run", "-q", "--lossless", *options, "-o", f, "--", f"{t.VICTIMS}/{victim}", 4, OPS,
                           timeout=500).stdout
        truth = json.loads(out[out.index("{"):out.index("}") + 1])
        report = self.report(f)
        self.compare(truth, report)
        c, totals = t.calls(report), report["totals"]
        thread_blocks = 4 + 1  # a dtv for each thread, stdout's buffer
        self.assertEqual(c["malloc"], truth["malloc"] + 1)
        self.assertEqual(c["calloc"], truth["calloc"] + 4)
        self.assertEqual(c["posix_memalign"], truth["posix_memalign"])
        self.assertEqual(c.get("memalign", 0) + c.get("aligned_alloc", 0), truth["aligned_alloc"])
        self.assertEqual(c["realloc"], truth["realloc"] + truth["realloc_failed"])
        self.assertEqual(totals["failed_reallocs"], truth["realloc_failed"])
        self.assertEqual(totals["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(c["mremap"], truth["mremap"])
        self.assertGreaterEqual(c["mmap"], truth["mmap"])
        self.assertEqual(totals["leaked_count"], truth["live_blocks"] + thread_blocks)
        dtv = [g for g in report["allocation_groups"] if g not in self.own(report)]
        buffer = 8192
        self.assertEqual(totals["leaked_bytes"],
                         truth["live_bytes"] + sum(g["leaked_bytes"] for g in dtv) + buffer)

    def test_relay(self):
        """blocks that threads pass to each other: each address's history is in order, whoever frees them"""
        f = self.path("r")
        for threads, jobs in (2, 1), (4, 2), (16, 3):
            out = self.memprof("run", "-q", "--lossless", "--jobs", jobs, "-o", f, "--", f"{t.VICTIMS}/relay", threads,
                               OPS // 2 // threads, timeout=500).stdout
            truth = json.loads(out[out.index("{"):out.index("}") + 1])
            report = self.report(f)
            c, totals = t.calls(report), report["totals"]
            self.assertEqual(c["malloc"], truth["malloc"] + 1, threads)  # stdout's buffer
            self.assertEqual(c["realloc"], truth["realloc"], threads)
            self.assertEqual(totals["frees"], truth["free"] + truth["realloc"], threads)
            self.assertEqual(totals["foreign_frees"], 0, threads)
            self.assertEqual(report["losses"]["mismatches"], 0, threads)
            self.assertEqual(totals["leaked_count"], truth["live_blocks"] + 1 + threads, threads)

    def test_short(self):
        """a block that its thread frees at once has no record of its free: it ends at its own time"""
        program = """if True:
            import ctypes
            libc = ctypes.CDLL(None)
            libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
            for i in range(1000):
                libc.free(libc.malloc(5000))
            """
        f = self.path("r")
        self.memprof("run", "-q", "--lossless", "--history", "-o", f, "--", "/usr/bin/python3", "-c", program)
        report = self.report(f, "--size-min", "5000", "--size-max", "5000", "--lifetime-max", "0")
        self.assertGreater(report["totals"]["allocations"], 900)  # the reader can come in between

    def test_aligned_new(self):
        """aligned operator new is recorded with the requested size, not the one passed to aligned_alloc"""
        f = self.path("r")
        out = self.memprof("run", "-q", "-o", f, "--", f"{t.VICTIMS}/aligned").stdout
        self.assertIn("20 failed\n", out)
        report = self.report(f)
        sites = {}
        for g in report["allocation_groups"]:
            for frame in g["backtrace"]:
                sites.setdefault(frame["function"].split("(")[0], []).append(g)
        for site, requested, usable, live in (("keep_one", 100, 128, 100),
                                              ("keep_array", 70, 256, 100),
                                              ("keep_nothrow", 33, 64, 100),
                                              ("free_all", 17, 128, 0)):
            g, = sites[site]
            self.assertEqual((g["allocated_count"], g["size"]), (100, 100 * requested), site)
            self.assertEqual(g["leaked_count"], live, site)
            self.assertGreaterEqual(g["usable_size"], 100 * usable, site)
            self.assertEqual(g["backtrace"][-1]["function"],
                             "operator new(unsigned long, std::align_val_t)")
        self.assertEqual(report["totals"]["foreign_frees"], 0)
        # --zero must fill the block in the function that it comes from, so operator new is not hooked.
        self.memprof("run", "-q", "--zero", "-o", f, "--", f"{t.VICTIMS}/aligned")
        self.assertFalse([x for x in t.calls(self.report(f)) if x.startswith("_Zn")])

    def test_attached_in_the_middle(self):
        """attach to a running program records every call between two marker blocks"""
        p = self.victim("exact", 4, OPS // 5, "wait", stdin=subprocess.PIPE)
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "--lossless", "-p", str(p.pid), "-o", f,
                         stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            self.assertIsNone(rec.poll())
        p.stdin.write("go\n")
        p.stdin.flush()
        truth = json.loads(p.stdout.readline())
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        report = self.report(f, "--leaks")
        self.compare(truth, report)
        markers = [b for b in report["leaks"] if b["size"] in (7000001, 7000002)]
        self.assertEqual(len(markers), 2)
        c = t.calls(report)
        self.assertEqual(c["malloc"], truth["malloc"] + 2)
        self.assertEqual(report["totals"]["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(c["posix_memalign"], truth["posix_memalign"])
        p.stdin.write("end\n")
        p.stdin.flush()
        self.assertEqual(p.wait(timeout=120), 0)


class Idle(t.Case):
    def wakings(self, pid):
        """How often the threads of a process have gone to sleep."""
        n = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            status = t.read(f"/proc/{pid}/task/{task}/status").decode()
            n += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M).group(1))
        return n

    def test_idle(self):
        """the recorder of an idle target sleeps, and records a later burst completely"""
        p = self.victim("exact", 1, 200000, "wait", stdin=subprocess.PIPE)
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        time.sleep(1)
        before, start = self.wakings(rec.pid), time.monotonic()
        time.sleep(3)
        # Three threads wake 10, 7 and 2 times a second.  The bound leaves room for a loaded machine.
        woken = self.wakings(rec.pid) - before
        self.assertLess(woken, 40 * (time.monotonic() - start))
        p.stdin.write("go\n")
        p.stdin.flush()
        truth = json.loads(p.stdout.readline())
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        report = self.report(f)
        self.assertEqual(report["losses"]["lost_allocations"], 0)
        self.assertEqual(t.calls(report)["malloc"], truth["malloc"] + 2)
        p.stdin.write("end\n")
        p.stdin.flush()
        self.assertEqual(p.wait(timeout=120), 0)


if __name__ == "__main__":
    t.main()
