# SPDX-License-Identifier: MIT OR Apache-2.0
"""No command prints control characters that are in names chosen by a program."""
import json
import os
import re
import shutil
import subprocess
import unicodedata

import memprof_test as t

# An escape sequence, a new line, a C1 control as UTF-8 and as a byte, a right-to-left override.
EVIL = b"e\x1b[31mvil\nname\xc2\x9b\x9b\xe2\x80\xae"
SHOWN = rb"e\x1b[31mvil\x0aname\xc2\x9b\x9b\xe2\x80\xae"


def unprintable(text):
    """The characters of a text that control a terminal, each with some text before it."""
    s = text.decode("utf-8", "backslashreplace" if b"\\x" in text else "surrogateescape")
    bad = [m for m in re.finditer(r"[^\n]", s.replace("\r\n", "\n")) if unicodedata.category(m.group()) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    return [s[max(m.start() - 30, 0):m.end()] for m in bad]


class Printable(t.Case):
    def evil(self):
        """Starts a program with control characters in its names; its path is self.exe."""
        self.exe = os.path.join(os.fsencode(self.dir), EVIL)
        shutil.copy(f"{t.VICTIMS}/names", self.exe)
        mapped = self.exe + b".map"
        with open(mapped, "wb") as f:
            f.truncate(4096)
        p = self.start(self.exe, mapped)
        t.settle(p.pid)
        return p

    def run_command(self, *argv, status=0):
        """Runs a command, and checks its status and that its output has no control characters.
        Return: the output."""
        r = subprocess.run([t.MEMPROF, *(a if isinstance(a, bytes) else str(a) for a in argv)], capture_output=True, timeout=300,
                           stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, status, f"{argv}: {r.stdout}{r.stderr}")
        self.assertEqual(unprintable(r.stdout + r.stderr), [], argv)
        return r.stdout + r.stderr

    def test_attached(self):
        """attach, status, leaks, heap, flush, mark, detach escape control characters in names"""
        p, rec = self.evil(), os.path.join(os.fsencode(self.dir), EVIL + b".memprof")
        pid = p.pid
        attach = subprocess.Popen([t.MEMPROF, "attach", "-p", str(pid), "-o", rec], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.started.append(attach)
        self.wait_recorded(pid)
        self.assertIn(SHOWN + b".memprof", self.run_command("status", "-p", pid))
        self.assertEqual(json.loads(self.memprof("status", "--json", "-p", pid).stdout)[0]["name"],
                         "e\033[31mvil\\nname?")  # the kernel escapes a new line like this
        self.run_command("mark", "-p", pid, "a\033[31mmark")
        self.assertIn(SHOWN + b".memprof", self.run_command("flush", "-p", pid))
        t.wait_for(lambda: json.loads(self.memprof("status", "--json", "-p", pid).stdout)[0]["live_blocks"] > 5)
        self.assertIn(b"LEAKED", self.run_command("leaks", "-p", pid, "--budget", "1GB"))
        self.assertIn(rb"e\x1b[31mvil\nname", self.run_command("heap", "-p", pid))
        self.assertIn(SHOWN, self.run_command("detach", "-p", pid))
        said = attach.communicate(timeout=60)[0]
        self.assertEqual(unprintable(said), [])
        self.assertIn(rb"allo\x1b[31mcate\xe2\x80\xae\x9b", said)
        for view in (["info"], ["verify"], ["report"], ["report", "--quick"], ["diff", rec]):
            self.assertIn(rb"\x1b[31m", self.run_command(*view, rec))
        self.finish(p)

    def test_reports(self):
        """report in every format, diff and extract escape control characters in names"""
        p = self.evil()
        rec = self.record(p.pid, 0.3)
        out = self.path("extracted")
        function = rb"allo\x1b[31mcate\xe2\x80\xae\x9b"
        for o in ("", "--leaks", "--tree", "--collapsed", "--csv", "--ascii-tree", "--heaptrack", "--quick",
                  "--tree --bottom-up", "--view groups", "--peek .", "--collapsed --lines", "--group-by function"):
            self.assertIn(function, self.run_command("report", rec, *o.split()), o)
        self.assertIn(rb"so\x1b[31murce\x0a.c", self.run_command("report", rec))
        source = {f["source"] for s in self.report(rec)["allocation_groups"] for f in s["backtrace"]
                  if "so\x1b[31murce" in f.get("source", "")}.pop()
        self.assertIn(rb"so\x1b[31murce\x0a.c", self.run_command("report", rec, "--annotate", source))
        mapped = SHOWN.replace(rb"\x0a", rb"\012")  # as /proc/PID/maps has it
        self.assertIn(mapped, self.run_command("report", rec, "--view", "libraries"))
        self.assertIn(rb"thr\x1b[31med", self.run_command("report", rec, "--view", "threads"))
        self.assertIn(mapped + b".map", self.run_command("report", rec, "--view", "maps"))
        self.assertIn(function, self.run_command("diff", rec, "--at", "10%", "--at", "90%"))
        self.run_command("extract", rec, "-o", out)
        for name in os.listdir(out):
            path = os.path.join(out, name)
            if os.path.isfile(path):
                self.assertEqual(unprintable(t.read(path)), [], name)
        self.assertIn(function, t.read(os.path.join(out, "symbols.csv")))
        names = {f["function"] for s in self.report(rec)["allocation_groups"] for f in s["backtrace"]}
        self.assertTrue(any("allo\033[31mcate\u202e?" in n for n in names), names)  # JSON has its own escapes
        self.finish(p)

    def test_messages(self):
        """error messages, doctor and the list of processes escape control characters in names"""
        p = self.evil()
        self.assertIn(rb"\x1b[31m", self.run_command("doctor", "-p", p.pid, "-o", self.path("r")))
        other = self.start(self.exe, self.exe + b".map")
        t.settle(other.pid)
        self.assertEqual(self.run_command("status", "-p", f"{p.pid} {other.pid}", status=2).count(rb"\x1b[31m"), 4)
        self.assertIn(rb"\x1b[31m", self.run_command("report", self.exe, status=13))
        self.assertIn(rb"\x1b[31m", self.run_command("report", self.exe + b"none", status=13))
        self.finish(p)


if __name__ == "__main__":
    t.main()
