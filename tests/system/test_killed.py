#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The recorder is killed at every step: the target runs on, and detach puts it back byte for byte.

The fault points are those in the sources (src/lib/fault.h); MEMPROF_FULL=1 kills at every passing of
each, else at the first few."""
import json
import os
import re
import signal
import subprocess
import time

import memprof_test as t

PASSINGS = 1000 if t.FULL else 2
# Where one step follows the other at once, those of open and close stand for all.
MANY = {"remote-set", "remote-runs", "remote-entry", "remote-exit"}


def points():
    """Names of all fault points, as they stand in the sources."""
    names = set()
    for folder in ("attach", "inject", "record", "cmd"):
        for f in os.listdir(f"{t.ROOT}/{folder}"):
            if f.endswith(".c"):
                text = t.read(f"{t.ROOT}/{folder}/{f}").decode()
                names.update(re.findall(r'fault_point\("([a-z-]+)"\)', text))
    # memprof leaks copies and tracks: test_leaks_safe.py, test_leaks_precopy.py.
    return sorted(n for n in names if not n.startswith(("copy-", "track-")))


def masks(pid):
    """Signal masks of all threads; the borrowed one has another until it has put itself back."""
    return [re.search(rb"^SigBlk:.*$", t.read(f"/proc/{pid}/task/{tid}/status"), re.M)[0]
            for tid in sorted(os.listdir(f"/proc/{pid}/task"))]


class Killed(t.Case):
    def kill_at(self, p, point, passing, command):
        """Whether the recorder came that far."""
        env = dict(os.environ, MEMPROF_FAULT=f"{point}:{passing}")
        r = subprocess.run([t.FAULTY, *command], env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
        where = f"{point}:{passing}"
        self.assertIn(r.returncode, (0, -signal.SIGKILL), f"{where}: {r.stderr}")
        self.assertIsNone(p.poll(), f"died after {where}")
        return r.returncode != 0

    def repair(self, p, where, before, blocked):
        """Detaches if there is anything left, and compares."""
        # Until the borrowed thread is back it may make the call.
        t.wait_for(lambda: masks(p.pid) == blocked)
        left = "memprof" in t.maps(p.pid) or t.identity(p.pid)["fds"] != before["fds"]
        if left:
            self.memprof("detach", "-p", p.pid)
        self.assertEqual(t.identity(p.pid), before, where)
        return left

    def every_point(self, *victim):
        p = self.victim(*victim)
        before, blocked = t.identity(p.pid), masks(p.pid)
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
        """a program that allocates all the time"""
        # A thread stands in the agent's code or a window only now and then.
        self.assertLessEqual(set(self.every_point("verify", 2)), {"close-moved", "resume", "seized"})

    def test_running(self):
        """a thread in user code: its registers, flags, mask and alternate stack stay"""
        self.every_point("registers", "spin")

    def test_sleeping(self):
        """a thread in a system call: the call neither fails nor ends early"""
        self.every_point("registers", "sleep")

    def test_killed_detach(self):
        """the detach that repairs is killed as well"""
        p = self.victim("registers", "spin")
        before, blocked = t.identity(p.pid), masks(p.pid)
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
        """Whether it came that far: the target is gone at once, and so is memprof."""
        p = self.victim(victim, 8)
        env = dict(os.environ, MEMPROF_FAULT=f"{point}:{passing}", MEMPROF_FAULT_OF=str(p.pid))
        rec = self.start(t.FAULTY, *command, "-p", str(p.pid), env=env, stderr=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL)
        try:
            self.assertEqual(p.wait(timeout=20), -signal.SIGKILL)
        except subprocess.TimeoutExpired:
            # Was it killed, and cannot end, for it is held?
            self.assertNotIn("Z (zombie)", t.read(f"/proc/{p.pid}/status").decode(), point)
            return False
        self.assertIn(rec.wait(timeout=60), status, f"{point}:{passing}")
        return True

    def test_target_killed(self):
        """the target is killed at any step: it is gone at once, no thread of it is held back"""
        for point, passing in (("seized", 4), ("stopped", 1), ("remote-runs", 2), ("stopped", 2),
                               ("patch-written", 3), ("let-go", 4)):
            with self.subTest(point, passing=passing):
                self.assertTrue(self.target_killed_at("verify", point, passing, "attach", "-q", "-o",
                                                      self.path("r"), status=(0, 3)))

    def test_target_killed_while_copied(self):
        """the same of memprof leaks, with the main thread borrowed: its end is told last"""
        for point, passing in (("seized", 4), ("remote-runs", 1), ("remote-runs", 2), ("copy-born", 1),
                               ("copy-heir", 1), ("copy-orphaned", 1),
                               ("copy-made", 1), ("remote-runs", 3)):
            with self.subTest(point, passing=passing):
                self.assertTrue(self.target_killed_at("held", point, passing, "leaks", status=(3, 6)))

    def test_heartbeat(self):
        """without a recorder the hooks pass through after some seconds"""
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
