#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""execve() of a program with threads, while memprof seizes, stops or releases them.

While a process is in execve(), PTRACE_SEIZE of its threads blocks.  execve() waits until all other threads
have ended, and a traced thread ends only when its tracer lets it: a deadlock that memprof must avoid.
MEMPROF_FULL=1 runs 10,000 races of each kind."""
import os
import re
import signal
import subprocess
import time

import memprof_test as t

RACES = 10000 if t.FULL else 40
THREADS = 4
# The fault points at which memprof is stopped while the program calls execve().  At "seized:N" it has seized
# only some of the threads.
POINTS = ("seized:1", "seized:2", "seized:4", "all-seized:1", "stopped:1", "let-go:2", "all-seized:2")


def tasks(pid):
    """State and tracer's pid of each thread."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            status = t.read(f"/proc/{pid}/task/{tid}/status").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(tid)] = re.search(r"^State:\t(.)", status, re.M)[1], int(re.search(r"^TracerPid:\t(\d+)", status,
                                                                                  re.M)[1])
    return found


class Exec(t.Case):
    def command(self, what, pid):
        more = ("-q", "-o", self.path("r"), "--for", "1ms") if what == "attach" else ()
        return what, "-p", str(pid), *more

    def left_alone(self, p):
        self.assertIsNone(p.poll())
        t.wait_for(lambda: {tracer for _, tracer in tasks(p.pid).values()} == {0})
        self.assertNotIn("memprof", t.maps(p.pid))

    def meet(self, who, what, point):
        """Stops memprof at a fault point, has the program call execve(), then continues memprof."""
        p = self.start(f"{t.VICTIMS}/execs", str(THREADS), who, "asked", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), f"image 0 {p.pid}\n")
        if who == "dead":
            t.wait_for(lambda: tasks(p.pid)[p.pid][0] == "Z")
        m = self.start_until(point, *self.command(what, p.pid))
        p.stdin.write("\n")
        p.stdin.flush()
        end = time.monotonic() + 0.3
        while time.monotonic() < end and all(state != "D" for state, _ in tasks(p.pid).values()):
            time.sleep(0.01)
        m.send_signal(signal.SIGCONT)
        self.assertEqual(p.stdout.readline(), f"image 1 {p.pid}\n")
        _, said = m.communicate(timeout=60)
        # memprof was done before execve(), or reports that the program is another one, or missed a deadline.
        self.assertIn(m.returncode, (0, 3, 6, 17), said)
        if m.returncode:
            self.assertRegex(said, "^memprof: .+\n$")
        self.ends_well(p)

    def ends_well(self, p):
        self.left_alone(p)
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), "ok 1\n")
        self.assertEqual(p.wait(timeout=60), 0)

    def test_between_stops(self):
        """execve() between the two stops of attach ends attach with a message and status 3"""
        for who in ("live", "dead", "main"):
            with self.subTest(who):
                p = self.start(f"{t.VICTIMS}/execs", str(THREADS), who, "asked", stdin=subprocess.PIPE)
                self.assertEqual(p.stdout.readline(), f"image 0 {p.pid}\n")
                m = self.start_until("tables", *self.command("attach", p.pid))
                p.stdin.write("\n")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline(), f"image 1 {p.pid}\n")
                m.send_signal(signal.SIGCONT)
                _, said = m.communicate(timeout=60)
                self.assertEqual((m.returncode, said), (3, f"memprof: process {p.pid} executed another program "
                                                           "meanwhile; the new program was not touched\n"))
                self.assertFalse(os.path.exists(self.path("r")))
                self.ends_well(p)

    def test_end(self):
        """if the process is killed while memprof is at any point, memprof reports that it has ended"""
        for command, points in (("attach", ("seized:1", "all-seized:1", "stopped:1", "tables", "stopped:2", "patch-slots",
                                            "patch-written:5")),
                                ("leaks", ("seized:1", "all-seized:1", "stopped:1", "snapshot-stopped", "copy-made",
                                           "snapshot-taken")),
                                ("heap", ("all-seized:1", "snapshot-stopped", "snapshot-taken"))):
            for point in points:
                with self.subTest(command, point=point):
                    p = self.start(f"{t.VICTIMS}/execs", str(THREADS), "live", "asked", stdin=subprocess.PIPE)
                    self.assertEqual(p.stdout.readline(), f"image 0 {p.pid}\n")
                    m = self.start_until(point, *self.command(command, p.pid))
                    p.kill()
                    m.send_signal(signal.SIGCONT)
                    _, said = m.communicate(timeout=60)
                    # Status 0 or 1: the memory was copied, or the hooks were in, before the process ended.
                    if m.returncode:
                        self.assertIn(m.returncode, (6,) if command == "leaks" else (3,), said)
                        self.assertRegex(said, rf"(?m)^memprof: process {p.pid} has ended")
                    p.wait()

    def test_meet_attach(self):
        """execve() by the first or another thread while memprof attach is at any point harms nothing"""
        for who in ("live", "dead", "main"):
            for point in POINTS:
                with self.subTest(who, point=point):
                    self.meet(who, "attach", point)

    def test_meet_leaks(self):
        """execve() by the first or another thread while memprof leaks is at any point harms nothing"""
        for who in ("live", "dead", "main"):
            for point in POINTS[:6]:
                with self.subTest(who, point=point):
                    self.meet(who, "leaks", point)

    def race(self, who):
        p = self.start(f"{t.VICTIMS}/execs", str(THREADS), who, "4000", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), f"image 0 {p.pid}\n")
        for i in range(RACES):
            what = self.command(("attach", "leaks")[i % 2], p.pid)
            r = subprocess.run([t.MEMPROF, *what], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
            self.assertIn(r.returncode, range(18), r.stderr)
            if r.returncode:
                self.assertIn("memprof: ", r.stderr)
            self.assertNotRegex(r.stderr, "attaching to process|cannot inspect|kernel thread|another tool")
            self.assertIsNone(p.poll(), f"died in race {i}")
        p.stdin.close()
        out = p.stdout.read()
        self.assertEqual(p.wait(timeout=60), 0)
        images = int(re.search(r"^ok (\d+)$", out, re.M)[1])
        self.assertGreater(images, RACES // 4)

    def test_race_live(self):
        """attach and leaks in a loop on a program whose second thread calls execve() in a loop"""
        self.race("live")

    def test_race_dead(self):
        """attach and leaks in a loop on a program that calls execve() in a loop, its first thread ended"""
        self.race("dead")

    def test_race_main(self):
        """attach and leaks in a loop on a program whose first thread calls execve() in a loop"""
        self.race("main")


if __name__ == "__main__":
    t.main()
