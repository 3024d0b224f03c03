#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every system call and allocation of memprof fails once: a clear message or a right result, and the target as it was.

src/lib/fault_calls.h makes them fail.  MEMPROF_FULL=1: each at its first passings; else a sample of them, at its first."""
import glob
import os
import re
import shutil
import signal
import subprocess
import zlib

import memprof_test as t

PASSINGS = (1, 2, 4) if t.FULL else (1,)
SAMPLE = 8  # places for each command, of some hundred
LIMIT = 120  # seconds; what hangs is told by that


class Failures(t.Case):
    def tearDown(self):
        # What the kernel could not do is not to keep it from ending.
        for p in self.started:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
        super().tearDown()

    def command(self, p, name, *more):
        """Its command line; what it writes goes below the directory that clean() empties."""
        to = ["-q", "-o", self.path("out/r"), "--for", "1ms"] if name == "attach" else []
        who = [] if "--core" in more else ["-p", str(p.pid)]
        return [t.FAULTY, name, *who, *to, *more]

    def run_command(self, p, command, **fail):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        os.mkdir(self.path("out"))
        # Its own session: what it leaves behind is found by that.
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
        """Calls that the command makes if none fails."""
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
        """Processes of a session that are there, and no zombies."""
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
        """stays: a session that was there before need not be taken out."""
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
        """attach, and detach at its end"""
        self.fail_each("attach")

    def test_attach_calls(self):
        """each system call that a thread of the target is to make for attach fails to be made"""
        with open(f"{t.ROOT}/src/attach/remote.c") as f:
            line = 1 + next(i for i, text in enumerate(f) if "if (ptrace(PTRACE_SYSCALL, r->carrier->tid" in text)
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        failed = 0
        # Short: about where the islands are mapped.
        for passing in range(1, 100) if t.FULL else range(15, 26):
            with self.subTest(passing=passing):
                r = self.fail_one(p, ("attach",), f"src/attach/remote.c:{line}:{passing}", before)
            if not r.returncode:
                break
            failed += 1
        self.assertGreater(failed, 30 if t.FULL else 10)
        self.assertIn("ok", self.finish(p))

    def test_rotate(self):
        """attach --rotate"""
        self.fail_each("attach", "--rotate", "1M")

    def test_follow_fork(self):
        """attach --follow-fork"""
        self.fail_each("attach", "--follow-fork")

    def test_restart(self):
        """attach where a session has no recorder"""
        def prepare(p):
            if "memprof" in t.maps(p.pid):
                return
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("kept"), stderr=subprocess.PIPE)
            t.wait_for(lambda: rec.poll() is not None or self.recorder(p.pid))
            self.assertIsNone(rec.poll(), "the recorder has ended")
            self.memprof("detach", "--keep", "-p", p.pid)
            self.assertEqual(rec.wait(timeout=60), 0)
            self.started.remove(rec)
        # One that allocates little: its recorder ends soon on a busy machine.
        self.fail_each("attach", prepare=prepare, victim=("registers", "sleep"))

    def test_leaks(self):
        """leaks, by a copy"""
        self.fail_each("leaks")

    def test_leaks_calls(self):
        """leaks, where its copy is made and ended"""
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        with open(f"{t.ROOT}/src/attach/remote.c") as f:
            line = 1 + next(i for i, text in enumerate(f) if "ptrace(PTRACE_GETEVENTMSG, r->carrier->tid" in text)
        self.fail_one(p, ("leaks",), f"src/attach/remote.c:{line}", before)
        self.assertIn("ok", self.finish(p))

    def test_leaks_gentle(self):
        """leaks --gentle"""
        self.fail_each("leaks", "--gentle", "--interval", "1ms")

    def test_leaks_pre_copy(self):
        """leaks --pre-copy"""
        self.fail_each("leaks", "--pre-copy")

    def test_leaks_in_place(self):
        """leaks --in-place"""
        self.fail_each("leaks", "--in-place")

    def test_leaks_core(self):
        """leaks --core: the process is not concerned"""
        p = self.victim("verify", 2)
        subprocess.run(["gcore", "-o", self.path("core"), str(p.pid)], check=True, capture_output=True)
        self.assertIn("ok", self.finish(p))
        self.fail_each("leaks", "--core", self.path(f"core.{p.pid}"), f"{t.VICTIMS}/verify")

    def test_heap(self):
        """heap"""
        self.fail_each("heap")


if __name__ == "__main__":
    t.main()
