#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The manual: the overview, and a page for each command that is made from its --help."""
import re
import shutil
import subprocess

import memprof_test as t


class Manual(t.Case):
    def commands(self):
        return re.findall(r"^  ([a-z-]+) ", self.memprof("help").stdout.split("\n\n")[1], re.M)

    def shown(self, page):
        """The page as text without line breaks and hyphenation; groff must have no warning about it."""
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for width in ("78n", "100n", "200n"):
            r = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou", f"-rLL={width}", "-rHY=0", page], text=True,
                               capture_output=True, timeout=60)
            self.assertEqual((r.returncode, r.stderr), (0, ""), page)
        return " ".join(r.stdout.split())

    def test_pages(self):
        """each command has a page with all options and words of its help, without a warning of groff"""
        subprocess.run([t.ROOT + "/scripts/man-pages", t.MEMPROF, self.dir], check=True, timeout=120)
        for command in self.commands():
            text = self.shown(self.path(f"memprof-{command}.1"))
            self.assertIn(f"memprof-{command} - ", text)
            self.assertIn(f"SYNOPSIS memprof {command}", text)
            for line in self.memprof(command, "--help").stdout.splitlines():
                for part in re.split(" {2,}", re.sub("^usage: ", "", line.strip())):
                    self.assertIn(part, text)

    def test_overview(self):
        """memprof.1 has no warning of groff, and names every command; memprof-replay.1 has all options of its help"""
        page = t.ROOT + "/doc/memprof.1"
        text = self.shown(page)
        synopsis = text[text.index("SYNOPSIS"):text.index("DESCRIPTION")]
        for command in self.commands():
            self.assertRegex(synopsis, rf"memprof (pause\|)?{command}\b")
        replay = self.shown(t.ROOT + "/doc/memprof-replay.1")
        out = subprocess.run([t.MEMPROF + "-replay", "--help"], text=True, capture_output=True, check=True).stdout
        for option in re.findall(r"--[a-z]+", out):
            self.assertIn(option, replay)


if __name__ == "__main__":
    t.main()
