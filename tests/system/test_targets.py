#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of many kinds work correctly while memprof attaches, records and detaches."""
import json
import os
import re
import shutil
import subprocess
import time

import memprof_test as t
import ptrace

PYTHON = """
import signal
running, n = True, 0
def stop(*_):
    global running
    running = False
signal.signal(signal.SIGTERM, stop)
while running:
    d = {i: [str(i)] * 3 for i in range(2000)}
    assert sum(len(v) for v in d.values()) == 6000 and d[1999][2] == "1999"
    n += 1
print("ok", n)
"""


class Targets(t.Case):
    def cycle(self, p, **kw):
        """Attaches to @p, checks the recording and that the text is restored.  Return: the report."""
        before = t.identity(p.pid)
        r = self.report(self.record(p.pid, 0.6))
        self.assertGreater(r["totals"]["allocations"], 0)
        self.assertEqual(t.identity(p.pid)["text"], before["text"])
        self.assertNotIn("memfd:memprof", t.maps(p.pid))
        return r

    def complete(self, r, least=0.999):
        total = r["losses"]["stacks_total"]
        self.assertGreaterEqual(r["losses"]["stacks_complete"] / total, least)

    def test_glibc(self):
        """a C program with threads: recorded with complete stacks, and unharmed"""
        p = self.victim("verify")
        self.complete(self.cycle(p))
        self.assertIn("ok", self.finish(p))

    def test_startup(self):
        """a program that is still being linked is recorded as soon as its allocator is mapped"""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        # The dynamic linker waits for a writer of the library that it shall preload, then ignores it.
        p = self.start(f"{t.VICTIMS}/verify", env=dict(os.environ, LD_PRELOAD=fifo), stderr=subprocess.DEVNULL)
        t.wait_for(lambda: os.readlink(f"/proc/{p.pid}/exe").endswith("verify") and
                   ptrace.state(p.pid, p.pid) == "S")
        m = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "500ms")
        time.sleep(0.2)
        open(fifo, "wb").close()
        self.assertEqual(m.wait(timeout=60), 0)
        self.assertGreater(self.report(self.path("r"))["totals"]["allocations"], 0)
        self.finish(p)

    def test_static_glibc(self):
        """a static glibc program: recorded with complete stacks, and unharmed"""
        p = self.victim("verify-static")
        self.complete(self.cycle(p))
        self.assertIn("ok", self.finish(p))

    def test_static_musl(self):
        """a static musl program: recorded, and unharmed"""
        p = self.victim("verify-musl-static")
        self.cycle(p)
        self.assertIn("ok", self.finish(p))

    def test_older_blocks(self):
        """frees of blocks older than the recording are counted apart from those that glibc makes itself"""
        for name in ("verify-static", "verify-musl-static", "verify"):
            with self.subTest(name):
                p, f = self.victim(name, 2), self.path(name)
                # Frees of blocks whose allocation was lost would also count as those of older blocks.
                recorder = self.start(t.MEMPROF, "attach", "-q", "--lossless", "-p", str(p.pid), "-o", f)
                self.wait_recorded(p.pid)
                t.wait_for(lambda: self.status(p.pid)["events"] > 10000)
                self.assertIn("ok", self.finish(p))
                recorder.communicate(timeout=120)
                totals = self.report(f)["totals"]
                # Each thread holds up to 200 blocks, which it replaces all the time.
                self.assertGreater(totals["foreign_frees"], 100)
                self.assertLessEqual(totals["foreign_frees"], 2 * 200 + 20)
                self.assertEqual(totals["housekeeping_frees"] > 0, "musl" not in name)

    def status(self, pid):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == pid)

    def stripped(self, compiler, *link):
        """Starts a static program without symbols, with its debug file at @link.
        Return: the process, the debug file."""
        full, exe, debug = self.path("full"), self.path("bare"), self.path(os.path.join(*link))
        os.makedirs(os.path.dirname(debug), exist_ok=True)
        subprocess.run([compiler, "-O2", "-g", "-static", "-Wl,--build-id", "-D_GNU_SOURCE", f"-I{t.ROOT}/src", "-o", full,
                        f"{t.ROOT}/tests/victims/verify.c"], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", full, debug], check=True)
        subprocess.run(["strip", "-o", exe, full], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", exe], check=True)
        p = self.start(exe)
        t.settle(p.pid)
        return p, debug

    def test_static_stripped(self):
        """static programs without symbols are hooked by a debug file with their build-id, else refused"""
        for compiler, link in (("gcc", ("bare.debug",)), ("musl-gcc", (".debug", "bare.debug"))):
            p, debug = self.stripped(compiler, *link)
            self.cycle(p)
            self.assertIn("ok", self.finish(p))
            os.remove(debug)
        p, debug = self.stripped("gcc", "bare.debug")
        shutil.copy(f"{t.VICTIMS}/truth", debug)
        for way in ("agent", "kernel"):
            r = self.memprof("attach", "-p", p.pid, "-o", self.path("never"), "--for", "100ms", "--via", way, status=9)
            self.assertRegex(r.stderr, r"^memprof: process \d+ \(bare\): bare is static and has no "
                             "symbols, .* attach needs symbols or the debug file [^\n]*; memprof leaks and heap need neither\n$")
        self.assertFalse(os.path.exists(self.path("never")))
        self.assertIn("glibc malloc", self.memprof("heap", "-p", p.pid).stdout)
        self.assertIn("ok", self.finish(p))

    def test_exceptions(self):
        """a C++ program that throws exceptions all the time: recorded with complete stacks, and unharmed"""
        p = self.victim("throws")
        self.complete(self.cycle(p))
        self.assertIn("ok", self.finish(p))

    def preload(self, library, allocator, names=("verify", "throws")):
        env = dict(os.environ, LD_PRELOAD=t.library(library))
        for name in names:
            p = self.victim(name, env=env)
            r = self.cycle(p)
            c = {(f["library"].split(".")[0], f["function"]): f["calls"] for f in r["functions"]}
            self.assertTrue(any(allocator in k[0] and v for k, v in c.items()), c)
            # Nothing counts twice: frees of unknown blocks are few.
            self.assertLess(r["totals"]["foreign_frees"], r["totals"]["frees"] / 10 + 2000)
            self.assertIn("ok", self.finish(p))

    def test_jemalloc(self):
        """programs with jemalloc preloaded: recorded, nothing counts twice, and unharmed"""
        self.preload("libjemalloc.so.2", "jemalloc")

    def test_tcmalloc(self):
        """programs with tcmalloc preloaded: recorded, nothing counts twice, and unharmed"""
        self.preload("libtcmalloc_minimal.so.4", "tcmalloc")

    def test_mimalloc(self):
        """a program with mimalloc preloaded: recorded, nothing counts twice, and unharmed"""
        # mimalloc's operator new aborts instead of throwing, so only the C program is tested.
        self.preload("libmimalloc.so.2", "mimalloc", ("verify",))

    def test_python(self):
        """python3 with PYTHONMALLOC=malloc: recorded with complete stacks, and unharmed"""
        p = self.start("/usr/bin/python3", "-c", PYTHON, env=dict(os.environ, PYTHONMALLOC="malloc"))
        t.settle(p.pid)
        self.complete(self.cycle(p))
        self.assertIn("ok", self.finish(p))

    def test_redis(self):
        """redis-server under redis-benchmark: recorded with complete stacks, and unharmed"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", "--dir", self.dir)
        ping = lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], text=True, capture_output=True).stdout
        t.wait_for(lambda: ping() == "PONG\n")
        load = self.start("redis-benchmark", "-s", sock, "-n", "150000", "-t", "set,get,lpush", "-q", "-r", "10000",
                          start_new_session=True)
        time.sleep(0.3)
        r = self.cycle(p)
        self.complete(r)
        load.communicate(timeout=600)
        self.assertEqual(load.returncode, 0)
        self.assertEqual(ping(), "PONG\n")
        p.terminate()
        p.communicate(timeout=120)
        self.assertEqual(p.returncode, 0)

    def test_namespaces(self):
        """a program in other mount and pid namespaces: recorded with its own thread ids, and unharmed"""
        p = self.start("unshare", "-m", "-p", "-f", "--mount-proc", f"{t.VICTIMS}/verify", "4")
        child = int(t.wait_for(lambda: t.read(f"/proc/{p.pid}/task/{p.pid}/children").split())[0])
        t.wait_for(lambda: t.read(f"/proc/{child}/comm") == b"verify\n")
        t.settle(child)
        before = t.identity(child)
        r = self.report(self.record(child, 0.6))
        self.complete(r)
        # The recording has the thread ids of the program's own pid namespace.
        own = {int(re.search(r"^NSpid:.*\s(\d+)$", t.read(f"/proc/{child}/task/{tid}/status").decode(), re.M)[1])
               for tid in os.listdir(f"/proc/{child}/task")}
        self.assertTrue(r["threads"])
        self.assertLessEqual({x["thread"] for x in r["threads"]}, own)
        self.assertEqual(t.identity(child)["text"], before["text"])
        os.kill(child, 15)
        out, _ = p.communicate(timeout=120)
        self.assertIn("ok", out)

    def test_rust(self):
        """a Rust program with threads: recorded with complete stacks and names, and unharmed"""
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        exe = self.path("rusty")
        subprocess.run(["rustc", "-O", "-g", "-o", exe, f"{t.ROOT}/tests/victims/rusty.rs"], check=True)
        p = self.start(exe, stdin=subprocess.PIPE)
        t.settle(p.pid)
        r = self.cycle(p)
        self.complete(r)
        names = {f["function"] for g in r["allocation_groups"] for f in g["backtrace"]}
        self.assertTrue(any("rusty::work" in n for n in names), sorted(names)[:20])
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def test_late_library(self):
        """a library that is loaded while memprof records is hooked, and each call counted"""
        lib = f"{t.VICTIMS}/liblate.so"
        code = ("import ctypes\nprint('ready', flush=True)\ninput()\nj=ctypes.CDLL(%r)\n"
                "j.je_mallocx.restype=ctypes.c_void_p\nprint('loaded', flush=True)\ninput()\n"
                "for i in range(500): j.je_dallocx(ctypes.c_void_p(j.je_mallocx(1000, 0)), 0)\nprint('ok')\n" % lib)
        p = self.start("/usr/bin/python3", "-c", code, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "loaded\n")
        t.wait_hooked(p.pid, lib)
        out, _ = p.communicate("\n", timeout=120)
        self.assertEqual(out, "ok\n")
        self.assertEqual(rec.wait(timeout=120), 0)
        c = t.calls(self.report(self.path("r")))
        self.assertEqual(c.get("je_mallocx"), 500)
        self.assertEqual(c.get("je_dallocx"), 500)

    def test_fork(self):
        """forked children of a recorded process run unharmed"""
        code = ("import os,select,sys\n"
                "while not select.select([sys.stdin], [], [], 0.03)[0]:\n"
                "    pid = os.fork()\n"
                "    if not pid:\n"
                "        x = [bytes(i) for i in range(3000)]\n"
                "        os._exit(7 if sum(map(len, x)) == 4498500 else 1)\n"
                "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
                "os.system('true')\nprint('ok')\n")
        p = self.start("/usr/bin/python3", "-c", code, env=dict(os.environ, PYTHONMALLOC="malloc"),
                       stdin=subprocess.PIPE)
        t.settle(p.pid)
        self.record(p.pid, 1.5)
        out, _ = p.communicate(timeout=120)
        self.assertIn("ok", out)


if __name__ == "__main__":
    t.main()
