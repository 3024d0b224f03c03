#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that memprof cannot hook, or cannot leave at once: each case has its exit status."""
import os
import re
import shutil
import signal
import subprocess

import memprof_test as t

WAITS = ("waits.c", """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    void *volatile p = malloc(100);
    puts("ready");
    fflush(stdout);
    while (p)
        pause();
}
""")
GO = ("waits.go", """package main

import (
    "os"
    "time"
)

func main() {
    os.Stdout.WriteString("ready\\n")
    time.Sleep(time.Hour)
}
""")


class Refusals(t.Case):
    def odd(self, define, above=()):
        exe = self.path("odd")
        subprocess.run(["gcc", "-O2", "-g", "-fno-builtin", "-D_GNU_SOURCE", f"-D{define}", "-o", exe,
                        f"{t.ROOT}/tests/victims/odd.c"], check=True)
        p = self.start(*above, exe, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def end(self, p):
        p.terminate()
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, "ok\n"))

    def refused(self, p, status, text):
        before = t.identity(p.pid)
        r = self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("never"), status=status)
        self.assertRegex(r.stderr, text)
        # memprof doctor finds out without stopping the process.
        self.assertRegex(self.memprof("doctor", "-p", p.pid, "-o", self.path("never"), status=status).stdout, text)
        self.assertEqual(t.identity(p.pid), before)
        self.assertFalse(os.path.exists(self.path("never")))

    def test_other_machine(self):
        """attach refuses a 32-bit program"""
        source, exe = self.path("tiny.S"), self.path("tiny")
        with open(source, "w") as f:
            f.write(".globl _start\n_start:\n mov $29,%eax\n int $0x80\n jmp _start\n")
        subprocess.run(["as", "--32", "-o", self.path("tiny.o"), source], check=True)
        subprocess.run(["ld", "-m", "elf_i386", "-o", exe, self.path("tiny.o")], check=True)
        try:
            p = self.start(exe)
        except OSError as e:
            self.skipTest(f"this kernel runs no 32-bit programs: {e}")
        t.settle(p.pid)
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("r"), status=8)
        self.assertRegex(r.stderr, "32-bit program of ELF machine 3; this memprof attaches to programs for")
        self.assertIsNone(p.poll())

    def test_no_room(self):
        """attach refuses a program without free address space in reach of malloc"""
        p = self.odd("CROWDED")
        self.refused(p, 10, "malloc in libc.so.6 cannot be hooked safely: no memory within reach .* nothing was changed")
        self.end(p)

    def test_no_descriptor(self):
        """attach refuses a program that has no file descriptor left (RLIMIT_NOFILE)"""
        p = self.victim("verify", 1)
        subprocess.run(["prlimit", "--nofile=3", "--pid", str(p.pid)], check=True)
        self.refused(p, 10, r"cannot map the agent into process \d+: RLIMIT_NOFILE \(it has no descriptor left\)")
        self.finish(p)

    def test_restartable(self):
        """attach refuses a malloc that begins with a restartable sequence, not one elsewhere in the module"""
        if os.uname().machine != "x86_64":
            self.skipTest("the sequence is x86-64 code")
        p = self.victim("rseq")
        self.refused(p, 12, r"malloc in rseq cannot be hooked safely: .* restartable sequence \(rseq\)")
        self.end(p)
        p = self.victim("rseq-elsewhere")
        self.record(p.pid)
        self.end(p)

    def test_unpatchable(self):
        """attach refuses a malloc that branches into its own first bytes"""
        p = self.odd("TWISTED")
        self.refused(p, 12, "malloc in odd cannot be hooked safely: a branch of the function leads into its first bytes")
        self.end(p)

    def compiled(self, name, source, *command):
        """Compiles a program that prints "ready" when it is.  Return: its path."""
        with open(self.path(source[0]), "w") as f:
            f.write(source[1])
        subprocess.run([*command, "-o", self.path(name), self.path(source[0])], check=True, cwd=self.dir,
                       env=dict(os.environ, GO111MODULE="off", CGO_ENABLED="0", GOCACHE=f"{t.ROOT}/build/go"))
        return self.path(name)

    def ready(self, *argv):
        p = self.start(*argv, stderr=subprocess.DEVNULL)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def named(self, p, who):
        """Checks that leaks and heap name the allocator that they do not support."""
        for command, status in (("leaks", 3), ("heap", 9)):
            r = self.memprof(command, "-p", p.pid, status=status)
            self.assertRegex(r.stderr, rf"^memprof: no allocator that memprof knows has a block in process \d+; it has {who}\n$")

    def test_sanitizers(self):
        """attach refuses AddressSanitizer and LeakSanitizer, whose free() begins with a call, by name"""
        for flag, name, library in (("address", "AddressSanitizer", "libasan"), ("leak", "LeakSanitizer", "liblsan")):
            exe = self.compiled(flag, WAITS, "gcc", f"-fsanitize={flag}")
            p = self.ready(exe)
            self.refused(p, 12, rf"free in {library}\S+ \({name}\) cannot be hooked safely: .* nothing was changed")
            self.named(p, rf"{name} \({library}\S+\)")

    def test_go(self):
        """attach, leaks and heap refuse a Go program without C, and name the Go runtime"""
        p = self.ready(self.compiled("gopher", GO, "go", "build", "-ldflags=-s -w"))
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("never"), "--for", "100ms", status=9)
        self.assertRegex(r.stderr, r"has no allocator that memprof knows .*; it has the Go runtime \(gopher\)\n$")
        self.named(p, r"the Go runtime \(gopher\)")

    def test_valgrind(self):
        """attach refuses a program under valgrind, which executes a translation of its code"""
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed")
        for how in ("-O1", "-static"):
            p = self.ready("valgrind", "-q", self.compiled("guest" + how, WAITS, "gcc", how))
            for way in ("agent", "kernel"):
                r = self.memprof("attach", "-p", p.pid, "-o", self.path("never"), "--for", "100ms", "--via", way,
                                 status=9)
                self.assertRegex(r.stderr, r"^memprof: process \d+ \(\S+\) is valgrind, which executes a translation "
                                           r"of the program's functions, .*\n$")
            self.assertFalse(os.path.exists(self.path("never")))

    def inside(self, define, above=()):
        """Detaches while a thread waits in malloc.  @above: a command that runs the program and the recorder
        as another user."""
        os.chmod(self.dir, 0o777)
        memprof = shutil.copy(t.MEMPROF, self.path("memprof"))  # another user may not read the build folder
        p = self.odd(define, above)
        rec = self.start(*above, memprof, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), stderr=subprocess.PIPE)
        self.wait_recorded(p.pid)
        p.send_signal(signal.SIGUSR1)
        # The thread waits in malloc, which calls read(0).
        t.wait_for(lambda: t.read(f"/proc/{p.pid}/syscall").startswith(b"0 0x0 "))
        r = self.memprof("detach", "-p", p.pid, status=15, timeout=60)
        self.assertRegex(r.stderr, f"is restored, but .* remove them later with: memprof detach -p {p.pid}")
        _, err = rec.communicate(timeout=60)
        self.assertEqual(rec.returncode, 15)
        # The message does not mention forked processes: there are none.
        self.assertRegex(err, f"^memprof: the text of process {p.pid} is restored, but a thread is still inside [^\n]*\n$")
        self.assertIn("memprof-session", t.maps(p.pid))
        self.assertRegex(self.memprof("status").stdout, rf"(?m)^ *{p.pid} .*dormant")
        p.stdin.write("x")
        p.stdin.flush()
        self.assertEqual(self.memprof("detach", "-p", p.pid).stdout,
                         f"process {p.pid} is restored: the pages that an earlier detach had to leave are removed\n")
        self.assertNotIn("memprof-session", t.maps(p.pid))
        p.terminate()
        p.stdin.close()
        p.stdin = None
        self.assertEqual(p.wait(120), 0)

    def test_thread_inside(self):
        """detach with a thread inside the agent ends with status 15, and a later detach removes the pages"""
        self.inside("SLOW")

    def test_thread_inside_on_another_stack(self):
        """detach as an ordinary user with a handler on an alternate stack that will return into the agent"""
        self.inside("AWAY", t.UNPRIVILEGED)

    def test_shared_memory(self):
        """attach refuses a process that shares its memory; detach keeps the agent for one made later"""
        p = self.start(f"{t.VICTIMS}/shared")
        self.assertEqual(p.stdout.readline(), "ready\n")
        before = t.identity(p.pid)
        self.memprof("attach", "--background", "-p", p.pid, "-o", self.path("r"))
        p.send_signal(signal.SIGUSR1)
        child = int(p.stdout.readline())
        r = self.memprof("detach", "-p", p.pid, status=15)
        self.assertRegex(r.stderr, f"process {child}, which shares its memory, may be inside the agent")
        self.assertEqual(t.identity(p.pid)["text"].items() & before["text"].items(), before["text"].items())
        p.send_signal(signal.SIGUSR2)
        self.assertEqual(p.stdout.readline(), "alone\n")
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(t.identity(p.pid), before)
        self.end(p)
        p = self.start(f"{t.VICTIMS}/shared")
        self.assertEqual(p.stdout.readline(), "ready\n")
        p.send_signal(signal.SIGUSR1)
        child = int(p.stdout.readline())
        self.refused(p, 12, f"shares its memory with process {child}, .* nothing was touched")
        self.end(p)

    def test_text_changed(self):
        """detach does not touch a hooked function that another tool has changed, and ends with status 15"""
        p = self.victim("verify", 1)
        before = t.identity(p.pid)
        self.memprof("attach", "--background", "-p", p.pid, "-o", self.path("r"))
        after = t.identity(p.pid)
        changed = [m for m in before["text"] if after["text"].get(m) != before["text"][m]]
        self.assertTrue(changed)
        low = int(re.match("[0-9a-f]+", changed[0]).group(0), 16)
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem, open("/usr/lib/x86_64-linux-gnu/libc.so.6", "rb") as f:
            nm = subprocess.run(["nm", "-D", f.name], capture_output=True, text=True, check=True).stdout
            at = int(re.search(r"^([0-9a-f]+) \w mallopt@@", nm, re.M).group(1), 16)
            base = next(int(line.split("-")[0], 16) for line in t.maps(p.pid).split("\n") if "libc.so.6" in line)
            self.assertLess(low, base + at)
            mem.seek(base + at)
            hooked = mem.read(24)
            mem.seek(base + at)
            mem.write(b"\xcc" + hooked[1:])
            r = self.memprof("detach", "-p", p.pid, status=15)
            self.assertRegex(r.stderr, "1 function of process .* was changed by another tool and not restored")
            mem.seek(base + at)
            mem.write(hooked)
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(t.identity(p.pid), before)
        self.finish(p)


if __name__ == "__main__":
    t.main()
