# SPDX-License-Identifier: MIT OR Apache-2.0
"""Helpers shared by the tests on real programs: they start programs, run memprof's commands and compare a
process before and after."""
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tap import TAPTestRunner

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMPROF = os.environ.get("MEMPROF", ROOT + "/build/memprof")
FAULTY = os.environ.get("MEMPROF_FAULTY", os.path.dirname(MEMPROF) + "/faults/memprof")
VICTIMS = os.environ.get("VICTIMS", ROOT + "/build/victims")
FULL = bool(os.environ.get("MEMPROF_FULL"))
GUEST = bool(os.environ.get("MEMPROF_GUEST"))  # an emulated machine, about ten times slower
# Runs a command as an ordinary user without capabilities.
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
# The libraries, besides the C library, whose heaps memprof leaks and heap can walk.
WALKED = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")


def library(name):
    """The path of a shared library that the Makefile builds, or else of the system's."""
    found = [f"{d}/{name}" for d in (VICTIMS, f"/usr/lib/{os.uname().machine}-linux-gnu")]
    return next(filter(os.path.exists, found), name)


def environment_without_make():
    """Return: the environment for a make that is not a part of the make that runs the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}


def wait_for(what, seconds=600 if GUEST else 120):
    """Polls until what() returns something true, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        r = what()
        if r:
            return r
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def at_work(pid):
    """Whether a program that was just started is past its startup: its first thread waits for something, or
    has used some CPU time."""
    try:
        with open(f"/proc/{pid}/task/{pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return True  # the program has ended
    return fields[0] not in b"RD" or int(fields[11]) + int(fields[12]) >= 20


def settle(pid):
    """Waits until a program that prints nothing when it is ready is at work.  Gives up after ten seconds: a
    program that is always in uninterruptible system calls never looks ready."""
    time.sleep(2 if GUEST else 0.2)
    end = time.monotonic() + 10
    while not (at_work(pid) and (time.sleep(0.02) or at_work(pid))) and time.monotonic() < end:
        time.sleep(0.02)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="memprof-test-")
        self.started = []

    def tearDown(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f:
                    f.close()
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, *argv, **kw):
        """Starts a program with no terminal; tearDown() ends it.  Return: its Popen object."""
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen(argv, text=True, **kw)
        self.started.append(p)
        return p

    def victim(self, name, *args, **kw):
        p = self.start(f"{VICTIMS}/{name}", *map(str, args), **kw)
        settle(p.pid)
        return p

    def busy_victim(self, name, *args, **kw):
        """Starts a victim with many busy threads as a service would be started, in a session of its own.  Linux
        divides processor time among sessions; in that of the tests, memprof would get a thread's share."""
        return self.victim(name, *args, start_new_session=True, **kw)

    def node(self):
        """Starts node, whose compiled code and threads allocate; returns it when they do."""
        p = self.start(shutil.which("node"), "-e", "require('zlib'); setInterval(() => { for (let i = 0; i < 50; i++) "
                       "require('zlib').deflate('x'.repeat(10000), () => {}); }, 1); "
                       "setTimeout(() => console.log('ready'), 100);")
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def needs_a32(self):
        """Skips a test whose victim exists only on the ARM guest."""
        if os.uname().machine != "armv7l":
            self.skipTest("not a processor with A32 code")

    def memprof(self, *argv, status=0, timeout=300):
        r = subprocess.run([MEMPROF, *map(str, argv)], text=True, capture_output=True,
                           timeout=timeout, stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, status, f"memprof {argv}: {r.stdout}{r.stderr}")
        return r

    def start_until(self, point, *argv, env=None, **kw):
        """Starts memprof and waits until it is stopped at a fault point (src/lib/fault.h).  SIGCONT continues it.
        @env: more variables of its environment.  Return: its Popen object."""
        kw.setdefault("stderr", subprocess.PIPE)
        m = self.start(FAULTY, *map(str, argv), env=dict(os.environ, MEMPROF_FAULT=point, **(env or {}),
                                                         MEMPROF_FAULT_SIGNAL=str(int(signal.SIGSTOP))), **kw)
        wait_for(lambda: m.poll() is not None or stopped(m.pid))
        self.assertIsNone(m.poll(), f"it did not come to {point}")
        return m

    def gcore(self, p):
        """Dumps the core of a process, which runs on.  Return: the file's path."""
        r = subprocess.run(["gcore", "-o", self.path("core"), str(p.pid)], text=True, capture_output=True,
                           stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, 0, r.stderr)
        return self.path(f"core.{p.pid}")

    def detach(self, pid):
        self.memprof("detach", "-p", pid)

    def repaired(self, p, before, blocked):
        """After memprof was killed: detaches if it has left anything.  @before, @blocked: identity() and masks() of
        the process without memprof.  Return: whether it had."""
        # Until the carrier has restored itself, it can still execute the injected system call.
        wait_for(lambda: masks(p.pid) == blocked)
        left = "memprof" in maps(p.pid) or identity(p.pid)["fds"] != before["fds"]
        if left:
            self.detach(p.pid)
        return left

    def recorder(self, pid):
        """Returns the pid of the recorder that records the process, 0 if there is none."""
        for s in json.loads(self.memprof("status", "--json").stdout):
            if s["pid"] == pid and s["state"] == "recording" and s["recorder_alive"]:
                return s["recorder"]
        return 0

    def wait_recorded(self, pid):
        """Waits until a recorder records the process; returns the recorder's pid."""
        return wait_for(lambda: self.recorder(pid))

    def record(self, pid, seconds=0.3, *more):
        """Attaches for some seconds; returns the recording's path."""
        f = self.path("rec.memprof")
        self.memprof("attach", "-q", "-p", pid, "-o", f, "--for", f"{int(seconds * 1000)}ms", *more)
        return f

    def record_exact(self, *options):
        """Attaches to the victim exact and detaches after its work, which leaves the process as before.  Returns what the
        victim counted, and the report without the two marker blocks, which are so large that any sample has them."""
        p = self.victim("exact", 4, 300000, "wait", stdin=subprocess.PIPE)
        before = identity(p.pid)
        f = self.path("r")
        rec = self.start(MEMPROF, "attach", "-q", *options, "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        p.stdin.write("go\n")
        p.stdin.flush()
        truth = json.loads(p.stdout.readline())
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        after = identity(p.pid)
        for k in ("text", "fds", "tasks"):
            self.assertEqual(before[k], after[k], k)
        report = self.report(f, "--leaks")
        markers = [b for b in report["leaks"] if b["size"] in (7000001, 7000002)]
        self.assertEqual(len(markers), 2)
        report["leaks"] = [b for b in report["leaks"] if b not in markers]
        for k in ("allocated_bytes", "leaked_bytes"):
            report["totals"][k] -= 14000003
        report["totals"]["allocations"] -= 2
        return truth, report

    def report(self, recording, *more):
        return json.loads(self.memprof("report", recording, "--json", *more).stdout)

    def finish(self, p, timeout=120):
        """Sends SIGTERM and returns the program's output.  Its exit status must be 0."""
        p.terminate()
        out, _ = p.communicate(timeout=timeout)
        self.assertEqual(p.returncode, 0, out)
        return out


def calls(report):
    """The number of calls of each function, summed over all modules."""
    sums = {}
    for f in report["functions"]:
        sums[f["function"]] = sums.get(f["function"], 0) + f["calls"]
    return sums


def read(path):
    with open(path, "rb") as f:
        return f.read()


def payloads(recording):
    """Yields every chunk of a recording, uncompressed (src/formats/FORMAT.md)."""
    data, at = read(recording), 12
    while at < len(data):
        stored = int.from_bytes(data[at + 12:at + 16], "little")
        yield subprocess.run(["zstd", "-dc"], input=data[at + 24:at + 24 + stored], capture_output=True,
                             check=True).stdout
        at += 24 + stored


def maps(pid):
    return read(f"/proc/{pid}/maps").decode()


def stopped(pid):
    """Whether all threads of the process are in a job-control stop."""
    return all(re.search(r"^State:\tT", read(f"/proc/{pid}/task/{tid}/status").decode(), re.M)
               for tid in os.listdir(f"/proc/{pid}/task"))


def children(pid):
    """The pids of the children of all threads."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread can end meanwhile
            found += read(f"/proc/{pid}/task/{tid}/children").split()
    return sorted(map(int, found))


def links(pid):
    """What the open descriptors of a process are."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # the process can close it meanwhile
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def masks(pid):
    """Signal masks of all threads.  The carrier has a different mask until it has restored itself."""
    return [re.search(rb"^SigBlk:.*$", read(f"/proc/{pid}/task/{tid}/status"), re.M)[0]
            for tid in sorted(os.listdir(f"/proc/{pid}/task"))]


def wait_hooked(pid, path):
    """Waits until memprof has patched the text of the file, in each of its mappings: a written page becomes
    an anonymous copy."""
    def hooked():
        current, copied = None, []
        for line in read(f"/proc/{pid}/smaps").decode().split("\n"):
            if re.match("[0-9a-f]+-", line):
                current = line
            elif (current and " r-xp " in current and os.path.realpath(path) in current and
                  line.startswith("Anonymous:")):
                copied.append(not line.endswith(" 0 kB"))
        return copied and all(copied)
    wait_for(hooked)


def identity(pid):
    """The state that memprof must leave as it was: everything that the program itself does not change."""
    stable = [line for line in maps(pid).split("\n")
              if re.search(r"r-xp|\.so|memfd|memprof", line)]
    text = {}
    with open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps(pid).split("\n"):
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ [1-9]", line)
            if m:
                low, high = (int(x, 16) for x in m.groups())
                mem.seek(low)
                text[line] = hashlib.sha256(mem.read(high - low)).hexdigest()
    status = read(f"/proc/{pid}/status").decode()
    # Anonymous copies of the file's pages (proc(5), smaps) show which pages of the text were written to.
    copied, current = {}, None
    for line in read(f"/proc/{pid}/smaps").decode().split("\n"):
        if re.match(r"[0-9a-f]+-[0-9a-f]+ r-xp", line):
            current = line
        elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            current = None
        elif current and line.startswith("Anonymous:"):
            copied[current] = line
    return {
        "maps": stable,
        "text": text,
        "fds": sorted(os.listdir(f"/proc/{pid}/fd")),
        "tasks": sorted(os.listdir(f"/proc/{pid}/task")),
        "signals": re.findall(r"^(?:Sig(?:Blk|Ign|Cgt)|TracerPid|Seccomp):.*$", status, re.M),
        "copied text": copied,
    }


def main():
    if os.geteuid():
        print("1..0 # SKIP needs root (or CAP_SYS_PTRACE)")
        sys.exit(0 if not os.environ.get("CI") else 1)
    # The runner ends a test that takes too long with SIGTERM: tearDown() must still run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    runner = TAPTestRunner()
    runner.set_stream(True)
    runner.set_format("{short_description} ({method_name})")
    result = unittest.main(testRunner=runner, exit=False).result
    sys.exit(not result.wasSuccessful())
