#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of code that programs generate: perf maps and jitdumps, of node and of programs that lie."""
import json
import os
import shutil
import subprocess
import unittest

import memprof_test as t

SCRIPT = """'use strict';
const keep = [];
function makeBuffers() {
  for (let i = 0; i < 20; i++) keep.push(Buffer.allocUnsafeSlow(10000));
}
function makeArrays() {
  keep.push(new ArrayBuffer(5000));
}
class Server {
  handle() { makeBuffers(); makeArrays(); keep.length %= 2000; }
}
const server = new Server();
let rounds = 0;
setInterval(() => { server.handle(); if (++rounds == 20) console.log('ready'); }, 5);
process.on('SIGTERM', () => process.exit(0));
"""
# Generates a function that loses memory, and names it.
LEAK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push %rbp; mov %rsp,%rbp; movabs malloc,%rax; call *%rax; pop %rbp; ret */
static unsigned char code[] = "\x55\x48\x89\xe5\x48\xb8........\xff\xd0\x5d\xc3";
int main(void) {
  void *(*f)(size_t) = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void *(*target)(size_t) = malloc;
  char name[64];
  memcpy(code + 6, &target, 8);
  memcpy((void *)f, code, sizeof(code));
  snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
  FILE *map = fopen(name, "w");
  fprintf(map, "%lx %zx JS:*loses /a.js:7:1\n", (long)f, sizeof(code));
  fclose(map);
  puts("ready");
  fflush(stdout);
  for (;;) {
    f(4000);
    usleep(10000);
  }
}
"""
# Interpreted functions get code of their own; no function is a part of another one.
NODE = ("--interpreted-frames-native-stack", "--no-turbo-inlining")
JIT = "JIT code"


def frames(report, function):
    """The frames with this function of all stacks."""
    return [f for g in report["allocation_groups"] for f in g["backtrace"] if f["function"] == function]


def through(report, *functions):
    """The groups whose stacks have these functions, each called by the one before it."""
    found = []
    for g in report["allocation_groups"]:
        stack = [f["function"] for f in g["backtrace"]]
        if any(stack[i:i + len(functions)] == list(functions) for i in range(len(stack))):
            found.append(g)
    return found


@unittest.skipUnless(os.uname().machine == "x86_64", "only there callers are found by frame pointers")
class JitNames(t.Case):
    def remove(self, path):
        """Removes a file when the test is over."""
        self.addCleanup(lambda: os.path.lexists(path) and os.unlink(path))
        return path

    # node

    def check_node(self, report, source):
        """The stacks of the script above have its names, lines and bytes."""
        buffers = through(report, "handle", "makeBuffers")
        self.assertTrue(buffers)
        big = [g for g in buffers if g["size"] == 10000 * g["allocated_count"]]
        self.assertTrue(big)
        arrays = [g for g in through(report, "handle", "makeArrays") if g["size"] == 5000 * g["allocated_count"]]
        self.assertTrue(arrays)
        # Those of the last round can be cut off by the end of the recording, and those of the first by its start.
        self.assertAlmostEqual(sum(g["allocated_count"] for g in big) / 20,
                               sum(g["allocated_count"] for g in arrays), delta=2)
        for g in big:
            site = g["backtrace"][g["user_frame"]]
            self.assertEqual((site["function"], site["source"], site["line"], site["library"]),
                             ("makeBuffers", source, 3, JIT))
        for g in arrays:
            self.assertEqual(g["backtrace"][g["user_frame"]]["function"], "makeArrays")
        self.assertEqual({f["line"] for f in frames(report, "handle")}, {10})
        self.assertTrue(frames(report, "listOnTimeout"))

    def start_node(self, *options):
        if not shutil.which("node"):
            self.skipTest("no node")
        with open(self.path("app.js"), "w") as f:
            f.write(SCRIPT)
        p = self.start(shutil.which("node"), *options, *NODE, "app.js", cwd=self.dir)
        self.remove(f"/tmp/perf-{p.pid}.map")
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_perf_map(self):
        """node --perf-basic-prof: stacks have the functions of JavaScript, their files and lines"""
        p = self.start_node("--perf-basic-prof")
        f = self.record(p.pid, 1)
        self.check_node(self.report(f), self.path("app.js"))
        text = self.memprof("report", f).stdout
        self.assertIn(f"> makeBuffers  {self.path('app.js')}:3\n", text)
        self.assertRegex(text, r"Builtins_\w+, \d+ frames of node, V8 and libc")
        self.assertRegex(self.memprof("report", f, "--collapsed").stdout, r";handle;makeBuffers;")
        self.assertRegex(self.memprof("report", f, "--full-stacks").stdout, "v8::internal::.*node::|node::.*\n.*v8::")
        self.memprof("merge", f, "-o", self.path("merged"))
        self.check_node(self.report(self.path("merged")), self.path("app.js"))
        self.memprof("symbolize", f, "-o", self.path("again"))
        self.check_node(self.report(self.path("again")), self.path("app.js"))
        self.memprof("symbolize", f, "-o", self.path("hidden"), "--anonymize=full")
        self.assertNotIn("makeBuffers", self.memprof("report", self.path("hidden"), "--json").stdout)
        self.finish(p)

    def test_jitdump(self):
        """node --perf-prof: names are read when the program has ended in the recording"""
        p = self.start_node("--perf-prof")
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        p.stdout.close()
        t.wait_for(lambda: self.events(p.pid) > 10000)
        p.terminate()
        p.wait()
        rec.communicate()
        self.assertEqual(rec.returncode, 0)
        self.assertFalse(os.path.exists(f"/tmp/perf-{p.pid}.map"))
        self.check_node(self.report(f), self.path("app.js"))

    def test_pieces(self):
        """each piece of a recording has names, and so has what they are merged to"""
        p = self.start_node("--perf-basic-prof")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r.memprof"), "--history",
                         "--rotate", "64k")

        def pieces():
            return sorted(self.path(n) for n in os.listdir(self.dir) if n.endswith(".memprof"))
        t.wait_for(lambda: len(pieces()) > 2)
        self.detach(p.pid)
        rec.communicate()
        for piece in pieces():
            self.check_node(self.report(piece), self.path("app.js"))
        self.memprof("merge", *pieces(), "-o", self.path("merged"))
        self.check_node(self.report(self.path("merged")), self.path("app.js"))
        self.finish(p)

    def events(self, pid):
        """The number of events that have been recorded of the process."""
        return next(s["events"] for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == pid)

    def test_namespaces(self):
        """the perf map of a process in a container is that of its own /tmp, under its own id"""
        if not shutil.which("node"):
            self.skipTest("no node")
        script = SCRIPT.replace("'use strict';", "'use strict'; console.log(process.pid);")
        p = self.start("unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c",
                       'mount -t tmpfs tmpfs /tmp && exec node --perf-basic-prof "$@"', "sh", *NODE, "-e", script,
                       cwd=self.dir)
        self.assertEqual(p.stdout.readline(), "1\n")
        self.assertEqual(p.stdout.readline(), "ready\n")
        inner, = map(int, t.children(p.pid))
        self.check_node(self.report(self.record(inner, 1)), "[eval]")

    def test_java(self):
        """Java's perf map, written when the program ends, names compiled methods"""
        if not shutil.which("java") or not os.path.exists(f"{t.VICTIMS}/Churn.class"):
            self.skipTest("no JDK")
        p = self.start("java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+PreserveFramePointer",
                       "-XX:+DumpPerfMapAtExit", "-Xcomp", "-XX:TieredStopAtLevel=1", "-cp", t.VICTIMS, "Churn")
        self.remove(f"/tmp/perf-{p.pid}.map")
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        t.wait_for(lambda: self.events(p.pid) > 100000)
        p.terminate()
        p.wait()
        rec.communicate()
        self.assertTrue(frames(self.report(self.path("r")), "void Churn.run()"))

    # A program of our own, whose generated code this test names

    def start_victim(self):
        """Starts a program with generated code.  Sets the map's path.  Return: the process, the addresses of two
        of its functions."""
        p = self.start(f"{t.VICTIMS}/untabled")
        p.stdout.readline()
        report = self.report(self.record(p.pid))
        unnamed = {f["address"] for g in report["allocation_groups"] for f in g["backtrace"]
                   if f["function"] == f"{f['address']:#x}"}
        self.assertGreater(len(unnamed), 1)
        self.map = self.remove(f"/tmp/perf-{p.pid}.map")
        return p, *sorted(unnamed)[:2]

    def write(self, *lines, mode="w"):
        with open(self.map, mode, errors="surrogateescape", newline="") as f:
            f.write("".join(lines))

    def attach(self, pid):
        """Records for a moment.  Return: what memprof said, the report."""
        f = self.path("rec.memprof")
        r = self.memprof("attach", "-p", pid, "-o", f, "--for", "300ms")
        return r.stdout + r.stderr, self.report(f)

    def test_merged(self):
        """what is merged has all names that an address has in its parts"""
        files = []
        for name in ("JS:*one /a.js:1:2", "JS:*two /b.js:1:2", "JS:*one /c.js:1:2"):
            p = self.start("setarch", "-R", f"{t.VICTIMS}/untabled")
            p.stdout.readline()
            report = self.report(self.record(p.pid))
            address = min(f["address"] for g in report["allocation_groups"] for f in g["backtrace"]
                          if f["function"] == f"{f['address']:#x}")
            self.map = self.remove(f"/tmp/perf-{p.pid}.map")
            self.write(f"{address:x} 1 {name}\n")
            os.rename(self.record(p.pid), self.path(f"part{len(files)}"))
            files.append(self.path(f"part{len(files)}"))
            self.finish(p)
        for parts, names in ((files[:2], ("one | two", "two | one")), (files[::2], ("one",)),
                             (files[:1], ("one",))):
            if len(parts) > 1:
                self.memprof("merge", *parts, "-o", self.path("merged"))
            report = self.report(self.path("merged") if len(parts) > 1 else parts[0])
            found = [f for name in names for f in frames(report, name)]
            self.assertTrue(found)
            self.assertEqual({f.get("source") for f in found}, {None} if len(parts) > 1 else {"/a.js"})

    def test_hostile(self):
        """a perf map that is a link, a fifo, another user's, or old is not used, and memprof says so"""
        p, address, _ = self.start_victim()
        line = f"{address - 8:x} 10 forged\n"

        def refused(why):
            said, report = self.attach(p.pid)
            self.assertIn(f"{self.map} is not used for names of JIT code: {why}", said)
            self.assertFalse(frames(report, "forged"))
            (os.rmdir if os.path.isdir(self.map) and not os.path.islink(self.map) else os.unlink)(self.map)

        with open(self.path("target"), "w") as f:
            f.write(line)
        os.symlink(self.path("target"), self.map)
        refused("it is a symbolic link")
        os.symlink("/etc/shadow", self.map)
        refused("it is a symbolic link")
        os.mkfifo(self.map)
        refused("it is not a regular file")
        os.mkdir(self.map)
        refused("it is not a regular file")
        self.write(line)
        os.chown(self.map, 65534, 65534)
        refused("another user")
        self.write(line)
        os.utime(self.map, (1e9, 1e9))
        refused("it is older than the process")
        self.write(line)
        said, report = self.attach(p.pid)
        self.assertNotIn(self.map, said)
        self.assertTrue(frames(report, "forged"))
        self.finish(p)

    def test_other_owner(self):
        """an unprivileged process: its own file is used, and root's"""
        p = self.start(*t.UNPRIVILEGED, f"{t.VICTIMS}/untabled")
        p.stdout.readline()
        report = self.report(self.record(p.pid))
        address = min(f["address"] for g in report["allocation_groups"] for f in g["backtrace"]
                      if f["function"] == f"{f['address']:#x}")
        self.map = self.remove(f"/tmp/perf-{p.pid}.map")
        for owner, used in ((0, True), (65534, True), (1, False)):
            self.write(f"{address:x} 10 forged\n")
            os.chown(self.map, owner, owner)
            said, report = self.attach(p.pid)
            self.assertEqual(bool(frames(report, "forged")), used)
            self.assertEqual("another user" in said, not used)
            os.unlink(self.map)
        self.finish(p)

    def test_garbage(self):
        """lines that are not valid are skipped and counted; names are escaped"""
        p, a, b = self.start_victim()
        self.write("garbage\n", "x" * 1000000, "\n", f"{a:x} 0 zero\n", f"{a:x} 10\n", "\0" * 100, "\n",
                   f"{a:x} 10 first \x1b[2J\udcff\n", f"{b:x} ffffffffffffffff wraps\n",
                   f"{b:x} 10 {'y' * 5000}\n", f"{b:x} 10 not written to its end")
        said, report = self.attach(p.pid)
        self.assertIn(f"{self.map}: 6 invalid entries were skipped", said)
        text = self.memprof("report", self.path("rec.memprof"), "--group-by", "stack", "--top", 20, "--frames",
                            20).stdout
        self.assertIn("first \\x1b[2J\\xff  [JIT code", text)
        self.assertNotIn("\x1b", text)
        self.assertTrue(frames(report, "y" * 1021 + "..."))
        self.assertFalse(frames(report, "zero") or frames(report, "wraps"))
        self.finish(p)

    def test_reused(self):
        """an address that had several names in the recording has all of them, an earlier one does not count"""
        p, a, b = self.start_victim()
        self.write(f"{a - 16:x} 100 oldest\n", f"{a:x} 10 old\n")
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        self.write(f"{a:x} 1 JS:~new /a.js:1:2\n", f"{b:x} 1 JS:~other /a.js:3:4\n", f"{b:x} 1 JS:*other /a.js:3:4\n",
                   mode="a")
        self.detach(p.pid)
        rec.communicate()
        report = self.report(f)
        self.assertTrue(frames(report, "new | old"))
        self.assertFalse([n for g in report["allocation_groups"] for n in g["backtrace"] if "oldest" in n["function"]])
        self.assertEqual({(n.get("source"), n.get("line")) for n in frames(report, "new | old")}, {(None, None)})
        self.assertEqual({(n["source"], n["line"]) for n in frames(report, "other")}, {("/a.js", 3)})
        # All of it is older than this recording.
        report = self.attach(p.pid)[1]
        self.assertTrue(frames(report, "new"))
        self.finish(p)

    def test_replaced(self):
        """a file that the program has begun anew in the recording has nothing from before it"""
        p, a, _ = self.start_victim()
        self.write(f"{a:x} 10 old\n" * 5)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        os.unlink(self.map)
        self.write(f"{a:x} 10 one\n", f"{a:x} 10 two\n")
        self.detach(p.pid)
        rec.communicate()
        self.assertTrue(frames(self.report(self.path("r")), "two | one"))
        self.finish(p)

    def test_leaks(self):
        """memprof leaks names the code in stacks of a recording in progress"""
        with open(self.path("leak.c"), "w") as f:
            f.write(LEAK)
        subprocess.run(("cc", "-O1", "-o", self.path("leak"), self.path("leak.c")), check=True)
        p = self.start(self.path("leak"))
        self.remove(f"/tmp/perf-{p.pid}.map")
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        t.wait_for(lambda: self.events(p.pid) > 10)
        self.assertRegex(self.memprof("leaks", "-p", p.pid, status=1).stdout, "loses  /a.js:7\n")
        self.detach(p.pid)
        rec.communicate()
        site, = {(f["source"], f["line"]) for f in frames(self.report(self.path("r")), "loses")}
        self.assertEqual(site, ("/a.js", 7))

    def test_continued(self):
        """a recording that another recorder continues has names"""
        p, a, _ = self.start_victim()
        self.write(f"{a:x} 10 one\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        self.memprof("detach", "--keep", "-p", p.pid)
        rec.communicate()
        self.assertTrue(frames(self.report(self.path("r")), "one"))
        # The stacks of the first recording can mean either.
        self.write(f"{a:x} 10 two\n", mode="a")
        self.assertTrue(frames(self.attach(p.pid)[1], "two | one"))
        self.finish(p)


if __name__ == "__main__":
    t.main()
