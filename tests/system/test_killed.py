#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The recorder is killed at every step: the target runs on, and detach restores it byte for byte.

The steps are the fault points in the sources (src/lib/fault.h).  MEMPROF_FULL=1 kills at every passing of each,
otherwise the tests kill at the first two."""
import glob
import json
import os
import re
import signal
import subprocess
import time

import memprof_test as t

PASSINGS = 1000 if t.FULL else 2
# Fault points that are passed many times in a row: testing every third passing is enough.
MANY = {"remote-set", "remote-runs", "remote-entry", "remote-exit"}


def points():
    """Names of all fault points in the sources."""
    names = set()
    for room in ("attach", "inject", "record", "control", "cmd"):
        for f in glob.glob(f"{t.ROOT}/src/{room}/**/*.c", recursive=True):
            names.update(re.findall(r'fault_point\("([a-z-]+)"\)', t.read(f).decode()))
    # Those of memprof leaks are tested by test_leaks_safe.py (copy), test_leaks_precopy.py (track) and
    # test_signal_stacks.py.
    return sorted(n for n in names if not n.startswith(("copy-", "track-", "signal-stack-")))


class Killed(t.Case):
    def kill_at(self, p, point, passing, command):
        """Runs memprof, which is killed at a passing of a fault point.  Return: whether it came that far."""
        env = dict(os.environ, MEMPROF_FAULT=f"{point}:{passing}")
        r = subprocess.run([t.FAULTY, *command], env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
        where = f"{point}:{passing}"
        self.assertIn(r.returncode, (0, -signal.SIGKILL), f"{where}: {r.stderr}")
        self.assertIsNone(p.poll(), f"died after {where}")
        return r.returncode != 0

    def repair(self, p, where, before, blocked):
        """Detaches if memprof has left anything, and checks that the process is as before."""
        left = self.repaired(p, before, blocked)
        self.assertEqual(t.identity(p.pid), before, where)
        return left

    def every_point(self, *victim):
        p = self.victim(*victim)
        before, blocked = t.identity(p.pid), t.masks(p.pid)
        attach = ["attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "1ms"]
        repaired, never = 0, []
        for point in points():
            passing = 1
            while passing <= PASSINGS:
                if not self.kill_at(p, point, passing, attach):
                    break
                repaired += self.repair(p, f"{point}:{passing}", before, blocked)
                passing += 1 if t.FULL or point not in MANY else 3
            if passing == 1:
                never.append(point)
        self.assertGreater(repaired, 10)
        self.assertIn("ok", self.finish(p))
        return never

    def test_allocating(self):
        """memprof attach is killed at each fault point on threads that allocate all the time"""
        # Some points are passed only if a thread is in the agent's code or in a window, which is rare.
        self.assertLessEqual(set(self.every_point("verify", 2)),
                             {"adopt-found", "close-left", "close-moved", "resume", "seized"})

    def test_running(self):
        """memprof attach is killed at each fault point: a thread in user code keeps its registers and mask"""
        self.every_point("registers", "spin")

    def test_sleeping(self):
        """memprof attach is killed at each fault point: a system call neither fails nor ends early"""
        self.every_point("registers", "sleep")

    def test_killed_detach(self):
        """the detach that repairs after a killed attach is killed as well: the next detach restores"""
        p = self.victim("registers", "spin")
        before, blocked = t.identity(p.pid), t.masks(p.pid)
        attach = ["attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "1ms"]
        detach = ["detach", "-p", str(p.pid)]
        for point in points():
            if not re.match("close|remote|stopped|let-go", point):
                continue
            self.assertTrue(self.kill_at(p, "patch-written", 5, attach))
            self.kill_at(p, point, 1, detach)
            self.repair(p, f"detach {point}", before, blocked)
        self.assertIn("ok", self.finish(p))

    def target_killed_at(self, victim, point, passing, *command, status):
        """Kills the target at a passing of a fault point of memprof.  Both must end.  Return: whether memprof
        came that far."""
        p = self.victim(victim, 8)
        env = dict(os.environ, MEMPROF_FAULT=f"{point}:{passing}", MEMPROF_FAULT_OF=str(p.pid))
        rec = self.start(t.FAULTY, *command, "-p", str(p.pid), env=env, stderr=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL)
        try:
            self.assertEqual(p.wait(timeout=20), -signal.SIGKILL)
        except subprocess.TimeoutExpired:
            # The target must not be a zombie that cannot end because memprof still traces a thread of it.
            self.assertNotIn("Z (zombie)", t.read(f"/proc/{p.pid}/status").decode(), point)
            return False
        self.assertIn(rec.wait(timeout=60), status, f"{point}:{passing}")
        return True

    def test_target_killed(self):
        """if the target is killed at any step of attach, it ends at once, and memprof ends"""
        for point, passing in (("seized", 4), ("stopped", 1), ("remote-runs", 2), ("stopped", 2),
                               ("patch-written", 3), ("let-go", 4)):
            with self.subTest(point, passing=passing):
                self.assertTrue(self.target_killed_at("verify", point, passing, "attach", "-q", "-o",
                                                      self.path("r"), status=(0, 3)))

    def test_target_killed_while_copied(self):
        """if the target is killed at any step of leaks, with the main thread as carrier, both end at once"""
        for point, passing in (("seized", 4), ("remote-runs", 1), ("remote-runs", 2), ("copy-born", 1),
                               ("copy-heir", 1), ("copy-orphaned", 1),
                               ("copy-made", 1), ("remote-runs", 3)):
            with self.subTest(point, passing=passing):
                self.assertTrue(self.target_killed_at("held", point, passing, "leaks", status=(3, 6)))

    def test_target_killed_while_detached(self):
        """if the target is killed when detach has found its session, detach says that it has ended"""
        p = self.victim("verify", 2)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        rec.kill()
        rec.wait()
        m = self.start_until("adopt-found", "detach", "-p", p.pid)
        p.kill()
        p.wait()
        m.send_signal(signal.SIGCONT)
        _, said = m.communicate(timeout=60)
        self.assertEqual((m.returncode, said), (3, f"memprof: process {p.pid} has ended\n"))

    def test_heartbeat(self):
        """some seconds after the recorder was killed, the hooks record no more events"""
        p = self.victim("verify", 2)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        time.sleep(0.5)
        rec.kill()
        rec.wait()
        counted = []
        for _ in range(2):
            time.sleep(4)
            counted.append(json.loads(subprocess.check_output([f"{t.VICTIMS}/block", str(p.pid)])))
        self.assertGreater(counted[0]["events"], 0)
        self.assertEqual(counted[0]["events"], counted[1]["events"])
        self.assertGreater(counted[1]["stale"], counted[0]["stale"])
        self.memprof("detach", "-p", p.pid)
        self.assertIn("ok", self.finish(p))


if __name__ == "__main__":
    t.main()
