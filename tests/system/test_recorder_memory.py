#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The memory that memprof uses: --queue-size limits the events that a recorder holds to sort and write them,
also with 10,000 threads; a report uses 22 bytes for each live block."""
import json
import os
import re
import signal
import subprocess

import memprof_test as t

THREADS = 24
MIB = 1 << 20
RING = 4 * MIB
QUEUE = 48 * MIB
REST = 24 * MIB  # memprof itself, the live table, stacks, the session's tables
CULLED = 80 * MIB  # blocks that are held until it is known whether they are culled, and the sums of the culled ones
STATE = 4096  # of a thread, in the recorder: 3.2 KiB, and what the allocator cannot use again
SLOT = 64 << 10  # of a thread that allocates in few places, in the process, beside its ring


def memory(pid, what):
    return int(re.search(what + r":\s+(\d+) kB", t.read(f"/proc/{pid}/status").decode()).group(1)) * 1024


class RecorderMemory(t.Case):
    def peak(self, *options):
        """Stops the recorder until the rings are full.
        Return: its peak memory without the rings, the report."""
        p = self.victim("flood", THREADS, 150000, stdin=subprocess.PIPE)

        def round():
            p.stdin.write("go\n")
            p.stdin.flush()
            p.stdout.readline()

        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f, "--ring-size", str(RING),
                         "--queue-size", str(QUEUE), *options)
        self.wait_recorded(p.pid)
        for _ in range(2):
            os.kill(rec.pid, signal.SIGSTOP)
            t.wait_for(lambda: t.stopped(rec.pid))
            round()
            os.kill(rec.pid, signal.SIGCONT)
            self.memprof("flush", "-p", p.pid)
            round()
        high, shared = memory(rec.pid, "VmHWM"), memory(rec.pid, "RssShmem")
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        print(f"# {options}: {high >> 20} MiB, of them the program's rings and tables {shared >> 20}")
        return high - shared, self.report(f)

    def test_ceiling(self):
        """a recorder that finds all rings full uses no more than --queue-size and a fixed amount"""
        used, r = self.peak()
        self.assertGreater(r["totals"]["allocations"], 0)
        self.assertLess(used, QUEUE + REST)

    def test_lossless(self):
        """a recorder with --lossless that finds all rings full stays in the limit, and drops nothing"""
        used, r = self.peak("--lossless")
        self.assertLess(used, QUEUE + REST)
        self.assertEqual(r["losses"]["queue_dropped_events"], 0)


class ThreadsMemory(t.Case):
    N, OPS, RING = 1000 if t.GUEST else 10000, 100, 64 << 10

    def record_flood(self, *options):
        """Records a program of N threads that is as it was afterwards.  The recorder is stopped while each thread
        allocates OPS blocks; then it processes them, and its memory and that of the process are checked.
        Return: the calls that the program made meanwhile, the report."""
        p = self.victim("flood", self.N, self.OPS, stdin=subprocess.PIPE)
        t.wait_for(lambda: f"\nThreads:\t{self.N}\n" in t.read(f"/proc/{p.pid}/status").decode())

        def round():
            p.stdin.write("go\n")
            p.stdin.flush()
            return json.loads(p.stdout.readline())

        before, found = round(), t.identity(p.pid)
        f = self.path("r")
        self.memprof("attach", "-p", p.pid, "-o", f, "--background", "--ring-size", self.RING, "--queue-size", QUEUE,
                     *options)
        recorder = self.recorder(p.pid)
        round()
        os.kill(recorder, signal.SIGSTOP)
        t.wait_for(lambda: t.stopped(recorder))
        after = round()
        os.kill(recorder, signal.SIGCONT)
        self.memprof("flush", "-p", p.pid)
        used, added = memory(recorder, "VmHWM") - memory(recorder, "RssShmem"), memory(p.pid, "RssShmem")
        print(f"# the recorder: {used >> 20} MiB; in the process: {added / self.N / 1024:.0f} KiB a thread")
        self.assertLess(used, QUEUE + CULLED + REST + self.N * STATE)
        self.assertLess(added, REST + self.N * (self.RING + SLOT))
        self.detach(p.pid)
        left = t.identity(p.pid)
        for what in ("text", "fds", "tasks", "signals", "copied text"):
            self.assertEqual(left[what], found[what], what)
        p.stdin.close()
        self.assertEqual(p.wait(60), 0)
        t.wait_for(lambda: not os.path.exists(f"/proc/{recorder}"))
        r = self.report(f)
        self.assertEqual(r["losses"]["lost_no_slot"], 0)
        return {k: after[k] - before[k] for k in ("mallocs", "frees")}, r

    def test_thinned(self):
        """10,000 threads: recorder and process stay in their limits, nothing is lost, estimates are right"""
        truth, r = self.record_flood()
        for what in ("lost_allocations", "lost_frees", "queue_dropped_events"):
            self.assertEqual(r["losses"][what], 0, what)
        error = r["totals"].get("standard_error_allocations", 0)
        self.assertLessEqual(abs(r["totals"]["allocations"] - truth["mallocs"]), 5 * error, error)

    def test_counted(self):
        """10,000 threads, too many events: recorder and process stay in their limits, all losses are counted"""
        truth, r = self.record_flood("--no-thinning")
        calls, lost = t.calls(r), r["losses"]
        self.assertGreater(lost["queue_dropped_events"], 0)
        self.assertEqual(calls["malloc"] + lost["lost_allocations"] + lost["queue_dropped_allocations"] + lost["stale"] -
                         lost["stale_frees"], truth["mallocs"])
        self.assertEqual(calls["free"] + lost["lost_frees"] + lost["queue_dropped_frees"] + lost["stale_frees"],
                         truth["frees"])


class StacksMemory(t.Case):
    def test_many_stacks(self):
        """a million stacks of 47 frames cost a recorder less than 820 bytes each, 400 of private memory"""
        p = self.victim("bushy", 20, 1, 22, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "--history", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        before, own_before = memory(rec.pid, "VmRSS"), memory(rec.pid, "RssAnon")
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")
        self.memprof("flush", "-p", p.pid)
        used = (memory(rec.pid, "VmRSS") - before) / (1 << 20)
        own = (memory(rec.pid, "RssAnon") - own_before) / (1 << 20)
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        items = json.loads(self.memprof("info", f, "--json").stdout)["items"]
        self.assertGreaterEqual(items["stacks"], 1 << 20)
        print(f"# {used:.0f} bytes a stack with its block, {own:.0f} of them not the process's own copy")
        self.assertLess(own, 400)
        self.assertLess(used, 820)


class ReportMemory(t.Case):
    def peak(self, millions, blocks):
        """Reports a generated recording of so many events.  Return: memprof's peak memory in bytes, the
        largest number of live blocks."""
        f, out = self.path("r"), self.path("json")
        subprocess.run([self.path("events"), f, str(millions), str(blocks)], check=True, capture_output=True)
        p = subprocess.Popen([t.MEMPROF, "report", f, "--json", "-o", out])
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(p.returncode, 0)
        with open(out) as data:
            return usage.ru_maxrss << 10, json.load(data)["totals"]["peak_count"]

    def test_live_blocks(self):
        """a report uses less than 30 bytes of memory for each live block"""
        build = os.path.dirname(t.VICTIMS)
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", f"-I{t.ROOT}/src", "-o", self.path("events"),
                        t.ROOT + "/bench/programs/events.c", build + "/formats.a", build + "/lib.a", "-lzstd", "-lz",
                        "-lcap-ng"],
                       check=True)
        few, _ = self.peak(1, 1000)
        many, blocks = self.peak(4, 2400000)
        self.assertGreater(blocks, 1500000)
        print(f"# {(many - few) / blocks:.1f} bytes a block")
        self.assertLess((many - few) / blocks, 30)


if __name__ == "__main__":
    t.main()
