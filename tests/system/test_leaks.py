#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks and memprof heap: exact against what programs know themselves."""
import os
import signal
import struct
import time

import memprof_test as t

MASK = (1 << 64) - 1


class HeapCase(t.Case):
    def ready(self, name, *args, **kw):
        """Starts a victim and waits for its "ready"; the process and its words by first one."""
        p = self.start(f"{t.VICTIMS}/{name}", *map(str, args), **kw)
        said = {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "ready":
                return p, said
            said.setdefault(word[0], []).append(word[1:])
        self.fail(f"{name} did not get ready")

    def unchanged(self, p, before):
        """Nothing of a copy is left."""
        self.assertIsNone(p.poll())
        self.assertEqual(t.read(f"/proc/{p.pid}/task/{p.pid}/children"), b"")
        self.assertEqual(t.identity(p.pid), before)

    def truth(self, p, said):
        addr, slots = said["table"][0]
        with open(f"/proc/{p.pid}/mem", "rb") as mem:
            mem.seek(int(addr, 16))
            raw = mem.read(int(slots) * 16)
        return {~a & MASK: size for a, size in struct.iter_unpack("<QQ", raw) if a > 1}

    def listed(self, p):
        f = self.path("list")
        out = self.memprof("heap", "-p", p.pid, "--list", f).stdout
        with open(f) as lines:
            return {int(a, 16): int(s) for a, s in (line.split()[:2] for line in lines)}, out


class Walk(HeapCase):
    def exact(self, name, *args):
        p, said = self.ready(name, *args)
        before = t.identity(p.pid)
        got, out = self.listed(p)
        self.assertIn("exact", out)
        truth = self.truth(p, said)
        self.assertGreater(len(truth), 5000)
        self.assertEqual(got, truth)
        self.unchanged(p, before)

    def test_one(self):
        """one thread: every block and size"""
        self.exact("blocks", "park", 1)

    def test_threads(self):
        """16 parked threads: arenas, tcaches, mmapped and aligned blocks"""
        self.exact("blocks", "park", 16)

    def test_foreign_sbrk(self):
        """somebody else moves the program break between"""
        self.exact("blocks", "park", 1, "foreign")

    def test_noncontiguous(self):
        """brk() is blocked: the main arena is scattered"""
        self.exact("blocks", "park", 1, "noncontig")

    def test_all(self):
        """both, and threads"""
        self.exact("blocks", "park", 4, "foreign", "noncontig")

    def test_static(self):
        """static and stripped"""
        self.exact("blocks-static", "park", 8)
        self.exact("blocks-static", "park", 1, "foreign", "noncontig")

    def test_running(self):
        """threads stopped at a random instant: wrong by at most one block each"""
        for name in ("blocks", "blocks-static"):
            p, said = self.ready(name, "run", 16)
            for _ in range(5 if t.FULL else 2):
                time.sleep(0.3)
                p.send_signal(signal.SIGSTOP)
                time.sleep(0.2)
                got, _ = self.listed(p)
                truth = self.truth(p, said)
                wrong = set(got.items()) ^ set(truth.items())
                self.assertLessEqual(len({a for a, _ in wrong}), 16)
                self.assertIn("T (stopped)", t.read(f"/proc/{p.pid}/status").decode())
                p.send_signal(signal.SIGCONT)
            p.kill()


if __name__ == "__main__":
    t.main()
