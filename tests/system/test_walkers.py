# SPDX-License-Identifier: MIT OR Apache-2.0
"""Heap walkers in a guest of another architecture: the unit test heaps/walkers, which is run as it
is on the machine that builds memprof.  And allocators that have none, but are named."""
import json
import os
import shutil
import subprocess
import tempfile

import memprof_test as t

RELEASES = os.environ.get("RELEASES", t.ROOT + "/build/releases")
PARSER = f"{RELEASES}/npm/node_modules/@oxc-parser/binding-linux-x64-gnu/parser.linux-x64-gnu.node"
# Parses sources of several sizes and keeps what it gets.
PARSE = """
const parser = require(process.argv[1]), kept = [];
for (let i = 0; i < 200; i++)
    kept.push(parser.parseSync('a.js', `function f${i}(a) { return a + ${i} }`.repeat(i)));
console.log('ready');
setInterval(() => kept.length, 1000);
"""
WALKERS = f"{t.VICTIMS}/walkers"


@t.unittest.skipIf(os.uname().machine == "x86_64", "the unit test heaps/walkers does this")
@t.unittest.skipUnless(os.path.exists(WALKERS), "these heaps are walked on x86_64 and aarch64 only")
class Walkers(t.unittest.TestCase):
    def agrees(self, row):
        done = subprocess.run([WALKERS, row], capture_output=True, text=True)
        print(done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"[       OK ] {row}\n", done.stdout + done.stderr)

    def test_jemalloc(self):
        """jemalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("jemalloc")

    def test_tcmalloc(self):
        """tcmalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("tcmalloc")

    def test_mimalloc(self):
        """mimalloc's blocks are those that the program lists, and the walk is exact"""
        self.agrees("mimalloc")


class Named(t.Case):
    def report(self, victim):
        """What leaks reports of a program that has a block of glibc's malloc."""
        p = self.victim(victim)
        self.assertEqual(p.stdout.readline(), "ready\n")
        with tempfile.TemporaryDirectory() as d:
            self.memprof("leaks", "-p", p.pid, "--json", f"{d}/leaks")
            return json.loads(t.read(f"{d}/leaks"))

    def test_named(self):
        """leaks names PartitionAlloc and Google's tcmalloc beside glibc's malloc, and is not exact then"""
        for victim, name in (("unwalked-partition", "PartitionAlloc"),
                             ("unwalked-google", "Google's tcmalloc")):
            got = self.report(victim)
            self.assertEqual([h["allocator"] for h in got["heaps"]], ["glibc malloc"])
            self.assertEqual(got["unknown_allocator"],
                             f"the process has {name}, whose blocks memprof cannot list")
            self.assertFalse(got["exact"])
            self.assertEqual(got["leaked"]["count"], 0)


@t.unittest.skipUnless(os.path.exists(PARSER), "scripts/releases has not fetched this library")
class Node(t.Case):
    def test_mimalloc_2_2(self):
        """mimalloc 2.2 in a library that node has loaded: its heap agrees with its counters"""
        p = self.start(shutil.which("node"), "-e", PARSE, PARSER)
        self.assertEqual(p.stdout.readline(), "ready\n")
        with tempfile.TemporaryDirectory() as d:
            self.memprof("leaks", "-p", p.pid, "--budget", "1GB", "--json", f"{d}/leaks")
            heaps = json.loads(t.read(f"{d}/leaks"))["heaps"]
        mimalloc = [h for h in heaps if h["allocator"] == "mimalloc"]
        self.assertEqual([(h["version"], h["exact"], h["doubt"]) for h in mimalloc],
                         [("2.2", True, None)])
        self.assertGreater(mimalloc[0]["live_bytes"], 50000)


if __name__ == "__main__":
    t.main()
