#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that load and unload libraries without pause, create thousands of threads, replace their allocator
or their own text.  doc/safety.md ("Tried") has the results."""
import json
import os
import re
import subprocess
import time
import unittest

import memprof_test as t

LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"
AUDIT = r"""
#define _GNU_SOURCE
#include <link.h>
unsigned int la_version(unsigned int v) { return v; }
unsigned int la_objopen(struct link_map *m, Lmid_t n, uintptr_t *c) { (void)m; (void)n; (void)c; return 3; }
"""
# A program that replaces its own text by a copy in anonymous memory at the same addresses.
REMAPPED = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char pool[1 << 20] __attribute__((aligned(16)));
static size_t used;
__attribute__((noinline)) void *malloc(size_t n) { used = (used + n + 31) & ~(size_t)15; return pool + used % (sizeof(pool) / 2); }
__attribute__((noinline)) void free(void *p) { for (int i = 0; p && i < 8; i++) ((volatile char *)p)[i] = (char)i; }
void *calloc(size_t n, size_t s) { volatile char *p = malloc(n * s); for (size_t i = 0; i < n * s; i++) p[i] = 0; return (void *)p; }
void *realloc(void *p, size_t n) { char *q = malloc(n); for (size_t i = 0; p && i < n; i++) q[i] = ((volatile char *)p)[i]; return q; }
int main(void) {
	char line[256]; unsigned long a, b; FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "r-xp") && strstr(line, "remapped") && sscanf(line, "%lx-%lx", &a, &b) == 2) break;
	fclose(f);
	void *copy = mmap(NULL, b - a, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, (void *)a, b - a);
	madvise(copy, b - a, MADV_HUGEPAGE);
	mprotect(copy, b - a, PROT_READ | PROT_EXEC);
	if (mremap(copy, b - a, b - a, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)a) == MAP_FAILED) return 1;
	alarm(600); puts("ready"); fflush(stdout);
	for (int i = 0; ; i++) { free(malloc((size_t)i % 100)); usleep(1000); }
}
"""


class OddTargets(t.Case):
    def compile(self, name, text, *flags):
        with open(self.path("source.c"), "w") as f:
            f.write(text)
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-w", *flags, "-o", self.path(name), self.path("source.c")],
                       check=True)
        return self.path(name)

    def crowd(self, *args, **kw):
        p = self.start(f"{t.VICTIMS}/crowd", *map(str, args), stdin=subprocess.PIPE, **kw)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def end(self, p):
        self.assertEqual(self.finish(p), "ok\n")

    def rss(self, pid):
        """The largest resident set so far, in MiB."""
        return int(re.search(r"VmHWM:\s+(\d+) kB", t.read(f"/proc/{pid}/status").decode()).group(1)) >> 10

    def test_storm(self):
        """attach and detach while six threads load and unload libraries, interposers among them"""
        # Not mimalloc, which uses up the loader's room for thread-local variables.
        p = self.crowd("storm", f"{t.VICTIMS}/libwrapper.so", f"{t.VICTIMS}/libwrapper-header.so",
                       f"{LIBRARIES}/libc_malloc_debug.so.0")
        for i in range(100 if t.FULL else 6):
            f = self.path("r")
            self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--for", f"{50 + 100 * (i % 4)}ms")
            self.assertIsNone(p.poll())
            self.assertNotIn("memprof-session", t.maps(p.pid))
            self.assertGreater(t.calls(self.report(f)).get("malloc", 0), 0)
        self.end(p)

    def test_edge(self):
        """recording survives that the page behind each thread's stack is mapped and unmapped all the time"""
        # In the second round a seccomp filter forbids the system call that copies a stack.
        for above in [], [f"{t.VICTIMS}/sandbox", "without", "process_vm_readv"]:
            p = self.start(*above, f"{t.VICTIMS}/crowd", "edge", f"{t.VICTIMS}/libwrapper.so",
                           f"{t.VICTIMS}/libwrapper-header.so")
            self.assertEqual(p.stdout.readline(), "ready\n")
            for _ in range(20 if t.FULL else 3):
                f = self.path("r")
                self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--for", "300ms")
                self.assertIsNone(p.poll())
                self.assertGreater(t.calls(self.report(f)).get("malloc", 0), 0)
            self.end(p)

    def test_short_threads(self):
        """thousands of short-lived threads: counts are exact, and the recorder's memory is bounded"""
        n = 100000 if t.FULL else 4000
        p = self.crowd("short", n)
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o", f, stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        p.stdin.write("go\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")
        print(f"# recorder: {self.rss(rec.pid)} MiB", flush=True)
        self.assertLess(self.rss(rec.pid), 400)
        self.detach(p.pid)
        rec.wait(timeout=120)
        r = self.report(f)
        self.assertEqual(r["losses"]["lost_allocations"] + r["losses"]["lost_frees"], 0)
        own = [g for g in r["allocation_groups"]
               if any(x["function"] == "leave_one" for x in g["backtrace"])]
        self.assertEqual(sum(g["allocated_count"] for g in own), 10 * n)
        self.assertEqual(sum(g["leaked_count"] for g in own), n)
        self.end(p)

    def test_many_threads(self):
        """attach, leaks and detach of a process with a thousand threads leave it as before"""
        n = 10000 if t.FULL else 1000
        p = self.crowd("many", n)
        # While sigwait() waits, SIGTERM is not blocked.
        t.wait_for(lambda: b"\nSigBlk:\t0000000000000000\n" in t.read(f"/proc/{p.pid}/status"))
        before = t.identity(p.pid)
        f = self.record(p.pid)
        self.assertEqual(self.report(f)["losses"]["lost_allocations"], 0)
        self.memprof("leaks", "-p", p.pid, "--json", self.path("leaks"))
        found = json.loads(t.read(self.path("leaks")))
        self.assertGreaterEqual(found["live"]["count"], n)
        self.assertEqual(found["leaked"]["count"], 0)
        after = t.identity(p.pid)
        for what in ("text", "fds", "tasks", "signals", "copied text"):
            self.assertEqual(after[what], before[what], what)
        self.end(p)

    def loaders(self, **env):
        """Starts a program that allocates by command, with additional environment variables."""
        p = self.start(f"{t.VICTIMS}/loaders", stdin=subprocess.PIPE, env=dict(os.environ, **env))
        self.tell(p, "own 10")
        return p

    def tell(self, p, command):
        p.stdin.write(command + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")

    def exact(self, p):
        """Checks that 1000 allocations and frees are recorded once each, and that detach restores text."""
        before = t.identity(p.pid)
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o", f, stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        self.tell(p, "own 1000")
        self.detach(p.pid)
        rec.wait(timeout=120)
        r = self.report(f)
        own = [g for g in r["allocation_groups"] if any(x["function"] == "pairs" for x in g["backtrace"])]
        self.assertEqual(sum(g["allocated_count"] for g in own), 1000)
        self.assertEqual(sum(g["leaked_count"] for g in own), 0)
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.assertEqual(t.identity(p.pid)["text"], before["text"])
        self.assertEqual(t.identity(p.pid)["copied text"], before["copied text"])
        self.tell(p, "own 10")
        out, _ = p.communicate(timeout=60)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def test_preloaded(self):
        """preloaded allocators and malloc checkers: each call counts once, the text is restored"""
        for name in (*t.WALKED, "libtcmalloc_minimal_debug.so.4", "libc_malloc_debug.so.0"):
            with self.subTest(name):
                if not os.path.exists(t.library(name)):
                    self.skipTest("not installed")
                self.exact(self.loaders(LD_PRELOAD=t.library(name), MALLOC_CHECK_="3"))

    def test_audited(self):
        """LD_AUDIT, which loads a second libc for the auditor: each call of the program counts once"""
        self.exact(self.loaders(LD_AUDIT=self.compile("audit.so", AUDIT, "-shared", "-fPIC")))

    def test_static_pie(self):
        """a static position-independent program: each call counts once, the text is restored"""
        exe = self.path("loaders")
        subprocess.run(["gcc", "-O2", "-g", "-w", "-static-pie", "-D_GNU_SOURCE", "-o", exe,
                        f"{t.ROOT}/tests/victims/loaders.c"], check=True, stderr=subprocess.DEVNULL)
        p = self.start(exe, stdin=subprocess.PIPE)
        self.tell(p, "own 10")
        self.exact(p)

    @unittest.skipUnless(t.FULL, "50 million live blocks: in make check-all")
    def test_live_blocks(self):
        """50 million live blocks: the recorder loses none while its live table grows, and heap finds all"""
        n = 50_000_000
        p = self.start(f"{t.VICTIMS}/many", str(n), stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o", self.path("r"))
        recorder = self.wait_recorded(p.pid)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")
        self.memprof("flush", "-p", p.pid)
        print("# the recorder:", re.search(r"VmRSS:\s*(.*)", t.read(f"/proc/{recorder}/status").decode()).group(1),
              flush=True)
        self.assertRegex(self.memprof("heap", "-p", p.pid, timeout=600).stdout, r"50,000,00\d live blocks")
        self.detach(p.pid)
        self.assertEqual(rec.wait(600), 0)
        p.stdin.close()
        p.stdin = None
        self.assertEqual(p.wait(60), 0)
        totals = self.report(self.path("r"))["totals"]
        self.assertEqual((totals["allocations"], totals["leaked_count"]), (n, n))

    def test_remapped_text(self):
        """attach reports an allocator whose text is a copy in anonymous memory, and does not hook it"""
        p = self.start(self.compile("remapped", REMAPPED))
        self.assertEqual(p.stdout.readline(), "ready\n")
        where = re.search(r"^(\w+)-(\w+) r-xp \w+ 00:00 0 *$", t.maps(p.pid), re.M)
        low, high = (int(x, 16) for x in where.groups())

        def text():
            with open(f"/proc/{p.pid}/mem", "rb") as mem:
                mem.seek(low)
                return mem.read(high - low)
        before = text()
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("r"), "--for", "200ms")
        self.assertIn("malloc in remapped (its text was copied to other memory", r.stderr)
        self.assertEqual(text(), before)
        self.assertNotIn("memprof-session", t.maps(p.pid))
        time.sleep(0.2)
        self.assertIsNone(p.poll())


if __name__ == "__main__":
    t.main()
