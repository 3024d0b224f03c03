#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Other allocators and loaders: late libraries, namespaces, interposers, hooks of other tools."""
import os
import re
import signal
import subprocess
import time

import memprof_test as t


TCMALLOC = t.library("libtcmalloc_minimal.so.4")
MIMALLOC = t.library("libmimalloc.so.2")


def by_module(report):
    """The number of calls of each (module without version, function)."""
    sums = {}
    for f in report["functions"]:
        key = (f["library"].split(".")[0], f["function"])
        sums[key] = sums.get(key, 0) + f["calls"]
    return sums


class Loaders(t.Case):
    def loader(self, **kw):
        return self.start(f"{t.VICTIMS}/loaders", stdin=subprocess.PIPE, **kw)

    def say(self, p, command):
        p.stdin.write(command + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n", command)

    def begin(self, p):
        """Starts to record; returns when the hooks are installed."""
        rec = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o",
                         self.path("r"), stderr=subprocess.DEVNULL)
        self.wait_for(p, lambda state: state == 3)
        return rec

    def wait_for(self, p, ready):
        """Waits until ready() accepts the state of the session, which is read from its block."""
        def is_ready():
            r = subprocess.run([f"{t.VICTIMS}/block", str(p.pid)], text=True, capture_output=True)
            found = re.search(r'"state": (\d)', r.stdout)
            return found and ready(int(found.group(1)))
        t.wait_for(is_ready)

    def end(self, p, rec):
        self.memprof("detach", "-p", p.pid)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)
        return self.report(self.path("r"))

    def quit(self, p):
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def test_late_operator_new(self):
        """operator new and malloc of an allocator that is loaded while recording: each call is counted"""
        p = self.loader()
        rec = self.begin(p)
        self.say(p, f"open {TCMALLOC}")
        t.wait_hooked(p.pid, TCMALLOC)
        self.say(p, "new 500")
        self.say(p, "blocks 300")
        r = self.end(p, rec)
        c = by_module(r)
        news = sum(n for (module, f), n in c.items()
                   if module == "libtcmalloc_minimal" and f in ("_Znwm", "tc_new"))
        mallocs = sum(n for (module, f), n in c.items()
                      if module == "libtcmalloc_minimal" and f in ("malloc", "tc_malloc"))
        self.assertEqual((news, mallocs), (500, 300))
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.clean_text(p, TCMALLOC)
        self.quit(p)

    def reloaded(self, lib, times, pause=1.5):
        module = os.path.basename(lib).split(".")[0]
        p = self.loader()
        rec = self.begin(p)
        for _ in range(times):
            self.say(p, f"open {lib}")
            t.wait_hooked(p.pid, lib)
            self.say(p, "blocks 100")
            self.say(p, "close")
            self.assertNotIn(module, t.maps(p.pid))
            time.sleep(pause)  # the recorder notices that the library is gone
        self.say(p, f"open {lib}")
        t.wait_hooked(p.pid, lib)
        r = self.end(p, rec)
        self.assertEqual(by_module(r)[(module, "malloc")], 100 * times)
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.clean_text(p, lib)
        self.quit(p)

    def test_reloaded(self):
        """a library that is unloaded and loaded again is hooked again, and restored at the end"""
        self.reloaded(f"{t.VICTIMS}/libwrapper.so", 3)

    def test_reloaded_allocator(self):
        """mimalloc (jemalloc and tcmalloc cannot be unloaded), loaded again, is hooked again, and restored"""
        self.reloaded(MIMALLOC, 2)

    def test_reloaded_often(self):
        """reloads that need more hooks in all than a session has at a time: each call is counted"""
        self.reloaded(MIMALLOC, 8, 0)
        if t.FULL:
            self.reloaded(f"{t.VICTIMS}/libwrapper.so", 200, 0)

    def test_unloaded_by_the_parent(self):
        """detach restores a library in a forked child, although the parent has unloaded it since"""
        p = self.loader()
        wrapper = f"{t.VICTIMS}/libwrapper.so"
        rec = self.begin(p)
        self.say(p, f"open {wrapper}")
        t.wait_hooked(p.pid, wrapper)
        p.stdin.write("fork\n")
        p.stdin.flush()
        child = int(p.stdout.readline())
        self.assertEqual(p.stdout.readline(), "done\n")
        self.say(p, "close")
        time.sleep(1.5)  # the recorder notices that the library is gone
        self.say(p, f"open {wrapper}")
        t.wait_hooked(p.pid, wrapper)
        self.say(p, "close")
        self.end(p, rec)
        self.assertNotIn("memprof", t.maps(child))
        os.kill(child, signal.SIGUSR1)  # the child calls the library's allocator, and ends
        self.assertEqual(p.stdout.readline(), "child ok\n")
        self.quit(p)

    def clean_text(self, p, path):
        """Checks that the text of a module is that of its file."""
        with open(path, "rb") as f, open(f"/proc/{p.pid}/mem", "rb") as mem:
            for line in t.maps(p.pid).split("\n"):
                m = re.match(r"(\w+)-(\w+) r-xp (\w+) .*" + os.path.basename(path), line)
                if m:
                    low, high, offset = (int(x, 16) for x in m.groups())
                    f.seek(offset)
                    want = f.read(high - low)
                    mem.seek(low)
                    self.assertEqual(mem.read(len(want)), want)
                    return
        self.fail(f"{path} is not mapped")

    def test_namespace(self):
        """dlmopen(): the calls of a second libc's malloc are counted besides those of the first"""
        p = self.loader()
        rec = self.begin(p)
        self.say(p, "space /lib/x86_64-linux-gnu/libc.so.6")
        second = [line for line in t.maps(p.pid).split("\n") if "r-xp" in line and "libc.so.6" in line]
        self.assertEqual(len(second), 2)
        t.wait_hooked(p.pid, "/lib/x86_64-linux-gnu/libc.so.6")
        self.say(p, "blocks 700")
        self.say(p, "own 300")
        r = self.end(p, rec)
        c = t.calls(r)
        self.assertGreaterEqual(c["malloc"], 1000)
        self.assertLess(c["malloc"], 1100)
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.quit(p)

    def interposed(self, lib):
        env = dict(os.environ, LD_PRELOAD=f"{t.VICTIMS}/{lib}")
        p = self.loader(env=env)
        t.settle(p.pid)
        rec = self.begin(p)
        self.say(p, "own 1000")
        r = self.end(p, rec)
        c = by_module(r)
        module = lib.split(".")[0]
        self.assertGreaterEqual(c[(module, "malloc")], 1000)
        self.assertEqual(c.get(("libc", "malloc"), 0), 0)
        self.assertGreaterEqual(r["totals"]["frees"], 1000)
        self.assertLess(r["totals"]["frees"], 1010)
        self.assertEqual(r["totals"]["foreign_frees"], 0)
        self.assertLessEqual(r["totals"]["leaked_count"], 2)
        self.quit(p)

    def test_interposer(self):
        """a preloaded interposer that calls the next malloc: each call counts once"""
        self.interposed("libwrapper.so")

    def test_interposer_a32(self):
        """a preloaded interposer with functions of A32 code: each call counts once"""
        self.needs_a32()
        self.interposed("libwrapper-a32.so")

    def test_interposer_with_header(self):
        """a preloaded interposer that returns other addresses than the next malloc: each call counts once"""
        self.interposed("libwrapper-header.so")

    def test_foreign_breakpoint(self):
        """attach refuses a process with a debugger's breakpoint at malloc by name, and changes nothing"""
        p = self.loader()
        self.say(p, "own 10")
        at = self.symbol(p, "malloc")
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(at)
            was = mem.read(1)
            mem.seek(at)
            mem.write(b"\xcc")
            before = t.identity(p.pid)
            r = self.memprof("attach", "-p", p.pid, "-o", self.path("r"), status=12)
            self.assertIn("malloc in libc.so.6", r.stderr)
            self.assertEqual(t.identity(p.pid), before)
            mem.seek(at)
            mem.write(was)
        self.say(p, "own 10")
        self.quit(p)

    def test_foreign_hook_in_between(self):
        """detach does not touch hooked text that another tool has changed, and reports it"""
        p = self.loader()
        rec = self.begin(p)
        at = self.symbol(p, "valloc")
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(at)
            ours = mem.read(5)
            self.assertEqual(ours[0], 0xe9)
            mem.seek(at)
            mem.write(b"\xcc")
            r = self.memprof("detach", "-p", p.pid, status=15)
            self.assertIn("changed by another tool", r.stderr)
            mem.seek(at)
            self.assertEqual(mem.read(5), b"\xcc" + ours[1:])
            mem.seek(at)
            mem.write(ours)
        rec.communicate(timeout=120)
        self.memprof("detach", "-p", p.pid)
        self.clean_text(p, "/lib/x86_64-linux-gnu/libc.so.6")
        self.say(p, "own 100")
        self.quit(p)

    def symbol(self, p, name):
        """Address of a function of libc, after its endbr64 instruction."""
        libc = "/lib/x86_64-linux-gnu/libc.so.6"
        line = next(x for x in t.maps(p.pid).split("\n") if "libc.so.6" in x)
        syms = subprocess.check_output(["nm", "-D", "--defined-only", libc], text=True)
        value = int(re.search(rf"^(\w+) \w {name}@@", syms, re.M).group(1), 16)
        at = int(line.split("-")[0], 16) + value
        with open(f"/proc/{p.pid}/mem", "rb") as mem:
            mem.seek(at)
            return at + 4 if mem.read(4) == b"\xf3\x0f\x1e\xfa" else at


if __name__ == "__main__":
    t.main()
