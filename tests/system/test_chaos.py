#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A program that does everything at once, and checks each result, sees nothing of memprof.

MEMPROF_FULL=1 does all of it at random for minutes; CHAOS_SEED=N repeats what a run did."""
import os
import random
import re
import signal
import subprocess
import time

import memprof_test as t

SECONDS = 3
MINUTES = float(os.environ.get("CHAOS_MINUTES", 5 if t.FULL else 0))
SEED = int(os.environ.get("CHAOS_SEED", 0)) or int(time.time())
# The first process of a pid namespace, which reaps what it is given (doc/safety.md, "The copy's parent").
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


def child(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int(f.read().split()[0])


def lasting(pid):
    """What of its identity the program itself does not change."""
    all_of_it = t.identity(pid)
    signals = [line for line in all_of_it["signals"] if not line.startswith("SigBlk")]
    return {**{what: all_of_it[what] for what in ("maps", "text", "copied text")}, "signals": signals}


class Chaos(t.Case):
    def begin(self, *args):
        """Starts it below an init of its own.  Return: the process to be waited for, the program's pid."""
        p = self.start("unshare", "--pid", "--fork", "--kill-child", "/usr/bin/python3", "-c", INIT,
                       f"{t.VICTIMS}/chaos", *args, stderr=subprocess.STDOUT)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p, child(child(p.pid))

    def end(self, p, pid):
        """Ends it.  Return: its lines."""
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
        """A report on it: its blocks change all the time, so that no one result is right."""
        r = subprocess.run([t.MEMPROF, *how[:1], "-p", str(pid), *how[1:]], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        self.assertIn(r.returncode, (0, 1), f"{how}: {r.stdout}{r.stderr}")

    def attach(self, pid):
        self.memprof("attach", "-q", "-p", pid, "-o", self.path("r"), "--for", "200ms")

    def kill(self, pid, delay, *command):
        """kill -9 of memprof at work on it, then what is to be done then."""
        m = self.start(t.MEMPROF, *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            m.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            m.kill()
            m.wait()
        self.repair(pid)

    def repair(self, pid):
        """As a person would; status 16: there is nothing to repair."""
        r = subprocess.run([t.MEMPROF, "detach", "-p", str(pid)], text=True, capture_output=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        self.assertIn(r.returncode, (0, 16), r.stdout + r.stderr)
        self.assertNotIn("memprof", t.maps(pid))

    def over_and_over(self, act, *args, seconds=SECONDS):
        """The program, while act(pid) is done to it for so long."""
        p, pid = self.begin(*args)
        time.sleep(0.5)
        before = lasting(pid)
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end or not n:
            act(pid)
            self.assertIsNone(p.poll())
            n += 1
        print(f"# {n} times")
        self.unharmed(p, pid, before)

    def test_attach(self):
        """attach, record, detach"""
        self.over_and_over(self.attach)

    def test_leaks(self):
        """memprof leaks"""
        self.over_and_over(lambda pid: self.look(pid, "leaks"))

    def test_heap(self):
        """memprof heap"""
        self.over_and_over(lambda pid: self.look(pid, "heap"))

    def test_precopy(self):
        """memprof leaks --pre-copy"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--pre-copy"))

    def test_gentle(self):
        """memprof leaks --gentle"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--gentle", "--interval", "100ms"), "--gentle")

    def test_in_place(self):
        """memprof leaks --in-place"""
        self.over_and_over(lambda pid: self.look(pid, "leaks", "--in-place"))

    def killed(self, pid, rng):
        command = rng.choice((("attach", "-q", "-p", str(pid), "-o", self.path("r")), ("leaks", "-p", str(pid)),
                              ("leaks", "--pre-copy", "-p", str(pid)), ("heap", "-p", str(pid))))
        self.kill(pid, rng.uniform(0, 0.5), *command)

    def recorder_killed(self, pid):
        m = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"))
        self.wait_recorded(pid)
        m.kill()
        m.wait()
        self.repair(pid)

    def test_killed_recorder(self):
        """kill -9 of a recorder, detach"""
        self.over_and_over(self.recorder_killed)

    def test_killed(self):
        """kill -9 of memprof at any moment, detach"""
        rng = random.Random(SEED)
        print(f"# seed {SEED}")
        self.over_and_over(lambda pid: self.killed(pid, rng), "--killed")

    def test_random(self):
        """all of it at random"""
        if not MINUTES:
            self.skipTest("only with MEMPROF_FULL=1")
        rng = random.Random(SEED)
        print(f"# seed {SEED}")
        ways = [self.attach, self.recorder_killed, lambda pid: self.killed(pid, rng)]
        ways += [lambda pid, how=how: self.look(pid, *how) for how in (
            ("leaks",), ("heap",), ("leaks", "--pre-copy"), ("leaks", "--gentle", "--interval", "100ms"),
            ("leaks", "--in-place"))]
        self.over_and_over(lambda pid: rng.choice(ways)(pid), "--killed", "--gentle", seconds=60 * MINUTES)

    def test_table(self):
        """doc/safety.md shows what each actor checks"""
        text = t.read(f"{t.ROOT}/doc/safety.md").decode().splitlines()
        at = text.index("| actor | what is guaranteed | except |") + 2
        self.assertEqual(text[at:text.index("", at)], self.rows())


if __name__ == "__main__":
    t.main()
