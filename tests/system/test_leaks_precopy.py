#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks --pre-copy is as exact as leaks by a forked copy, and leaves nothing in the process."""
import os
import re
import signal
import subprocess
import sys
import time

import memprof_test as t
import test_leaks



# Has its memory written by the kernel and by itself, changes its mappings and forks, all the time, and prints
# a line if a result is wrong.
BUSY = """
import ctypes, mmap, os, threading
libc = ctypes.PyDLL(None)  # keeps the interpreter's lock: nobody maps anything in between
libc.mremap.restype = libc.mmap64.restype = ctypes.c_void_p
def bad(what): print("bad", what, flush=True)
def reads():
    room, zero, random = bytearray(8 << 20), open("/dev/zero", "rb", 0), open("/dev/urandom", "rb", 0)
    a, b = os.pipe()
    while True:
        done, room[:] = 0, b"y" * len(room)
        while done < len(room):  # a stop ends a read early
            got = zero.readinto(memoryview(room)[done:])
            if not got: bad("read")
            done += got
        if room.count(0) != len(room): bad("zeros")
        os.write(b, b"x" * 4096)
        part = memoryview(room)[4096 * 7 + 1:4096 * 8 + 1]
        if os.readv(a, [part]) != 4096 or part != b"x" * 4096: bad("readv")
        if random.readinto(memoryview(room)[:4096]) != 4096: bad("random")
def maps():
    while True:
        m = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for i in range(0, 4 << 20, 4096): m[i] = 7
        m.madvise(mmap.MADV_DONTNEED, 0, 1 << 20)
        if m[0] != 0 or m[2 << 20] != 7: bad("madvise")
        at = ctypes.addressof(ctypes.c_char.from_buffer(m))
        if libc.mprotect(ctypes.c_void_p(at + (1 << 20)), 4096, 1): bad("mprotect")
        if m[1 << 20] != 7: bad("read-only")
        libc.mprotect(ctypes.c_void_p(at + (1 << 20)), 4096, 3)
        m[1 << 20] = 8
        half, there = ctypes.c_void_p(at + (2 << 20)), libc.mmap64(None, 2 << 20, 0, 0x22, -1, 0)
        moved = libc.mremap(half, 2 << 20, 2 << 20, 3, ctypes.c_void_p(there))
        libc.mmap64(half, 2 << 20, 3, 0x32, -1, 0)
        if moved != there or ctypes.string_at(moved, 1) != bytes([7]): bad("mremap")
        libc.munmap(ctypes.c_void_p(there), 2 << 20)
def forks():
    kept = bytearray(2 << 20)
    while True:
        pid = os.fork()
        if pid == 0:
            kept[::4096] = bytes([1]) * 512
            uw = any(line.startswith("VmFlags") and " uw" in line for line in open("/proc/self/smaps"))
            os._exit(9 if uw else 0)
        kept[::4096] = bytes([2]) * 512
        if os.waitpid(pid, 0)[1]: bad("fork")
        if kept[::4096].count(2) != 512: bad("shared")
for f in reads, maps, forks: threading.Thread(target=f, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
# Writes all of its 192 MiB repeatedly.
WRITER = """
import mmap
m = mmap.mmap(-1, 192 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
pages = bytes(len(m) >> 12)
print("ready", flush=True)
while True: m[::4096] = pages
"""
OWN = """
import ctypes, time
fd = ctypes.CDLL(None).syscall(323, 1)
print("ready" if fd >= 0 else "none", flush=True)
time.sleep(1000)
"""


def tracked(pid):
    """The number of mappings in which writes are tracked (proc_pid_smaps(5): "uw")."""
    return len(re.findall(r"^VmFlags:.* uw\b", t.read(f"/proc/{pid}/smaps").decode(), re.M))


class Walk(test_leaks.Walk):
    mode = ("--pre-copy",)
    if not t.FULL:  # test_all covers these
        test_one = test_foreign_sbrk = test_noncontiguous = None


class Leaks(test_leaks.HeapCase):
    mode = ("--pre-copy",)

    test_hot = test_leaks.Leaks.test_hot

    def test_mappings(self):
        """leaks --pre-copy finds only the planted leaks while blocks are mapped and unmapped all the time"""
        p, _ = self.ready("blocks", "run", 4, "leaks", 300,
                          env=dict(os.environ, MALLOC_MMAP_THRESHOLD_="16384"))
        for _ in range(20 if t.FULL else 2):
            _, report = self.leaks(p, status=1)
            self.assertEqual(report["mode"], "pre-copy")
            self.assertEqual(report["leaked"]["count"], 300)

    def test_dry_run(self):
        """leaks --dry-run predicts pre-copy's pause and memory; --max-pause selects it over a longer copy"""
        p, _ = self.ready("blocks", "park", 8)
        before = t.maps(p.pid)
        out = self.memprof("leaks", "-p", p.pid, "--dry-run", "--pre-copy").stdout
        self.assertRegex(out, r"pause: about [0-9.]+ ms predicted \(pre-copy: ")
        self.assertRegex(out, r"memprof needs about [0-9.]+ MiB more")
        out = self.memprof("leaks", "-p", p.pid, "--dry-run").stdout
        copy = float(re.search(r"about ([0-9.]+) ms predicted \(copy: ", out).group(1))
        shorter = f"{int(copy) - 1}ms"  # also shorter than what was rounded to the printed figure
        out = self.memprof("leaks", "-p", p.pid, "--dry-run", "--max-pause", shorter).stdout
        self.assertIn("predicted (pre-copy: ", out)
        self.memprof("leaks", "-p", p.pid, "--pre-copy", "--max-pause", "1ms", status=4)
        self.memprof("leaks", "-p", p.pid, "--pre-copy", "--gentle", status=2)
        self.assertEqual(t.maps(p.pid), before)


class Safe(test_leaks.HeapCase):
    mode = ("--pre-copy",)

    def python(self, text):
        p = self.start("/usr/bin/python3", "-c", text, stderr=subprocess.STDOUT, start_new_session=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_as_found(self):
        """leaks --pre-copy leaves a waiting process with the same mappings, descriptors and signals"""
        p, _ = self.ready("blocks", "park", 6)
        before, maps = t.identity(p.pid), t.maps(p.pid)
        for _ in range(3):
            self.leaks(p, status=0)
            self.assertEqual(t.maps(p.pid), maps)
            self.assertEqual(tracked(p.pid), 0)
        self.unchanged(p, before)

    def test_busy(self):
        """leaks --pre-copy breaks no read(), no change of mappings and no fork of a busy program"""
        p = self.python(BUSY)
        # Wait until the program has opened its two devices and its pipe.
        fds = t.wait_for(lambda: len(l := sorted(os.listdir(f"/proc/{p.pid}/fd"))) == 7 and l)
        for _ in range(100 if t.FULL else 5):
            out = self.memprof("leaks", "-p", p.pid, "--pre-copy").stdout
            self.assertIn(", exact:", out)
            self.assertEqual(tracked(p.pid), 0)
        self.assertEqual(sorted(os.listdir(f"/proc/{p.pid}/fd")), fds)
        self.assertIsNone(p.poll())
        p.kill()
        self.assertEqual(p.stdout.read(), "")

    def as_before(self, p, before):
        t.wait_for(lambda: not tracked(p.pid) and t.identity(p.pid) == before)
        self.unchanged(p, before)

    def test_killed(self):
        """memprof leaks --pre-copy killed at each step leaves nothing behind, and the next report is exact"""
        p, _ = self.ready("blocks", "park", 4)
        before, maps = t.identity(p.pid), t.maps(p.pid)
        for point in ("track-taken", "track-closed", "track-added", "precopy-read",
                      "precopy-gathered", "precopy-taken"):
            r = subprocess.run([t.FAULTY, "leaks", "-p", str(p.pid), "--pre-copy"], text=True,
                               capture_output=True, env=dict(os.environ, MEMPROF_FAULT=f"{point}:1"))
            self.assertEqual(r.returncode, -signal.SIGKILL, f"{point}: {r.stdout}{r.stderr}")
            self.as_before(p, before)
            self.assertEqual(t.maps(p.pid), maps, point)
        _, report = self.leaks(p, status=0)
        self.assertTrue(report["exact"])

    def test_killed_while_tracking(self):
        """memprof leaks --pre-copy killed while it tracks writes leaves nothing behind"""
        p, _ = self.ready("blocks", "park", 16)
        before, seen = t.identity(p.pid), 0
        for _ in range(20):
            m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), "--pre-copy", stderr=subprocess.DEVNULL)
            while m.poll() is None and not tracked(p.pid):
                pass
            m.kill()
            seen += m.wait() == -signal.SIGKILL
            self.as_before(p, before)
            if seen == 3:
                break
        self.assertGreater(seen, 0)

    def test_writes_too_much(self):
        """leaks --pre-copy --max-pause gives up on a process that writes all of its memory all the time"""
        p = self.python(WRITER)
        # Else it writes little while other programs use its processor.
        os.setpriority(os.PRIO_PROCESS, p.pid, -20)
        time.sleep(1)
        r = self.memprof("leaks", "-p", p.pid, "--pre-copy", "--max-pause", "9ms", status=4)
        self.assertRegex(r.stderr, "writes memory so fast|did not stop in time")
        self.assertEqual(tracked(p.pid), 0)
        self.assertIsNone(p.poll())

    def test_memory(self):
        """leaks --pre-copy refuses a process whose memory exceeds memprof's cgroup limit"""
        root = "/sys/fs/cgroup/memory"
        if not os.path.exists(f"{root}/tasks"):
            self.skipTest("no memory cgroup of version 1 is mounted")
        path = f"{root}/memprof-test-{os.getpid()}"
        os.mkdir(path)
        self.addCleanup(os.rmdir, path)

        def limited():
            for name, value in (("memory.limit_in_bytes", 300 << 20), ("tasks", os.getpid())):
                with open(f"{path}/{name}", "w") as f:
                    f.write(str(value))

        p, _ = self.ready("blocks", "park", 8)
        r = subprocess.run([t.MEMPROF, "leaks", "-p", str(p.pid), "--pre-copy"], text=True,
                           capture_output=True, preexec_fn=limited)
        self.assertEqual(r.returncode, 3, r.stdout + r.stderr)
        self.assertRegex(r.stderr, r"needs \d+ MiB of memory to read process \d+, and only \d+ MiB are available")

    def test_ends(self):
        """leaks --pre-copy ends with status 6 and no report if the process ends while it is read"""
        for _ in range(20):
            p, _ = self.ready("blocks", "park", 16)
            m = self.start(t.MEMPROF, "leaks", "-p", str(p.pid), "--pre-copy", stderr=subprocess.STDOUT)
            while m.poll() is None and not tracked(p.pid):
                pass
            p.kill()
            out, _ = m.communicate(timeout=120)
            if m.returncode:  # otherwise memprof had already read everything
                break
        self.assertEqual(m.returncode, 6, out)
        self.assertNotIn("leaks:", out)

    def test_own_userfaultfd(self):
        """leaks refuses to fork a process that uses userfaultfd itself; leaks --pre-copy reads it"""
        p = self.python(OWN)
        r = self.memprof("leaks", "-p", p.pid, status=3)
        self.assertIn("userfaultfd", r.stderr)
        self.memprof("leaks", "-p", p.pid, "--pre-copy", status=0)

    def test_sandboxed(self):
        """leaks --pre-copy is refused if a seccomp filter forbids userfaultfd(), and the program lives on"""
        for how, status in ((["without", "restart_syscall"], 0), (["without", "userfaultfd"], 3)):
            p = self.start(f"{t.VICTIMS}/sandbox", *how, stdin=subprocess.PIPE)
            self.assertEqual(p.stdout.readline(), "ready\n")
            time.sleep(0.2)
            r = self.memprof("leaks", "-p", p.pid, "--pre-copy", status=status)
            if status:
                self.assertIn("forbids userfaultfd()", r.stderr)
            self.assertIsNone(p.poll(), how)
            p.terminate()
            self.assertEqual(p.stdout.read(), "ok\n")
            p.stdin = None


def kernel_lacks_it():
    r = subprocess.run([t.MEMPROF, "leaks", "-p", str(os.getpid()), "--pre-copy", "--dry-run"],
                       text=True, capture_output=True)
    return "Linux 6.7" in r.stderr


if __name__ == "__main__":
    if kernel_lacks_it():
        print("1..0 # SKIP the kernel is older than 6.7")
        sys.exit(0)
    t.main()
