#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recorder that is left on: disk and memory stay bounded, and what is left is the exact live heap.  A few seconds
in make check, minutes in make check-all; the program makes about a million events a second."""
import json
import os
import re
import statistics
import subprocess
import threading
import time

import memprof_test as t

LIBRARY = f"/usr/lib/{os.uname().machine}-linux-gnu/libutil.so.1"
MIB = 1 << 20
PIECE, KEEP = MIB, 2
QUEUE = 32 * MIB
LARGEST = 2 * PIECE + QUEUE // 16  # a piece, as doc/formats.md says
ROUNDS = 60 if t.FULL else 9
ROUND_MS = 3000 if t.FULL else 1000


class Folder(threading.Thread):
    """Looks at the sizes of a folder's files, again and again."""

    def __init__(self, path):
        super().__init__()
        self.path, self.over, self.most, self.most_files, self.largest = path, False, 0, 0, 0

    def run(self):
        while not self.over:
            sizes = []
            for name in os.listdir(self.path):
                try:
                    sizes.append(os.stat(os.path.join(self.path, name)).st_size)
                except FileNotFoundError:
                    pass  # deleted since
            self.most, self.most_files = max(self.most, sum(sizes)), max(self.most_files, len(sizes))
            self.largest = max([self.largest, *sizes])
            time.sleep(0.01)

    def end(self):
        self.over = True
        self.join()


class Soak(t.Case):
    def memory(self, pid):
        return int(re.search(r"RssAnon:\s+(\d+) kB", t.read(f"/proc/{pid}/status").decode()).group(1)) * 1024

    def soak(self, *options, each=lambda p, truth: None):
        """Has the program work under a recorder, whose memory must not grow after the first third of the time.
        Return: the program's own numbers, what was in the folder, the files that are left."""
        out = self.path("out")
        os.mkdir(out)
        p = self.victim("soak", LIBRARY, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f"{out}/r.memprof", "--lossless",
                         "--queue-size", str(QUEUE), *options)
        self.wait_recorded(p.pid)
        folder, used = Folder(out), []
        folder.start()
        try:
            for _ in range(ROUNDS):
                p.stdin.write(f"{ROUND_MS}\n")
                p.stdin.flush()
                truth = json.loads(p.stdout.readline())
                each(p, truth)
                used.append(self.memory(rec.pid))
        finally:
            folder.end()
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        third = ROUNDS // 3
        print(f"# {options}: {[u // MIB for u in used]} MiB, {folder.most / MIB:.1f} MiB in {folder.most_files} files, "
              f"{truth['threads']} threads, {truth['loads']} loads")
        self.assertLess(statistics.median(used[-third:]), statistics.median(used[third:-third]) * 1.1 + 8 * MIB)
        self.assertGreater(truth["threads"], 10 * ROUNDS)
        self.assertGreater(truth["loads"], 5 * ROUNDS)
        return truth, folder, sorted(f"{out}/{name}" for name in os.listdir(out))

    def check_live(self, truth, f):
        r = self.report(f)
        own = [g for g in r["allocation_groups"] if any(x["function"] == "fill_slot" for x in g["backtrace"])]
        self.assertEqual(sum(g["leaked_count"] for g in own), truth["blocks"])
        self.assertEqual(sum(g["leaked_bytes"] for g in own), truth["bytes"])
        self.assertEqual(r["losses"]["mismatches"], 0)

    def test_rotate_keep(self):
        """--rotate with --keep: the folder never exceeds the stated bound, and the last pieces have the live heap"""
        deleted = []

        def each(p, truth):
            status, = json.loads(self.memprof("status", "-p", p.pid, "--json").stdout)
            deleted.append(status["pieces_deleted"])

        truth, folder, files = self.soak("--rotate", f"{PIECE}", "--keep", f"{KEEP}", each=each)
        self.assertGreater(deleted[-1], 0)
        self.assertEqual(deleted, sorted(deleted))
        self.assertLessEqual(folder.most_files, KEEP + 2)
        self.assertLess(folder.largest, LARGEST)
        self.assertLess(folder.most, (KEEP + 2) * LARGEST)
        self.assertEqual(len(files), KEEP + 1)
        numbers = [json.loads(self.memprof("info", f, "--json").stdout)["piece"] for f in files]
        self.assertGreater(max(numbers), 2 * KEEP)
        self.memprof("merge", *files, "-o", self.path("merged"))
        self.check_live(truth, self.path("merged"))

    def test_live_only(self):
        """--live-only: no file grows, and at each flush and at the end the file is the exact live heap"""
        sizes = []

        def each(p, truth):
            f = self.path("out/r.memprof")
            self.memprof("flush", "-p", p.pid)
            sizes.append(os.path.getsize(f))
            if len(sizes) % 4 == 1:
                self.check_live(truth, f)

        truth, folder, files = self.soak("--live-only", each=each)
        self.assertEqual(files, [self.path("out/r.memprof")])
        self.check_live(truth, files[0])
        self.assertLess(max(sizes), 1.1 * sizes[0])
        self.assertLess(folder.most, 2 * max(sizes) + 4096)  # the file before, and the one that is written


if __name__ == "__main__":
    t.main()
