#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The scripts of doc/ci.md, taken from the document and run on programs that grow, leak, or do neither."""
import json
import os
import re
import subprocess

import memprof_test as t

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
void *kept[100000];
__attribute__((noinline)) static void *parse(int i) { return malloc(100 + i % 50); }
__attribute__((noinline)) static void cache(int i) { kept[i] = calloc(1, 200); }
int main(void)
{
	for (int i = 0; i < 20000; i++) {
		void *volatile p = parse(i);
		free(p);
		if (i < KEPT)
			cache(i);
	}
	return STATUS;
}
"""


SERVER = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static void *session(void) { return memset(malloc(500), 1, 500); }
void *kept;
int main(void)
{
	kept = session();
	for (int i = 0; i < LOST; i++)
		*(char *volatile *)session() = NULL;
	for (;;)
		pause();
}
"""


class CiDoc(t.Case):
    def setUp(self):
        super().setUp()
        os.symlink(t.MEMPROF, self.path("memprof"))
        with open(self.path("memprof.supp"), "w") as f:
            f.write("# none yet\nleak:no_such_function\n")

    def script(self, heading):
        """The indented block below a heading of the document."""
        section = t.read(t.ROOT + "/doc/ci.md").decode().split(f"## {heading}\n")[1].split("\n## ")[0]
        return "\n".join(re.search(r"(?:^    .*\n)+", section, re.M)[0].split("\n    ")).strip()

    def sh(self, script):
        return subprocess.run(["sh", "-c", script], cwd=self.dir, text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{self.dir}:{os.environ['PATH']}"})

    def build(self, kept=0, status=0, lost=0, name="program", text=PROGRAM):
        with open(self.path(name + ".c"), "w") as f:
            f.write(text)
        subprocess.run(["gcc", "-g", "-O1", f"-DKEPT={kept}", f"-DSTATUS={status}", f"-DLOST={lost}", "-o", self.path(name),
                        self.path(name + ".c")], check=True)

    def test_program(self):
        """the first script passes for the same program, ends with 19 if it grew, and with the program's status if it fails"""
        script = self.script("A program that ends")
        self.assertIn("--fail-above 1MB", script)
        self.build(500)
        self.memprof("run", "-q", "--lossless", "-o", self.path("base.memprof"), "--", self.path("program"))
        r = self.sh(script)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        with open(self.path("new.json")) as f:
            totals = json.load(f)["totals"]
        self.assertEqual((totals["leaked_bytes"], totals["leaked_count"]), (500 * 200, 500))
        self.assertIn("</svg>", t.read(self.path("new.svg")).decode())
        same = self.sh("memprof diff base.memprof new.memprof --cost count --fail-above 1")
        self.assertEqual(same.returncode, 0, same.stdout)
        self.build(15000)
        r = self.sh(script)
        self.assertEqual(r.returncode, 19, r.stdout + r.stderr)
        self.assertIn("memprof: cache grew by", r.stderr)
        with open(self.path("memprof.supp"), "a") as f:
            f.write("leak:cache\n")
        r = self.sh(script)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.build(500, status=7)
        self.assertEqual(self.sh(script).returncode, 7)

    def test_server(self):
        """the second script passes for a server that does not leak, and ends with 1 for one that does"""
        script = self.script("A server")
        with open(self.path("client"), "w") as f:
            f.write("#!/bin/sh\nsleep 1\n")
        os.chmod(self.path("client"), 0o755)
        for lost, status in ((0, 0), (1000, 1)):
            self.build(lost=lost, name="server", text=SERVER)
            r = self.sh(script)
            self.assertEqual(r.returncode, status, r.stdout + r.stderr)
            with open(self.path("leaks.json")) as f:
                self.assertEqual(json.load(f)["leaked"]["bytes"] > 100 * 1024, bool(status))

    def test_needs(self):
        """every option that the document names exists"""
        text = t.read(t.ROOT + "/doc/ci.md").decode()
        for command, options in re.findall(r"memprof (run|report|diff|leaks|attach|detach|mark|symbolize|verify) ([^\n`]*)", text):
            known = self.memprof(command, "--help").stdout
            for option in re.findall(r"(?<= )--[a-z-]+", options.split(" -- ")[0].split(";")[0]):
                self.assertIn(option, known, command)


if __name__ == "__main__":
    t.main()
