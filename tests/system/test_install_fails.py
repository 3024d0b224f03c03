#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The installation of hooks fails at each of its steps: either all hooks of a batch are in or none, and no
thread stays stopped.  A build with fault points (src/lib/fault.h) makes it fail."""
import os
import re
import shutil
import subprocess

import memprof_test as t

LATE = ("patch-maps", "patch-rows", "patch-slot:2", "patch-text", "patch-text:3")
FIRST = LATE + ("patch-carrier", "patch-island", "patch-text:9")
WRAPPER = f"{t.VICTIMS}/libwrapper.so"


def traced(pid):
    return [tid for tid in os.listdir(f"/proc/{pid}/task")
            if b"TracerPid:\t0\n" not in t.read(f"/proc/{pid}/task/{tid}/status")]


class InstallFails(t.Case):
    def say(self, p, command):
        p.stdin.write(command + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n", command)

    def late_library(self, point):
        p = self.victim("loaders", stdin=subprocess.PIPE)
        armed, log = self.path(f"armed-{point}"), self.path("log")
        with open(log, "w") as out:
            rec = self.start(t.FAULTY, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), stderr=out,
                             env=dict(os.environ, MEMPROF_FAIL=point, MEMPROF_FAIL_AFTER=armed))
        self.wait_recorded(p.pid)
        before = t.identity(p.pid)["text"]
        with open(armed, "w"):
            pass
        self.say(p, f"open {WRAPPER}")
        t.wait_for(lambda: b"a newly loaded library cannot be recorded: " in t.read(log), 30)
        self.assertEqual(traced(p.pid), [], point)
        after = t.identity(p.pid)["text"]
        self.assertEqual({m: after[m] for m in before}, before, "the hooks that were in before stay")
        with open(WRAPPER, "rb") as f:
            image = f.read()
        new, = (m for m in after if "libwrapper.so" in m)
        low, high, offset = (int(x, 16) for x in re.match(r"(\w+)-(\w+) r-xp (\w+)", new).groups())
        with open(f"/proc/{p.pid}/mem", "rb") as mem:
            mem.seek(low)
            text = mem.read(high - low)
        self.assertTrue(text.startswith(image[offset:offset + high - low]), f"{point}: its text is the file's")
        self.say(p, "own 200")
        # The next library that is loaded makes memprof try both.
        second = self.path("libsecond.so")
        shutil.copy(WRAPPER, second)
        self.say(p, f"open {second}")
        t.wait_hooked(p.pid, second)
        t.wait_hooked(p.pid, WRAPPER)
        self.say(p, "blocks 50")
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0, t.read(log))
        r = self.report(self.path("r"))
        calls = {f["library"]: f["calls"] for f in r["functions"] if f["function"] == "malloc"}
        self.assertEqual(calls["libsecond.so"], 50)
        self.assertGreaterEqual(calls["libc.so.6"], 200)
        self.assertFalse([m for m in t.maps(p.pid).split("\n") if "memprof-session" in m])
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def test_late(self):
        """if hooking a library loaded later fails, other hooks still work, and the next load tries again"""
        for point in LATE:
            self.late_library(point)

    def test_first(self):
        """failing to install the first hooks ends attach in one line, with the process unchanged"""
        p = self.victim("verify", 4)
        before = t.identity(p.pid)
        for point in FIRST:
            r = subprocess.run([t.FAULTY, "attach", "-q", "-p", str(p.pid), "-o", self.path("never")],
                               text=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                               env=dict(os.environ, MEMPROF_FAIL=point))
            self.assertNotIn(r.returncode, (0, 15), point + r.stderr)
            self.assertRegex(r.stderr, r"\Amemprof: [^\n]+\n\Z", point)
            self.assertEqual(t.identity(p.pid), before, point)
            self.assertFalse(os.path.exists(self.path("never")))
        self.assertIn("ok", self.finish(p))


if __name__ == "__main__":
    t.main()
