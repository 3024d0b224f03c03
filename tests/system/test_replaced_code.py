#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A library is unloaded and other code is loaded at the same addresses: each block has the function that allocated it."""
import csv
import os
import re
import shutil
import signal
import subprocess
import time

import memprof_test as t

ALPHA, BETA = f"{t.VICTIMS}/libalpha.so", f"{t.VICTIMS}/libbeta.so"
FUNCTION = {ALPHA: "alpha_make", BETA: "beta_make"}


class ReplacedCode(t.Case):
    def begin(self, *options):
        p = self.start(f"{t.VICTIMS}/loaders", stdin=subprocess.PIPE)
        rec = self.attach(p, "r", *options)
        return p, rec

    def attach(self, p, name, *options):
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path(name), *options)
        self.wait_recorded(p.pid)
        return rec

    def say(self, p, command):
        p.stdin.write(command + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n", command)

    def open(self, p, path):
        """Return: where the code of the library is."""
        self.say(p, f"open {path}")
        return re.search(rf"(\w+)-\w+ r-xp .* {re.escape(path)}\n", t.maps(p.pid)).group(1)

    def use(self, p, path, function, n, size):
        """Loads a library, lets its function allocate, and unloads it.  Return: where its code was."""
        where = self.open(p, path)
        self.say(p, f"make {function} {n} {size}")
        self.say(p, "close")
        return where

    def end(self, p, rec):
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0)

    def quit(self, p):
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def made(self, name="r"):
        """The live bytes of each function of a library that called malloc, and how many of them have a whole stack."""
        r = self.memprof("report", self.path(name), "--collapsed", "--cost", "live")
        found, whole = {}, 0
        for line in r.stdout.splitlines():
            stack, n = line.rsplit(" ", 1)
            frames = stack.split(";")
            if frames[-1] != "malloc" or not re.search(r"_make$|\.so|0x", frames[-2]):
                continue
            found[frames[-2]] = found.get(frames[-2], 0) + int(n)
            whole += 0 if "(incomplete)" in frames else int(n)
        return found, whole

    def test_in_turn(self):
        """two libraries in turn, each unloaded at once: no block has a function of the other one"""
        p, rec = self.begin("--lossless")
        places = set()
        for i in range(40):
            path, size = ((ALPHA, 3001), (BETA, 3002))[i % 2]
            places.add(self.use(p, path, FUNCTION[path], 100, size))
        self.assertEqual(len(places), 1)
        self.end(p, rec)
        self.assertEqual(self.made()[0], {"alpha_make": 2000 * 3001, "beta_make": 2000 * 3002})
        self.quit(p)

    def test_whole_stacks(self):
        """once memprof has the tables of the new code, its stacks are complete"""
        p, rec = self.begin()
        first = self.open(p, ALPHA)
        time.sleep(1)  # the recorder looks at new code within a tenth of it
        self.say(p, "make alpha_make 50 3001")
        self.say(p, "close")
        self.assertEqual(self.open(p, BETA), first)
        time.sleep(1)
        self.say(p, "make beta_make 50 3002")
        self.end(p, rec)
        self.assertEqual(self.made(), ({"alpha_make": 50 * 3001, "beta_make": 50 * 3002}, 50 * 3001 + 50 * 3002))
        self.quit(p)

    def rebuilt(self, replace):
        p, rec = self.begin()
        plugin = self.path("plugin.so")
        shutil.copy(ALPHA, plugin)
        first = self.use(p, plugin, "alpha_make", 50, 3001)
        replace(plugin)
        time.sleep(0.1)  # the times of files do not tell what happened earlier within a tick
        self.assertEqual(self.use(p, plugin, "beta_make", 50, 3002), first)
        time.sleep(1)
        self.assertEqual(self.use(p, plugin, "beta_make", 50, 3003), first)
        self.end(p, rec)
        found = self.made()[0]
        self.assertEqual(found.pop("beta_make"), 50 * 3002 + 50 * 3003)
        # The file of the first build is gone when the recording ends.
        (named, n), = found.items()
        self.assertRegex(named, r"^plugin\.so( \(deleted\))?\+0x")
        self.assertEqual(n, 50 * 3001)
        self.quit(p)

    def test_rebuilt(self):
        """a library is built anew and loaded again: blocks of the old build do not get functions of the new one"""
        def replace(plugin):
            shutil.copy(BETA, plugin + ".new")
            os.rename(plugin + ".new", plugin)
        self.rebuilt(replace)

    def test_overwritten(self):
        """the same, if the file is overwritten and keeps its inode"""
        self.rebuilt(lambda plugin: shutil.copy(BETA, plugin))

    def unloaded(self, p):
        self.open(p, ALPHA)
        self.say(p, "make alpha_make 50 3001")
        time.sleep(0.5)  # with --via=kernel, the recorder unwinds, while the library is mapped
        self.say(p, "close")
        time.sleep(1.5)  # the recorder notices that the library is gone

    def named(self, p):
        self.assertEqual(self.made(), ({"alpha_make": 50 * 3001}, 50 * 3001))
        self.quit(p)

    def test_unloaded(self):
        """code that is unloaded when the recording ends has its functions, with --live-only, too"""
        for options in ((), ("--live-only",)):
            with self.subTest(options):
                p, rec = self.begin(*options)
                self.unloaded(p)
                self.end(p, rec)
                self.named(p)

    def test_unloaded_via_kernel(self):
        """the same with --via=kernel"""
        p = self.start(f"{t.VICTIMS}/loaders", stdin=subprocess.PIPE)
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r"), "--via=kernel",
                         stderr=subprocess.PIPE)
        while "Ctrl-C ends it" not in rec.stderr.readline():
            pass
        self.unloaded(p)
        rec.send_signal(signal.SIGINT)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        self.named(p)

    def test_next_recorder(self):
        """the next recorder, after the first was killed, keeps both functions apart"""
        p, rec = self.begin("--lossless")
        places = {self.use(p, ALPHA, "alpha_make", 50, 3001), self.use(p, BETA, "beta_make", 50, 3002)}
        self.memprof("flush", "-p", p.pid)
        rec.send_signal(signal.SIGKILL)
        rec.wait(120)
        rec = self.attach(p, "two", "--lossless")
        places |= {self.use(p, BETA, "beta_make", 50, 3003), self.use(p, ALPHA, "alpha_make", 50, 3004)}
        self.assertEqual(len(places), 1)
        self.end(p, rec)
        self.assertEqual(self.made("two")[0], {"alpha_make": 50 * 3001 + 50 * 3004, "beta_make": 50 * 3002 + 50 * 3003})
        self.quit(p)

    def test_embedded(self):
        """--embed has the files of both libraries, and their addresses do not overlap"""
        p, rec = self.begin("--embed")
        self.use(p, ALPHA, "alpha_make", 50, 3001)
        self.use(p, BETA, "beta_make", 50, 3002)
        self.end(p, rec)
        self.memprof("extract", self.path("r"), "-o", self.path("out"))
        with open(self.path("out/modules.csv"), newline="") as f:
            modules = {row["path"]: (int(row["start"], 16), int(row["end"], 16)) for row in csv.DictReader(f)}
        low, high = sorted((modules[ALPHA], modules[BETA]))
        self.assertLessEqual(low[1], high[0])
        self.assertEqual(low[0], high[0] & ((1 << 48) - 1))
        found = [name for _, _, names in os.walk(self.path("out")) for name in names]
        self.assertTrue(any("libalpha" in name for name in found) and any("libbeta" in name for name in found), found)
        self.quit(p)


if __name__ == "__main__":
    t.main()
