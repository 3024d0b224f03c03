#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Blocking system calls end with the right result, and in time, across attach and detach."""
import errno
import os
import select
import signal
import subprocess
import time

import memprof_test as t

SECONDS = 30 if t.GUEST else 6
RIGHT = {
    "nanosleep": (0, 0), "clock_relative": (0, 0), "clock_absolute": (0, 0), "poll": (0, 0),
    "ppoll": (0, 0), "select": (0, 0), "futex": (-1, errno.ETIMEDOUT),
    "futex_absolute": (-1, errno.ETIMEDOUT), "futex_untimed": (0, 0), "read": (1, 0),
    "poll_untimed": (1, 0), "epoll": (1, 0), "accept": (1, 0), "recv": (1, 0), "wait4": (1, 0),
    "msgrcv": (8, 0), "semop": (0, 0), "sigwaitinfo": (signal.SIGUSR1, 0), "pause": (-1, errno.EINTR),
    "sigsuspend": (-1, errno.EINTR), "epoll_timed": (0, 0), "sigtimedwait": (-1, errno.EAGAIN),
    "semtimedop": (-1, errno.EAGAIN), "recv_timed": (-1, errno.EAGAIN), "send_timed": (-1, errno.EAGAIN),
    "write_timed": (-1, errno.EAGAIN), "writev_timed": (-1, errno.EAGAIN), "sendmsg_timed": (-1, errno.EAGAIN),
    "sendmmsg_timed": (-1, errno.EAGAIN), "sendfile_timed": (-1, errno.EAGAIN), "recvmmsg_timed": (-1, errno.EAGAIN),
    "connect_timed": (-1, errno.EAGAIN), "uring_timed": (-1, errno.ETIME)}
# The kernel does not keep how long these have waited.  It restarts them from the beginning: they last longer.
ANEW = {name for name in RIGHT if name.endswith("_timed")} | {"sigtimedwait", "semtimedop"}
ALONE = ["nanosleep", "clock_relative", "poll", "futex", "read", "epoll", "accept", "wait4", "pause",
         "sigwaitinfo", "semop", "epoll_timed", "futex_untimed", "msgrcv", "send_timed", "recvmmsg_timed",
         "connect_timed", "uring_timed"]


def batches(names, n):
    return [names[i:i + n] for i in range(0, len(names), n)]


class Restart(t.Case):
    def check(self, line):
        name, result, error, ms = line.split()
        if (name, result) == ("uring_timed", "-3"):
            return name  # the kernel has no io_uring, or does not permit it
        self.assertEqual((int(result), int(error)), RIGHT[name], line)
        # A sleep that was restarted from the beginning would last half as long again.
        self.assertGreaterEqual(int(ms), SECONDS * 1000, line)
        if name not in ANEW:
            self.assertLess(int(ms), SECONDS * 1500 - 500, line)
        return name

    def test_other_threads(self):
        """33 system calls, with and without timeouts, of threads that attach only stops end as usual"""
        p = self.victim("restart", SECONDS)
        time.sleep(SECONDS / 2)
        self.record(p.pid, 0.05)
        out, _ = p.communicate(timeout=120)
        lines = out.split("\n")
        self.assertEqual(lines[-2], "ok")
        self.assertEqual({self.check(line) for line in lines[:-2]}, set(RIGHT))

    def test_killed(self):
        """33 system calls end as usual if memprof is killed while all threads are stopped"""
        if os.uname().machine not in ("x86_64", "mips64"):
            self.skipTest("interrupted calls are put right when threads are let go")
        p = self.victim("restart", SECONDS)
        time.sleep(SECONDS / 2)
        m = self.start(t.FAULTY, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                       env=dict(os.environ, MEMPROF_FAULT="stopped"), stderr=subprocess.DEVNULL)
        self.assertEqual(m.wait(timeout=60), -signal.SIGKILL)
        out, _ = p.communicate(timeout=120)
        self.assertEqual({self.check(line) for line in out.split("\n")[:-2]}, set(RIGHT))

    def test_carrier(self):
        """a system call of the thread that executes the injected system calls ends as usual"""
        for batch in batches(ALONE, 2 if t.GUEST else 7):
            started = [self.start(f"{t.VICTIMS}/restart", str(SECONDS), name) for name in batch]
            time.sleep(SECONDS / 2)
            for i, p in enumerate(started):
                try:
                    self.record(p.pid, 0.01)
                except AssertionError:
                    if not i or not select.select([p.stdout], [], [], 0)[0]:
                        raise
                    break  # on a busy machine the call is over before, and the program has printed its result
            for name, p in zip(batch, started):
                out, _ = p.communicate(timeout=120)
                self.assertEqual(out.split("\n")[1], "ok", name)
                self.assertEqual(self.check(out.split("\n")[0]), name)

    def test_streams(self):
        """reads and writes interrupted by leaks and attach lose no byte of a stream and repeat none"""
        p = self.start(f"{t.VICTIMS}/streams", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        for _ in range(50 if t.FULL else 5):
            self.memprof("leaks", "-p", p.pid)
            self.record(p.pid, 0.01)
        p.stdin.close()
        self.assertRegex(p.stdout.read(), "^ok [0-9]+\n$")
        p.stdin = None


if __name__ == "__main__":
    t.main()
