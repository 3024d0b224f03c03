#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The forked copy that memprof leaks reads is not a child that the program could wait for."""
import os
import subprocess
import time

import memprof_test as t

ROUNDS = 100 if t.FULL else 4
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
# A chain of processes in a pid namespace of its own.  Its arguments are the roles of the processes from the
# first one down, then the program that the last one executes.  A role says how a process treats its children:
# "reaps" waits for all of them and prints their pid and status; "keeps" waits for none and has no handler of
# SIGCHLD; "once" waits for none but handles SIGCHLD; "subreaper" receives orphans (PR_SET_CHILD_SUBREAPER)
# and reaps them.
FAMILY = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
def live(how):
    if how != "reaps" and how != "subreaper":
        while True: time.sleep(100)
    while True:
        try: pid, status = os.waitpid(-1, 0)
        except ChildProcessError: os._exit(0)
        os.write(2, f"{how} {pid} {status}\\n".encode())
roles, argv = sys.argv[1].split(","), sys.argv[2:]
for how in roles:
    if how == "subreaper": libc.prctl(36, 1)
    if how != "keeps": signal.signal(signal.SIGCHLD, lambda *_: None)
    if os.fork():
        os.close(0)
        os.close(1)
        live(how)
    libc.prctl(1, 9)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
os.execv(argv[0], argv)
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def state(pid):
    return t.read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[0]


def look(program, pid, *options):
    r = subprocess.run([t.MEMPROF, program, "-p", str(pid), *options], text=True, capture_output=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    assert r.returncode in (0, 1), r.stdout + r.stderr
    return r


class Waits(t.Case):
    def family(self, roles, *argv):
        """Starts a program below processes with the given roles.  Return: unshare's process, the pids of the
        processes with roles, the pid of the program, all as seen in this pid namespace."""
        p = self.start("unshare", "--pid", "--fork", "--kill-child", "/usr/bin/python3", "-c", FAMILY, roles, *argv,
                       stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        pids = [p.pid]
        for _ in range(roles.count(",") + 2):
            pids.append(children(pids[-1])[0])
        return p, pids[1:-1], pids[-1]

    def ended(self, p):
        """Ends the program, which must print "ok".  Return: the lines of the other processes, one for each
        child that they reaped."""
        out, err = p.communicate("\n", timeout=120)
        self.assertEqual(out, "ok\n")
        return err.splitlines()

    def rounds(self, pid):
        for _ in range(ROUNDS):
            look("leaks", pid)
            look("heap", pid)
        return 2 * ROUNDS

    def test_no_children(self):
        """leaks on a program without children: every form of wait() fails with ECHILD; init reaps the copy"""
        p, _, pid = self.family("reaps", f"{t.VICTIMS}/waits", "none")
        n = self.rounds(pid)
        self.assertEqual(children(pid), [])
        reaped = self.ended(p)
        self.assertEqual(len(reaped), n + 1, reaped)
        self.assertEqual(sorted(line.split()[2] for line in reaped), ["0", *n * ["9"]])

    def test_children(self):
        """leaks on a program with children: wait() and SIGCHLD report its own children only"""
        p, _, pid = self.family("reaps", f"{t.VICTIMS}/waits", "some")
        self.rounds(pid)
        self.ended(p)

    def test_subreaper_above(self):
        """leaks below a subreaper: the subreaper, not init, reaps the copies"""
        p, _, pid = self.family("reaps,subreaper", f"{t.VICTIMS}/waits", "none")
        n = self.rounds(pid)
        reaped = self.ended(p)
        self.assertEqual(sum(line.startswith("subreaper") for line in reaped), n + 1, reaped)
        self.assertEqual(sum(line.startswith("reaps") for line in reaped), 1, reaped)

    def test_subreaper_itself(self):
        """leaks on a subreaper: wait() without __WALL does not see the copies, and none stays"""
        p, _, pid = self.family("reaps", "/usr/bin/python3", "-c",
                                f"import ctypes, os; ctypes.CDLL(None).prctl({SUBREAPER}, 1); "
                                f"os.execv('{t.VICTIMS}/waits', ['waits', 'plain'])")
        self.rounds(pid)
        self.assertEqual(children(pid), [])
        self.assertEqual(len(self.ended(p)), 1)

    def test_init_itself(self):
        """leaks on the init of a pid namespace: wait() without __WALL sees no copy, and none stays"""
        p = self.start("unshare", "--pid", "--fork", "--kill-child", f"{t.VICTIMS}/waits", "plain",
                       stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        pid = children(p.pid)[0]
        self.rounds(pid)
        self.assertEqual(children(pid), [])
        self.assertEqual(p.communicate("\n", timeout=120)[0], "ok\n")

    def test_init_that_keeps(self):
        """leaks below an init that never waits for children gives that init no zombie"""
        p, (init,), pid = self.family("keeps", f"{t.VICTIMS}/waits", "plain")
        self.rounds(pid)
        self.assertEqual(children(init), [pid])
        self.assertEqual(children(pid), [])
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), "ok\n")
        p.stdin = None

    def test_init_that_kept(self):
        """leaks below an init that handles SIGCHLD but never waits leaves it only one report's zombies"""
        p, (init,), pid = self.family("once", f"{t.VICTIMS}/waits", "plain")
        look("leaks", pid)
        kept = children(init)
        self.assertEqual({state(child) for child in kept if child != pid}, {b"Z"})
        time.sleep(7)
        look("leaks", pid)
        self.assertEqual(children(init), kept)
        self.assertEqual(children(pid), [])
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), "ok\n")
        p.stdin = None

    def test_gentle(self):
        """leaks --gentle leaves the program no child; init reaps the copies"""
        p, _, pid = self.family("reaps", f"{t.VICTIMS}/waits", "plain")
        look("leaks", pid, "--gentle")
        self.assertEqual(children(pid), [])
        # Init reaps its first child, the program, before copies that it has not reaped by then.
        first, *others = sorted(line.split()[2] for line in self.ended(p))
        self.assertEqual((first, set(others)), ("0", {"9"}))

    def test_ended(self):
        """if the program ends while leaks waits between two copies, no copy stays, and leaks says so"""
        p, (init,), pid = self.family("reaps", f"{t.VICTIMS}/waits", "none")
        m = self.start(t.MEMPROF, "leaks", "-p", str(pid), "--confirm", "2", "--interval", "10s",
                       stderr=subprocess.PIPE)
        self.assertIn("process", m.stdout.readline())
        self.assertIn("0", [line.split()[2] for line in self.ended(p)])
        self.assertRegex(m.communicate(timeout=120)[1], "ended before|has ended")
        self.assertFalse(os.path.exists(f"/proc/{init}"))

    def test_limit(self):
        """if RLIMIT_NPROC admits only one more process, leaks makes the copy a child of the program"""
        p, _, pid = self.family("reaps", "/usr/bin/python3", "-c",
                                "import os, resource; os.setresuid(47110, 47110, 47110); "
                                "resource.setrlimit(resource.RLIMIT_NPROC, (2, 2)); "
                                f"os.execv('{t.VICTIMS}/waits', ['waits', 'plain'])")
        look("leaks", pid)
        self.assertEqual(children(pid), [])
        self.assertEqual(len(self.ended(p)), 1)

    def test_strace(self):
        """leaks on strace, which waits with __WALL for any child, does not disturb it"""
        out = self.path("trace")
        p, _, pid = self.family("reaps", "/usr/bin/strace", "-f", "-o", out, "/bin/sh", "-c",
                                "echo ready; while read x; do /bin/true; done; echo ok")
        for _ in range(ROUNDS):
            look("leaks", pid)
            p.stdin.write("x\n" * 20)
            p.stdin.flush()
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), "ok\n")
        p.stdin = None
        self.assertNotIn("strace:", p.stderr.read())
        self.assertEqual(t.read(out).count(b'execve("/bin/true"'), 20 * ROUNDS)


if __name__ == "__main__":
    t.main()
