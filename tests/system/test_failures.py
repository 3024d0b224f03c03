#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each system call and allocation of memprof fails once: memprof prints a clear message or a right result,
and leaves the target as it was.

src/lib/fault_calls.h makes the calls fail.  With MEMPROF_FULL=1, each place in the source fails at its first,
second and fourth passing, otherwise a sample of the places at the first."""
import glob
import os
import re
import shutil
import signal
import subprocess
import zlib

import memprof_test as t

PASSINGS = (1, 2, 4) if t.FULL else (1,)
SAMPLE = 8  # places tested for each command, of some hundred
LIMIT = 120  # seconds after which memprof is considered to hang


class Failures(t.Case):
    def tearDown(self):
        # A failed call can have left a process stopped: let it run, so that it can end.
        for p in self.started:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
        super().tearDown()

    def command(self, p, name, *more):
        """The command line.  memprof writes below out/, which run_command() empties."""
        to = ["-q", "-o", self.path("out/r"), "--for", "1ms"] if name == "attach" else []
        who = [] if "--core" in more else ["-p", str(p.pid)]
        return [t.FAULTY, name, *who, *to, *more]

    def run_command(self, p, command, **fail):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        os.mkdir(self.path("out"))
        # In a session (setsid) of its own, by which processes that it leaves behind are found.
        m = subprocess.Popen(self.command(p, *command), env=dict(os.environ, **fail), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            out, err = m.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(m.pid, signal.SIGKILL)
            out, err = m.communicate()
            self.fail(f"it hangs: {out}{err}")
        return subprocess.CompletedProcess(m.args, m.returncode, out, err), m.pid

    def places(self, p, *command):
        """The places of the calls that the command makes when none fails."""
        listed = self.path("places")
        r, _ = self.run_command(p, command, MEMPROF_FAIL_LIST=listed)
        self.assertIn(r.returncode, (0, 15), r.stderr)
        places = sorted({line for line in t.read(listed).decode().split("\n") if line})
        os.remove(listed)
        self.assertGreater(len(places), SAMPLE)
        return places if t.FULL else sorted(places, key=lambda place: zlib.crc32(place.encode()))[:SAMPLE]

    def nobody_holds(self, pid):
        status = "".join(t.read(f"/proc/{pid}/task/{tid}/status").decode() for tid in os.listdir(f"/proc/{pid}/task"))
        self.assertEqual(set(re.findall(r"^TracerPid:\t(\d+)", status, re.M)), {"0"})
        self.assertEqual(set(re.findall(r"^State:\t(\w)", status, re.M)) - set("RSD"), set())

    def copies(self, pid):
        return b"".join(t.read(f"/proc/{pid}/task/{tid}/children") for tid in os.listdir(f"/proc/{pid}/task"))

    def in_session(self, session):
        """The processes of a session (setsid), without zombies."""
        found = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                fields = t.read(path).decode(errors="replace").rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(path)
        return found

    def fail_one(self, p, command, where, before, stays=False):
        """Runs the command with one failing call.  @stays: the target had a memprof session before, which
        need not be removed."""
        r, session = self.run_command(p, command, MEMPROF_FAIL=where)
        self.assertIsNone(p.poll(), f"died: {r.stderr}")
        self.assertGreaterEqual(r.returncode, 0, f"memprof crashed: {r.stderr}")
        if r.returncode not in ((0,) if command[0] == "attach" else (0, 1)):  # 1: leaks were found
            self.assertRegex(r.stderr, "(?m)^memprof: .+$")
        t.wait_for(lambda: not self.in_session(session), 20)
        self.nobody_holds(p.pid)
        self.assertEqual(self.copies(p.pid), b"", "a copy of it is left")
        if t.identity(p.pid) != before:
            if not stays:
                self.assertEqual(r.returncode, 15, f"something is left, and it does not say so: {r.stderr}")
            self.assertTrue(r.returncode, "something is left")
            self.detach(p.pid)
        self.assertEqual(t.identity(p.pid), before)
        return r

    def fail_each(self, *command, prepare=None, victim=("verify", 2)):
        p = self.victim(*victim)
        before = t.identity(p.pid)
        if prepare:
            prepare(p)
        for place in self.places(p, *command):
            for passing in PASSINGS:
                where = f"{place}:{passing}"
                with self.subTest(" ".join(command), where=where):
                    if prepare:
                        prepare(p)
                    self.fail_one(p, command, where, before, stays=prepare is not None)
        self.assertIn("ok", self.finish(p))

    def test_attach(self):
        """attach, and detach at its end, with one failing call of memprof at a time"""
        self.fail_each("attach")

    def test_attach_calls(self):
        """attach with one failing injected system call at a time"""
        with open(f"{t.ROOT}/src/attach/remote.c") as f:
            line = 1 + next(i for i, text in enumerate(f) if "if (ptrace(PTRACE_SYSCALL, r->carrier->tid" in text)
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        failed = 0
        # The short run covers the injected system calls around the mapping of the islands.
        for passing in range(1, 100) if t.FULL else range(15, 26):
            with self.subTest(passing=passing):
                r = self.fail_one(p, ("attach",), f"src/attach/remote.c:{line}:{passing}", before)
            if not r.returncode:
                break
            failed += 1
        self.assertGreater(failed, 30 if t.FULL else 10)
        self.assertIn("ok", self.finish(p))

    def test_rotate(self):
        """attach --rotate with one failing call at a time"""
        self.fail_each("attach", "--rotate", "1M")

    def test_follow_fork(self):
        """attach --follow-fork with one failing call at a time"""
        self.fail_each("attach", "--follow-fork")

    def test_restart(self):
        """attach to a session that has no recorder, with one failing call at a time"""
        def prepare(p):
            if "memprof" in t.maps(p.pid):
                return
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("kept"), stderr=subprocess.PIPE)
            t.wait_for(lambda: rec.poll() is not None or self.recorder(p.pid))
            self.assertIsNone(rec.poll(), "the recorder has ended")
            self.memprof("detach", "--keep", "-p", p.pid)
            self.assertEqual(rec.wait(timeout=60), 0)
            self.started.remove(rec)
        # This victim allocates little, so its recorder ends soon even on a busy machine.
        self.fail_each("attach", prepare=prepare, victim=("registers", "sleep"))

    def test_leaks(self):
        """leaks by a forked copy with one failing call at a time"""
        self.fail_each("leaks")

    def test_leaks_calls(self):
        """leaks with a failing ptrace(PTRACE_GETEVENTMSG), so that the forked copy's pid is unknown"""
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        with open(f"{t.ROOT}/src/attach/remote.c") as f:
            line = 1 + next(i for i, text in enumerate(f) if "ptrace(PTRACE_GETEVENTMSG, r->carrier->tid" in text)
        self.fail_one(p, ("leaks",), f"src/attach/remote.c:{line}", before)
        self.assertIn("ok", self.finish(p))

    def test_leaks_gentle(self):
        """leaks --gentle with one failing call at a time"""
        self.fail_each("leaks", "--gentle", "--interval", "1ms")

    def test_leaks_pre_copy(self):
        """leaks --pre-copy with one failing call at a time"""
        self.fail_each("leaks", "--pre-copy")

    def test_leaks_in_place(self):
        """leaks --in-place with one failing call at a time"""
        self.fail_each("leaks", "--in-place")

    def test_leaks_core(self):
        """leaks --core, which needs no process, with one failing call at a time"""
        p = self.victim("verify", 2)
        core = self.gcore(p)
        self.assertIn("ok", self.finish(p))
        self.fail_each("leaks", "--core", core, f"{t.VICTIMS}/verify")

    def test_heap(self):
        """heap with one failing call at a time"""
        self.fail_each("heap")


if __name__ == "__main__":
    t.main()
