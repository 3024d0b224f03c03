#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks leaves nothing behind: no running forked copy, no zombie, no signal, no descriptor."""
import ctypes
import os
import re
import signal
import subprocess
import time

import memprof_test as t

ROUNDS = int(os.environ.get("ROUNDS", 500 if t.FULL else 20))
SERVER = """
import json, signal, threading
def count(*_): print("signal", flush=True)
signal.signal(signal.SIGCHLD, count)
def work():
    kept = []
    while True:
        kept.append(json.dumps({"a": list(range(50))}))
        if len(kept) > 5000: kept.clear()
for _ in range(3): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
while True: signal.pause()
"""
OWN_CHILDREN = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
def child(exit_signal, mask, end):
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    pid = libc.syscall(56, exit_signal, 0, 0, 0, 0)
    if not pid:
        end()
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return pid
def kill(): os.kill(os.getpid(), 9)
every = set(range(1, 65)) - {32, 33}
pids = [child(17, every, kill), child(0, (), kill), child(0, every, lambda: None)]
print("ready", flush=True)
input()
print([os.waitpid(p, 0x40000000)[1] for p in pids], flush=True)
"""


def children(pid):
    """The children of all threads: a map from pid to state."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        for child in t.read(f"/proc/{pid}/task/{tid}/children").split():
            try:
                found[int(child)] = t.read(f"/proc/{int(child)}/stat").rsplit(b")", 1)[1].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                pass  # it was reaped before its state was read
    return found


def copies(pid):
    """Other living processes with the same command line and session as @pid."""
    argv, found = t.read(f"/proc/{pid}/cmdline"), []
    for other in os.listdir("/proc"):
        try:
            if (other.isdigit() and int(other) != pid and t.read(f"/proc/{other}/cmdline") == argv and
                    os.getsid(int(other)) == os.getsid(pid)):
                found.append(int(other))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def of_session(leader):
    """Processes of a session (setsid), with zombies.  A forked copy is in the session of its original."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == leader:
                found.append(int(pid))
        except ProcessLookupError:
            pass
    return found


class Safe(t.Case):
    def rounds(self, pid, n):
        before = t.identity(pid)
        for i in range(n):
            r = subprocess.run([t.MEMPROF, "leaks", "-p", str(pid)], text=True,
                               capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            self.assertIn(r.returncode, (0, 1), f"round {i}: {r.stdout}{r.stderr}")
            self.assertIn(", exact:", r.stdout)
            self.assertEqual(children(pid), {}, f"round {i}")
        after = t.identity(pid)
        for what in ("text", "fds", "tasks", "signals", "copied text"):
            self.assertEqual(after[what], before[what])
        self.assertEqual(after["maps"], before["maps"])

    def test_python(self):
        """20 leak reports on python under load: exact, and its SIGCHLD handler is never called"""
        p = self.start("/usr/bin/python3", "-c", SERVER)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.rounds(p.pid, ROUNDS)
        p.kill()
        self.assertEqual(p.stdout.read(), "")

    def test_redis(self):
        """20 leak reports on redis under load: no request fails"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", cwd=self.dir,
                       env=dict(os.environ, LD_PRELOAD=""))
        t.wait_for(lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True).stdout == b"PONG\n")
        load = self.start("redis-benchmark", "-s", sock, "-q", "-l", "-n", "2000", "-c", "8", "-t", "set,get,lpush,lpop",
                          stderr=subprocess.STDOUT)
        time.sleep(0.5)
        before = t.read(f"/proc/{p.pid}/status").decode()
        for _ in range(ROUNDS):
            r = subprocess.run([t.MEMPROF, "leaks", "-p", str(p.pid)], text=True,
                               capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)
            self.assertEqual(children(p.pid), {})
        self.assertIsNone(load.poll())
        self.assertIsNone(p.poll())
        load.kill()
        out = load.stdout.read()
        self.assertNotIn("rror", out)
        for field in ("SigPnd", "ShdPnd", "SigBlk", "Threads"):
            find = re.compile(rf"^{field}:.*$", re.M)
            self.assertEqual(find.findall(before), find.findall(t.read(f"/proc/{p.pid}/status").decode()))

    def large(self, subreaper=False):
        """Starts a program whose copy takes a while to read.  The copy of a subreaper is its child.  The program
        has a session of its own, because other tests run the same program at the same time."""
        p = self.start(f"{t.VICTIMS}/blocks", "park", "3" if t.GUEST else "16", start_new_session=True,
                       preexec_fn=(lambda: ctypes.CDLL(None).prctl(36, 1)) if subreaper else None)
        while not p.stdout.readline().startswith("ready"):
            pass
        return p

    def nothing_stays(self, p):
        """Waits until no copy is left: copies die with memprof, and the guardian has them reaped."""
        t.wait_for(lambda: not children(p.pid) and not copies(p.pid))
        self.assertIsNone(p.poll())

    def kill_both(self, p):
        """Kills the guardian and then memprof while it reads, so that a zombie stays.  Tries again if memprof
        was faster."""
        for _ in range(50):
            m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), stderr=subprocess.DEVNULL)
            of_m = []
            while m.poll() is None and not (of_m and children(p.pid)):
                of_m = t.read(f"/proc/{m.pid}/task/{m.pid}/children").split()
            if of_m:
                try:
                    os.kill(int(of_m[0]), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            m.kill()
            m.wait()
            t.wait_for(lambda: set(children(p.pid).values()) <= {b"Z"})
            if children(p.pid):
                return
        self.fail("memprof was always done before")

    def test_killed_at_birth(self):
        """memprof leaks killed while it makes the copy leaves no copy that runs"""
        for subreaper, points in ((True, ("copy-born", "copy-held", "copy-made")),
                                  (False, ("copy-born", "copy-held", "copy-heir", "copy-orphaned", "copy-made"))):
            p = self.large(subreaper)
            before = t.identity(p.pid)["signals"]
            for point in points:
                r = subprocess.run([t.FAULTY, "leaks", "-p", str(p.pid)], capture_output=True, text=True,
                                   env=dict(os.environ, MEMPROF_FAULT=f"{point}:1"))
                self.assertEqual(r.returncode, -signal.SIGKILL, f"{point}: {r.stdout}{r.stderr}")
                self.nothing_stays(p)
            # The carrier restores itself.
            t.wait_for(lambda: t.identity(p.pid)["signals"] == before)
            p.kill()
            p.wait()

    def killed_while_reading(self, p, there):
        before = t.identity(p.pid)
        seen = 0
        for i in range(30 if t.FULL else 8):
            m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), stderr=subprocess.DEVNULL)
            # Every second kill waits for the copy, so that also a slow machine has something to clear away.
            while i % 2 and m.poll() is None and not there(p.pid):
                pass
            time.sleep(0.01 * i if i % 2 else 0.02 + 0.03 * i)
            seen += bool(there(p.pid))
            m.kill()
            m.wait()
            self.nothing_stays(p)
        self.assertGreater(seen, 0)
        self.memprof("leaks", "-p", p.pid, status=0)
        self.assertEqual(t.identity(p.pid), before)

    def test_killed_while_reading(self):
        """memprof leaks killed at random moments leaves no copy and no zombie, and the next report works"""
        self.killed_while_reading(self.large(), copies)

    def test_killed_while_reading_child(self):
        """memprof leaks killed at random moments, with the copy a child of the program, leaves no zombie"""
        self.killed_while_reading(self.large(subreaper=True), children)

    def test_guardian_killed(self):
        """if memprof leaks and its guardian are killed, the next memprof command removes what is left"""
        p = self.large(subreaper=True)
        before = t.identity(p.pid)
        for way in ("leaks", "heap", "detach"):
            self.kill_both(p)
            out = self.memprof(way, "-p", p.pid).stdout
            if way == "detach":
                self.assertIn("removed the remains of 1 copy that a killed memprof had left", out)
            self.assertEqual(children(p.pid), {}, way)
        self.memprof("detach", "-p", p.pid, status=16)
        self.assertEqual(t.identity(p.pid), before)

    def guardian_stopped(self, p):
        """Kills memprof while it reads, and stops its guardian while that traces the process.  Return: the
        guardian's pid."""
        def tracer():
            return int(re.search(rb"^TracerPid:\t(.*)$", t.read(f"/proc/{p.pid}/status"), re.M)[1])
        for _ in range(200):
            m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), stderr=subprocess.DEVNULL)
            t.wait_for(lambda: children(p.pid) or m.poll() is not None)
            m.kill()
            m.wait()
            while children(p.pid):
                guardian = tracer()
                if guardian in (0, m.pid):
                    continue
                try:
                    os.kill(guardian, signal.SIGSTOP)
                    t.wait_for(lambda: t.stopped(guardian) or tracer() != guardian)
                    if tracer() == guardian:
                        return guardian
                    os.kill(guardian, signal.SIGCONT)
                except (FileNotFoundError, ProcessLookupError):
                    pass  # the guardian has ended
        self.fail("the guardian was always done before")

    def test_guardian_at_work(self):
        """memprof detach waits for the guardian of a killed memprof leaks"""
        p = self.large(subreaper=True)
        before = t.identity(p.pid)
        guardian = self.guardian_stopped(p)
        try:
            detach = self.start(t.MEMPROF, "detach", "-p", str(p.pid), stderr=subprocess.STDOUT)
            with self.assertRaises(subprocess.TimeoutExpired):
                self.fail(detach.communicate(timeout=1)[0])
        finally:
            os.kill(guardian, signal.SIGCONT)
        out, _ = detach.communicate(timeout=60)
        self.assertIn(detach.returncode, (0, 16), out)
        self.nothing_stays(p)
        self.assertEqual(t.identity(p.pid), before)

    def test_own_children(self):
        """leaks and detach do not touch the program's own children that resemble copies"""
        p = self.start("/usr/bin/python3", "-c", OWN_CHILDREN, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        t.wait_for(lambda: list(children(p.pid).values()) == 3 * [b"Z"])
        before = children(p.pid)
        self.memprof("leaks", "-p", p.pid)
        self.memprof("detach", "-p", p.pid, status=16)
        self.assertEqual(children(p.pid), before)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "[9, 9, 0]\n")

    def test_interrupted(self):
        """Ctrl-C ends memprof leaks, and no copy and no zombie stays"""
        p = self.large()
        m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), "--confirm", "3", "--interval", "30s",
                       stderr=subprocess.STDOUT)
        self.assertIn("process", m.stdout.readline())
        m.send_signal(signal.SIGINT)
        out, _ = m.communicate(timeout=120)
        self.assertEqual(m.returncode, 3, out)
        self.assertIn("interrupted", out)
        self.nothing_stays(p)

    def test_interrupted_anywhere(self):
        """SIGINT, SIGTERM or SIGHUP while leaks or heap reads: it ends, and the process is as before"""
        p = self.start(f"{t.VICTIMS}/blocks", "park", "3" if t.GUEST else "16", start_new_session=True)
        while not p.stdout.readline().startswith("ready"):
            pass
        before = t.identity(p.pid)
        ways = [(3, "leaks"), (3, "leaks", "--in-place"), (3, "leaks", "--gentle"), (1, "heap")]
        if not t.GUEST:
            ways += [(3, "leaks", "--pre-copy"), (1, "heap", "--pre-copy")]
        for n, (status, command, *more) in enumerate(ways):
            m = self.start_until("snapshot-taken", command, "-p", p.pid, *more, stderr=subprocess.STDOUT)
            m.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[n % 3])
            m.send_signal(signal.SIGCONT)
            out, _ = m.communicate(timeout=120)
            self.assertEqual(m.returncode, status, f"{command} {more}: {out}")
            self.assertIn("interrupted; the process is unchanged", out)
            t.wait_for(lambda: of_session(p.pid) == [p.pid])  # init reaps the copy some time later
            self.assertEqual(t.identity(p.pid), before)

    def test_target_ends(self):
        """leaks ends with status 6 if the process ends between two copies, 3 if it does not exist"""
        p = self.large()
        m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), "--confirm", "2", "--interval", "10s",
                       stderr=subprocess.STDOUT)
        self.assertIn("process", m.stdout.readline())
        p.kill()
        p.wait()
        out, _ = m.communicate(timeout=120)
        self.assertEqual(m.returncode, 6, out)
        self.memprof("leaks", "-p", 4194000, status=3)
        self.memprof("leaks", status=2)
        self.memprof("leaks", "-p", "x", status=2)

    def listed(self, p):
        """Addresses of all live blocks."""
        f = self.path("list")
        self.memprof("heap", "-p", p.pid, "--list", f)
        with open(f) as lines:
            return [int(line.split()[0], 16) for line in lines]

    def smash(self, p, mmapped):
        """Overwrites the header of a block, either in an arena or in a mapping of its own.
        Return: the block's address, the list of blocks before."""
        blocks = self.listed(p)
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            for victim in blocks[len(blocks) // 2:] + blocks:
                mem.seek(victim - 16)
                header = mem.read(16)
                # glibc's IS_MMAPPED is the second bit of the size.  An mmapped block of memalign() is left
                # out: its mapping still begins with another, valid header.
                if bool(header[8] & 2) == mmapped and not (mmapped and any(header[:8])):
                    mem.seek(victim - 8)
                    mem.write(b"AAAAAAAA")
                    return victim, blocks
        self.fail("no such block")

    def test_smashed(self):
        """leaks reports an overwritten chunk header, and finds 99 % of the other blocks"""
        p = self.large()
        victim, blocks = self.smash(p, mmapped=False)
        r = self.memprof("leaks", "-p", p.pid, "--require-exact", status=5)
        self.assertIn(f"DAMAGED at {victim - 16:#x}", r.stdout)
        left = set(self.listed(p))
        self.assertGreater(len(left & set(blocks)), len(blocks) * 0.99)

    def test_smashed_mmapped(self):
        """leaks reports an overwritten header of an mmapped block as missing, and finds all other blocks"""
        p = self.large()
        victim, blocks = self.smash(p, mmapped=True)
        r = self.memprof("leaks", "-p", p.pid, "--require-exact", status=5)
        said = re.search(r"(\d+) mappings of (\d+) bytes were found, and the allocator counts (\d+) of (\d+)",
                         r.stdout)
        self.assertTrue(said, r.stdout)
        found, found_bytes, counted, counted_bytes = map(int, said.groups())
        self.assertEqual(counted, found + 1)
        self.assertGreater(counted_bytes, found_bytes)
        self.assertEqual(set(self.listed(p)), set(blocks) - {victim})

    def test_smashed_link(self):
        """leaks follows the pointers of a block whose header is overwritten"""
        p = self.start(f"{t.VICTIMS}/chain", stdin=subprocess.PIPE)
        middle = int(p.stdout.readline(), 16)
        self.assertIn("no leaks", self.memprof("leaks", "-p", p.pid).stdout)
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(middle - 8)
            mem.write(b"AAAAAAAA")
        out = self.memprof("leaks", "-p", p.pid).stdout
        self.assertIn(f"DAMAGED at {middle - 16:#x}", out)
        self.assertIn("no leaks", out)
        p.kill()

    def test_sandboxed(self):
        """leaks refuses a program whose seccomp filter forbids clone(), and the program lives on"""
        for how, status in ((["none"], 0), (["without", "restart_syscall"], 0), (["allow"], 3),
                            (["strict"], 3)):
            p = self.start(f"{t.VICTIMS}/sandbox", *how, stdin=subprocess.PIPE)
            self.assertEqual(p.stdout.readline(), "ready\n")
            if how[0] == "strict":  # it enters this mode after it has printed "ready"
                t.wait_for(lambda: b"\nSeccomp:\t1\n" in t.read(f"/proc/{p.pid}/status"))
            self.memprof("leaks", "-p", p.pid, status=status)
            time.sleep(0.2)
            self.assertIsNone(p.poll(), how)
            if how[0] == "strict":
                p.stdin.close()
            else:
                p.terminate()
            self.assertEqual(p.stdout.read(), "ok\n")
            p.stdin = None

    def test_stopped(self):
        """leaks on a process in a job-control stop leaves it stopped, with no copy"""
        p = self.large()
        p.send_signal(signal.SIGSTOP)
        t.wait_for(lambda: t.stopped(p.pid))
        self.memprof("leaks", "-p", p.pid, status=0)
        self.assertIn("T (stopped)", t.read(f"/proc/{p.pid}/status").decode())
        self.assertEqual(children(p.pid), {})


if __name__ == "__main__":
    t.main()
