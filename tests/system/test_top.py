#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof top, in a terminal of tmux, on real processes."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import termios
import unicodedata

import memprof_test as t
import test_printable as printable

# Does what lines on stdin say ("b 20": 20 big blocks), each time by one call of serve().  A thread with the name
# argv[1] allocates and frees a block each millisecond between "w 1" and the next "w 1".
SOURCE = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[100000];
static long n;
static volatile int working;
__attribute__((noipa)) void *big_block(void) { return malloc(1024); }
__attribute__((noipa)) void *small_block(void) { return malloc(128); }
__attribute__((noipa)) void *brief_block(void) { return malloc(50); }
__attribute__((noipa)) void *größe_漢字(void) { return malloc(256); }
__attribute__((noipa)) void *a_function_of_which_the_name_does_not_fit_into_a_line_of_eighty_columns(void)
{
	return malloc(64);
}
__attribute__((noipa)) void serve(char what)
{
	switch (what) {
	case 'b': kept[n++] = big_block(); break;
	case 's': kept[n++] = small_block(); break;
	case 'u': kept[n++] = größe_漢字(); break;
	case 'l': kept[n++] = a_function_of_which_the_name_does_not_fit_into_a_line_of_eighty_columns(); break;
	case 't': free(brief_block()); break;
	case 'f': free(kept[--n]); break;
	case 'w': working = !working; break;
	}
}
static void *work(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;; usleep(1000))
		if (working)
			serve('t');
	return NULL;
}
int main(int argc, char **argv)
{
	static char in[4096], out[4096];
	char what;
	long count;
	pthread_t thread;

	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	if (argc > 1)
		pthread_create(&thread, NULL, work, argv[1]);
	puts("ready");
	while (scanf(" %c %ld", &what, &count) == 2) {
		while (count--)
			serve(what);
		puts("done");
	}
	return 0;
}
"""
COLOUR = r"\033\[(?:[0-9;]*;)?(?:3[0-8]|9[0-7])[;m]"


class Top(t.Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="memprof-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.program = f"{folder.name}/program"
        with open(f"{folder.name}/p.c", "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-g", "-O1", "-pthread", "-D_GNU_SOURCE", "-o", cls.program, f"{folder.name}/p.c"], check=True)

    def setUp(self):
        super().setUp()
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)
        with open(self.path("tmux.conf"), "w") as f:
            f.write("set -g status off\nset -g default-terminal tmux-256color\nset -g escape-time 0\n")
        unset = ("NO_COLOR", "TMUX", "TMUX_PANE", "COLUMNS", "LINES")
        env = {k: v for k, v in os.environ.items() if k not in unset and not k.startswith(("LC_", "MEMPROF_"))}
        env.update(TMPDIR=self.tmp, LANG="C.UTF-8", TERM="xterm")
        subprocess.run(["tmux", "-u", "-S", self.path("socket"), "-f", self.path("tmux.conf"), "new-session", "-d", "-x", "80",
                        "-y", "24", "PS1='shell> ' exec sh"], env=env, cwd=self.dir, check=True, timeout=60)
        self.addCleanup(self.end_terminal)
        self.tty = self.tmux("display", "-p", "#{pane_tty}").strip()
        self.sees("shell>")

    def tearDown(self):
        """nothing is left: no session, no process, no file"""
        sessions = [s["pid"] for s in json.loads(self.memprof("status", "--json").stdout)]
        try:
            self.assertEqual([p.pid for p in self.started if p.poll() is None and p.pid in sessions], [])
            self.assertEqual(os.listdir(self.tmp), [])
            self.end_terminal()
            t.wait_for(lambda: not self.in_terminal())
        finally:
            self.end_terminal()
            super().tearDown()

    def end_terminal(self):
        subprocess.run(["tmux", "-S", self.path("socket"), "kill-server"], capture_output=True, timeout=60)

    def in_terminal(self):
        """the processes that were started in the terminal"""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with t.contextlib.suppress(OSError):
                if f"TMPDIR={self.tmp}\0".encode() in t.read(f"/proc/{pid}/environ"):
                    found.append(int(pid))
        return found

    def tmux(self, *argv):
        return subprocess.run(["tmux", "-u", "-S", self.path("socket"), *argv], text=True, capture_output=True, check=True,
                              timeout=60).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def until(self, what):
        """Waits until what(screen) is true.  Return: what it returned."""
        try:
            return t.wait_for(lambda: what(self.screen()), 60)
        except AssertionError:
            raise AssertionError("the screen is:\n" + self.screen()) from None

    def sees(self, *patterns, no=None):
        """Waits until the screen has all the patterns, but not @no.  Return: the screen."""
        def right(s):
            return all(re.search(p, s, re.M) for p in patterns) and not (no and re.search(no, s, re.M))
        return self.until(lambda s: s if right(s) else None)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def types(self, text):
        """Types a text and Enter."""
        self.tmux("send-keys", "-l", text)
        self.keys("Enter")

    def runs(self, *argv, before=""):
        """Runs a command in the terminal; "status=N" follows it."""
        self.types(f"clear; {before} {t.MEMPROF} {' '.join(map(str, argv))}; echo status=$?")

    def top(self, p, *options, before=""):
        self.runs("top", "-p", p.pid, "-d", "0.1", *options, before=before)
        self.sees(rf"\({p.pid}\) .* live ")

    def quits(self, status=0):
        self.keys("q")
        return self.sees(rf"^status={status}$")

    def modes(self):
        """the modes of the terminal, whether the cursor is visible and the other screen shown"""
        fd = os.open(self.tty, os.O_RDWR | os.O_NOCTTY)
        try:
            return termios.tcgetattr(fd), self.tmux("display", "-p", "#{cursor_flag} #{alternate_on}")
        finally:
            os.close(fd)

    def begin(self, *argv):
        p = self.start(self.program, *argv, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def say(self, p, *lines):
        for line in lines:
            p.stdin.write(line + "\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "done\n")

    def recorded(self, p, *options):
        """Attaches in the background.  Return: the path of the recording."""
        f = self.path("r.memprof")
        self.memprof("attach", "-p", p.pid, "--background", "-o", f, *options)
        return f

    def status(self, p):
        return next(s for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == p.pid)

    def rows(self, screen):
        """the names of the rows of the table, in the order of the screen"""
        return re.findall(r"(?:\d|\s-|B|%) (big_block|small_block|brief_block|größe\S*)", screen)

    def pid_of_top(self):
        """the process that has the terminal"""
        shell = self.tmux("display", "-p", "#{pane_pid}").strip()
        return int(t.read(f"/proc/{shell}/stat").rsplit(b")", 1)[1].split()[5])

    def compare(self, report, other):
        """Compares the sums of two reports."""
        for k in ("leaked_bytes", "leaked_count", "allocations", "allocated_bytes", "frees", "temporary", "temporary_bytes"):
            self.assertEqual(report["totals"][k], other["totals"][k], k)
        self.assertEqual(self.live(report), self.live(other))

    def live(self, report):
        """live bytes and blocks, and allocations, of each function that allocates"""
        return {g["backtrace"][g["user_frame"]]["function"]: (g["leaked_bytes"], g["leaked_count"], g["allocated_count"])
                for g in report["allocation_groups"]}

    def test_numbers(self):
        """top, the report that it writes, and the report of the recording have the numbers that the program made"""
        p = self.begin()
        f = self.recorded(p)
        self.say(p, "b 20", "s 30", "t 40", "f 5")
        self.top(p)
        # brief_block has nothing live
        self.sees("live 23.1 KiB in 45 blocks", r"^ +20\.0 KiB +20 +0 B +0 +0% big_block  p\.c:8$",
                  r"^ +3\.1 KiB +25 +0 B +0 +0% small_block  p\.c:9$",
                  no="brief_block")
        self.keys("w", "C-u")
        self.types("seen.json")
        self.sees("wrote seen.json")
        self.keys("w", "C-u")
        self.types("seen.txt")
        self.sees("wrote seen.txt")
        self.keys("w", "C-u")
        self.types("seen.txt")
        self.sees(r"seen.txt exists; replace it \(y, n\)\?")
        self.keys("n")
        self.sees("nothing was written")
        self.keys("w", "C-u")
        self.types("r.memprof")
        self.sees(r"r\.memprof exists; replace it \(y, n\)\?")
        self.keys("y")
        self.sees("r.memprof is a recording, which would be overwritten")
        self.quits()
        self.assertEqual(self.status(p)["state"], "recording")
        self.detach(p.pid)
        with open(self.path("seen.json")) as seen:
            seen = json.load(seen)
        self.assertEqual(self.live(seen), {"big_block": (20480, 20, 20), "small_block": (25 * 128, 25, 30),
                                           "brief_block": (0, 0, 40)})
        self.assertEqual(seen["totals"]["temporary"], 40)
        self.compare(self.report(f), seen)
        self.assertIn(b"big_block", t.read(self.path("seen.txt")))
        self.memprof("verify", f)

    def test_own_recorder(self):
        """without a session top records by itself, leaves the process as it was, and removes the recording"""
        p = self.begin()
        self.say(p, "b 1", "s 1", "t 1")  # code that is loaded at the first call
        before = t.identity(p.pid)
        self.top(p)
        self.say(p, "b 7")
        self.sees(r"^ +7\.0 KiB +7 .* big_block  p\.c:8$")
        self.assertTrue(self.recorder(p.pid))
        self.quits()
        self.assertEqual(t.identity(p.pid), before)
        self.assertEqual(os.listdir(self.tmp), [])
        self.memprof("status", "-p", p.pid, status=16)

    def test_output(self):
        """-o keeps a complete recording; it is refused beside another recorder"""
        p = self.begin()
        before = t.identity(p.pid)
        f = self.path("kept.memprof")
        self.top(p, "-o", f)
        self.say(p, "b 7", "s 3")
        self.sees(r"live 7\.4 KiB in 10 blocks")
        self.quits()
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("complete and undamaged", self.memprof("verify", f).stdout)
        self.assertEqual(self.live(self.report(f)), {"big_block": (7168, 7, 7), "small_block": (384, 3, 3)})
        self.recorded(p)
        self.runs("top", "-p", p.pid, "-o", f)
        self.sees("is being recorded already", "^status=2$")
        self.detach(p.pid)

    def killed(self, sig):
        """Ends top by a signal: the terminal and the process are as before."""
        p = self.begin()
        self.say(p, "b 1", "s 1")
        before, modes = t.identity(p.pid), self.modes()
        self.types("echo what was there")
        self.runs("top", "-p", p.pid, "-d", "0.1", before="echo the text before;")
        self.sees(r"\(\d+\) .* live ")
        self.say(p, "b 7")
        self.sees(r"^ +7\.0 KiB +7 .* big_block  p\.c:8$")
        self.assertNotEqual(self.modes(), modes)
        self.assertEqual(len(os.listdir(self.tmp)), 1)
        os.kill(self.pid_of_top(), sig)
        # What the shell writes before the terminal is put right is on the other screen.
        said = () if sig == signal.SIGKILL else (r"^status=\d+$",)
        self.sees("^the text before$", *said)
        t.wait_for(lambda: self.modes() == modes)
        t.wait_for(lambda: not self.recorder(p.pid))
        t.wait_for(lambda: t.identity(p.pid) == before)
        t.wait_for(lambda: not os.listdir(self.tmp))
        self.types("echo still; stty -a")
        self.sees("^still$", r"[ ;]echo ", " icanon ")

    def test_killed(self):
        """kill -9 of top: the process is restored, the recording removed, and the terminal has its modes, screen and cursor"""
        self.killed(signal.SIGKILL)

    def test_terminated(self):
        """SIGTERM ends top"""
        self.killed(signal.SIGTERM)

    def test_hung_up(self):
        """SIGHUP ends top"""
        self.killed(signal.SIGHUP)

    def test_terminal_gone(self):
        """the terminal is closed: top ends, and restores the process"""
        p = self.begin()
        before = t.identity(p.pid)
        self.top(p)
        self.end_terminal()
        t.wait_for(lambda: not self.in_terminal())
        self.assertEqual(t.identity(p.pid), before)

    def test_recorder_killed(self):
        """kill -9 of the recorder: top says so, and q leaves"""
        p = self.begin()
        f = self.recorded(p)
        self.top(p)
        os.kill(self.recorder(p.pid), signal.SIGKILL)
        self.sees(r"ENDED", rf"^the recorder was killed; q quits; memprof detach -p {p.pid} ")
        self.quits()
        self.detach(p.pid)
        self.assertTrue(os.path.exists(f))

    def test_own_recorder_killed(self):
        """kill -9 of the recorder that top started: top says so; detach restores the process"""
        p = self.begin()
        before = t.identity(p.pid)
        self.top(p)
        os.kill(self.recorder(p.pid), signal.SIGKILL)
        self.sees(r"ENDED", rf"^the recorder was killed; q quits; memprof detach -p {p.pid} ")
        self.assertIn(f"the recorder was killed; this restores the process: memprof detach -p {p.pid}",
                      self.quits(15).replace("\n", ""))
        self.assertEqual(os.listdir(self.tmp), [])
        self.detach(p.pid)
        self.assertEqual(t.identity(p.pid), before)

    def test_drill_down(self):
        """Enter: the stacks of a row, the frames of a stack; Left and Esc go back"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 20", "s 30")
        self.top(p)
        self.sees("big_block", "small_block")
        self.keys("Down", "Enter")
        self.sees("STACKS OF small_block", r"% serve < main < _start$", no="big_block")
        self.keys("Right")
        self.sees("STACK of 7 frames", r"live 3\.8 KiB in 30 blocks", r"30 allocations in all, 3\.8 KiB",
                  r"^> small_block  /\S+/p\.c:9$", r"^  serve  /\S+/p\.c:20$", r"^  main ", "3 frames of libc", "Left back")
        self.keys("a")
        self.sees(r"^  __libc_start_main\S* ", r"^  _start ")
        self.keys("Left")
        self.sees("STACKS OF small_block", r"% serve < main < _start$")
        self.keys("Escape")
        self.sees(r" SITE$", "big_block", "small_block")
        self.keys("Enter")  # the same row is selected
        self.sees("STACKS OF small_block")
        self.keys("Left")
        self.sees(r" SITE$")
        self.detach(p.pid)
        self.quits()

    def test_rows(self):
        """1 to 5 and Tab: lines, functions, libraries, threads, stacks"""
        p = self.begin("worker")
        self.recorded(p)
        self.say(p, "b 20", "s 30", "w 1")
        self.top(p)
        self.tmux("resize-window", "-x", "140", "-y", "24")
        views = (r" SITE", r" FUNCTION( +LIBRARY)?", r" LIBRARY$", r" THREAD$", r" STACK$")
        rows = (r"\d big_block  p\.c:8$", r"\d big_block( +program)?$", r"\d program$", r"\d worker \(\d+\)$",
                r"% +20 big_block < serve < main")
        for i in (3, 0, 4, 2, 1):
            self.keys(str(i + 1))
            self.sees(rf"^ +LIVE\S* .*{views[i]}$", rows[i])
        for i in (2, 3, 4, 0, 1):
            self.keys("Tab")
            self.sees(rf"^ +LIVE\S* .*{views[i]}$", rows[i])
        self.keys("4")
        self.sees(r"^ +- +- +- .* worker \(\d+\)$")
        self.keys("Enter")
        self.sees("a thread has no stacks")
        self.detach(p.pid)
        self.quits()

    def test_idle_threads(self):
        """when no thread has allocated lately, the empty table does not say that nothing was allocated"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "t 20")
        self.top(p, "--by", "thread")
        self.sees("events 40", "nothing was allocated over the last looks")
        self.detach(p.pid)
        self.quits()

    def test_sort(self):
        """< > and r change the order of the rows; --sort gives the first"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4", "s 10", "u 1")
        by_live, by_blocks = ["big_block", "small_block", "größe_漢字"], ["small_block", "big_block", "größe_漢字"]
        self.top(p)
        self.until(lambda s: self.rows(s) == by_live)
        self.keys(">")
        self.until(lambda s: "BLOCKS↓" in s and self.rows(s) == by_blocks)
        self.keys("r")
        self.until(lambda s: "BLOCKS↑" in s and self.rows(s) == by_blocks[::-1])
        self.keys("r", "<")
        self.until(lambda s: "LIVE↓" in s and self.rows(s) == by_live)
        self.keys("<")
        self.until(lambda s: "SITE↑" in s and self.rows(s) == sorted(by_live))
        self.keys("r")
        self.until(lambda s: "SITE↓" in s and self.rows(s) == sorted(by_live)[::-1])
        self.quits()
        self.top(p, "--sort", "blocks")
        self.until(lambda s: self.rows(s) == by_blocks)
        self.detach(p.pid)
        self.quits()

    def test_selection(self):
        """the selected row stays selected while rows change places"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4", "s 10")
        self.top(p)
        self.until(lambda s: self.rows(s) == ["big_block", "small_block"])
        self.keys("Down")
        self.say(p, "s 100")
        self.until(lambda s: self.rows(s) == ["small_block", "big_block"])
        self.keys("Enter")
        self.sees("STACKS OF small_block")
        self.detach(p.pid)
        self.quits()

    def test_filter(self):
        """/ leaves rows that match; a wrong pattern is explained and changes nothing; an empty one ends it"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4", "s 10")
        self.top(p)
        self.until(lambda s: len(self.rows(s)) == 2)
        self.keys("/")
        self.sees("filter .*: ")
        self.types("^small")
        self.until(lambda s: self.rows(s) == ["small_block"] and r"filter: ^small (1 left out)" in s)
        self.keys("/", "C-u")
        self.types("(")
        self.sees("^filter: missing closing parenthesis")
        self.sees(no=r"filter \(empty")
        self.keys("Up")
        self.until(lambda s: self.rows(s) == ["small_block"] and r"filter: ^small (1 left out)" in s)
        self.keys("/", "C-u")
        self.types("nothing like that")
        self.sees("no row matches the filter")
        self.keys("/", "C-u")
        self.types("größe")
        self.sees("filter: größe")
        self.keys("/", "C-u", "Enter")
        self.until(lambda s: len(self.rows(s)) == 2 and "left out" not in s)
        self.keys("/", "x", "Escape")
        self.until(lambda s: len(self.rows(s)) == 2 and "filter (empty" not in s)
        self.quits()
        self.top(p, "--filter", "big")
        self.until(lambda s: self.rows(s) == ["big_block"])
        self.detach(p.pid)
        self.quits()

    def test_freeze(self):
        """space: no looks while the program allocates; again: looks are taken"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4")
        self.top(p)
        self.sees("live 4.0 KiB in 4 blocks")
        self.keys("Space")
        self.sees("FROZEN")
        self.say(p, "b 4")
        t.wait_for(lambda: self.status(p)["live_blocks"] == 8)
        for _ in range(5):
            self.memprof("flush", "-p", p.pid)  # a look as top takes it would be done by now
        self.keys(">", "C-l")
        self.sees(r"BLOCKS↓", "FROZEN", "live 4.0 KiB in 4 blocks")
        self.keys("Space")
        self.sees("live 8.0 KiB in 8 blocks", no="FROZEN")
        self.detach(p.pid)
        self.quits()

    def test_pause(self):
        """p pauses the recorder and resumes"""
        p = self.begin()
        f = self.recorded(p)
        self.say(p, "b 4")
        self.top(p)
        self.sees("live 4.0 KiB in 4 blocks")
        self.keys("p")
        self.sees("PAUSED", "paused: new blocks are left out; p resumes")
        self.say(p, "s 8")
        self.keys("p")
        self.sees("resumed")
        self.say(p, "b 2")
        self.sees("live 6.0 KiB in 6 blocks", no="PAUSED")
        self.memprof("pause", "-p", p.pid)
        self.sees("PAUSED")
        self.memprof("resume", "-p", p.pid)
        self.sees(no="PAUSED")
        self.detach(p.pid)
        self.quits()
        self.assertEqual(self.live(self.report(f)), {"big_block": (6144, 6, 6)})

    def test_mark(self):
        """m: SINCE MARK counts from there, and the recording has the mark"""
        p = self.begin()
        f = self.recorded(p)
        self.say(p, "b 4", "s 8")
        self.top(p)
        self.sees("live 5.0 KiB in 12 blocks")
        self.keys("m")
        self.sees("name of the mark: top")
        self.keys("C-u")
        self.types("größer")
        self.sees("marked: SINCE MARK counts from now", "SINCE MARK")
        self.say(p, "b 3", "f 1")
        self.sees(r"^ +6\.0 KiB +0 B +\+2\.0 KiB +0 big_block ", r"^ +1\.0 KiB +0 B +0 B +0 small_block ")
        self.quits()
        self.detach(p.pid)
        self.assertEqual([m["name"] for m in self.report(f)["markers"]], ["größer"])

    def test_sample(self):
        """s: frequent allocations are sampled, estimates have ~; after it blocks are exact again"""
        p = self.victim("drown", 1, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.recorded(p)
        self.top(p)
        for n in ("32,768", "8,192", "2,048"):
            self.keys("s")
            self.sees(f"SAMPLED to {n}/s")
        self.sees(r"estimated \(~\): [\d,]+ allocations thinned out", "live ~", r"allocations ~[\d,]+/s")
        self.assertTrue(self.status(p)["thinned_allocations"])
        self.keys("s")
        self.sees("new allocations are exact again")
        self.sees("big|drown|%", no="SAMPLED")

        def say(line):
            p.stdin.write(line + "\n")
            p.stdin.flush()
            p.stdout.readline()
        say("calm")
        self.memprof("flush", "-p", p.pid)
        thinned = self.status(p)["thinned_allocations"]
        say("leak 300")
        self.sees(r"^ +227\.6 KiB +300 .* leak_one ")
        self.assertEqual(self.status(p)["thinned_allocations"], thinned)
        self.detach(p.pid)
        self.quits()

    def test_no_sampling(self):
        """s is refused where the recorder may not thin"""
        for option in ("--no-thinning", "--lossless"):
            p = self.begin()
            self.recorded(p, option)
            self.say(p, "b 2")
            self.top(p)
            self.keys("s")
            self.sees("this recording cannot be sampled while it runs", no="SAMPLED")
            self.detach(p.pid)
            self.quits()

    def test_losses(self):
        """lost events are said"""
        p = self.victim("drown", 4, stdin=subprocess.PIPE)
        self.recorded(p, "--no-thinning", "--queue-size", "1M", "--ring-size", "64k")
        self.top(p)
        self.sees(r"^lost [\d,]+ events: ")
        self.tmux("resize-window", "-x", "80", "-y", "10")
        self.until(lambda s: len(s.splitlines()) == 10 and re.search(r"^lost [\d,]+ events: ", s, re.M))
        self.detach(p.pid)
        self.quits()

    def test_estimates(self):
        """a recording of samples: numbers have ~"""
        p = self.begin()
        self.recorded(p, "--sample", "1k")
        self.say(p, "b 1000")
        self.top(p)
        self.sees(r"SAMPLED per 1\.0 KiB", r"live ~", r"^ *~[\d.]+ [KM]iB +~[\d,]+ .* big_block ", r"^sampled \(~\): ")
        self.detach(p.pid)
        self.quits()

    def fits(self, width, height):
        """Waits until the screen is drawn for this size, without a line that was wrapped."""
        def columns(line):
            return sum(1 + (unicodedata.east_asian_width(c) == "W") for c in line)

        def fit(screen):
            x = screen.splitlines()
            return (len(x) == height and re.search(r"program \(\d+\)", x[0]) and re.match(r"allocations .*/s", x[1]) and
                    re.match(" +LIVE", x[2]) and all(re.match(" +[0-9]", y) for y in x[3:6]) and not any(x[6:-1]) and
                    "q quit" in x[-1] and max(map(columns, x)) <= width)
        self.until(fit)

    def test_sizes(self):
        """sizes of the terminal, also changed while top runs: every line fits"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 20", "u 3", "l 4")
        self.top(p)
        for width, height in ((80, 24), (40, 10), (300, 60), (40, 8), (81, 25), (1200, 30), (80, 24)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            self.fits(width, height)
        for width, height in ((20, 5), (39, 24), (80, 7), (1, 2)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            self.until(lambda s, n=width: s.splitlines()[0] == "too small (40x8); q quits"[:n].rstrip())
        self.tmux("resize-window", "-x", "40", "-y", "10")
        self.fits(40, 10)
        for screen in (("Enter",), ("Enter",), ("?",)):
            self.keys(*screen)
            for width, height in ((40, 8), (20, 5), (300, 60), (80, 24)):
                self.tmux("resize-window", "-x", str(width), "-y", str(height))
                self.until(lambda s, n=height: len(s.splitlines()) == n and re.search("q quit|too small", s))
        self.sees("memprof top: keys and columns")
        self.detach(p.pid)
        self.quits()

    def test_suspend(self):
        """Ctrl-Z gives the shell its terminal; fg brings the screen back"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4")
        modes = self.modes()
        self.top(p)
        shown = self.modes()
        for n in (8, 12):
            self.keys("C-z")
            self.sees("shell>$", "Stopped")
            self.assertEqual(self.modes(), modes)
            self.types("echo in the shell")
            self.sees("^in the shell$")
            self.say(p, "b 4")
            self.types("clear; fg; echo status=$?")
            self.sees(rf"\({p.pid}\) ", f"live {n}.0 KiB in {n} blocks", "q quit")
            t.wait_for(lambda: self.modes() == shown)
        self.detach(p.pid)
        self.quits()
        self.assertEqual(self.modes(), modes)

    def test_colours(self):
        """colours by the rule of every command: NO_COLOR and --color"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4")
        for want, options, before in ((True, (), ""), (True, (), "TERM=xterm-256color"), (False, (), "NO_COLOR=1"),
                                      (False, ("--color=never",), ""), (True, ("--color=always",), "NO_COLOR=1")):
            self.top(p, *options, before=before)
            self.sees("big_block", "q quit")
            shown = self.tmux("capture-pane", "-p", "-e")
            self.assertEqual(bool(re.search(COLOUR, shown)), want, (options, before))
            self.assertRegex(shown, r"\033\[[0-9;]*7m")  # the header
            self.quits()
        self.detach(p.pid)

    def test_no_terminal(self):
        """without a terminal as input or output: status 2, and the process is left alone"""
        p = self.begin()
        r = self.memprof("top", "-p", p.pid, status=2)
        self.assertRegex(r.stderr, "^memprof: top: it needs a terminal .*memprof status and memprof report.*\n$")
        self.assertEqual(r.stdout, "")
        master, slave = pty.openpty()
        for streams in ({"stdin": slave, "stdout": subprocess.PIPE}, {"stdin": subprocess.PIPE, "stdout": slave}):
            r = subprocess.run([t.MEMPROF, "top", "-p", str(p.pid)], stderr=subprocess.PIPE, text=True, timeout=60, **streams)
            self.assertEqual(r.returncode, 2)
            self.assertIn("it needs a terminal", r.stderr)
        os.close(master)
        os.close(slave)
        self.memprof("status", "-p", p.pid, status=16)

    def test_refused(self):
        """an unknown terminal, no process, a kernel thread: one line, and the terminal as it was"""
        p = self.begin()
        modes = self.modes()
        for before, pid, said, status in (("TERM=nonsense", p.pid, "does not know the terminal type 'nonsense'", 2),
                                          ("TERM=dumb", p.pid, "cannot move", 2),
                                          ("unset TERM;", p.pid, "terminal type", 2),
                                          ("", 4194000, "there is no process", 3), ("", 2, "kernel thread", 5)):
            self.runs("top", "-p", pid, before=before)
            self.sees("memprof: ", re.escape(said).replace(r"\ ", r"\s+"), f"^status={status}$")
            self.assertEqual(self.modes(), modes)
            self.types("TERM=tmux-256color; export TERM")
        self.memprof("status", "-p", p.pid, status=16)

    def test_page_faults(self):
        """beside a recorder of page faults, which has no session, top records allocations by itself"""
        p = self.begin()
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "--event", "page-faults", "-o", self.path("faults"),
                         stderr=subprocess.PIPE)
        self.assertIn("recording", rec.stderr.readline())
        self.top(p)
        self.say(p, "b 4")
        self.sees("live 4.0 KiB in 4 blocks")
        self.quits()
        rec.send_signal(signal.SIGINT)
        rec.communicate(timeout=60)
        self.assertEqual(rec.returncode, 0)

    def test_process_ends(self):
        """the process ends: top says so, and keeps what it saw until q"""
        p = self.begin()
        self.recorded(p)
        self.say(p, "b 4")
        self.top(p)
        self.sees("live 4.0 KiB in 4 blocks")
        p.stdin.close()
        p.wait()
        self.sees("ENDED", f"process {p.pid} has ended; q quits", "big_block")
        self.keys("Enter")
        self.sees("STACKS OF big_block")
        self.keys("m")
        self.sees(f"process {p.pid} has ended")
        self.quits()

    def test_process_ends_with_own(self):
        """the process that top records itself is killed: top says so; q leaves, and the recording is removed"""
        p = self.begin()
        self.top(p)
        self.say(p, "b 4")
        self.sees("live 4.0 KiB in 4 blocks")
        p.kill()
        p.wait()
        self.sees("ENDED", f"process {p.pid} has ended; q quits", "big_block")
        self.quits()

    def test_names(self):
        """control characters in names are escaped; names of several bytes or columns a character do not shift columns"""
        exe = self.path("e\033[31mvil-ü")
        os.link(self.program, exe)
        self.program = exe
        p = self.begin("\033[31mredü")
        self.recorded(p)
        self.say(p, "b 4", "u 4", "w 1")
        self.top(p)
        self.tmux("resize-window", "-x", "200", "-y", "24")
        shown = r"e\\x1b\[31mvil-ü"
        screen = self.sees(rf"^memprof top  {shown} \(\d+\)", rf"^.* big_block .* {shown}$", rf"^.* größe_漢字 .* {shown}$")

        def column(name, what):
            line = next(x for x in screen.splitlines() if f" {name} " in x)
            return sum(1 + (unicodedata.east_asian_width(c) == "W") for c in line[:re.search(what, line).start()])
        for what in (r"/\S+/p\.c:", shown):
            self.assertEqual(column("größe_漢字", what), column("big_block", what))
        self.keys("3")
        self.sees(rf"LIBRARY$", rf"^.*% +[\d,]+ +\d+ {shown}$")
        self.keys("4")
        self.sees(r"^.* \\x1b\[31mredü \(\d+\)$")
        self.assertNotRegex(self.tmux("capture-pane", "-p", "-e"), r"\033\[31m(red|vil)")
        self.detach(p.pid)
        self.quits()

    def test_control_characters(self):
        """functions, sources, threads and programs with control characters in their names"""
        exe = os.path.join(os.fsencode(self.dir), printable.EVIL)
        shutil.copy(f"{t.VICTIMS}/names", exe)
        with open(exe + b".map", "wb") as f:
            f.truncate(4096)
        p = self.start(exe, exe + b".map")
        t.settle(p.pid)
        self.top(p)
        self.tmux("resize-window", "-x", "300", "-y", "24")
        name = re.escape(r'"allo\x1b[31mcate\xe2\x80\xae\x9b"')
        library = re.escape(printable.SHOWN.decode().replace(r"\x0a", r"\012"))  # as /proc/PID/maps has it
        thread = re.escape(r"thr\x1b[31med\n\x9b")  # the kernel escapes a new line like this
        patterns = (rf"{name} .*so\\x1b\[31murce\\x0a\.c", name, rf" {library}$", rf"{thread} \(\d+\)$", rf" {name} < ")
        for key, pattern in zip("12345", patterns):
            self.keys(key)
            self.assertEqual(printable.unprintable(self.sees(r"^memprof top  e\\x1b\[31mvil", pattern).encode()), [])
        self.keys("Enter")
        self.assertEqual(printable.unprintable(self.sees("STACK of", rf"^> {name}  .*\\x1b").encode()), [])
        self.quits()

    def test_redis(self):
        """redis-server under load: its keys are found, and the server is as before"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", cwd=self.dir, stdout=subprocess.DEVNULL)

        def ask(*argv):
            return subprocess.run(["redis-cli", "-s", sock, *argv], text=True, capture_output=True, timeout=60).stdout
        t.wait_for(lambda: ask("ping") == "PONG\n")
        ask("set", "key", "x" * 10000)
        self.top(p)
        load = self.start("redis-benchmark", "-s", sock, "-t", "set,lpush", "-n", "1000000000", "-d", "100", "-r", "100000", "-q",
                          stdout=subprocess.DEVNULL)
        self.sees(r"live ~?[\d.]+ MiB", r"allocations ~?[\d,]+/s", r"redis-server|sds|dict|zmalloc")
        self.keys("Enter")
        self.sees("STACKS OF ")
        self.keys("Enter")
        self.sees("STACK of [0-9]+ frames", "allocations/s")
        load.kill()
        load.wait()
        self.quits()
        self.assertEqual(ask("ping"), "PONG\n")
        self.memprof("status", "-p", p.pid, status=16)


if __name__ == "__main__":
    t.main()
