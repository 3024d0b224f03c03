#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The recording's file system is frozen (fsfreeze): the process does not wait for it and can be detached, and
every event is recorded or counted as lost."""
import csv
import json
import os
import shutil
import signal
import subprocess
import time

import memprof_test as t

LIBRARY = f"/usr/lib/{os.uname().machine}-linux-gnu/libutil.so.1"


class StalledDisk(t.Case):
    def setUp(self):
        super().setUp()
        self.disk, image = self.path("disk"), self.path("image")
        self.frozen = self.mounted = False
        os.mkdir(self.disk)
        with open(image, "wb") as f:
            f.truncate(96 << 20)
        if not all(map(shutil.which, ("mkfs.ext4", "fsfreeze", "mount"))):
            self.skipTest("no mkfs.ext4 or fsfreeze")
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        r = subprocess.run(["mount", "-o", "loop", image, self.disk], text=True, capture_output=True)
        if r.returncode:
            self.skipTest(f"no file system in a file can be mounted: {r.stderr}")
        self.mounted = True

    def tearDown(self):
        self.thaw()
        for p in self.started:
            p.kill()
            p.wait()
        if self.mounted:
            subprocess.run(["umount", self.disk], check=True)
        super().tearDown()

    def freeze(self):
        self.frozen = True
        subprocess.run(["fsfreeze", "-f", self.disk], check=True)

    def thaw(self):
        if self.frozen:
            subprocess.run(["fsfreeze", "-u", self.disk], check=True)
        self.frozen = False

    def round(self, p):
        p.stdin.write("go\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())

    def flood(self, *options):
        p = self.victim("flood", 2, 100000, stdin=subprocess.PIPE)
        self.round(p)  # creates the threads' arenas and stacks
        self.log = self.path("log")
        with open(self.log, "w") as out:
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f"{self.disk}/r", "--history", *options,
                             stdout=out, stderr=out)
        self.wait_recorded(p.pid)
        return p, rec

    def all_accounted(self, before, after, report):
        calls, l = t.calls(report), report["losses"]
        for kind, function, lost in (("mallocs", "malloc", "allocations"), ("frees", "free", "frees")):
            got = calls.get(function, 0) + l[f"lost_{lost}"] + l[f"queue_dropped_{lost}"]
            got += l["stale_frees"] if kind == "frees" else l["stale"] - l["stale_frees"]
            want = after[kind] - before[kind]
            self.assertGreaterEqual(got, want, kind)
            self.assertLessEqual(got, want + 64, kind)  # glibc adds some when threads begin and end

    def test_lossless(self):
        """--lossless on a frozen disk: the program waits for two seconds, losses are counted, detach works"""
        p, rec = self.flood("--lossless", "--queue-size", "1M", "--ring-size", "64k")
        one = self.round(p)
        before = self.round(p)
        first = {k: 2 * one[k] - before[k] for k in one}  # the round before the attach is not recorded
        self.freeze()
        start = time.monotonic()
        for _ in range(5):
            after = self.round(p)
        print(f"# 5 rounds on a frozen disk: {time.monotonic() - start:.1f} s")
        t.wait_for(lambda: b"no data could be written to the recording for 2 s" in t.read(self.log))
        start = time.monotonic()
        r = self.memprof("detach", "-p", p.pid)
        print(f"# detach: {time.monotonic() - start:.1f} s: {r.stdout.strip()}")
        self.assertIn("restored it and still writes the recording", r.stdout)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.assertIsNone(rec.poll())
        self.round(p)  # not recorded any more
        self.thaw()
        self.assertEqual(rec.wait(120), 0, t.read(self.log))
        report = self.report(f"{self.disk}/r")
        self.assertGreater(report["losses"]["queue_dropped_events"], 0)
        self.all_accounted(first, after, report)

    def test_resumes(self):
        """--lossless loses nothing more once the disk is thawed"""
        p, rec = self.flood("--lossless", "--queue-size", "1M", "--ring-size", "64k")
        self.round(p)
        self.freeze()
        for _ in range(3):
            self.round(p)
        t.wait_for(lambda: b"no data could be written to the recording for 2 s" in t.read(self.log))
        self.thaw()
        t.wait_for(lambda: b"the recording can be written again" in t.read(self.log))
        self.memprof("flush", "-p", p.pid)
        lost = self.status(p)["lost"]
        self.assertGreater(lost, 0)
        for _ in range(3):
            self.round(p)
        self.memprof("flush", "-p", p.pid)
        self.assertEqual(self.status(p)["lost"], lost)
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0, t.read(self.log))

    def status(self, p):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == p.pid)

    def test_ctrl_c(self):
        """Ctrl-C with a frozen disk restores the process at once, and the recording is completed later"""
        p, rec = self.flood("--queue-size", "1M")
        self.round(p)
        self.freeze()
        for _ in range(3):
            self.round(p)
        t.wait_for(lambda: b"no data could be written to the recording for 2 s" in t.read(self.log))
        rec.send_signal(signal.SIGINT)
        t.wait_for(lambda: b"is released; the recording is completed when" in t.read(self.log))
        self.assertNotIn("memprof", t.maps(p.pid))
        self.thaw()
        self.assertEqual(rec.wait(120), 0, t.read(self.log))
        # The queue was full for seconds, so the rings filled up, and allocations were thinned out.
        self.assertGreater(self.report(f"{self.disk}/r")["thinning"]["thinned_allocations"], 0)

    def test_unloaded_meanwhile(self):
        """libraries that are unloaded before the recorder can write their names have the right names"""
        if not os.path.exists(LIBRARY):
            self.skipTest(f"{LIBRARY} is not installed")
        # The names are longer than a chunk of the recording, so that the recorder is blocked among them.
        folder = "/".join([self.path("libraries")] + ["d" * 200] * 12)
        os.makedirs(folder)
        names = [f"{folder}/libutil{i}.so" for i in range(150)]
        p = self.start(f"{t.VICTIMS}/loaders", stdin=subprocess.PIPE)

        def say(command):
            p.stdin.write(command + "\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "done\n", command)

        said = self.path("said")
        with open(said, "w") as out:
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f"{self.disk}/r",
                             stdout=out, stderr=out,
                             env=dict(os.environ, MALLOC_PERTURB_="90"))  # freed memory is overwritten
        self.wait_recorded(p.pid)
        self.freeze()
        for name in names:
            shutil.copy(LIBRARY, name)
            say(f"open {name}")
        t.wait_for(lambda: b"no data could be written to the recording for 2 s" in t.read(said))
        say("close-all")
        time.sleep(2.5)  # the recorder reads the mappings each second
        self.thaw()
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0, t.read(said))
        self.assertNotIn(b"Sanitizer", t.read(said))
        self.memprof("extract", f"{self.disk}/r", "-o", self.path("out"))
        with open(self.path("out/modules.csv"), newline="") as f:
            paths = [row["path"] for row in csv.DictReader(f)]
        # The recording has all libraries, also those that were unloaded while the recorder was blocked, and no wrong names.
        self.assertEqual(set(names) - set(paths), set())
        for path in paths:
            self.assertTrue(path in names or path[0] == "[" or os.path.exists(path), path)
        p.stdin.close()
        p.wait(120)


if __name__ == "__main__":
    t.main()
