# SPDX-License-Identifier: MIT OR Apache-2.0
"""Thinning: if there are more events than the recorder can follow, a part of the allocations represents the
others.  The estimates are right within their stated errors, whatever holds up the recorder; and exact again
afterwards."""
import json
import math
import os
import signal
import subprocess
import time

from memprof_test import Case, MEMPROF, main, read, wait_for

LEAKS, LEAK = 10000, 777
# An unbiased estimate is further than this from the truth once in a million runs, if its weights are small ...
ERRORS = 5
# ... and otherwise it is further by this many weights (Bernstein's inequality).
WEIGHTS = 9
# One in 150 allocations of the most frequent kind is one of the blocks that the tests count, so its weight is at most
# a 128th (doc/thinning.md, "How it works", 4).
RARITY = 128


class Thinning(Case):
    def drown(self, threads, *options):
        """Starts the victim, which is at work at once, and a recorder in the background."""
        self.p = self.victim("drown", threads, stdin=subprocess.PIPE)
        self.assertEqual(self.p.stdout.readline(), "ready\n")
        self.f = self.path("rec.memprof")
        self.memprof("attach", "-p", self.p.pid, "-o", self.f, "--background", *options)
        self.recorder = self.status()["recorder"]

    def status(self):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout)
                    if s["pid"] == self.p.pid)

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def answer(self):
        return json.loads(self.p.stdout.readline())

    def say(self, line):
        self.ask(line)
        return self.answer()

    def overloaded(self):
        """Waits until allocations are thinned out."""
        wait_for(lambda: self.status()["thinned_allocations"])

    def detach(self):
        self.memprof("detach", "-p", self.p.pid)
        self.p.stdin.close()
        self.p.wait()
        return self.report(self.f)

    def group(self, report, function):
        """The sums of all stacks that contain a function, and the error of their live blocks."""
        at = [g for g in report["allocation_groups"]
              if any(function in (fr["function"] or "") for fr in g["backtrace"])]
        return (sum(g["leaked_count"] for g in at), sum(g["leaked_bytes"] for g in at),
                math.sqrt(sum(g.get("standard_error_leaked_count", 0) ** 2 for g in at)))

    def near(self, count, truth, error, *reports):
        """Checks an estimate of blocks that were allocated during the recordings.  Its error is estimated from weights that
        were recorded.  There can be larger ones: in a short time of high pressure none of a dozen blocks is recorded."""
        largest = max(p["largest_weight"] for r in reports if r["thinning"] for p in r["thinning"]["periods"])
        weight = largest // RARITY
        self.assertLessEqual(abs(count - truth), ERRORS * error + WEIGHTS * (weight if weight > 1 else 0) + 0.5,
                             (error, weight))

    def estimates(self, report):
        """Checks the sum of all weights against the number of allocations that the agent thinned out."""
        said = report["thinning"]
        self.assertTrue(report["estimated"])
        self.assertGreater(said["thinned_allocations"], 0)
        more = sum(p["represented_allocations"] - p["recorded_allocations"] for p in said["periods"])
        error = report["totals"]["standard_error_allocations"]
        self.assertLessEqual(abs(more - said["thinned_allocations"]), ERRORS * error + 1, said)
        self.assertEqual(report["losses"]["lost_frees"], 0)
        self.assertEqual(report["losses"]["queue_dropped_events"], 0)

    def finds_the_leak(self, report):
        self.estimates(report)
        first = max(report["allocation_groups"], key=lambda g: g["leaked_bytes"])
        self.assertTrue(any("leak_one" in (fr["function"] or "") for fr in first["backtrace"]))
        count, size, error = self.group(report, "leak_one")
        self.assertEqual(size, count * LEAK)
        self.near(count, LEAKS, error, report)
        print(f"# {count} +- {error:.0f} of {LEAKS} blocks")
        return error

    def leak_under_load(self, threads):
        self.drown(threads)
        self.overloaded()
        self.say(f"leak {LEAKS}")
        return self.finds_the_leak(self.detach())

    def test_four_threads(self):
        """four threads that do nothing else: a leak of 10,000 blocks is the first in the report"""
        self.assertLessEqual(self.leak_under_load(4), 0.05 * LEAKS)

    def test_sixteen_threads(self):
        """sixteen threads, so that the recorder must wait for a processor"""
        self.leak_under_load(16)

    def test_starved_recorder(self):
        """a recorder that shares its processor with busy programs that have priority"""
        self.drown(4)
        busy = [self.start("taskset", "-c", "0", "sh", "-c", "while :; do :; done") for _ in range(2)]
        for task in os.listdir(f"/proc/{self.recorder}/task"):
            subprocess.run(["renice", "-n", "10", "-p", task], check=True, stdout=subprocess.DEVNULL)
            os.sched_setaffinity(int(task), [0])
        self.overloaded()
        self.say(f"leak {LEAKS}")
        for b in busy:
            b.kill()
        self.finds_the_leak(self.detach())

    def test_stopped_recorder(self):
        """a recorder that is stopped while the program leaks"""
        self.drown(4)
        self.memprof("flush", "-p", self.p.pid)
        os.kill(self.recorder, signal.SIGSTOP)
        wait_for(lambda: b"State:\tT" in read(f"/proc/{self.recorder}/status"))
        self.ask(f"leak {LEAKS}")
        time.sleep(1)  # after 3 s the agent would stop recording, which is a loss (test_overload)
        os.kill(self.recorder, signal.SIGCONT)
        self.answer()
        r = self.detach()
        self.estimates(r)
        count, _, error = self.group(r, "leak_one")
        self.near(count, LEAKS, error, r)

    def test_exact_again(self):
        """after the overload every block is recorded, and its number has no error"""
        self.drown(4)
        self.overloaded()
        self.say("calm")
        self.memprof("flush", "-p", self.p.pid)
        self.memprof("mark", "-p", self.p.pid, "calm")
        thinned = self.status()["thinned_allocations"]
        self.say("leak 300")
        self.say("grow 200")
        r = self.detach()
        self.estimates(r)
        self.assertEqual(r["thinning"]["thinned_allocations"], thinned)
        self.assertEqual(self.group(r, "leak_one"), (300, 300 * LEAK, 0))
        self.assertEqual(self.group(r, "grow_one"), (200, 200 * 6400, 0))

    def test_frees_of_exact_blocks(self):
        """blocks from before the overload that are freed in it are not live afterwards"""
        self.drown(4)
        self.overloaded()
        self.say("calm")
        r = self.detach()
        self.estimates(r)
        # Each thread has kept 16 blocks.
        live, error = r["totals"]["leaked_count"], r["totals"]["standard_error_leaked_count"]
        self.assertLessEqual(abs(live - 64), ERRORS * error + 0.5, error)

    def test_reallocs(self):
        """blocks that grow by realloc under overload"""
        self.drown(4)
        self.overloaded()
        truth = self.say("grow 3000")
        r = self.detach()
        self.estimates(r)
        count, size, error = self.group(r, "grow_one")
        self.near(count, truth["live_blocks"], error, r)
        self.assertEqual(size, count * 6400)

    def test_outputs(self):
        """every output says that its numbers are estimates"""
        self.drown(4)
        self.overloaded()
        self.say(f"leak {LEAKS}")
        self.detach()
        text = self.memprof("report", self.f).stdout
        self.assertRegex(text, r"\nestimated +[\d,]+ allocations of .* were thinned out \(--verbose\)\n")
        self.assertRegex(text, r"\nlost +nothing\n")
        text = self.memprof("report", self.f, "--verbose").stdout
        self.assertRegex(text, r"estimated +[\d,]+ allocations of .* were thinned out; others ")
        self.assertRegex(text, r"from \d+\.\d\d s to \d+\.\d\d s: 1 in ")
        self.assertRegex(self.memprof("report", self.f, "--quick").stdout, r"estimated +[\d,]+ allocations")
        for option in ("--flamegraph", "--plot"):
            self.memprof("report", self.f, option, self.path("out"))
            self.assertIn(b"(estimated)", read(self.path("out")), option)
        self.assertIn("(estimated)", self.memprof("report", self.f, "--speedscope").stdout)
        self.assertIn("was thinned", self.memprof("report", self.f, "--csv").stderr)
        r = self.memprof("report", self.f, "--replay", "--output", self.path("out"), status=2)
        self.assertIn("only a recording of all", r.stderr)
        diff = self.memprof("diff", self.f, "--at", "0.1s", "--at", "0.2s").stdout
        self.assertIn("thinned: estimates", diff)
        self.memprof("verify", self.f)

    def test_switched_off(self):
        """--no-thinning loses what is too much, and counts it"""
        self.drown(4, "--no-thinning", "--queue-size", "1M")
        wait_for(lambda: self.status()["lost"])
        r = self.detach()
        self.assertIsNone(r["thinning"])
        self.assertFalse(r["estimated"])
        self.assertGreater(r["losses"]["lost_allocations"] + r["losses"]["queue_dropped_allocations"], 0)

    def test_pieces(self):
        """weights are carried over from one piece of a rotated recording to the next"""
        self.drown(4, "--history", "--rotate", "1M")
        self.overloaded()
        self.say(f"leak {LEAKS}")
        self.say("calm")
        self.memprof("detach", "-p", self.p.pid)
        pieces = [self.path(n) for n in sorted(os.listdir(self.path("")), key=lambda n: (len(n), n))
                  if n.startswith("rec-")]
        self.assertGreater(len(pieces), 1)
        last = self.report(pieces[-1])
        count, size, error = self.group(last, "leak_one")
        print(f"# {count} +- {error:.0f} of {LEAKS} blocks in the last of {len(pieces)} pieces")
        self.near(count, LEAKS, error, *map(self.report, pieces))
        self.memprof("merge", *pieces, "-o", self.path("all"))
        self.assertEqual(self.group(self.report(self.path("all")), "leak_one")[:2], (count, size))

    def test_next_recorder(self):
        """the next recorder of a session continues with the weights"""
        self.drown(4)
        self.overloaded()
        self.say(f"leak {LEAKS}")
        self.memprof("detach", "-p", self.p.pid, "--keep")
        self.memprof("attach", "-p", self.p.pid, "-o", self.path("two"), "--background")
        self.say("calm")
        self.memprof("detach", "-p", self.p.pid)
        reports = [self.report(f) for f in (self.f, self.path("two"))]
        count, _, error = self.group(reports[1], "leak_one")
        self.near(count, LEAKS, error, *reports)


if __name__ == "__main__":
    main()
