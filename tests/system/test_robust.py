#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whatever goes wrong in the recorder, it prints a message, and the process is restored."""
import os
import random
import shutil
import signal
import subprocess
import time

import memprof_test as t

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


class Robust(t.Case):
    def setUp(self):
        super().setUp()
        self.p = self.victim("verify", 4)
        self.before = t.identity(self.p.pid)

    def as_before(self, why):
        self.assertIsNone(self.p.poll(), why)
        self.assertEqual(t.identity(self.p.pid), self.before, why)

    def attach(self, *more, above=(), path=None):
        return subprocess.run([*above, t.MEMPROF, "attach", "-q", "-p", str(self.p.pid),
                               "-o", path or self.path("r"), *more], text=True, capture_output=True, timeout=120)

    def test_signals(self):
        """SIGINT, SIGTERM and SIGHUP at any moment end attach, and the process is restored"""
        rng = random.Random(7)
        for i in range(90 if t.FULL else 12):
            sig = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[i % 3]
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(self.p.pid), "-o", self.path("r"),
                             stderr=subprocess.PIPE)
            time.sleep(rng.uniform(0.0, 0.3))
            for _ in range(1 + i % 2):
                rec.send_signal(sig)
                time.sleep(0.01)
            _, err = rec.communicate(timeout=120)
            self.assertIn(rec.returncode, (0, -sig, 15), err)
            if rec.returncode == 15:
                self.detach(self.p.pid)
            self.as_before(f"{sig} in round {i}")
            if rec.returncode == 0:
                self.report(self.path("r"))

    def test_nohup(self):
        """under nohup the end of the terminal does not end the recording"""
        rec = self.start("nohup", t.MEMPROF, "attach", "-q", "-p", str(self.p.pid), "-o", self.path("r"), stderr=subprocess.PIPE)
        self.wait_recorded(self.p.pid)
        rec.send_signal(signal.SIGHUP)
        self.memprof("flush", "-p", self.p.pid)
        rec.send_signal(signal.SIGTERM)
        self.assertRegex(rec.communicate(timeout=120)[0], r"^recorded ")
        self.assertEqual(rec.returncode, 0)
        self.as_before("after nohup")
        self.report(self.path("r"))

    def test_descriptors(self):
        """attach with few file descriptors either records or ends with a message"""
        good = 0
        for n in sorted({*range(3, 30, 3 if not t.FULL else 1), 4, 64}):
            r = self.attach("--for", "100ms", above=["prlimit", f"--nofile={n}"])
            self.assertGreaterEqual(r.returncode, 0, f"{n}: {r.stderr}")
            if r.returncode:
                self.assertIn(r.returncode, (10, 127), r.stderr)  # 127: from the dynamic linker
                self.assertRegex(r.stderr, "RLIMIT_NOFILE|may not open|Too many open files|error while loading", f"{n}")
            else:
                good += 1
            self.as_before(f"{n} descriptors")
        self.assertGreater(good, 0)

    def test_descriptors_gone(self):
        """attach that runs out of file descriptors while threads are stopped releases them at once"""
        rec = self.start_until("all-seized", "attach", "-q", "-p", self.p.pid, "-o", self.path("r"))
        subprocess.run(["prlimit", "--nofile=3", "--pid", str(rec.pid)], check=True)
        rec.send_signal(signal.SIGCONT)
        _, err = rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 10, err)
        self.assertRegex(err, r"^memprof: cannot inspect process .*: memprof cannot open more files \(RLIMIT_NOFILE\)\n$")
        self.as_before("no descriptors")

    def test_standard_files(self):
        """if standard input, output or error is closed, no other file takes its descriptor"""
        for closed, numbers in (("<&-", "0"), ("2>&-", "2"), ("<&- >&- 2>&-", "012")):
            shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
            rec = self.start(*shell, t.MEMPROF, "attach", "-p", str(self.p.pid), "-o", self.path("r"),
                             stderr=subprocess.DEVNULL)
            self.wait_recorded(self.p.pid)
            for n in numbers:
                self.assertEqual(os.readlink(f"/proc/{rec.pid}/fd/{n}"), "/dev/null", closed)
            rec.terminate()
            self.assertEqual(rec.wait(timeout=120), 0)
            self.as_before(closed)
            self.memprof("verify", self.path("r"))
            r = subprocess.run([*shell, t.MEMPROF, "leaks", "-p", str(self.p.pid)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=120)
            self.assertEqual(r.returncode, 0, closed)
            self.as_before(closed)

    def test_disk(self):
        """a disk that becomes full at any moment ends the recording with a message"""
        for size in ("4k", "8k", "20k", "100k", "1m"):
            mount = self.path("disk")
            os.mkdir(mount)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount], check=True)
            try:
                r = self.attach("--for", "10s", path=mount + "/r")
            finally:
                subprocess.run(["umount", mount], check=True)
                os.rmdir(mount)
            self.assertEqual(r.returncode, 14, r.stdout + r.stderr)
            self.assertIn("No space left on device", r.stderr)
            self.as_before(f"a disk of {size}")

    def test_file_size_limit(self):
        """attach is refused if its RLIMIT_FSIZE is less than the size of a session"""
        r = self.attach("--for", "10s", above=["prlimit", "--fsize=300000"])
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertIn("memprof's own RLIMIT_FSIZE is less than a session", r.stderr)
        self.as_before("file size")

    def test_unwritable(self):
        """attach -o in a directory without write permission ends with a message"""
        os.mkdir(self.path("no"), 0o555)
        os.chmod(self.dir, 0o755)
        r = self.attach("--for", "1s", path=self.path("no/r"), above=[
            "setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all,+sys_ptrace",
            "--ambient-caps=-all,+sys_ptrace"])
        self.assertEqual(r.returncode, 14, r.stdout + r.stderr)
        self.assertRegex(r.stderr, "cannot write .*: Permission denied")
        after = t.identity(self.p.pid)
        del after["copied text"], self.before["copied text"]
        self.assertEqual(after, self.before)

    def replaced(self, how):
        """Records a program whose file and libc were deleted or replaced by how() after its start."""
        exe, libc = self.path("program"), self.path("libc.so.6")
        shutil.copy(f"{t.VICTIMS}/verify", exe)
        shutil.copy(LIBC, libc)
        p = self.start(exe, "2", env={**os.environ, "LD_LIBRARY_PATH": self.dir})
        t.settle(p.pid)
        self.assertIn(libc, t.maps(p.pid))
        for f in (exe, libc):
            how(f)
        r = self.report(self.record(p.pid, 0.5))
        self.assertGreater(r["totals"]["allocations"], 100)
        losses = r["losses"]
        self.assertGreater(losses["stacks_complete"], 0.99 * losses["stacks_total"])
        frames = [f for g in r["allocation_groups"] for f in g["backtrace"]]
        self.assertIn("run", {f["function"] for f in frames})
        self.assertTrue(any((f.get("source") or "").endswith("verify.c") for f in frames))
        self.assertNotIn("memprof-session", t.maps(p.pid))
        self.assertIn("ok", self.finish(p))

    def test_deleted(self):
        """a program whose files were deleted since its start: hooks and symbols come from the mapped files"""
        self.replaced(os.unlink)

    def test_upgraded(self):
        """a program whose files an upgrade has replaced: hooks and symbols come from the mapped files"""
        def upgrade(f):
            shutil.copy("/bin/true", f + ".new")
            os.rename(f + ".new", f)
        self.replaced(upgrade)


if __name__ == "__main__":
    t.main()
