# SPDX-License-Identifier: MIT OR Apache-2.0
"""More events than the recorder can read: the program does not block, losses are counted exactly by kind,
frees are lost last, and uncertain blocks are reported as such.  Also tests memprof flush."""
import json
import os
import signal
import subprocess
import time

from memprof_test import Case, MEMPROF, links, main, read

SITE = "flood"


def numbers(report):
    """The numbers of mallocs and frees of the program, recorded and lost ones together."""
    l = report["losses"]
    calls = {f["function"]: f["calls"] for f in report["functions"] if "libc" in f["library"]}
    return {
        "mallocs": calls.get("malloc", 0) + l["lost_allocations"] + l["queue_dropped_allocations"]
        + l["stale"] - l["stale_frees"],
        "frees": calls.get("free", 0) + l["lost_frees"] + l["queue_dropped_frees"]
        + l["stale_frees"],
    }


class Overload(Case):
    def flood(self, threads, ops, *options):
        """Starts the victim and a recorder in the background.  Return: the victim, the path of the recording,
        the recorder's pid."""
        p = self.victim("flood", threads, ops, stdin=subprocess.PIPE)
        self.round(p)  # creates the threads' arenas and stacks
        f = self.path("rec.memprof")
        self.memprof("attach", "-p", p.pid, "-o", f, "--background", *options)
        return p, f, self.status(p)["recorder"]

    def round(self, p):
        p.stdin.write("go\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())

    def status(self, p):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout)
                    if s["pid"] == p.pid)

    def stopped(self, pid):
        os.kill(pid, signal.SIGSTOP)
        while b"State:\tT" not in read(f"/proc/{pid}/status"):
            time.sleep(0.001)

    def agrees(self, before, after, report):
        """Checks that every event is either recorded or counted as lost.  glibc adds some when threads begin
        and end."""
        got = numbers(report)
        for kind in ("mallocs", "frees"):
            want = after[kind] - before[kind]
            self.assertGreaterEqual(got[kind], want, kind)
            self.assertLessEqual(got[kind], want + 16, kind)

    def test_stopped_reader(self):
        """if the recorder is stopped, the program runs on, losses are exact, and fewer frees are lost"""
        p, f, recorder = self.flood(1, 2000, "--ring-size", "256k", "--no-thinning")
        before = self.round(p)
        self.memprof("flush", "-p", p.pid)
        self.stopped(recorder)
        for _ in range(100):
            after = self.round(p)  # the round must end although the rings are not read
        self.assertIn(b"State:\tT", read(f"/proc/{recorder}/status"))
        os.kill(recorder, signal.SIGCONT)
        self.memprof("detach", "-p", p.pid)
        r = self.report(f)
        got, l = numbers(r), r["losses"]
        self.assertEqual(got["mallocs"], after["mallocs"] - before["mallocs"] + 2000)
        self.assertEqual(got["frees"], after["frees"] - before["frees"] + 2000 - 16)
        self.assertGreater(l["lost_frees"], 0)
        # Frees can use an eighth of the ring more than allocations, and their records are shorter.
        self.assertGreater(l["lost_allocations"], l["lost_frees"])
        # No freed block is reported as leaked, and blocks that were live when frees were lost are uncertain.
        self.assertGreaterEqual(r["totals"]["leaked_count"], 16)
        self.assertEqual(r["totals"]["leaked_count"] % 16, 0)
        self.assertEqual(r["totals"]["uncertain_count"], r["totals"]["leaked_count"])
        self.assertEqual({g["shape"] for g in r["allocation_groups"]}, {None})
        self.assertIn("of these may have been freed", self.memprof("report", f, "--verbose").stdout)
        text = self.memprof("report", f).stdout
        self.assertRegex(text, r"\nlost +\d+ % of events, live blocks unreliable: use --lossless or --sample\n")
        self.assertIn(f"{r['totals']['uncertain_count']:,} of the live blocks may have been freed\n", text)
        self.assertGreaterEqual(l["last_loss_ns"], l["first_loss_ns"])

    def test_exact_without_loss(self):
        """a recording without losses reports no uncertain blocks"""
        p, f, _ = self.flood(2, 20000, "--ring-size", "16M")
        self.round(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(f)
        self.assertEqual(sum(v for k, v in r["losses"].items()
                             if k.startswith("lost_") or k == "stale"), 0)
        self.assertEqual(r["totals"]["uncertain_count"], 0)
        self.assertNotIn("may have been freed", self.memprof("report", f).stdout)
        self.assertRegex(self.memprof("report", f).stdout, r"\nlost +nothing\n")

    def test_queue_ceiling(self):
        """a small queue drops events, which status, report and JSON count by kind"""
        p, f, _ = self.flood(3, 100000, "--queue-size", "64k", "--ring-size", "4M", "--no-thinning")
        rounds = [self.round(p), self.round(p)]
        self.memprof("flush", "-p", p.pid)
        s = self.status(p)
        while not s["queue_dropped_events"] and len(rounds) < 20:  # the recorder can be fast enough
            rounds.append(self.round(p))
            self.memprof("flush", "-p", p.pid)
            s = self.status(p)
        self.assertEqual(s["queue_ceiling_bytes"], 65536)
        self.assertGreater(s["queue_dropped_events"], 0)
        self.assertGreater(s["queue_dropped_bytes"], 0)
        self.assertIn("queue:", self.memprof("status").stdout)
        self.memprof("detach", "-p", p.pid)
        r = self.report(f)
        l = r["losses"]
        # The round before the attach is not in the recording.
        first = {k: 2 * rounds[0][k] - rounds[1][k] for k in rounds[0]}
        self.agrees(first, rounds[-1], r)
        self.assertGreater(l["queue_dropped_batches"], 0)
        self.assertEqual(l["queue_dropped_events"], sum(l["queue_dropped_" + k] for k in (
            "allocations", "frees", "reallocs", "maps", "other")))
        self.assertLessEqual(l["queue_peak_bytes"], 65536)
        self.assertIn("by the queue: ", self.memprof("report", f, "--verbose").stdout)

    def test_lossless(self):
        """--lossless with a small ring and queue slows the program down, and records every event"""
        p, f, _ = self.flood(3, 100000, "--lossless", "--queue-size", "256k", "--ring-size", "64k")
        one = self.round(p)
        two = self.round(p)
        self.memprof("detach", "-p", p.pid)
        r = self.report(f)
        self.agrees({k: one[k] - (two[k] - one[k]) for k in one}, two, r)
        self.assertEqual(r["losses"]["lost_allocations"] + r["losses"]["lost_frees"]
                         + r["losses"]["stale"] + r["losses"]["queue_dropped_events"], 0)

    def test_lossless_stopped(self):
        """--lossless: the program stops waiting for a stopped recorder, and stale events are counted"""
        p, f, recorder = self.flood(2, 100000, "--lossless", "--ring-size", "64k")
        before = self.round(p)
        self.memprof("flush", "-p", p.pid)
        self.stopped(recorder)
        after = self.round(p)
        os.kill(recorder, signal.SIGCONT)
        self.memprof("detach", "-p", p.pid)
        r = self.report(f)
        self.assertGreater(r["losses"]["stale"], 0)
        self.assertRegex(self.memprof("report", f).stdout, r"\nlost .*: memprof got too little processor time\n")
        self.agrees({k: before[k] - (after[k] - before[k]) for k in before}, after, r)


class Flush(Overload):
    test_stopped_reader = test_exact_without_loss = test_queue_ceiling = None
    test_lossless = test_lossless_stopped = None

    def test_boundary(self):
        """flush returns a file size that holds exactly the events from before the flush"""
        p, f, _ = self.flood(1, 5000)
        for n in (1, 2):
            self.round(p)
            b = json.loads(self.memprof("flush", "-p", p.pid, "--json").stdout)
            with open(self.path("part"), "wb") as part:
                part.write(read(f)[:b["file_bytes"]])
            r = self.report(self.path("part"))
            calls = {x["function"]: x["calls"] for x in r["functions"]}
            self.assertEqual(calls["malloc"], n * 5000)
            self.assertEqual(calls["free"], n * (5000 - 16))
            self.assertEqual(r["totals"]["events"], b["events"])
            self.assertEqual(r["totals"]["leaked_count"], n * 16)

    def test_while_running(self):
        """flush under load: each returned file size holds the reported number of events"""
        p, f, _ = self.flood(2, 400000)
        p.stdin.write("go\n")
        p.stdin.flush()
        last = 0
        for _ in range(5):
            b = json.loads(self.memprof("flush", "-p", p.pid, "--json").stdout)
            with open(self.path("part"), "wb") as part:
                part.write(read(f)[:b["file_bytes"]])
            r = self.report(self.path("part"))
            self.assertEqual(r["totals"]["events"], b["events"])
            self.assertGreaterEqual(b["events"], last)
            last = b["events"]
        self.memprof("detach", "-p", p.pid)

    def test_stop_releases(self):
        """flush does not hang if the recording ends before or while it waits"""
        for first, second in (("flush", "detach"), ("detach", "flush")):
            p, _, recorder = self.flood(1, 1000)
            self.stopped(recorder)
            a = self.start(MEMPROF, first, "-p", str(p.pid), stderr=subprocess.PIPE)
            time.sleep(0.2)
            b = self.start(MEMPROF, second, "-p", str(p.pid), stderr=subprocess.PIPE)
            time.sleep(0.2)
            os.kill(recorder, signal.SIGCONT)
            for q in (a, b):
                self.assertIn(q.wait(timeout=120), (0, 16), q.args)
            self.assertEqual((a if first == "detach" else b).returncode, 0)
            self.memprof("flush", "-p", p.pid, status=16)

    def test_only_its_own_user(self):
        """the recorder refuses requests of other users"""
        p, _, recorder = self.flood(1, 1000)
        mine, name = links(recorder), None
        for line in read("/proc/net/unix").decode().split("\n"):
            if "@memprof-" in line and f"socket:[{line.split()[6]}]" in mine:
                name = line.split("@", 1)[1]
        self.assertTrue(name)
        code = ("import socket,os\nos.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\n"
                f"s.connect('\\0{name}')\nprint(s.recv(100).decode())")
        out = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True,
                             timeout=30)
        self.assertEqual(out.stdout.strip(), "!forbidden", out.stderr)
        self.memprof("detach", "-p", p.pid)

    def test_refused(self):
        """flush refuses a process without a session"""
        p = self.victim("flood", 1, 10, stdin=subprocess.PIPE)
        r = self.memprof("flush", "-p", p.pid, status=16)
        self.assertIn("has no memprof session", r.stderr)


if __name__ == "__main__":
    main()
