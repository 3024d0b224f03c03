#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Completion in shells: commands, options, their values, processes and recordings."""
import os
import re
import shutil
import subprocess

import memprof_test as t

SCRIPTS = t.ROOT + "/scripts/completion"
BASH = r"""source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memprof
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"; true"""


class Completion(t.Case):
    def bash(self, *words):
        """What bash offers for the last word."""
        r = subprocess.run(["bash", "--norc", "-c", BASH, "bash", SCRIPTS + "/memprof.bash", t.MEMPROF, *words], text=True,
                           capture_output=True, cwd=self.dir, timeout=60)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout.splitlines()

    def offered(self, *words):
        lines = self.memprof("__complete", *words).stdout.splitlines()
        return [x.split("\t")[0] for x in lines]

    def commands(self):
        return re.findall(r"^  ([a-z-]+) ", self.memprof("help").stdout.split("\n\n")[1], re.M)

    def test_commands(self):
        """bash: commands, also after help and --debug"""
        self.assertEqual(self.bash("att"), ["attach"])
        self.assertEqual(set(self.bash("")), {*self.commands(), "help", "version"})
        self.assertEqual(self.bash("help", "re"), ["resume", "report"])
        self.assertEqual(self.bash("--debug", "lea"), ["leaks"])
        self.assertEqual(self.bash("--v"), ["--version"])
        self.assertEqual(self.bash("nosuch", ""), [])

    def test_options(self):
        """bash: options; every offered option exists, and every long option of a help text is offered"""
        self.assertEqual(self.bash("attach", "--fol"), ["--follow-fork", "--follow-exec"])
        self.assertEqual(self.bash("report", "x", "--size-m"), ["--size-min", "--size-max"])
        self.assertEqual(self.bash("detach", ""), ["--pid", "--name", "--keep", "--help"])
        self.assertEqual(self.bash("heap", "d"), ["diff"])
        self.assertEqual(self.offered("heap", "diff", ""), [":files"])
        self.assertEqual(self.offered("heap", "diff", "x", ""), [":files"])
        self.assertEqual(self.bash("heap", "diff", "--bud"), ["--budget"])
        for command in self.commands():
            offered = self.offered(command, "--")
            for option in offered:
                said = self.memprof(command, option + "=", "--frob", status=2).stderr
                self.assertNotIn(f"unknown option '{option}", said, (command, option))
            heads = re.findall(r"^ {2,6}(-.*?)(?:  |$)", self.memprof(command, "--help").stdout, re.M)
            listed = re.findall(r"(?<![a-z.])--[a-z-]+", "\n".join(heads))
            self.assertLessEqual(set(listed), set(offered), command)

    def test_values(self):
        """bash: the words that an option takes are those that its command names when it refuses another"""
        self.assertEqual(self.bash("report", "x", "--view", "t"), ["threads", "timeline"])
        self.assertEqual(self.bash("report", "--view", "=", "th"), ["threads"])
        self.assertEqual(self.bash("attach", "--via", "="), ["agent", "kernel"])
        self.assertEqual(self.bash("attach", "--for", ""), [])
        self.assertEqual(self.bash("report", "x", "--json", "--plo"), ["--plot"])
        tried = 0
        for command in ("attach", "run", "report", "diff", "symbolize"):
            for option in self.offered(command, "--"):
                words = self.offered(command, option, "")
                if option == "--help" or not words or words[0][0] == ":" or option in ("--pid", "--name"):
                    continue
                said = self.memprof(command, "x", option, "?!", status=2).stderr if command != "run" else self.memprof(
                    command, option, "?!", status=2).stderr
                m = re.search(r"'\?!' is (?:none of|not one of|neither) (.*) \(see", said)
                if not m:
                    self.assertIn("takes no value", self.memprof(command, option + "=x", status=2).stderr, (command, option))
                    continue
                meant = set(re.split(", | nor ", m[1]))
                if command == "diff" and option == "--cost":
                    self.assertLessEqual(meant, set(words))
                else:
                    self.assertEqual(meant, set(words), option)
                tried += 1
        self.assertGreater(tried, 12)

    def test_processes(self):
        """bash: ids of processes are shown with names, and inserted without; -n offers names"""
        exe = self.path("memprof-named")
        shutil.copy("/bin/sleep", exe)
        p, q = self.start(exe, "1000"), self.start(exe, "1000")
        for x in (p, q):
            t.wait_for(lambda x=x: b"memprof-named" in t.read(f"/proc/{x.pid}/comm"))
        shown = self.bash("attach", "-p", "")
        self.assertLessEqual({f"{p.pid}  memprof-named", f"{q.pid}  memprof-named"}, set(shown))
        self.assertIn("memprof-named", self.offered("leaks", "-n", "memprof-n"))
        q.kill()
        q.wait()
        alone = [x for x in self.bash("attach", "--pid", str(p.pid)) if x.split()[0] == str(p.pid)]
        self.assertIn(alone, ([str(p.pid)], [f"{p.pid}  memprof-named"]))

    def test_files(self):
        """bash: recordings and folders where a recording is meant, all files after -o"""
        for name in ("a.memprof", "b.memprof", "other"):
            open(self.path(name), "w").close()
        os.mkdir(self.path("folder"))
        for command in ("report", "info", "verify", "strip", "diff", "merge", "extract", "symbolize"):
            self.assertEqual(sorted(self.bash(command, "")), ["a.memprof", "b.memprof", "folder"])
        self.assertEqual(self.bash("diff", "a.memprof", "b"), ["b.memprof"])
        self.assertEqual(self.bash("attach", "-o", "ot"), ["other"])
        self.assertEqual(self.bash("leaks", "--recording", "a"), ["a.memprof"])
        self.assertEqual(self.bash("symbolize", "--debug-dir", ""), ["folder"])
        self.assertIn("true", self.bash("run", "--", "tru"))

    def test_other_shells(self):
        """zsh and fish read their scripts, and fish offers the same"""
        shells = [s for s in ("zsh", "fish") if shutil.which(s)]
        for shell in shells:
            subprocess.run([shell, "-n", f"{SCRIPTS}/memprof.{shell}"], check=True)
        if "fish" in shells:
            env = dict(os.environ, PATH=os.path.dirname(t.MEMPROF) + ":" + os.environ["PATH"])
            r = subprocess.run(["fish", "-N", "-c", f"source {SCRIPTS}/memprof.fish; complete -C 'memprof att'"], text=True,
                               capture_output=True, check=True, env=env)
            self.assertIn("attach", r.stdout)
        if not shells:
            self.skipTest("neither zsh nor fish is installed")


if __name__ == "__main__":
    t.main()
