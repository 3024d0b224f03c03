#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bad input ends in one clear error line with its own exit status, and leaves the target unchanged."""
import os
import re
import subprocess

import memprof_test as t


class BadInput(t.Case):
    def refused(self, status, text, *argv):
        r = self.memprof(*argv, status=status)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertRegex(r.stderr, "^memprof: .*" + text)

    def test_usage(self):
        """the error line names an unknown command, option or value"""
        self.refused(2, r"unknown command 'frob' \(see: memprof --help\)", "frob")
        self.refused(2, "'4711'; a process is named by -p 4711", "attach", "4711")
        self.refused(2, "-p: 'abc'", "attach", "-p", "abc")
        listed = self.memprof("--help").stdout.split("\n\n")[1]
        commands = re.findall(r"^  ([a-z-]+) ", listed, re.M)
        self.assertEqual(len(commands), len(listed.splitlines()))
        self.assertLessEqual({"attach", "detach", "report"}, set(commands))
        for command in commands:
            self.refused(2, f"{command}: unknown option '--frob'.*see: memprof {command} --help", command, "--frob")
        self.refused(2, "attach: option '-p' needs a value", "attach", "-p")
        self.refused(2, "--for: '3 weeks'", "attach", "-p", "1", "--for", "3 weeks")
        self.refused(2, "--ring-size: '3k'", "attach", "-p", "1", "--ring-size", "3k")
        self.refused(2, "which process", "attach")
        self.refused(2, "--cost: 'gold'", "report", "x", "--cost", "gold")
        self.refused(2, "which program", "run")

    def test_no_process(self):
        """attach and detach refuse a pid that does not exist"""
        self.refused(3, "there is no process", "attach", "-p", 4194000)
        self.refused(3, "there is no process", "detach", "-p", 4194000)

    def test_not_user(self):
        """attach refuses kernel threads and zombies"""
        self.refused(5, "kernel thread", "attach", "-p", 2)
        pid = os.fork()
        if not pid:
            os._exit(0)
        t.wait_for(lambda: "Z (zombie)" in t.read(f"/proc/{pid}/status").decode())
        self.refused(5, "zombie", "attach", "-p", pid)
        os.waitpid(pid, 0)

    def test_exiting(self):
        """an exiting process that has released its memory is not taken for a kernel thread"""
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
        """attach to a process under strace names the tracer"""
        p = self.victim("verify", 1)
        strace = self.start("strace", "-o", self.path("log"), "-p", str(p.pid), stderr=subprocess.DEVNULL)
        t.wait_for(lambda: f"TracerPid:\t{strace.pid}\n" in t.read(f"/proc/{p.pid}/status").decode())
        self.refused(6, f"traced by strace .pid {strace.pid}", "attach", "-p", p.pid, "-o", self.path("r"))
        strace.terminate()
        strace.wait()
        self.finish(p)

    def test_attached_twice(self):
        """attach refuses a process that already has a session"""
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
        """a recorder, which maps its target's session, is not taken for a target, and continues to record"""
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
        """detach and status -p refuse a process without a session"""
        p = self.victim("verify", 1)
        self.refused(16, "has no memprof session", "detach", "-p", p.pid)
        self.refused(16, "has no memprof session", "status", "-p", p.pid)
        self.finish(p)

    def test_permission(self):
        """attach to another user's process without capabilities names the capability that is missing"""
        p = self.victim("verify", 1)
        r = subprocess.run([*t.UNPRIVILEGED, t.MEMPROF, "attach", "-p", str(p.pid), "-o", "/tmp/never.memprof"],
                           text=True, capture_output=True)
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertRegex(r.stderr, "belongs to uid 0 .* CAP_SYS_PTRACE; try: sudo")
        self.finish(p)

    def test_no_allocator(self):
        """attach refuses a program without an allocator"""
        source, exe = self.path("tiny.S"), self.path("tiny")
        with open(source, "w") as f:
            f.write(".globl _start\n_start:\n mov $34,%eax\n syscall\n jmp _start\n"
                    ".section .note.GNU-stack,\"\",@progbits\n")
        subprocess.run(["gcc", "-nostdlib", "-static", "-o", exe, source], check=True)
        p = self.start(exe)
        t.settle(p.pid)
        self.refused(9, "no allocator that memprof knows", "attach", "-p", p.pid, "-o", self.path("r"))

    def test_recordings(self):
        """report refuses files that are no recordings; attach refuses outputs that it cannot write"""
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
        """a full disk ends the recording with a message, and the process is restored"""
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
        """run refuses a program that does not exist, and otherwise exits with the program's status"""
        self.refused(2, "cannot run /no/such", "run", "-o", self.path("r"), "--", "/no/such")
        self.memprof("run", "-q", "-o", self.path("r"), "--", "sh", "-c", "exit 7", status=7)


if __name__ == "__main__":
    t.main()
