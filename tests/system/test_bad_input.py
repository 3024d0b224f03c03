#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bad input gets one clear line and its own exit status; the target stays as it was."""
import os
import subprocess

import memprof_test as t


class BadInput(t.Case):
    def refused(self, status, text, *argv):
        r = self.memprof(*argv, status=status)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertRegex(r.stderr, "^memprof: .*" + text)

    def test_usage(self):
        """unknown commands, options and values are named"""
        self.refused(2, "unknown command 'frob'; memprof --help", "frob")
        self.refused(2, "'4711'; a process is named by -p 4711", "attach", "4711")
        self.refused(2, "-p: 'abc'", "attach", "-p", "abc")
        for command in ("attach", "detach", "flush", "status", "run", "leaks", "heap", "info", "strip", "merge",
                        "extract", "symbolize", "report", "diff"):
            self.refused(2, f"{command}: unknown option '--frob'", command, "--frob")
        self.refused(2, "attach: option '-p' needs a value", "attach", "-p")
        self.refused(2, "--for: '3 weeks'", "attach", "-p", "1", "--for", "3 weeks")
        self.refused(2, "--ring-size: '3k'", "attach", "-p", "1", "--ring-size", "3k")
        self.refused(2, "which process", "attach")
        self.refused(2, "--cost: 'gold'", "report", "x", "--cost", "gold")
        self.refused(2, "which program", "run")

    def test_no_process(self):
        """a process that is not there"""
        self.refused(3, "there is no process", "attach", "-p", 4194000)
        self.refused(3, "there is no process", "detach", "-p", 4194000)

    def test_not_user(self):
        """kernel threads and zombies"""
        self.refused(5, "kernel thread", "attach", "-p", 2)
        pid = os.fork()
        if not pid:
            os._exit(0)
        t.wait_for(lambda: "Z (zombie)" in t.read(f"/proc/{pid}/status").decode())
        self.refused(5, "zombie", "attach", "-p", pid)
        os.waitpid(pid, 0)

    def test_exiting(self):
        """a process that has given up its memory and is no zombie yet: no kernel thread"""
        code = ("import mmap, time\nm = mmap.mmap(-1, 300 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                "m.madvise(mmap.MADV_NOHUGEPAGE)\nfor i in range(0, len(m), 4096): m[i] = 1\n"
                "print('ready', flush=True)\ntime.sleep(600)\n")

        def has_memory(pid):
            return b"VmSize" in t.read(f"/proc/{pid}/status")
        for command in ("attach", "leaks", "detach"):
            p = self.start("/usr/bin/python3", "-c", code)
            self.assertEqual(p.stdout.readline(), "ready\n")
            p.kill()
            while has_memory(p.pid):
                pass
            r = subprocess.run([t.MEMPROF, command, "-p", str(p.pid)], text=True, capture_output=True, cwd=self.dir)
            self.assertIn(r.returncode, (3, 5), r.stderr)
            self.assertRegex(r.stderr, r"^memprof: process \d+ \(python3\) is (exiting|a zombie: .*)\n$")
            p.wait()

    def test_traced(self):
        """somebody else traces it: who"""
        p = self.victim("verify", 1)
        strace = self.start("strace", "-o", self.path("log"), "-p", str(p.pid), stderr=subprocess.DEVNULL)
        t.wait_for(lambda: f"TracerPid:\t{strace.pid}\n" in t.read(f"/proc/{p.pid}/status").decode())
        self.refused(6, f"traced by strace .pid {strace.pid}", "attach", "-p", p.pid, "-o", self.path("r"))
        strace.terminate()
        strace.wait()
        self.finish(p)

    def test_attached_twice(self):
        """a session is there already"""
        p = self.victim("verify", 1)
        self.memprof("attach", "--background", "-p", p.pid, "-o", self.path("r"))
        self.refused(7, "already has a memprof session", "attach", "-p", p.pid, "-o", self.path("r2"))
        out = self.memprof("status", "-p", p.pid).stdout + self.memprof("status").stdout
        self.assertIn(str(p.pid), out)
        self.memprof("detach", "-p", p.pid)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.finish(p)
        self.report(self.path("r"))

    def test_recorder(self):
        """a recorder, which has its session in memory, too: it carries none, and records on"""
        p = self.victim("verify", 1)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        self.wait_recorded(p.pid)
        said = f"process {rec.pid} is the recorder of process {p.pid} and is not recorded itself; .* -p {p.pid}\n"
        self.refused(7, said, "attach", "-p", rec.pid, "-o", self.path("r2"))
        self.refused(7, said, "attach", "-p", rec.pid, "-o", self.path("r2"), "--via=kernel")
        for command in ("status", "detach", "flush"):
            self.refused(16, said, command, "-p", rec.pid)
        self.assertEqual(self.recorder(p.pid), rec.pid)
        self.detach(p.pid)
        self.assertEqual(rec.wait(120), 0)
        self.finish(p)

    def test_no_session(self):
        """detach and status -p without a session"""
        p = self.victim("verify", 1)
        self.refused(16, "has no memprof session", "detach", "-p", p.pid)
        self.refused(16, "has no memprof session", "status", "-p", p.pid)
        self.finish(p)

    def test_permission(self):
        """somebody else's process, without capabilities"""
        p = self.victim("verify", 1)
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                            t.MEMPROF, "attach", "-p", str(p.pid), "-o", "/tmp/never.memprof"],
                           text=True, capture_output=True)
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertRegex(r.stderr, "belongs to uid 0 .* CAP_SYS_PTRACE; try: sudo")
        self.finish(p)

    def test_no_allocator(self):
        """a program without an allocator"""
        source, exe = self.path("tiny.S"), self.path("tiny")
        with open(source, "w") as f:
            f.write(".globl _start\n_start:\n mov $34,%eax\n syscall\n jmp _start\n"
                    ".section .note.GNU-stack,\"\",@progbits\n")
        subprocess.run(["gcc", "-nostdlib", "-static", "-o", exe, source], check=True)
        p = self.start(exe)
        t.settle(p.pid)
        self.refused(9, "no allocator that memprof knows", "attach", "-p", p.pid, "-o", self.path("r"))

    def test_recordings(self):
        """files that are no recordings, and outputs that cannot be written"""
        junk = self.path("junk")
        with open(junk, "w") as f:
            f.write("x" * 1000)
        self.refused(13, "not a memprof recording", "report", junk)
        self.refused(13, "cannot open", "report", self.path("nothing"))
        p = self.victim("verify", 1)
        self.refused(14, "cannot write", "attach", "-q", "-p", p.pid, "-o", self.dir)
        self.refused(14, "cannot write", "attach", "-q", "-p", p.pid, "-o", "/nowhere/r")
        self.assertNotIn("memprof", t.maps(p.pid))
        self.finish(p)

    def test_full_disk(self):
        """a full disk ends the recording with a message; the process is restored"""
        p = self.victim("verify", 4)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", self.dir], check=True)
        try:
            r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "20s"],
                               text=True, capture_output=True, timeout=60)
        finally:
            subprocess.run(["umount", self.dir], check=True)
        self.assertEqual(r.returncode, 14, r.stdout + r.stderr)
        self.assertIn("No space left", r.stderr)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.finish(p)

    def test_launch(self):
        """run: a program that is not there, its status otherwise"""
        self.refused(2, "cannot run /no/such", "run", "-o", self.path("r"), "--", "/no/such")
        self.memprof("run", "-q", "-o", self.path("r"), "--", "sh", "-c", "exit 7", status=7)


if __name__ == "__main__":
    t.main()
