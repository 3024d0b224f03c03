#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options that select what a recording keeps and leaves out; the totals stay right."""
import json
import os
import pty
import re
import signal
import subprocess
import termios
import time

import memprof_test as t

SUMS = ("allocations", "allocated_bytes", "allocated_usable_bytes", "frees", "leaked_count", "leaked_bytes",
        "temporary", "temporary_bytes")


class Options(t.Case):
    def run_exact(self, *options, env=None):
        f = self.path("r")
        r = subprocess.run([t.MEMPROF, "run", "-q", "--lossless", "-o", f, *options, "--",
                            f"{t.VICTIMS}/exact", "2", "200000"],
                           text=True, capture_output=True, timeout=120, env=dict(os.environ, **(env or {})))
        self.assertEqual(r.returncode, 0, r.stderr)
        out = r.stdout
        return json.loads(out[out.index("{"):out.index("}") + 1]), self.report(f), os.path.getsize(f)

    def assert_truth(self, truth, report):
        calls = t.calls(report)
        self.assertEqual(calls["malloc"], truth["malloc"] + 1)  # plus stdout's buffer
        self.assertEqual(calls["calloc"], truth["calloc"] + 2)  # plus one dtv for each thread
        self.assertEqual(report["totals"]["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(report["totals"]["leaked_count"], truth["live_blocks"] + 3)
        self.assertEqual(report["losses"]["mismatches"], 0)

    def test_cull(self):
        """--cull leaves out the events of short-lived blocks, and every sum is right"""
        truth, report, size = self.run_exact("--cull", "10s")
        self.assert_truth(truth, report)
        totals = report["totals"]
        self.assertGreater(totals["culled_count"], totals["allocations"] / 4)
        self.assertEqual(totals["allocations"] - totals["frees"], totals["leaked_count"])
        for key in ("allocated_count", "freed_count", "leaked_count", "size"):
            name = {"allocated_count": "allocations", "freed_count": "frees", "leaked_count": "leaked_count",
                    "size": "allocated_bytes"}[key]
            self.assertEqual(sum(g[key] for g in report["allocation_groups"]), totals[name])
        _, whole, whole_size = self.run_exact("--history")
        self.assertEqual(whole["totals"]["culled_count"], 0)
        self.assertLess(size, whole_size / 2)

    def test_depth(self):
        """--depth limits the number of frames, counted from the allocator outwards"""
        truth, report, _ = self.run_exact("--depth", "2")
        self.assert_truth(truth, report)
        depths = {len([f for f in g["backtrace"] if not f["is_inline"]]) for g in report["allocation_groups"]}
        self.assertEqual(max(depths), 2)
        self.assertTrue(all(g["backtrace"][-1]["function"] in t.calls(report)
                            for g in report["allocation_groups"] if g["backtrace"]))

    def test_environment(self):
        """MEMPROF_DEPTH and MEMPROF_CULL set options; a bad value in the environment is refused"""
        truth, report, _ = self.run_exact(env={"MEMPROF_DEPTH": "2", "MEMPROF_CULL": "10s"})
        self.assert_truth(truth, report)
        self.assertGreater(report["totals"]["culled_count"], 0)
        self.assertEqual(max(len([f for f in g["backtrace"] if not f["is_inline"]])
                             for g in report["allocation_groups"]), 2)
        for name, value in (("MEMPROF_CULL", "soon"), ("MEMPROF_LOSSLESS", "maybe"), ("MEMPROF_DEPTH", "-3")):
            r = subprocess.run([t.MEMPROF, "run", "--", "/bin/true"], text=True, capture_output=True,
                               env=dict(os.environ, **{name: value}), cwd=self.dir)
            self.assertEqual(r.returncode, 2, name)
            self.assertIn(value, r.stderr)

    def test_thread(self):
        """--thread records the allocations of threads of that name, and their frees by any thread"""
        p = self.victim("named")
        r = self.report(self.record(p.pid, 1.2, "--thread", "keep*"), "--leaks")
        totals = r["totals"]
        self.assertGreater(totals["allocations"], 100)
        self.assertEqual(totals["allocated_bytes"], 100 * totals["allocations"])
        self.assertGreater(r["losses"]["left_out_allocations"], 100)
        self.assertEqual(totals["allocations"] - totals["frees"], totals["leaked_count"])
        # Some blocks were freed by the other thread; they are not reported as leaks.
        self.assertLessEqual(totals["leaked_count"], 4)
        others = [th for th in r["threads"] if th["name"] == "other"]
        self.assertEqual(sum(th["allocations"] for th in others), 0)
        self.assertGreater(sum(th["frees"] for th in others), 0)
        self.finish(p)

    def test_paused(self):
        """--paused and SIGUSR1: what is allocated while the recording is paused is left out"""
        p = self.victim("named")
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "--paused", "-p", str(p.pid), "-o", f, stderr=subprocess.PIPE)
        def until(words):
            while words not in rec.stderr.readline():
                self.assertIsNone(rec.poll())
            return time.monotonic()

        until("recording process")
        time.sleep(1)
        on = time.monotonic()
        rec.send_signal(signal.SIGUSR1)
        until("recording resumed")
        time.sleep(1)
        rec.send_signal(signal.SIGUSR1)
        off = until("recording paused")
        time.sleep(2)
        rec.send_signal(signal.SIGINT)
        _, said = rec.communicate(timeout=120)
        ended = time.monotonic()
        self.assertEqual(rec.returncode, 0, said)
        r = self.report(f)
        self.assertGreater(r["totals"]["allocations"], 100)
        self.assertGreater(r["losses"]["left_out_allocations"], 100)
        busy = [x for x in r["timeline"] if x["allocations"]]
        first, last = (x["timestamp_relative"]["secs"] + x["timestamp_relative"]["fract_nsecs"] / 1e9
                       for x in (busy[0], busy[-1]))
        began = ended - r["runtime"]["secs"] - r["runtime"]["fract_nsecs"] / 1e9  # or earlier
        self.assertGreaterEqual(first, on - began - 0.01)
        # Events that are in the rings when the recording pauses are still recorded.
        self.assertLess(last - first, off - on + 0.5)
        self.assertLessEqual(r["totals"]["leaked_count"], 4)
        self.finish(p)

    def test_zero(self):
        """--zero fills every block with zeros while it records, but not after detach"""
        p = self.victim("dirty")

        def dirty():
            p.send_signal(signal.SIGUSR1)
            words = p.stdout.readline().split()
            self.assertGreater(int(words[2]), 0)
            return int(words[0])

        self.assertGreater(dirty(), 0)
        self.memprof("attach", "--background", "--zero", "-p", p.pid, "-o", self.path("z"))
        dirty()
        time.sleep(0.5)
        self.assertEqual(dirty(), 0)
        self.memprof("detach", "-p", p.pid)
        time.sleep(0.3)
        dirty()
        time.sleep(0.3)
        self.assertGreater(dirty(), 0)
        self.memprof("attach", "--zero", "--sample", "512k", "-p", p.pid, status=2)
        p.terminate()
        p.wait()

    def test_free_stacks(self):
        """--free-stacks records the stack of every free, and the counts stay right"""
        truth, report, _ = self.run_exact("--free-stacks")
        self.assert_truth(truth, report)
        f = self.path("r")
        r = json.loads(self.memprof("report", f, "--view", "allocations", "--json", "--lifetime",
                                    "only_deallocated_in_current_range", "--count", 2500).stdout)
        stacks = {s["backtrace_id"]: s["backtrace"] for s in r["stacks"]}
        ends = [stacks[a["deallocation"]["backtrace_id"]] for a in r["allocations"]]
        self.assertGreater(len(ends), 1000)
        freed = 0
        for e in ends:
            inner = e[-1]["function"]
            self.assertIn(inner, ("free", "realloc"))
            freed += inner == "free"
            self.assertTrue(any(x["function"] in ("run", "main") for x in e), e)
        self.assertGreater(freed, 1000)
        self.memprof("verify", f)
        self.memprof("run", "--free-stacks", "--sample", "1k", "--", "/bin/true", status=2)

    def test_maps(self):
        """report --view maps shows the resident memory of each mapping at the start and the end"""
        p = self.victim("exact", 1, 1000, "wait", stdin=subprocess.PIPE)
        f = self.record(p.pid, 2.5)
        r = json.loads(self.memprof("report", f, "--view", "maps", "--json").stdout)
        looks = r["map_usage"]
        self.assertEqual(len(looks), 2)
        for look in looks:
            names = [m["name"] for m in look["maps"]]
            self.assertIn("[stack]", names)
            self.assertTrue(any(n.endswith("/exact") for n in names))
        samples = self.report(f)["samples"]
        for look, sample in ((looks[0], samples[0]), (looks[1], samples[-1])):
            rss = sum(m["rss"] for m in look["maps"])
            self.assertLess(abs(rss - sample["rss"] - sample["session_rss"]), rss / 4)
            session = [m["rss"] for m in look["maps"] if "memprof-session" in m["name"]]
            self.assertLess(abs(sum(session) - sample["session_rss"]), 1 << 20)
        text = self.memprof("report", f, "--view", "maps").stdout
        self.assertIn("[anonymous]", text)
        self.assertEqual(text.split()[0], "resident")

    def test_resident(self):
        """samples show the program's resident memory and address space apart from memprof's session"""
        def kernels():
            text = t.read(f"/proc/{p.pid}/status").decode()
            return [int(re.search(rf"^{k}:\s*(\d+)", text, re.M)[1]) << 10 for k in ("VmRSS", "RssAnon", "VmSize")]
        p = self.victim("exact", 4, 200000, "wait", stdin=subprocess.PIPE)
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        p.stdin.write("go\n")
        p.stdin.flush()
        p.stdout.readline()
        time.sleep(2.5)
        with_session = kernels()
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        own = kernels()
        samples = self.report(f)["samples"]
        # Several samples can follow detach.
        last, gone = [x for x in samples if x["session_address_space"]][-1], samples[-1]
        # The kernel's counters lag behind: by 64 pages for each thread before Linux 6.2, by 32 for each
        # processor since.
        slack = 2 << 20
        for key, alone, both in zip(("rss", "anonymous", "address_space"), own, with_session):
            self.assertLess(abs(last[key] - alone), slack, key)
            self.assertLess(abs(last[key] + last["session_" + key] - both), slack, key)
        self.assertGreater(last["session_rss"], slack)
        # The last sample is taken after detach, without a session.
        self.assertEqual(gone["session_rss"] + gone["session_address_space"], 0)
        self.assertLess(abs(gone["address_space"] - own[2]), slack)
        self.assertRegex(self.memprof("report", f, "--verbose").stdout,
                         r"resident .*; memprof's session in addition at most [\d.]+ MiB\n")

    def test_terminal(self):
        """the progress line on a terminal is cut to the terminal's width"""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 60))
        p = self.start(t.MEMPROF, "run", "-o", self.path("r"), "--", "/bin/sleep", "3", stderr=slave)
        os.close(slave)
        p.communicate(timeout=120)
        said = os.read(master, 4096).decode()
        os.close(master)
        lines = re.findall(r"\r\x1b\[K([^\r]+)", said)
        self.assertRegex(lines[0], r"^ +\d\.\ds  \d+ events, lost nothing, ")
        self.assertEqual({len(x) for x in lines}, {59})


if __name__ == "__main__":
    t.main()
