#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Text on a terminal: colours and who decides about them, and lines that fit."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import memprof_test as t

NAME = "a_function_of_which_the_name_does_not_fit_into_a_line_" + "of_eighty_columns_" * 2
SOURCE = """#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noipa)) void *NAME(void) { return malloc(1000); }
int main(int argc, char **argv)
{
	for (int i = 0; i < 9; i++) kept = NAME();
	kept = NULL;
	puts("ready");
	fflush(stdout);
	if (argc > 1) pause();
}
""".replace("NAME", NAME)


class Terminal(t.Case):
    def setUp(self):
        super().setUp()
        folder = self.path("a-folder-with-a-long-name-in-which-the-source-is")
        os.mkdir(folder)
        with open(f"{folder}/p.c", "w") as f:
            f.write(SOURCE)
        self.program = self.path("p")
        subprocess.run(["gcc", "-g", "-O1", "-o", self.program, f"{folder}/p.c"], check=True)
        self.recording = self.path("r.memprof")
        self.memprof("run", "-q", "-o", self.recording, "--", self.program)

    def shown(self, *argv, columns=80, status=0, **env):
        """what memprof prints on a terminal"""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        parts = []

        def read():
            try:
                while part := os.read(master, 4096):
                    parts.append(part)
            except OSError:  # the end
                pass
        reader = threading.Thread(target=read)
        reader.start()
        clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        r = subprocess.run([t.MEMPROF, *map(str, argv)], stdout=slave, stderr=subprocess.PIPE, timeout=120, text=True,
                           env={**clean, "TERM": "xterm", **env})
        os.close(slave)
        reader.join()
        os.close(master)
        self.assertEqual(r.returncode, status, r.stderr)
        return b"".join(parts).decode().replace("\r\n", "\n")

    def plain(self, text):
        return re.sub(r"\033\[[0-9;]*m", "", text)

    def test_who_decides(self):
        """colours: on a terminal, unless NO_COLOR or TERM=dumb; --color=always and never decide alone; a file has none"""
        argv = ("report", self.recording)
        for want, options, env in ((True, (), {}), (False, (), {"NO_COLOR": "1"}), (True, (), {"NO_COLOR": ""}),
                                   (False, (), {"TERM": "dumb"}), (False, ("--color=never",), {}),
                                   (True, ("--color=always",), {"NO_COLOR": "1"}), (True, ("--color=auto",), {})):
            for order in ((*argv, *options), (*options, *argv)):
                self.assertEqual("\033[" in self.shown(*order, **env), want, (order, env))
        self.assertNotIn("\033[", self.memprof(*argv).stdout)
        self.assertIn("\033[", self.memprof(*argv, "--color=always").stdout)
        self.memprof(*argv, "--color=always", "-o", self.path("out"))
        self.assertNotIn(b"\033[", t.read(self.path("out")))
        for wrong in ("--color=blue", "--color"):
            self.assertIn("memprof: --color: '", self.memprof(*argv, wrong, status=2).stderr)
        # What follows belongs to the program that memprof runs.
        r = self.memprof("run", "-q", "-o", self.path("x"), "/bin/echo", "--color=never")
        self.assertIn("--color=never\n", r.stdout)

    def test_commands(self):
        """every command with text has colours by the same rule, and the text is that of a pipe"""
        p = self.start(self.program, "stay")
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.recording
        for argv, status in ((("report", f), 0), (("report", f, "--tree"), 0), (("report", f, "--view", "groups"), 0),
                             (("report", f, "--verbose"), 0), (("report", f, "--peek", "main"), 0), (("diff", f, f), 0),
                             (("leaks", "-p", p.pid), 1), (("heap", "-p", p.pid), 0),
                             (("heap", "-p", p.pid, "--retained"), 0), (("doctor",), 0)):
            with self.subTest(argv=argv):
                shown = self.shown(*argv, columns=1000, status=status)
                if argv[0] != "diff":  # nothing grew
                    self.assertIn("\033[", shown)
                self.assertNotIn("\033", self.plain(shown))
                self.assertEqual(shown.count("\033[0m"), len(re.findall(r"\033\[[1-9]", shown)))
                self.assertNotIn("\033", self.shown(*argv, status=status, NO_COLOR="1"))
                if argv[0] in ("report", "diff"):
                    self.assertEqual(self.plain(shown), self.memprof(*argv).stdout)

    def test_width(self):
        """at 80 columns a long name is cut in its middle and its file has no folders; at 200 and in a pipe both are whole"""
        for argv in (("report",), ("report", "--tree"), ("report", "--view", "groups"), ("report", "--verbose")):
            argv = (argv[0], self.recording, *argv[1:])
            narrow = self.plain(self.shown(*argv)).replace(self.recording, "FILE")
            for line in narrow.splitlines():
                if not re.match("(ended|temporary|resident|mapped|process|live|stacks|allocated|memprof|lost) ", line):
                    self.assertLessEqual(len(line), 80, line)
            self.assertRegex(narrow, r"a_function_\w+\.\.\w+columns_ +p\.c:5")
            full = self.memprof(*argv).stdout
            self.assertRegex(full, rf"{NAME} +{self.dir}/a-folder\S+/p\.c:5")
            self.assertNotRegex(full, r"\w\.\.\w")
            self.assertEqual(self.plain(self.shown(*argv, columns=300)), full)

    def test_sentences(self):
        """at 80 columns the sentences of leaks, heap and doctor end between words; a pipe has each in one line"""
        p = self.start(self.program, "stay")
        self.assertEqual(p.stdout.readline(), "ready\n")
        for argv, status in ((("leaks", "-p", p.pid), 1), (("heap", "-p", p.pid), 0),
                             (("heap", "-p", p.pid, "--retained"), 0), (("doctor", "-p", p.pid), 0)):
            shown = self.plain(self.shown(*argv, status=status))
            for line in shown.splitlines():
                if not re.match("pause: .* measured", line):
                    self.assertLessEqual(len(line), 80, line)
            piped = self.memprof(*argv, status=status).stdout
            self.assertGreater(max(map(len, piped.splitlines())), 80)
            if argv[0] == "doctor":
                self.assertEqual(shown.split(), piped.split())


if __name__ == "__main__":
    t.main()
