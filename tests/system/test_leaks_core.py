#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --core: the same report from a core file as from the process."""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import memprof_test as t

BLOCKS = f"{t.VICTIMS}/blocks"
DAMAGED = 100 if t.FULL else 2  # cores of each allocator
ALLOCATORS = ["", *(map(t.library, t.WALKED) if t.FULL else [])]


class Core(t.Case):
    def start_blocks(self, *args, **kw):
        p = self.start(BLOCKS, *map(str, args), **kw)
        leaks = {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "leak":
                leaks[~int(word[1], 16) & (1 << 64) - 1] = int(word[2])
            if word[0] == "ready":
                return p, leaks
        self.fail("no ready")

    def leaks(self, *args, status=1):
        f = self.path("leaks.json")
        out = self.memprof("leaks", *args, "--json", f, status=status).stdout
        with open(f) as j:
            return json.load(j), out

    def planted(self, report, leaks):
        self.assertEqual(report["leaked"]["count"], len(leaks))
        samples = {int(a, 16) for c in report["clusters"] for a in c["samples"]}
        self.assertTrue(samples)
        self.assertLessEqual(samples, set(leaks))

    def test_gcore(self):
        """leaks --core of gcore's file is exact: the planted leaks only, as of the process itself"""
        p, leaks = self.start_blocks("park", 4, "leaks", 7)
        core = self.gcore(p)
        of_core, out = self.leaks("--core", core, BLOCKS)
        self.assertIn("glibc malloc 2.36, exact", out)
        of_process, _ = self.leaks("-p", p.pid)
        self.planted(of_core, leaks)
        for key in ("live", "leaked"):
            self.assertEqual(of_core[key], of_process[key], key)
        some = next(iter(leaks))
        why = self.memprof("leaks", "--core", core, "--why", hex(some), BLOCKS).stdout
        self.assertIn("is leaked", why)
        p.kill()

    @t.unittest.skipUnless(t.read("/proc/sys/kernel/core_pattern").strip() in (b"core", b"core.%p"),
                           "the kernel hands core files to a program here")
    def test_kernel(self):
        """leaks --core of the kernel's core file of an aborted program finds the planted leaks only"""
        def unlimited():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        p, leaks = self.start_blocks("park", 3, "leaks", 5, cwd=self.dir, preexec_fn=unlimited)
        p.send_signal(signal.SIGABRT)
        p.wait()
        core = next(self.path(n) for n in os.listdir(self.dir) if n.startswith("core"))
        report, _ = self.leaks("--core", core, BLOCKS)
        self.planted(report, leaks)

    def refused(self, status, *args):
        r = self.memprof("leaks", *args, status=status)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        return r.stderr

    def test_bad_input(self):
        """leaks --core refuses cores cut off or of other programs or architectures, and other files"""
        p, _ = self.start_blocks("park", 1)
        core = self.gcore(p)
        p.kill()
        cut, other = self.path("cut"), self.path("other")
        shutil.copy(core, cut)
        os.truncate(cut, os.path.getsize(core) // 2)
        self.assertIn("cut off", self.refused(2, "--core", cut, BLOCKS))
        os.truncate(cut, 1000)
        self.refused(2, "--core", cut, BLOCKS)
        shutil.copy(core, other)
        with open(other, "r+b") as f:
            f.seek(18)
            f.write(b"\x02\x00")  # e_machine: SPARC
        self.assertIn("architecture", self.refused(3, "--core", other, BLOCKS))
        self.assertIn("not a core file", self.refused(2, "--core", BLOCKS, BLOCKS))
        self.assertIn("build-id", self.refused(2, "--core", core, "/usr/bin/python3"))
        self.assertIn("No such file", self.refused(2, "--core", self.path("none"), BLOCKS))
        self.refused(2, "--core", core)
        self.refused(2, "--core", core, "-p", "1", BLOCKS)

    def test_fifo(self):
        """leaks --core does not block on a fifo that the core names as one of its files"""
        p, _ = self.start_blocks("park", 1)
        core = self.gcore(p)
        p.kill()
        image = t.read(core)
        libc = max(re.findall(rb"/[^\0]{1,80}/libc\.so\.6(?=\0)", image), key=len)
        folder = tempfile.mkdtemp(prefix="m-")  # short: the fifo's path must fit in place of libc's
        self.addCleanup(shutil.rmtree, folder)
        fifo = folder.encode() + b"/libc.so.6"
        os.mkfifo(fifo)
        self.assertLessEqual(len(fifo), len(libc))
        with open(core, "wb") as f:
            f.write(image.replace(libc, fifo.rjust(len(libc), b"/")))
        r = subprocess.run([t.MEMPROF, "leaks", "--core", core, BLOCKS], capture_output=True, text=True,
                           timeout=60)
        self.assertIn(r.returncode, (0, 1, 2), r.stderr)

    def damaged(self, preload):
        """Replaces words of a core by other words of it.  memprof leaks must report or refuse it, in time."""
        rnd = random.Random(preload)
        p = self.victim("verify", 4, env=dict(os.environ, LD_PRELOAD=preload))
        core = self.gcore(p)
        p.kill()
        size = os.path.getsize(core) // 8

        def any_word(f):
            while True:
                at = rnd.randrange(size) * 8
                f.seek(at)
                word = f.read(8)
                if any(word):
                    return at, word

        for _ in range(DAMAGED):
            with open(core, "r+b") as f:
                was = [any_word(f) for _ in range(rnd.choice((10, 1000, 10000)))]
                for at, _ in was:
                    word = any_word(f)[1]
                    f.seek(at)
                    f.write(word)
            r = subprocess.run([t.MEMPROF, "leaks", "--core", core, f"{t.VICTIMS}/verify"],
                               capture_output=True, text=True, timeout=120)
            self.assertIn(r.returncode, (0, 1, 2, 3), r.stderr)
            with open(core, "r+b") as f:
                for at, word in was[::-1]:
                    f.seek(at)
                    f.write(word)

    def test_damaged(self):
        """leaks --core of damaged heaps (MEMPROF_FULL: of every allocator) ends with a status of its own"""
        for preload in ALLOCATORS:
            with self.subTest(preload):
                self.damaged(preload)


if __name__ == "__main__":
    t.main()
