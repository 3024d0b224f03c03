#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""libmemprof, used by C programs as doc/library.md says: threads, hosts that must stay as they are, refusals, the
examples, and the interface that programs were compiled with."""
import collections
import json
import os
import re
import shutil
import subprocess
import time
import unittest

import memprof_test as t
import stream_peer as peer
import stream_test as s

BUILD = os.path.dirname(t.MEMPROF)
API = t.ROOT + "/src/api"
HEADER = t.read(API + "/memprof.h").decode()
MAKEFILE = t.read(t.ROOT + "/Makefile").decode()
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
# What a library must not call: it would end or print for its host, or change what belongs to all of its threads.
NOT_CALLED = {"exit", "abort", "quick_exit", "printf", "puts", "putchar", "perror", "vprintf", "setlocale",
              "putenv", "signal", "alarm", "chdir", "umask", "setrlimit", "setrlimit64", "atexit", "syslog", "stdout", "stderr", "stdin"}


class Case(t.Case):
    def compile(self, source, *flags, compiler=("cc", "-std=gnu11"), libraries=("-L" + BUILD, "-Wl,-rpath," + BUILD, "-lmemprof", "-lpthread")):
        """Compiles a program that uses the library; returns its path."""
        program = self.path(os.path.basename(source).split(".")[0])
        r = subprocess.run([*compiler, "-g", *WARNINGS, *flags, "-I" + API, source, "-o", program, *libraries], text=True, capture_output=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return program

    def run_program(self, program, *arguments, timeout=200):
        r = subprocess.run([program, *map(str, arguments)], text=True, capture_output=True, cwd=self.dir, timeout=timeout)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r.stdout[-2000:])
        return r.stdout

    def run_test(self, name, *arguments):
        """Compiles and runs a program of tests/library; returns its lines."""
        return self.run_program(self.compile(f"{t.ROOT}/tests/library/{name}.c"), *arguments).splitlines()


class Session(Case):
    def test_threads(self):
        """threads that mark, flush, pause and resume one session at once get what they ask for, until it is ended under them"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        recording = self.path("x.memprof")
        lines = self.run_test("threads", p.pid, recording)
        self.assertEqual(t.identity(p.pid), before)
        marks = [x.split()[1:] for x in lines if x.startswith("mark ")]
        self.assertGreaterEqual(len(marks), 40)
        found = {m["name"] for m in self.report(recording)["markers"]}
        self.assertLessEqual({name for name, _ in marks}, found)
        self.assertEqual([x for x in lines if x.startswith("last ")], ["last 32"] * 4)
        # Each position is later than the one before it of the same thread.
        of_thread = collections.defaultdict(list)
        for name, time in marks:
            of_thread[name.split("-")[0]].append(int(time))
        for times in of_thread.values():
            self.assertEqual(times, sorted(times))
        self.memprof("verify", recording)

    def test_host(self):
        """a program in which two recordings, and searches in two heaps, run at the same time and again and again keeps its
        signals, descriptors, threads, limits, environment and memory; so do the processes that it looked at"""
        victims = [self.busy_victim("leaky"), self.busy_victim("churn")]
        before = [t.identity(p.pid) for p in victims]
        lines = self.run_test("host", *[p.pid for p in victims], self.dir)
        self.assertRegex(lines[-1], r"^grown -?\d+$")
        self.assertLess(int(lines[-1].split()[1]), 4096)
        self.assertEqual(lines[:-1], [])
        self.assertEqual([t.identity(p.pid) for p in victims], before)
        for i in range(2):
            self.memprof("verify", self.path(f"{i}.memprof"))

    def test_refusals(self):
        """what cannot work gets a code and one line that says why, and the process is left alone"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        lines = self.run_test("refusals", p.pid, self.path("x.memprof"))
        self.assertEqual(t.identity(p.pid), before)
        code, text = {}, {}
        for line in lines:
            name, code[name], text[name] = (line + "  ").split(" ", 2)
        expected = {"none": 3, "gone": 3, "self": 2, "older": 0, "newer": 0, "unknown": 2, "no-size": 2, "ring": 2,
                    "part": 2, "jobs": 2, "for": 2, "cull": 2, "flags": 2, "both": 2, "pattern": 2, "folder": 14, "folder-errno": 2, "token": 2,
                    "twice": 7, "mark-long": 2, "mark-empty": 2, "mark-lines": 2, "wait": 17, "stop": 0, "stop-again": 0,
                    "wait-ended": 0, "flush-ended": 32, "open": 13, "open-text": 13, "filter": 2, "filter-value": 2, "cost": 2,
                    "leaks-mode": 2, "leaks-recording": 13, "heap-mode": 2, "heap-self": 2}
        self.assertEqual({k: int(v) for k, v in code.items()}, expected)
        for name, number in expected.items():
            if number not in (0, 17) and not name.startswith(("mark-", "folder-")):
                self.assertRegex(text[name].strip(), r"^\S.*\S$", name)
        self.assertIn("only to another one", text["self"])

    def test_no_permission(self):
        """without the right to trace: the code of the program's exit status"""
        p = self.busy_victim("leaky")
        os.chmod(self.dir, 0o755)
        shutil.copy(BUILD + "/libmemprof.so.1", self.dir)  # the user may not be able to read the build folder
        program = self.compile(f"{t.ROOT}/examples/library/sibling.c")
        r = subprocess.run([*t.UNPRIVILEGED, program, str(p.pid), "1"], text=True, capture_output=True, cwd="/", env={"LD_LIBRARY_PATH": self.dir})
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertRegex(r.stderr, r"^attach: process \d+ .leaky. belongs to uid 0 and memprof runs as uid 65534")

    def test_killed(self):
        """a host that is killed leaves what a killed memprof leaves: the recording is readable, and memprof detach restores the process"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        host = self.start(self.compile(f"{t.ROOT}/examples/library/sibling.c"), str(p.pid), "1000", cwd=self.dir)
        self.wait_recorded(p.pid)
        self.memprof("flush", "-p", p.pid)
        host.kill()
        host.wait()
        self.detach(p.pid)
        self.assertEqual(t.identity(p.pid), before)
        self.assertGreater(self.report(self.path(f"sibling-{p.pid}.memprof"))["totals"]["allocations"], 0)

    def test_other_ends(self):
        """memprof detach ends a recording that a program makes by the library, which then has it complete"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        host = self.start(self.compile(f"{t.ROOT}/examples/library/sibling.c"), str(p.pid), "1000", cwd=self.dir)
        self.wait_recorded(p.pid)
        self.memprof("mark", "-p", p.pid, "here")
        self.memprof("detach", "-p", p.pid)
        self.assertIn("bytes live", host.communicate(timeout=60)[0])
        self.assertEqual((host.returncode, t.identity(p.pid)), (0, before))
        self.memprof("verify", self.path(f"sibling-{p.pid}.memprof"))

    def test_signals(self):
        """signals that the host handles, as many as come, do not disturb the search for leaks"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        self.assertEqual(self.run_test("interrupted", p.pid)[-1:], ["found"])
        self.assertEqual(t.identity(p.pid), before)

    def test_stop_unblocks(self):
        """a flush that waits for a receiver which acknowledges nothing returns when the session is stopped; the process is restored"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        receiver = peer.Receiver(s.TOKEN)
        self.addCleanup(receiver.end)
        receiver.acks = False
        program = self.compile(f"{t.ROOT}/tests/library/unblock.c")
        r = self.start(program, str(p.pid), f"127.0.0.1:{receiver.port}", s.write_token(self.path("token")), stdin=subprocess.PIPE)
        t.wait_for(lambda: receiver.files)
        receiver.answers = False
        time.sleep(0.3)  # usually the flush waits by then; otherwise it returns because the recording has ended
        lines = r.communicate("\n")[0].splitlines()
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual({x.split()[0] for x in lines}, {"flush", "stop"})
        self.assertRegex(next(x for x in lines if x.startswith("flush ")), "^flush (14|32) ")
        self.assertIn("not delivered completely", next(x for x in lines if x.startswith("stop 14 ")))


class Examples(Case):
    def test_sibling(self):
        """the service that profiles its sibling: progress, and the stacks that hold the most"""
        p = self.busy_victim("leaky")
        before = t.identity(p.pid)
        out = self.run_program(self.compile(f"{t.ROOT}/examples/library/sibling.c"), p.pid, 2)
        self.assertEqual(t.identity(p.pid), before)
        self.assertRegex(out, r"(?m)^ +\d\.\d s  [1-9]\d* events, 0 lost, [1-9]\d* bytes live$")
        self.assertRegex(out, r"(?m)^    store_page \(.*leaky\.c:\d+\)$|^    \S+ \(.*leaky\.c:\d+\)$")
        self.memprof("verify", self.path(f"sibling-{p.pid}.memprof"))

    def test_self(self):
        """the program whose child records it"""
        out = self.run_program(self.compile(f"{t.ROOT}/examples/library/self.c"))
        m = re.search(r"(?m)^(/.*/self-\d+\.memprof): (\d+) allocations, [1-9]\d* bytes are live$", out)
        self.assertGreaterEqual(int(m[2]), 1001)
        self.assertRegex(self.memprof("report", m[1]).stdout, r"> work  .*self\.c:\d+")

    def test_static(self):
        """the same program with the static library, which adds no names to the program's but its own"""
        flags = re.search(r"(?m)^LIBRARY_LDLIBS = (.*)$", MAKEFILE)[1].split()
        program = self.compile(f"{t.ROOT}/examples/library/sibling.c", libraries=(BUILD + "/libmemprof.a", *flags))
        p = self.busy_victim("leaky")
        self.assertRegex(self.run_program(program, p.pid, 1), r"\d bytes in \d+ blocks:")
        names = subprocess.run(["nm", "-g", "--defined-only", "-f", "posix", BUILD + "/libmemprof.a"], text=True, capture_output=True, check=True).stdout
        self.assertEqual({x.split()[0] for x in names.splitlines() if " " in x}, declared())


def declared():
    """The functions of the header."""
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    return set(re.findall(r"\b(memprof_\w+)\([^)]", code))


class Interface(Case):
    def test_symbols(self):
        """the shared library has the functions of its header and no other symbols, and calls nothing that is for its host to call"""
        out = subprocess.run(["nm", "-D", "-f", "posix", BUILD + "/libmemprof.so.1"], text=True, capture_output=True, check=True).stdout
        symbols = [x.split()[:2] for x in out.splitlines()]
        self.assertEqual({n.split("@")[0] for n, kind in symbols if kind not in "UwA"}, declared())
        # In the static library: the shared one contains libiberty's demangler, too.
        out = subprocess.run(["nm", "-u", "-f", "posix", BUILD + "/libmemprof.a"], text=True, capture_output=True, check=True).stdout
        called = {x.split()[0] for x in out.splitlines() if " " in x}
        self.assertLessEqual({"malloc", "ptrace"}, called)
        self.assertEqual(called & NOT_CALLED, set())

    @unittest.skipUnless(os.uname().machine == "x86_64", "src/api/memprof.abi is of x86-64")
    def test_unchanged(self):
        """names, types, sizes and offsets are those that programs were compiled with (scripts/abi)"""
        now = subprocess.run([t.ROOT + "/scripts/abi", BUILD + "/libmemprof.so.1"], text=True, capture_output=True, check=True).stdout
        self.assertEqual(now.splitlines(), t.read(API + "/memprof.abi").decode().splitlines())

    def test_languages(self):
        """the header is valid C99 and C++11, and alone"""
        source = self.path("alone.c")
        with open(source, "w") as f:
            f.write('#include "memprof.h"\nint main(void) { return !memprof_version(); }\n')
        for compiler in (("cc", "-std=c99"), ("c++", "-std=c++11", "-x", "c++"), ("c++", "-std=c++20", "-x", "c++")):
            self.run_program(self.compile(source, compiler=compiler, libraries=("-x", "none", "-L" + BUILD, "-Wl,-rpath," + BUILD, "-lmemprof")))


if __name__ == "__main__":
    t.main()
