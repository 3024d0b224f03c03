# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recorder takes over the session of an earlier one with its live blocks, and the counts of what the agent
wrote and the recorders read show whether anything was lost."""
import json
import os
import re
import signal
import subprocess
import threading
import time

from memprof_test import Case, calls, identity, main, maps


class Restart(Case):
    def flood(self, threads, ops, *options):
        p = self.victim("flood", threads, ops, stdin=subprocess.PIPE)
        self.clean = identity(p.pid)
        self.attach(p, "one", *options)
        return p

    def attach(self, p, name, *options):
        """Attaches a recorder in the background.  Return: its messages on the session that it takes over."""
        r = self.memprof("attach", "-p", p.pid, "-o", self.path(name), "--background", *options)
        return r.stderr

    def line(self, p, line="go"):
        p.stdin.write(line + "\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())

    def recorder(self, p):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout)
                    if s["pid"] == p.pid)["recorder"]

    def kill_recorder(self, p):
        pid = self.recorder(p)
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)

    def mismatch(self, said):
        return int(re.search(r"mismatch ([\d,]+)", said).group(1).replace(",", ""))

    def whole(self, p, truth, report):
        """Checks that each malloc and free is recorded or counted as lost, and that detach restored all."""
        l = report["losses"]
        self.assertEqual(l["seen_allocations"] + l["restart_allocations"] + l["lost_allocations"]
                         + l["queue_dropped_allocations"] + l["stale"] - l["stale_frees"],
                         truth["mallocs"])
        self.assertEqual(l["seen_frees"] + l["restart_frees"] + l["lost_frees"]
                         + l["queue_dropped_frees"] + l["stale_frees"], truth["frees"])
        self.assertEqual(identity(p.pid)["text"], self.clean["text"])
        self.assertNotIn("memprof", maps(p.pid))

    def test_crash(self):
        """the next recorder misses nothing if the recorder is killed after everything was written"""
        p = self.flood(2, 3000)
        self.line(p)
        before = self.line(p)
        self.memprof("flush", "-p", p.pid)
        self.kill_recorder(p)
        said = self.attach(p, "two")
        self.assertEqual(self.mismatch(said), 0)
        self.assertIn("32 live blocks", said)
        self.memprof("flush", "-p", p.pid)  # the recorder must answer when attach returns
        after = self.line(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"), "--leaks")
        self.assertEqual(r["totals"]["carried_count"], 32)
        self.assertEqual(r["totals"]["carried_bytes"], before["live_bytes"])
        self.assertEqual(r["totals"]["leaked_count"], 48)
        self.assertEqual(r["totals"]["leaked_bytes"], after["live_bytes"])
        self.assertEqual(r["totals"]["allocations"], after["mallocs"] - before["mallocs"])
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.assertEqual(sum(b["size"] for b in r["leaks"]), after["live_bytes"])
        self.assertTrue(any(f["raw_function"] == "flood" or f["function"] == "flood"
                            for b in r["allocation_groups"] for f in b["backtrace"]))
        self.whole(p, after, r)

    def test_crash_in_pieces(self):
        """--rotate: after a kill, the next recorder takes the live blocks from the last piece"""
        p = self.flood(2, 50000, "--history", "--rotate", "64k", "--lossless")
        before = self.line(p)
        self.memprof("flush", "-p", p.pid)
        self.assertTrue(os.path.exists(self.path("one-1")))
        self.kill_recorder(p)
        said = self.attach(p, "two", "--lossless")
        self.assertEqual(self.mismatch(said), 0)
        self.memprof("flush", "-p", p.pid)
        after = self.line(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"), "--leaks")
        self.assertEqual(r["totals"]["carried_bytes"], before["live_bytes"])
        self.assertEqual(r["totals"]["leaked_bytes"], after["live_bytes"])
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.whole(p, after, r)

    def test_both_in_pieces(self):
        """--rotate before and after a kill: all pieces together agree with the program's own counts"""
        p = self.flood(2, 50000, "--history", "--rotate", "64k", "--lossless")
        start = self.line(p)
        self.memprof("flush", "-p", p.pid)
        self.kill_recorder(p)
        self.assertEqual(self.mismatch(self.attach(p, "two", "--history", "--rotate", "64k", "--lossless")), 0)
        self.memprof("flush", "-p", p.pid)
        end = self.line(p)
        self.memprof("detach", "-p", p.pid)
        sums = {}
        for name, truth in (("one", start), ("two", end)):
            reports = [self.report(self.path(f)) for f in os.listdir(self.dir) if f.startswith(name)]
            self.assertGreater(len(reports), 1)
            for key in ("allocations", "frees"):
                sums[key] = sums.get(key, 0) + sum(r["totals"][key] for r in reports)
            self.assertEqual((sums["allocations"], sums["frees"]), (truth["mallocs"], truth["frees"]))
            self.assertEqual(sum(r["totals"]["foreign_frees"] for r in reports), 0)

    def test_crash_under_load(self):
        """if the recorder is killed under load, the next one states exactly how many events are lost"""
        p = self.flood(2, 200000, "--no-thinning")
        threading.Timer(0.15, self.kill_recorder, [p]).start()
        self.line(p)
        while self.recorder(p) and os.path.exists(f"/proc/{self.recorder(p)}"):
            time.sleep(0.02)
        said = self.attach(p, "two", "--no-thinning")
        truth = self.line(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"))
        l = r["losses"]
        self.assertEqual(self.mismatch(said), sum(l["restart_" + k] for k in (
            "allocations", "frees", "reallocs", "maps")))
        self.whole(p, truth, r)
        if l["restart_frees"]:
            self.assertGreaterEqual(r["totals"]["uncertain_count"], min(
                l["restart_frees"], r["totals"]["carried_count"]))

    def test_crash_while_culling(self):
        """if the recorder is killed, the next one states the blocks that --cull held back as lost"""
        p = self.flood(1, 3000, "--cull", "1h")
        truth = self.line(p)
        self.memprof("mark", "-p", p.pid, "all of it")  # writes out what is held back, like a flush
        truth = self.line(p)
        end = time.monotonic() + 30  # wait until the recorder has written the sums of the culled blocks
        while self.report(self.path("one"))["totals"]["culled_count"] < 2 * (3000 - 16) \
                and time.monotonic() < end:
            time.sleep(0.1)
        self.kill_recorder(p)
        said = self.attach(p, "two")
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"))
        self.assertEqual(self.mismatch(said), r["losses"]["restart_allocations"]
                         + r["losses"]["restart_frees"])
        self.assertEqual(r["losses"]["restart_allocations"], 16)  # the other blocks were culled
        self.assertEqual(r["totals"]["carried_count"], 16)
        self.whole(p, truth, r)

    def test_crash_after_culled_flush(self):
        """flush writes the blocks that --cull holds back, so that a kill of the recorder loses none"""
        p = self.flood(1, 3000, "--cull", "1h")
        truth = self.line(p)
        self.memprof("flush", "-p", p.pid)
        self.kill_recorder(p)
        self.assertEqual(self.mismatch(self.attach(p, "two")), 0)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"))
        self.assertEqual(r["totals"]["leaked_bytes"], truth["live_bytes"])
        self.whole(p, truth, r)

    def test_planned(self):
        """three hand-overs by detach --keep under load lose nothing"""
        p = self.flood(2, 150000, "--ring-size", "64M")
        done = []
        t = threading.Thread(target=lambda: done.extend(self.line(p) for _ in range(3)))
        t.start()
        for n in range(3):
            r = self.memprof("detach", "--keep", "-p", p.pid)
            self.assertIn("continue with: memprof attach", r.stdout)
            self.assertEqual(self.mismatch(self.attach(p, f"next{n}")), 0)
        t.join()
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(self.report(self.path("one"))["end_reason"], "kept")
        r = self.report(self.path("next2"))
        self.whole(p, done[-1], r)
        self.assertEqual([v for k, v in r["losses"].items()
                          if k.startswith(("restart", "lost")) and v], [])
        self.assertEqual(r["totals"]["leaked_count"], 3 * 16)
        self.assertEqual(r["totals"]["leaked_bytes"], done[-1]["live_bytes"])
        self.assertEqual(r["totals"]["uncertain_count"], 0)

    def test_all_kinds(self):
        """after hand-overs under all kinds of calls, the live blocks are the program's own, by address"""
        for _ in range(10):
            if sum(n > 2 for n in self.all_kinds()) > 1:
                return
            for name in os.listdir(self.dir):
                os.unlink(self.path(name))
        self.fail("it was always done before the first handover")

    def all_kinds(self):
        """Records the program with four hand-overs.  Return: the mallocs in each of the recordings."""
        p = self.victim("exact", 3, 400000, "wait", stdin=subprocess.PIPE)
        self.attach(p, "one", "--ring-size", "64M")
        p.stdin.write("go\n")
        p.stdin.flush()
        for n in range(4):
            self.memprof("detach", "--keep", "-p", p.pid)
            self.assertEqual(self.mismatch(self.attach(p, f"next{n}")), 0)
        truth = json.loads(p.stdout.readline())
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("next3"), "--leaks")
        lost = {k: v for k, v in r["losses"].items()
                if v and k.startswith(("restart", "lost", "stale", "mismatches", "queue_dropped"))}
        self.assertEqual(lost, {})
        live = {int(b["address"]): b["size"] for b in r["leaks"]}
        for addr, size in truth["live"][:-1]:
            self.assertEqual(live.pop(addr, None), size, hex(addr))
        # What remains: the two marker blocks, and glibc's blocks for three threads.
        self.assertLessEqual(len(live), 2 + 3, live)
        parts = [calls(self.report(self.path(f))).get("malloc", 0)
                 for f in ("one", "next0", "next1", "next2", "next3")]
        self.assertEqual(sum(parts), truth["malloc"] + 2)
        foreign = [self.report(self.path(f))["totals"]["foreign_reallocs"]
                   for f in ("one", "next0", "next1", "next2", "next3")]
        self.assertEqual(foreign, [0] * 5)
        p.communicate("end\n", timeout=120)
        return parts

    def test_large_heap(self):
        """a hand-over of half a million live blocks loses none"""
        p = self.flood(1, 1000, "--ring-size", "64M")
        self.line(p, "many")
        self.memprof("detach", "--keep", "-p", p.pid)
        self.assertEqual(self.mismatch(self.attach(p, "two")), 0)
        truth = self.line(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"))
        self.assertEqual(r["totals"]["leaked_count"], 500016)
        self.assertEqual(r["totals"]["leaked_bytes"], truth["live_bytes"])

    def budget(self, *options):
        """Carries 200 stacks and those of flood() over to another recorder.  Return: its report, what attach
        printed, the groups of stacks that were folded."""
        p = self.flood(1, 1000)
        self.line(p)
        truth = self.line(p, "deep")
        self.memprof("detach", "--keep", "-p", p.pid)
        said = self.attach(p, "two", *options)
        self.memprof("detach", "-p", p.pid)
        r = self.report(self.path("two"))
        self.assertEqual(r["totals"]["leaked_bytes"], truth["live_bytes"])
        self.assertEqual(r["totals"]["leaked_count"], 216)
        self.assertEqual(sum(g["leaked_bytes"] for g in r["allocation_groups"]),
                         truth["live_bytes"])
        cleared = [g for g in r["allocation_groups"]
                   if g["backtrace"] and g["backtrace"][0]["function"] == "[live-alloc cleared]"]
        return r, said, cleared

    def test_budget_keeps_all(self):
        """the default --carry-budget carries all 200 stacks over"""
        r, said, cleared = self.budget()
        self.assertEqual(cleared, [])
        self.assertNotIn("folded", said)
        self.assertGreaterEqual(len(r["allocation_groups"]), 201)

    def test_budget_folds_the_smallest(self):
        """a small --carry-budget folds the smallest stacks into one, and keeps all sums to the byte"""
        r, said, cleared = self.budget("--carry-budget", "60k")
        self.assertEqual(len(cleared), 1)
        self.assertIn("folded into [live-alloc cleared]", said)
        kept = [g["leaked_bytes"] for g in r["allocation_groups"] if g not in cleared]
        self.assertGreater(len(kept), 10)
        self.assertGreater(cleared[0]["leaked_count"], 10)
        # The folded stacks are no larger than those that were kept.
        self.assertLess(cleared[0]["leaked_bytes"] / cleared[0]["leaked_count"],
                        min(kept) + 1)

    def test_budget_of_nothing(self):
        """--carry-budget 0 folds every stack, and forgets no block"""
        r, _, cleared = self.budget("--carry-budget", "0")
        self.assertEqual(cleared[0]["leaked_count"], 216)
        self.assertEqual(len([g for g in r["allocation_groups"] if g["leaked_count"]]), 1)

    def test_refused(self):
        """attach and detach --keep refuse a session that they cannot take over, and leave it as it was"""
        p = self.flood(1, 1000)
        self.memprof("attach", "-p", p.pid, "-o", self.path("two"), status=7)
        self.memprof("attach", "-p", p.pid, "-o", "x", "--carry-budget", "21M", status=2)
        self.memprof("flush", "-p", p.pid)
        self.kill_recorder(p)
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("one"), status=14)
        self.assertIn("choose another file with -o", r.stderr)
        os.rename(self.path("one"), self.path("elsewhere"))
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("two"), status=13)
        self.assertIn("memprof detach", r.stderr)
        self.assertFalse(os.path.exists(self.path("two")))
        self.memprof("detach", "--keep", "-p", p.pid, status=16)
        os.rename(self.path("elsewhere"), self.path("one"))
        self.assertEqual(self.mismatch(self.attach(p, "two")), 0)
        self.memprof("detach", "-p", p.pid)


if __name__ == "__main__":
    main()
