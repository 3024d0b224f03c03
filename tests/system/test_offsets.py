#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks follows the offsets that fontconfig has in place of pointers."""
import json

import memprof_test as t

LEAKS = 3


class Offsets(t.Case):
    def test_fontconfig(self):
        """patterns and sets of characters that are kept are no leaks; those that are forgotten are, with what they hold"""
        p = self.start(f"{t.VICTIMS}/fontconfig", str(LEAKS))
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.path("leaks.json")
        out = self.memprof("leaks", "-p", p.pid, "--json", f, status=1).stdout
        leaked = json.loads(t.read(f))["leaked"]
        # Of each: the pattern; its elements, the list of values and the text.
        self.assertEqual((leaked["direct_count"], leaked["indirect_count"]), (LEAKS, 3 * LEAKS), out)
        core = self.gcore(p)
        self.memprof("leaks", "--core", core, f"{t.VICTIMS}/fontconfig", "--json", f, status=1)
        self.assertEqual(json.loads(t.read(f))["leaked"], leaked)
        self.assertEqual(self.finish(p), "ok\n")


if __name__ == "__main__":
    t.main()
