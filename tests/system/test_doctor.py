#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof doctor: what it says is what attach then does, and it does not touch the process."""
import json
import os
import re
import shutil
import subprocess

import memprof_test as t


class Doctor(t.Case):
    def doctor(self, *argv, status=0):
        """Returns the JSON, with the findings by topic."""
        r = json.loads(self.memprof("doctor", "--json", *argv, status=status).stdout)
        self.assertEqual(r["exit_status"], status)
        r["by_topic"] = {f["topic"]: f for f in r["findings"]}
        return r

    def same_as_attach(self, pid, status, topic):
        """Checks that doctor and attach give the same status and reason."""
        reason = self.memprof("attach", "-q", "-p", pid, "-o", self.path("never"), "--for", "100ms", status=status)
        f = self.doctor("-p", pid, "-o", self.path("never"), status=status)["by_topic"][topic]
        self.assertEqual(f["verdict"], "missing")
        self.assertIn(f["what"], reason.stderr)

    def test_healthy(self):
        """a process that can be recorded: status 0, the allocator and the functions that attach then hooks"""
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        r = self.doctor("-p", p.pid, "-o", self.path("r"))
        self.assertEqual(t.identity(p.pid), before)
        self.assertNotIn("missing", {f["verdict"] for f in r["findings"]})
        self.assertEqual(r["allocators"], "glibc")
        self.assertLessEqual({"malloc", "calloc", "realloc", "free"}, {f["function"] for f in r["functions"]})
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r"), stderr=subprocess.PIPE)
        self.assertIn(f"({r['allocators']}; {len(r['functions'])} functions hooked)", rec.stderr.readline())
        # The process now has a session.
        f = self.doctor("-p", p.pid, "-o", self.path("r2"), status=7)["by_topic"]
        self.assertEqual(f["session"]["verdict"], "missing")
        self.detach(p.pid)
        self.assertEqual(rec.wait(120), 0)
        text = self.memprof("doctor", "-p", p.pid, "-o", self.path("r")).stdout
        self.assertIn(f"process {p.pid} can be profiled: memprof attach -p {p.pid}\n", text)
        self.finish(p)

    def test_ways(self):
        """--via=kernel and --event=page-faults are said to be possible if they are"""
        p = self.victim("verify", 1)
        found = self.doctor("-p", p.pid, "-o", self.path("r"))["by_topic"]
        for topic, way in (("uprobes", "--via=kernel"), ("page faults", "--event=page-faults")):
            r = subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "100ms", way],
                               text=True, capture_output=True, timeout=120)
            self.assertEqual(found[topic]["verdict"], "warning" if r.returncode else "ok", r.stderr)
        self.finish(p)

    def test_untouched(self):
        """doctor neither traces, signals nor writes to the process"""
        p = self.victim("verify", 1)
        calls = "ptrace,kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal,process_vm_writev"
        log = self.path("log")
        subprocess.run(["strace", "-f", "-o", log, "-e", f"trace={calls},openat", t.MEMPROF, "doctor", "-p", str(p.pid),
                        "-o", self.path("r")], check=True, capture_output=True, timeout=120)
        text = t.read(log).decode()
        self.assertIn(f'/proc/{p.pid}/maps', text)
        self.assertIsNone(re.search(r"(ptrace|kill|queueinfo|send_signal|writev)\(", text), text)
        self.assertFalse(os.path.exists(self.path("r")))
        # /proc/PID/mem is the only file of the process that is opened for writing, for the session's use of it.
        written = [x for x in text.splitlines() if re.search(rf"/proc/{p.pid}/.*O_(RDWR|WRONLY)", x)]
        self.assertLessEqual(len(written), 1, written)
        self.finish(p)

    def test_modules(self):
        """files without symbols, lines, build-id or unwind tables are named"""
        source = self.path("own.c")
        with open(source, "w") as f:
            f.write("#include <unistd.h>\n#include <stdio.h>\n"
                    "int main(void) { puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n")
        for name, flags, bad in (("whole", ["-g", "-Wl,--build-id"], set()),
                                 ("bare", ["-s", "-Wl,--build-id=none"], {"symbols", "lines", "build-ids"})):
            exe = self.path(name)
            subprocess.run(["gcc", *flags, "-o", exe, source], check=True)
            p = self.start(exe)
            self.assertEqual(p.stdout.readline(), "ready\n")
            r = self.doctor("-p", p.pid, "-o", self.path("r"))
            for topic in ("symbols", "lines", "build-ids"):
                f = r["by_topic"][topic]
                self.assertEqual(name in f["what"], topic in bad, f)
                self.assertEqual(f["verdict"] == "warning" and bool(f["advice"]), f["verdict"] == "warning")
            m = next(m for m in r["modules"] if m["path"] == exe)
            self.assertEqual((m["symtab"], m["debug_info"], bool(m["build_id"])), (not bad, not bad, not bad))
            self.assertTrue(m["unwind_tables"])

    def test_no_unwind_tables(self):
        """a library without .eh_frame is named"""
        source, library, exe = self.path("lib.c"), self.path("libtableless.so"), self.path("user")
        with open(source, "w") as f:
            f.write("int one(void) { return 1; }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-fno-asynchronous-unwind-tables",
                        "-Wl,--no-ld-generated-unwind-info", "-o", library, source],
                       check=True)
        with open(self.path("user.c"), "w") as f:
            f.write("#include <unistd.h>\n#include <stdio.h>\nint one(void);\n"
                    "int main(void) { puts(\"ready\"); fflush(stdout); while (one()) pause(); }\n")
        subprocess.run(["gcc", "-o", exe, self.path("user.c"), library], check=True)
        p = self.start(exe)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.doctor("-p", p.pid, "-o", self.path("r"))["by_topic"]["unwind tables"]
        self.assertEqual(f["verdict"], "warning")
        self.assertIn("libtableless.so", f["what"])

    def test_refused(self):
        """status and reason are those of attach: no process, kernel thread, another tracer, no allocator"""
        self.same_as_attach(4194000, 3, "attach")
        self.same_as_attach(2, 5, "attach")
        p = self.victim("verify", 1)
        strace = self.start("strace", "-o", self.path("log"), "-p", str(p.pid), stderr=subprocess.DEVNULL)
        t.wait_for(lambda: f"TracerPid:\t{strace.pid}\n" in t.read(f"/proc/{p.pid}/status").decode())
        self.same_as_attach(p.pid, 6, "attach")
        strace.terminate()
        strace.wait()
        source, exe = self.path("tiny.S"), self.path("tiny")
        with open(source, "w") as f:
            f.write(".globl _start\n_start:\n mov $34,%eax\n syscall\n jmp _start\n"
                    ".section .note.GNU-stack,\"\",@progbits\n")
        subprocess.run(["gcc", "-nostdlib", "-static", "-o", exe, source], check=True)
        q = self.start(exe)
        t.settle(q.pid)
        t.wait_for(lambda: b"tiny" in t.read(f"/proc/{q.pid}/maps"))
        self.same_as_attach(q.pid, 9, "allocator")
        self.finish(p)

    def test_output(self):
        """a folder that does not exist, and a full disk, are what attach would fail with"""
        p = self.victim("verify", 1)
        f = self.doctor("-p", p.pid, "-o", "/nowhere/r", status=14)["by_topic"]["output"]
        self.assertIn("/nowhere/: No such file", f["what"])
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", self.dir], check=True)
        try:
            f = self.doctor("-p", p.pid, "-o", self.path("r"), status=14)["by_topic"]["output"]
        finally:
            subprocess.run(["umount", self.dir], check=True)
        self.assertIn("is full", f["what"])
        self.finish(p)

    def test_unprivileged(self):
        """without privileges: another user's process is refused as by attach, what is limited is said"""
        os.chmod(self.dir, 0o777)
        memprof = shutil.copy(t.MEMPROF, self.path("memprof"))
        p = self.victim("verify", 1)

        def run(*argv):
            return subprocess.run([*t.UNPRIVILEGED, memprof, *map(str, argv)], text=True, capture_output=True, timeout=120,
                                  cwd=self.dir)
        r, attach = run("doctor", "--json", "-p", p.pid), run("attach", "-p", p.pid, "-o", self.path("x"))
        self.assertEqual((r.returncode, attach.returncode), (4, 4), r.stdout + attach.stderr)
        found = {f["topic"]: f for f in json.loads(r.stdout)["findings"]}
        self.assertIn(found["attach"]["what"], attach.stderr)
        self.assertIn("no CAP_SYS_ADMIN", found["capabilities"]["what"])
        self.assertEqual(found["ptrace"]["verdict"], "warning")
        self.finish(p)

    def test_machine(self):
        """without a process only the machine is checked"""
        r = self.doctor("-o", self.path("r"))
        self.assertEqual({f["about"] for f in r["findings"]}, {"machine"})
        self.assertLessEqual({"kernel", "ptrace", "capabilities", "memory", "perf events", "output"}, set(r["by_topic"]))
        self.assertIn("this machine can be profiled", self.memprof("doctor", "-o", self.path("r")).stdout)


if __name__ == "__main__":
    t.main()
