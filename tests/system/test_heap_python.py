#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap and leaks see into the heap of Python: the numbers of objects are those that the program itself
made, what is reachable or a ring of garbage is never called a leak, and lost references are found."""
import json
import os
import re
import shutil
import subprocess

import memprof_test as t

VICTIM = t.ROOT + "/tests/victims/python_objects.py"
RELEASES = os.environ.get("RELEASES", t.ROOT + "/build/releases")
PYTHON = "/usr/bin/python3"


def release(name, version):
    """The command that runs another release's Python, and its environment; None if it was not fetched."""
    root = f"{RELEASES}/{name}"
    lib = "lib/x86_64-linux-gnu"
    linker = next(filter(os.path.exists, (f"{root}/{d}{lib}/ld-linux-x86-64.so.2" for d in ("", "usr/"))), None)
    program = f"{root}/usr/bin/python{version}"
    if not linker or not os.path.exists(program):
        return None
    return ([linker, "--library-path", f"{root}/{lib}:{root}/usr/{lib}", program],
            {**os.environ, "PYTHONHOME": f"{root}/usr"})


@t.unittest.skipUnless(os.uname().machine == "x86_64", "pymalloc is walked on x86-64 only")
class HeapPython(t.Case):
    def ready(self, command=(PYTHON,), env=None):
        """Starts the victim.  Return: the process, {kind: number}."""
        p = self.start(*command, VICTIM, stdin=subprocess.PIPE, env=env)
        said = {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "ready":
                return p, said
            said[word[0]] = int(word[1])
        self.fail("no ready")

    def tell(self, p, command):
        p.stdin.write(command + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")

    def types(self, p):
        """Return: {type: (blocks, size or "")} of memprof heap, and its output."""
        out = self.memprof("heap", "-p", p.pid).stdout
        found = {}
        for line in out.split("\n\ncontainers")[0].splitlines():
            m = re.fullmatch(r" *\S+ \S+ +([\d,]+) +(\S+ \S+)?  +([^\[]*?)  \[[^]]*\]", line)
            if m:
                found[m[3]] = found.get(m[3], 0) + int(m[1].replace(",", ""))
        return found, out

    def leaks(self, p, *more):
        f = self.path("leaks.json")
        out = self.memprof("leaks", "-p", p.pid, "--json", f, *more, status=None).stdout
        with open(f) as j:
            return json.load(j), out

    def memprof(self, *argv, status=0, **kw):
        if status is not None:
            return super().memprof(*argv, status=status, **kw)
        return subprocess.run([t.MEMPROF, *map(str, argv)], text=True, capture_output=True, timeout=300,
                              stdin=subprocess.DEVNULL, check=False)

    def check_objects(self, p, said):
        found, out = self.types(p)
        self.assertRegex(out, r"heap: glibc malloc 2\.\d+, exact:")
        for name in ("Point", "Session", "Big"):
            self.assertEqual(found.get(name), said[name], out)
        # The interpreter has some, too.
        self.assertGreaterEqual(found["float"], 20000)
        self.assertLess(found["float"], 20500)
        self.assertGreaterEqual(found["table of set"], 1)
        self.assertGreaterEqual(found["list"], said["Session"])
        self.assertIn("items of list", found)
        # Large containers have the name of their variable.
        for kind, elements, name in (("list", "20,000", "points"), ("dict", "5,000", "sessions"),
                                     ("dict", "3,000", "nested"), ("set", "10,000", "table")):
            self.assertRegex(out, rf"\n +{elements} +1 +\S+ \S+ +\S+ \S+  {kind} __main__.{name}\n +in {kind} at 0x")
        return out

    def check_leaks(self, p):
        """Rings are garbage, lost references are leaks, and nothing else is."""
        report, out = self.leaks(p)
        self.assertEqual(report["leaked"]["count"], 0, out)
        self.tell(p, "rings 500")
        report, out = self.leaks(p)
        self.assertEqual(report["leaked"]["count"], 0, out)
        self.assertGreaterEqual(report["garbage"]["count"], 2 * 498, out)
        self.assertRegex(out, r"garbage: [\d,]+ blocks \(.*\) that Python's collector will free: no leak")
        self.tell(p, "leak 1000")
        report, out = self.leaks(p)
        clusters = report["clusters"]
        self.assertEqual([c["type"] for c in clusters], ["Leaked"], out)
        # Old values in frames can keep some.
        self.assertLessEqual(clusters[0]["count"], 1000)
        self.assertGreaterEqual(clusters[0]["count"], 980)
        # Each holds its items, and a text; a small number is not its own.
        self.assertGreaterEqual(report["leaked"]["count"], 3 * clusters[0]["count"])
        self.tell(p, "collect")
        after, out = self.leaks(p)
        self.assertLess(after["garbage"]["count"], 50, out)
        self.assertEqual([c["type"] for c in after["clusters"]], ["Leaked"], out)
        why = self.memprof("leaks", "-p", p.pid, "--why", "0x" + clusters[0]["samples"][0].lstrip("0"),
                           status=None).stdout
        self.assertIn("Leaked", why)

    def check_all(self, command, env=None):
        p, said = self.ready(command, env)
        self.assertRegex(self.check_objects(p, said), r"heap: pymalloc of Python 3\.\d+, exact:")
        self.check_leaks(p)

    def test_python(self):
        p, said = self.ready()
        out = self.check_objects(p, said)
        # Containers with their elements.
        self.assertRegex(out, r"\n +1,000 +1 +\S+ \S+ +[\d.]+ \S+  Counted\n")
        self.assertRegex(out, r"heap: pymalloc of Python 3\.\d+, exact:")
        # Resident memory: the arenas are blocks, not mappings of the program.
        other = re.search(r"([\d.]+) (\S+) +[\d.]+ % +other mappings of the program", out)
        self.assertIn(other[2], ("B", "KiB"), out)
        self.check_leaks(p)

    def test_growth(self):
        p, said = self.ready()
        self.tell(p, "grow 7000")
        found, out = self.types(p)
        self.assertEqual(found["Point"], said["Point"] + 7000, out)

    def test_retained(self):
        p, said = self.ready()
        f = self.path("retained.json")
        self.memprof("heap", "-p", p.pid, "--retained", "--json", f)
        with open(f) as j:
            report = json.load(j)

        def lines(line):
            yield line
            for child in line["children"]:
                yield from lines(child)

        def most(name):
            return max((x for x in lines(report["retained"]) if x["name"] == name),
                       key=lambda x: x["retained_bytes"], default=None)
        sessions, points = most("Session"), most("Point")
        # An old value in a frame can keep a few of them by itself.
        self.assertGreaterEqual(sessions["count"], said["Session"] - 20)
        self.assertGreaterEqual(points["count"], said["Point"] - 20)
        self.assertEqual(points["type_source"], "object")
        self.assertEqual(points["exact_bytes"], points["retained_bytes"])
        # Each keeps its text, and its list with the items.
        self.assertGreaterEqual(sessions["retained_blocks"], 4 * sessions["count"])
        # Each keeps its float.
        self.assertGreaterEqual(points["retained_blocks"], 2 * points["count"] - 20)
        table = [x for x in lines(report["retained"]) if x["container"] and x["container"]["elements"] == 5000]
        self.assertTrue(table)
        self.assertEqual(table[0]["container"]["type"], "dict __main__.sessions")
        self.assertEqual(table[0]["container"]["type_source"], "object")

    def test_busy(self):
        """Threads that make objects, rings and texts, and a collector that runs."""
        p, said = self.ready()
        self.tell(p, "busy")
        for _ in range(8):
            report, out = self.leaks(p)
            self.assertEqual(report["leaked"]["count"], 0, out)
            self.assertEqual([h["damaged"] for h in report["heaps"]], [[], []], out)
        found, out = self.types(p)
        self.assertEqual(found["Point"], said["Point"], out)
        self.assertEqual(found["Session"], said["Session"], out)

    @t.unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_embedded(self):
        """A program with Python inside of it, in a library that was linked in another way."""
        p = self.start("gdb", "-q", "-nx", "-ex", "python numbers = [[i] for i in range(30000)]",
                       "-ex", "python print('ready', flush=True)", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while p.stdout.readline() != "ready\n":
            self.assertIsNone(p.poll())
        found, out = self.types(p)
        self.assertRegex(out, r"heap: pymalloc of Python 3\.\d+, exact:")
        self.assertGreaterEqual(found["list"], 30000)
        self.assertRegex(out, r"\n +30,000 +1 +\S+ \S+ +\S+ \S+  list __main__.numbers\n")

    def test_without_arenas(self):
        """PYTHONMALLOC=malloc: all objects are malloc()'s."""
        p, said = self.ready(env={**os.environ, "PYTHONMALLOC": "malloc"})
        report, out = self.leaks(p)
        self.assertEqual([h["allocator"] for h in report["heaps"]], ["glibc malloc"], out)
        self.check_objects(p, said)
        self.check_leaks(p)

    def test_releases(self):
        tried = 0
        for name, version in (("bullseye", "3.9"), ("trixie", "3.13")):
            how = release(name, version)
            if how:
                tried += 1
                with self.subTest(version=version):
                    self.check_all(*how)
        if not tried:
            self.skipTest("no Python of another release: see scripts/releases")

    def test_others(self):
        """PYTHONS: further interpreters, such as those of pyenv."""
        others = os.environ.get("PYTHONS", "").split()
        if not others:
            self.skipTest("PYTHONS has none")
        for command in others:
            with self.subTest(command=command):
                self.check_all([command])


if __name__ == "__main__":
    t.main()
