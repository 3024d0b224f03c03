#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--via=kernel: recording by uprobes, with nothing injected into the target."""
import json
import os
import re
import signal
import subprocess

import memprof_test as t


def probes_left():
    """Probe points of memprof processes that have ended; others can be recording on this machine, and end."""
    def probes():
        return t.read("/sys/kernel/tracing/uprobe_events").decode().splitlines()
    found = [(re.match(r"[pr]:memprof/p(\d+)_", line), line) for line in probes()]
    ownerless = [line for owner, line in found if owner and not os.path.exists(f"/proc/{owner[1]}")]
    # A process that ended in between has removed its own.
    return [line for line in probes() if line in ownerless]


THUMB = os.uname().machine.startswith("arm")


@t.unittest.skipUnless(THUMB, "not a processor with Thumb code")
class Thumb(t.Case):
    def test_refused(self):
        """--via=kernel refuses Thumb code, which uprobes do not support, in one line and probes nothing"""
        p = self.victim("verify")
        before = t.identity(p.pid)
        r = self.memprof("attach", "--via=kernel", "-p", p.pid, "-o", self.path("r"), status=18)
        self.assertIn("Thumb", r.stderr)
        self.assertEqual(len(r.stderr.strip().split("\n")), 1, r.stderr)
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(probes_left(), [])
        self.assertIn("ok", self.finish(p))


MACHINE = os.uname()
OLD_MIPS = MACHINE.machine.startswith("mips") and tuple(map(int, MACHINE.release.split(".")[:2])) < (5, 12)


@t.unittest.skipUnless(OLD_MIPS, "not a MIPS kernel before 5.12")
class OldMips(t.Case):
    def test_refused(self):
        """without kernel-patches/, --via=kernel and page faults are refused in one line that names them"""
        p = self.victim("verify")
        before = t.identity(p.pid)
        for way in ("--via=kernel", "--event=page-faults"):
            r = self.memprof("attach", way, "-p", p.pid, "-o", self.path("r"), status=18)
            self.assertEqual(len(r.stderr.strip().split("\n")), 1, r.stderr)
            for what in ("user registers and stack", "Function not implemented", "kernel-patches/"):
                self.assertIn(what, r.stderr)
            self.assertFalse(os.path.exists(self.path("r")))
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(probes_left(), [])
        self.assertIn("ok", self.finish(p))


@t.unittest.skipIf(THUMB, "the kernel's uprobes know no Thumb code: refused")
@t.unittest.skipUnless(os.path.exists("/sys/bus/event_source/devices/uprobe"), "no uprobes in this kernel")
class KernelWay(t.Case):
    def tearDown(self):
        super().tearDown()
        if os.path.exists("/sys/kernel/tracing/uprobe_events"):
            self.assertEqual(probes_left(), [])

    def run_exact(self, threads, *options):
        f = self.path("r")
        out = self.memprof("run", "-q", *options, "-o", f, "--", f"{t.VICTIMS}/exact", threads, 4000).stdout
        return json.loads(out[out.index("{"):out.index("}") + 1]), self.report(f)

    def test_exact(self):
        """run --via=kernel with 2 threads: every count agrees with the program's own"""
        truth, report = self.run_exact(2, "--via=kernel", "--stack-size", "4k")
        c, totals = t.calls(report), report["totals"]
        self.assertEqual(c["malloc"], truth["malloc"] + 1)  # stdout's buffer
        self.assertEqual(c["calloc"], truth["calloc"] + 2)  # one dtv for each thread
        self.assertEqual(c["posix_memalign"], truth["posix_memalign"])
        self.assertEqual(c["realloc"], truth["realloc"] + truth["realloc_failed"])
        self.assertEqual(totals["failed_reallocs"], truth["realloc_failed"])
        self.assertEqual(totals["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(c["mremap"], truth["mremap"])
        self.assertEqual(totals["leaked_count"], truth["live_blocks"] + 3)
        self.assertEqual(totals["foreign_frees"], 0)
        self.assertEqual(report["losses"]["mismatches"], 0)
        self.assertEqual(report["losses"]["lost_other"], 0)
        self.assertEqual(report["losses"]["stacks_complete"], report["losses"]["stacks_total"])

    def test_agrees_with_the_agent(self):
        """--via=kernel and the agent record the same calls, and as many from each stack"""
        def of(report):
            stacks = {}
            for g in report["allocation_groups"]:
                if not g["allocated_count"]:
                    continue
                key = tuple((f["function"], f.get("line")) for f in g["backtrace"])
                stacks[key] = stacks.get(key, 0) + g["allocated_count"]
            calls = {k: v for k, v in t.calls(report).items() if v and k not in ("mmap", "munmap")}
            return stacks, calls, report["totals"]["allocated_bytes"], report["totals"]["frees"]

        _, kernel = self.run_exact(1, "--via=kernel")
        _, agent = self.run_exact(1, "--lossless")
        self.assertEqual(of(kernel), of(agent))

    def test_attach(self):
        """attach --via=kernel leaves the program's results, text and mappings unchanged"""
        for name in ("verify", "throws"):
            p = self.victim(name)
            before = t.identity(p.pid)
            r = self.report(self.record(p.pid, 0.5, "--via=kernel", "--stack-size", "2k"))
            self.assertGreater(r["totals"]["allocations"], 100)
            after = t.identity(p.pid)
            self.assertEqual(after["text"], before["text"])
            self.assertEqual(after["maps"], before["maps"])
            self.assertIn("ok", self.finish(p))

    def test_threads_are_born(self):
        """--via=kernel records threads that are created after attach"""
        p = self.start("/usr/bin/python3", "-c", SPAWN, env=dict(os.environ, PYTHONMALLOC="malloc"))
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "--via=kernel", "--stack-size", "2k", "-p", str(p.pid),
                         "-o", self.path("r"), stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            pass
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(p.stdout.readline(), "done\n")
        rec.send_signal(signal.SIGINT)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        r = self.report(self.path("r"))
        born = [th for th in r["threads"] if th["thread"] != p.pid and th["allocations"]]
        self.assertEqual(len(born), 20)
        p.kill()

    @t.unittest.skipUnless(os.path.exists("/sys/kernel/tracing/uprobe_events"), "tracefs is not mounted")
    def test_killed(self):
        """--via=kernel: a killed recorder leaves the program running; the next removes its probe points"""
        p = self.victim("verify")
        rec = self.start(t.MEMPROF, "attach", "--via=kernel", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.PIPE)
        while "recording" not in rec.stderr.readline():
            pass
        rec.kill()
        rec.wait()
        self.assertGreater(len(probes_left()), 5)
        self.record(p.pid, 0.2, "--via=kernel")
        self.assertEqual(probes_left(), [])
        self.assertIn("ok", self.finish(p))

    def test_refusals(self):
        """--via=kernel refuses a process with a session, --background and unknown values"""
        p = self.victim("verify")
        self.memprof("attach", "--background", "-p", p.pid, "-o", self.path("a"))
        r = self.memprof("attach", "--via=kernel", "-p", p.pid, "-o", self.path("b"), status=7)
        self.assertIn("has a memprof session", r.stderr)
        self.memprof("detach", "-p", p.pid)
        self.memprof("attach", "--via=kernel", "--background", "-p", p.pid, status=2)
        self.memprof("attach", "--via=magic", "-p", p.pid, status=2)
        self.finish(p)


SPAWN = """
import signal, sys, threading, time
go = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: go.set())
print("ready", flush=True)
while not go.is_set():
    time.sleep(0.01)
def work():
    x = [str(i) for i in range(100)]
for _ in range(20):
    t = threading.Thread(target=work)
    t.start()
    t.join()
    time.sleep(0.01)
print("done", flush=True)
time.sleep(60)
"""

if __name__ == "__main__":
    t.main()
