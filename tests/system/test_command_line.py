#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What people type: help, versions, misspelled commands and options, and values that are refused."""
import os
import pty
import re
import shutil
import subprocess

import memprof_test as t

# Placeholders of values that any text can be.
FREE = {"PID", "FILE", "SVG", "DIR", "NAME", "REGEX", "PATTERN", "KEY", "ID|NAME", "NAME|ADDRESS", "BEFORE", "FUNCTION",
        "OLD=NEW|DIR"}


def commands(case):
    listed = case.memprof("help").stdout.split("\n\n")[1]
    return re.findall(r"^  ([a-z-]+) ", listed, re.M)


class CommandLine(t.Case):
    def help(self, command):
        return self.memprof(command, "--help").stdout

    def options(self, command):
        """(option, placeholder of its value or "") of each long option in the help of the command"""
        for line in self.help(command).split("\n"):
            if re.match(" {2,6}-", line):
                head = re.split(r"   |(?<=\S)  ", line.strip())[0]
                head = re.sub(r"(--[a-z-]*)-min, \.\.\.-max (\S+)", r"\1-min \2, \1-max \2", head)
                yield from re.findall(r"(--[a-z][a-z-]*)(?: (\[?[A-Za-z%|=]+\]?))?", head)

    def test_help(self):
        """memprof help COMMAND prints what COMMAND --help prints; without a command, the list"""
        for command in commands(self):
            self.assertEqual(self.memprof("help", command).stdout, self.help(command))
            self.assertRegex(self.help(command), f"^usage: memprof {command}")
        self.assertEqual(self.memprof("help").stdout, self.memprof("--help").stdout)
        self.assertIn("did you mean attach?", self.memprof("help", "atach", status=2).stderr)
        self.memprof("help", "attach", "detach", status=2)

    def test_version(self):
        """-V, --version and version print the release"""
        said = {self.memprof(x).stdout for x in ("-V", "--version", "version")}
        self.assertEqual(len(said), 1)
        self.assertRegex(said.pop(), r"^memprof \d+\.\d+\n$")

    def test_suggestions(self):
        """the nearest command or option is suggested, and nothing if none is near"""
        for typed, meant in (("atach", "attach"), ("reprot", "report"), ("leak", "leaks"), ("sym", "symbolize")):
            self.assertIn(f"unknown command '{typed}'; did you mean {meant}? (see: memprof --help)",
                          self.memprof(typed, status=2).stderr)
        self.assertNotIn("did you mean", self.memprof("xyzzy", status=2).stderr)
        for argv, meant in ((("attach", "--folow-fork"), "--follow-fork"), (("report", "x", "--flamegrahp=y"), "--flamegraph"),
                            (("report", "x", "--size-mni", "3"), "--size-min"), (("leaks", "--supress"), "--suppress"),
                            (("heap", "--inplace"), "--in-place")):
            r = self.memprof(*argv, status=2)
            self.assertRegex(r.stderr, rf"^memprof: {argv[0]}: unknown option '.*'; did you mean {meant}\? "
                             rf"\(see: memprof {argv[0]} --help\)\n$")
        self.assertNotIn("did you mean", self.memprof("attach", "--xyzzy", status=2).stderr)

    def test_options(self):
        """what is wrong with an option is said: unknown, ambiguous, a value missing or not wanted"""
        for argv, said in ((("attach", "-qx"), "attach: unknown option '-x'"),
                           (("attach", "--lossless", "-xq"), "attach: unknown option '-x'"),
                           (("attach", "-qp"), "attach: option '-p' needs a value"),
                           (("attach", "--for"), "attach: option '--for' needs a value"),
                           (("attach", "--lossless=1"), "attach: option '--lossless' takes no value"),
                           (("attach", "--follow"), "attach: option '--follow' could be --follow-fork or --follow-exec"),
                           (("verify", "--json", "x"), "verify: unknown option '--json'")):
            r = self.memprof(*argv, status=2)
            self.assertEqual(r.stderr, f"memprof: {said} (see: memprof {argv[0]} --help)\n")

    def test_values(self):
        """every refused value is named with its option as typed, its command, and the command's help"""
        tried = 0
        for command in commands(self):
            for option, value in self.options(command):
                if not value or value[0] == "[" or value in FREE:
                    continue
                said = self.memprof(command, option, "?!", status=2).stderr
                self.assertRegex(said, rf"^memprof: {command}: .* \(see: memprof {command} --help\)\n$")
                if "?!" in said:  # else the option needs another one, or takes any value
                    self.assertRegex(said, rf"^memprof: {command}: {option}: ['?].*\?!")
                    tried += 1
        self.assertGreater(tried, 50)

    def test_name(self):
        """-n finds a process by its exact name; several are listed with pid, user and command line"""
        exe = self.path("memprof-tested")
        shutil.copy("/bin/sleep", exe)
        p = self.start(exe, "1000")
        t.settle(p.pid)
        self.memprof("status", "-n", "memprof-tested", status=16)
        self.assertIn(f"process {p.pid} has no memprof session",
                      self.memprof("detach", "-n", "memprof-tested", status=16).stderr)
        for command in ("attach", "detach", "flush", "heap", "leaks", "status"):
            self.assertIn("no process has the name 'memprof-teste'",
                          self.memprof(command, "-n", "memprof-teste", status=3).stderr)
        q = self.start(exe, "1001")
        t.settle(q.pid)
        for command in ("attach", "detach", "flush", "mark", "heap", "leaks", "status"):
            said = self.memprof(command, "-n", "memprof-tested", status=2).stderr.splitlines()
            self.assertEqual(said[0], f"memprof: {command}: -n: 2 processes have the name 'memprof-tested'; choose one "
                             f"of them with -p (see: memprof {command} --help)")
            self.assertEqual({tuple(x.split(None, 2)) for x in said[1:]},
                             {(str(x.pid), "root", f"{exe} {n}") for x, n in ((p, 1000), (q, 1001))})

    def test_name_of_argv(self):
        """-n compares with the process's own name, its argv[0] and its executable, each of which can differ"""
        exe = self.path("memprof-file")
        shutil.copy("/usr/bin/python3", exe)
        code = ("import ctypes, time\nctypes.CDLL(None).prctl(15, b'memprof-comm')\n"  # PR_SET_NAME
                "print('ready', flush=True)\ntime.sleep(1000)")
        p = self.start("/x/memprof-argv", "-c", code, executable=exe, env=dict(os.environ, PYTHONHOME="/usr"))
        self.assertEqual(p.stdout.readline(), "ready\n")
        for name in ("memprof-argv", "memprof-file", "memprof-comm"):
            self.assertIn(f"process {p.pid} has no", self.memprof("detach", "-n", name, status=16).stderr)
        os.unlink(exe)
        self.assertIn(f"process {p.pid} has no", self.memprof("detach", "-n", "memprof-file", status=16).stderr)

    def test_several(self):
        """two processes in one -p, or -p twice, are refused with what to do; nothing is chosen silently"""
        p, q = (self.start("/bin/sleep", "1000") for _ in range(2))
        for command in ("detach", "flush", "heap", "leaks", "status"):
            said = self.memprof(command, "-p", f"{p.pid} {q.pid}\n", status=2).stderr
            self.assertIn(f"memprof: {command}: -p: ", said)
            self.assertIn("are 2 processes; choose one of them (see: memprof", said)
            self.assertRegex(said, rf"\n +{p.pid}  root  .*sleep 1000\n +{q.pid}  root  .*sleep 1000\n$")
            for more in (("-p", q.pid), ("-p", p.pid), ("-n", "sleep")):
                self.assertIn(f"{more[0]}: more than one process was given (the first is {p.pid}); run memprof once for each",
                              self.memprof(command, "-p", p.pid, *more, status=2).stderr)
        self.assertIn("has no memprof session", self.memprof("detach", "-p", f" {p.pid}\n", status=16).stderr)
        self.assertIn("found no process", self.memprof("detach", "-p", "", status=2).stderr)
        self.assertIn("-n: the name is empty", self.memprof("attach", "-n", "", status=2).stderr)
        self.assertIn("-n takes a name", self.memprof("attach", "-p", "redis", status=2).stderr)

    def test_help_accepted(self):
        """every option of a help text is an option of its command, with or without a value as the text says"""
        for command in commands(self):
            for option, value in self.options(command):
                if value[:1] == "[":  # it can be left out
                    for typed in (option, option + "=x"):
                        self.assertIn("which recording?", self.memprof(command, typed, status=2).stderr)
                elif value:
                    said = self.memprof(command, option, status=2).stderr
                    self.assertIn(f"{command}: option '{option}' needs a value", said)
                else:  # a few options can have a value, which the text then explains
                    said = self.memprof(command, option + "=x", "--frob", status=2).stderr
                    self.assertRegex(said, f"{command}: (option '{option}' takes no value|unknown option '--frob')")

    def on_terminal(self, *argv):
        """Runs memprof with a terminal as its standard output.  Return: exit status, messages, output."""
        master, slave = pty.openpty()
        try:
            r = subprocess.run([t.MEMPROF, *argv], stdout=slave, stderr=subprocess.PIPE, text=True, timeout=120)
        finally:
            os.close(slave)
        try:
            shown = os.read(master, 4096)
        except OSError:  # nothing was written
            shown = b""
        os.close(master)
        return r.returncode, r.stderr, shown

    def recorded(self):
        f = self.path("r")
        self.memprof("run", "-q", "-o", f, "--", "/bin/sh", "-c", "exit 0")
        return f

    def test_binary(self):
        """binary formats are not written to a terminal, but to a pipe or file; text is"""
        f = self.recorded()
        for option in ("--pprof", "--replay"):
            self.assertEqual(self.on_terminal("report", f, option),
                             (2, "memprof: this format is binary and is not written to a terminal; name a file (-o "
                              "FILE), or pipe it into the program that reads it\n", b""))
            r = subprocess.run([t.MEMPROF, "report", f, option], capture_output=True, check=True, timeout=120)
            self.assertGreater(len(r.stdout), 100)
        status, _, shown = self.on_terminal("report", f, "--collapsed")
        self.assertEqual(status, 0)
        self.assertIn(b";malloc", shown)

    def test_truncated(self):
        """a recording that is cut off is said once, in the report or beside it"""
        f = self.recorded()
        os.truncate(f, os.path.getsize(f) // 2)
        for option in ((), ("--verbose",), ("--json",), ("--collapsed",), ("--view", "sizes"), ("--not-freed",)):
            r = self.memprof("report", f, *option)
            shown = r.stderr + ("" if option == ("--json",) else r.stdout)
            said = re.findall("the recording ends at byte|the end of the recording is missing", shown)
            self.assertEqual(len(said), 1, (option, shown))

    def test_unreadable(self):
        """a recording that may not be read has status 4; it is not called damaged"""
        os.chmod(self.dir, 0o755)
        memprof, f = shutil.copy(t.MEMPROF, self.path("memprof")), self.recorded()
        for command in ("report", "info", "verify"):
            r = subprocess.run([*t.UNPRIVILEGED, memprof, command, f], text=True, capture_output=True, timeout=120)
            self.assertEqual(r.returncode, 4, r.stderr)
            self.assertEqual(r.stderr, f"memprof: you are not permitted to read {f} (Permission denied); a recording "
                             "belongs to the user who made it: try sudo, or let that user change its owner\n")

    def test_progress(self):
        """progress that goes to a pipe is not a line a second"""
        p = self.victim("verify", 1)
        r = self.memprof("attach", "-p", p.pid, "-o", self.path("r"), "--for", "3s")
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        self.assertIn("recording process", r.stderr)
        self.finish(p)

    def test_replay(self):
        """memprof-replay with a recording says how to convert it, and that works"""
        f = self.recorded()
        replay = os.path.dirname(t.MEMPROF) + "/memprof-replay"
        r = subprocess.run([replay, f], text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 2)
        said = r.stderr.splitlines()
        self.assertEqual(said[0], f"memprof-replay: {f} is a recording; convert it first:")
        for line in said[1:]:
            subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, timeout=120,
                           env=dict(os.environ, PATH=os.path.dirname(t.MEMPROF) + ":" + os.environ["PATH"]))


if __name__ == "__main__":
    t.main()
