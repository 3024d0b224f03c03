#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A program that uses many kernel interfaces at once and checks each result notices nothing of memprof.

With MEMPROF_FULL=1, one test runs memprof's commands in random order for minutes; CHAOS_SEED=N repeats the
choices of an earlier run."""
import ctypes
import os
import random
import re
import signal
import subprocess
import time

import memprof_test as t
import ptrace

SECONDS = 3
MINUTES = float(os.environ.get("CHAOS_MINUTES", 5 if t.FULL else 0))
SEED = int(os.environ.get("CHAOS_SEED", 0)) or int(time.time())
# The first process of a pid namespace, which reaps orphaned processes (doc/safety.md, "The copy's parent").
INIT = """
import os, signal, sys
signal.signal(signal.SIGCHLD, lambda *_: None)
pid = os.fork()
if not pid:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    got, status = os.wait()
    if got == pid: os._exit(os.waitstatus_to_exitcode(status) & 255)
"""

# Wrong results of system calls, which strace returns in place of the kernel's, and the actors (the program's
# threads, one per interface) that must notice them.
EINTR = ("poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 rt_sigtimedwait semop semtimedop "
         "mq_timedreceive mq_timedsend io_getevents io_uring_enter recvmsg recvmmsg recvfrom accept accept4 msgrcv "
         "sendto writev futex")
LIES = [
    ([f"{EINTR.replace(' ', ',')}:error=EINTR"],
     "polls epolls epoll sigtimedwait sigwaitinfo semtimedop semop queue-waits messages aio io-uring receive-waits "
     "packets send-waits connect-waits connections files posts futexes timed-streams eintr"),
    (["clock_nanosleep:retval=0", "read:retval=8:when=20+", "rt_tgsigqueueinfo:retval=0", "madvise:retval=0", "wait4:retval=1",
      "waitid:retval=0", "flock,fcntl:retval=0", "timer_settime:retval=0", "personality:retval=8:when=2+", "alarm:retval=0",
      "sigaltstack:retval=0", "sendfile,splice:retval=100", "clock_gettime:poke_exit=@arg2=0000000000000000"],
     "sleeps timerfd sigqueue mappings fork spawn exec waits job-control snapshots cores file-locks "
     "posix-timers state alarm jumps streams clocks"),
    (["read:error=EINTR:when=20+"], "signalfd"),
    (["futex:retval=0"], "mutexes robust"),
]


def child(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int(f.read().split()[0])


def lasting(pid):
    """The part of identity() that the chaos program itself does not change."""
    all_of_it = t.identity(pid)
    signals = [line for line in all_of_it["signals"] if not line.startswith("SigBlk")]
    return {**{what: all_of_it[what] for what in ("maps", "text", "copied text")}, "signals": signals}


def overwrite(pid):
    """Changes one byte in each anonymous mapping that has a block filled with one value."""
    os.kill(pid, signal.SIGSTOP)
    t.wait_for(lambda: t.stopped(pid))
    with open(f"/proc/{pid}/mem", "r+b", 0) as mem:
        for low, high in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0", t.maps(pid), re.M):
            mem.seek(int(low, 16))
            same = re.search(rb"([\x01-\xff])\1{200}", mem.read(min(int(high, 16) - int(low, 16), 4 << 20)))
            if same:
                mem.seek(int(low, 16) + same.start() + 100)
                mem.write(b"\0")
    os.kill(pid, signal.SIGCONT)


def change_registers(pid):
    """Changes the rounding mode (mxcsr) and xmm7 in all threads."""
    for tid in map(int, os.listdir(f"/proc/{pid}/task")):
        try:
            stepper = ptrace.Stepper(pid, tid)
            room = ctypes.create_string_buffer(512)  # struct user_fpregs_struct
            ptrace.ptrace(ptrace.GETFPREGS, tid, 0, ctypes.addressof(room))
            room[25] = room.raw[25] ^ 0x20
            room[160 + 7 * 16] = room.raw[160 + 7 * 16] ^ 0xff
            ptrace.ptrace(ptrace.SETFPREGS, tid, 0, ctypes.addressof(room))
            ptrace.ptrace(ptrace.DETACH, tid)
        except (ChildProcessError, OSError):
            pass  # the thread has ended


class Chaos(t.Case):
    def begin(self, *args):
        """Starts the program in a pid namespace with an init.  Return: the process to wait for, the program's
        pid."""
        p = self.start("unshare", "--pid", "--fork", "--kill-child", "/usr/bin/python3", "-c", INIT,
                       f"{t.VICTIMS}/chaos", *args, stderr=subprocess.STDOUT, cwd=self.dir)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p, child(child(p.pid))

    def end(self, p, pid):
        """Ends the program.  Return: its exit status and output."""
        os.kill(pid, signal.SIGTERM)
        out, _ = p.communicate(timeout=200)
        return p.returncode, out

    def unharmed(self, p, pid, before):
        self.assertEqual(lasting(pid), before)
        status, out = self.end(p, pid)
        self.assertEqual(status, 0, out)
        self.assertIn("violations 0\n", out)
        rounds = dict(re.findall(r"^(\S+) +(\d+) rounds", out, re.M))
        skipped = re.findall(r"^(\S+) +skipped", out, re.M)
        self.assertEqual({*rounds, *skipped}, {row.split(" | ")[0][2:] for row in self.rows()}, out)
        self.assertNotIn("0", rounds.values(), out)
        longest = max(re.findall(r"longest (\d+) ms", out), key=int)
        print(f"# longest round {longest} ms")

    def rows(self):
        r = subprocess.run([f"{t.VICTIMS}/chaos", "--list"], text=True, capture_output=True, check=True)
        return r.stdout.splitlines()

    def look(self, pid, *how):
        """Runs a command that reports the program's blocks.  These change all the time, so that no particular
        result is right.  Return: false if memprof could not stop the program in time, and left it alone."""
        r = subprocess.run([t.MEMPROF, *how[:1], "-p", str(pid), *how[1:]], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        late = r.returncode == (4 if how[0] == "leaks" else 17) and " in time" in r.stderr
        self.assertTrue(late or r.returncode in (0, 1), f"{how}: {r.stdout}{r.stderr}")
        return not late

    def attach(self, pid):
        """Attaches, records, detaches.  Return: false if memprof could not stop the program in time, and left
        it alone (status 17)."""
        r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"), "--for", "200ms"], text=True,
                           capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
        self.assertIn(r.returncode, (0, 17), r.stdout + r.stderr)
        return r.returncode == 0

    def kill(self, pid, delay, *command):
        """Kills memprof (SIGKILL) in the middle of a command, then repairs the program."""
        m = self.start(t.MEMPROF, *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            m.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            m.kill()
            m.wait()
        self.repair(pid)

    def repair(self, pid):
        """Runs detach, as a user would.  Status 16: there is nothing to repair."""
        r = subprocess.run([t.MEMPROF, "detach", "-p", str(pid)], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        self.assertIn(r.returncode, (0, 16), r.stdout + r.stderr)
        self.assertNotIn("memprof", t.maps(pid))

    def over_and_over(self, act, *args, seconds=SECONDS):
        """Runs the program and calls act(pid) repeatedly for that many seconds."""
        p, pid = self.begin(*args)
        time.sleep(0.5)
        before = lasting(pid)
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end or not n:  # act() returns False if it could not act
            n += act(pid) is not False
            self.assertIsNone(p.poll())
        print(f"# {n} times")
        self.unharmed(p, pid, before)

    def test_attach(self):
        """the chaos program notices nothing of attach, record and detach"""
        self.over_and_over(self.attach)

    def test_leaks(self):
        """the chaos program notices nothing of memprof leaks"""
        self.over_and_over(lambda pid: self.look(pid, "leaks"))

    def test_heap(self):
        """the chaos program notices nothing of memprof heap"""
        self.over_and_over(lambda pid: self.look(pid, "heap"))

    def test_precopy(self):
        """the chaos program notices nothing of memprof leaks --pre-copy"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--pre-copy"))

    def test_gentle(self):
        """the chaos program notices nothing of memprof leaks --gentle"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--gentle", "--interval", "100ms"), "--gentle")

    def test_in_place(self):
        """the chaos program notices nothing of memprof leaks --in-place"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--in-place"))

    def killed(self, pid, rng):
        command = rng.choice((("attach", "-q", "-p", str(pid), "-o", self.path("r")), ("leaks", "-p", str(pid)),
                              ("leaks", "--pre-copy", "-p", str(pid)), ("heap", "-p", str(pid))))
        self.kill(pid, rng.uniform(0, 0.5), *command)

    def recorder_killed(self, pid):
        m = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"))
        t.wait_for(lambda: m.poll() is not None or self.recorder(pid))
        if m.poll() is not None:
            self.assertEqual(m.returncode, 17)
            return False
        m.kill()
        m.wait()
        self.repair(pid)
        return True

    def test_killed_recorder(self):
        """the chaos program notices nothing of kill -9 of the recorder, followed by detach"""
        self.over_and_over(self.recorder_killed)

    def test_killed(self):
        """the chaos program survives kill -9 of memprof at any moment, followed by detach"""
        rng = random.Random(SEED)
        print(f"# seed {SEED}")
        self.over_and_over(lambda pid: self.killed(pid, rng), "--killed")

    def test_random(self):
        """the chaos program survives all memprof commands and kills in random order"""
        if not MINUTES:
            self.skipTest("only with MEMPROF_FULL=1")
        rng = random.Random(SEED)
        print(f"# seed {SEED}")
        ways = [self.attach, self.recorder_killed, lambda pid: self.killed(pid, rng)]
        ways += [lambda pid, how=how: self.look(pid, *how) for how in (
            ("leaks",), ("heap",), ("leaks", "--pre-copy"), ("leaks", "--gentle", "--interval", "100ms"),
            ("leaks", "--in-place"))]
        self.over_and_over(lambda pid: rng.choice(ways)(pid), "--killed", seconds=60 * MINUTES)

    def notices(self, actors, lie, *command):
        """Runs these actors and calls lie(pid) repeatedly until each actor has reported that something is
        wrong."""
        p = self.start(*command, f"{t.VICTIMS}/chaos", *actors, cwd=self.dir, start_new_session=True)
        os.set_blocking(p.stdout.fileno(), False)
        out = ""

        def all_said():
            nonlocal out
            ended = p.poll() is not None  # some faults end the program, after it has reported them
            try:
                out += os.read(p.stdout.fileno(), 65536).decode()
            except BlockingIOError:
                pass
            left = [actor for actor in actors if not re.search(f"^{actor}: ", out, re.M)]
            self.assertFalse(ended and left, f"{left}: {out}")
            if left and "ready\n" in out:
                lie(p.pid)
            return not left
        t.wait_for(all_said)
        p.kill()
        p.wait()

    def test_notices(self):
        """each actor of the chaos program notices wrong results, foreign signals or changed registers"""
        told = {"faults", "itimers", "cpu-timer", "heap", "registers", "floats"}.union(*(actors.split() for _, actors in LIES))
        # Not tested here: "threads" hangs if the end of a thread is lost, and reports that after a minute.
        # test_signals.py tests rseq.
        self.assertEqual({row.split(" | ")[0][2:] for row in self.rows()} - told, {"threads", "rseq"})
        for lies, actors in LIES:
            calls = ",".join(lie.split(":")[0] for lie in lies)
            inject = [option for lie in lies for option in ("-e", "inject=" + lie)]
            with self.subTest(actors):
                self.notices(actors.split(), lambda pid: None, "strace", "-f", "-qq", "-o", "/dev/null", "-e",
                             "trace=" + calls, *inject)
        self.notices(["itimers"], lambda pid: os.kill(pid, signal.SIGALRM))
        self.notices(["faults"], lambda pid: os.kill(pid, signal.SIGTRAP))
        self.notices(["cpu-timer"], lambda pid: os.kill(pid, signal.SIGRTMIN + 7))
        self.notices(["heap"], overwrite)
        if os.uname().machine == "x86_64":
            self.notices(["registers", "floats"], change_registers)

    def test_table(self):
        """doc/safety.md has the table of what each actor of the chaos program checks"""
        text = t.read(f"{t.ROOT}/doc/safety.md").decode().splitlines()
        at = text.index("| actor | what is guaranteed | except |") + 2
        self.assertEqual(text[at:text.index("", at)], self.rows())


if __name__ == "__main__":
    t.main()
