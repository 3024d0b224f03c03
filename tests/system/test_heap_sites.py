#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap of a process that is being recorded: where the blocks of each line were allocated, and their types."""
import json
import subprocess

import jsonschema
import memprof_test as t


def lines(line):
    """The line and all below it."""
    yield line
    for child in line["children"]:
        yield from lines(child)


class Sites(t.Case):
    def recorded(self):
        """Starts the program and a recorder, and has it make 1,000 of each.  Return: the process, the recording."""
        p = self.start(f"{t.VICTIMS}/sited", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.path("live.memprof")
        self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--background")
        self.addCleanup(subprocess.run, [t.MEMPROF, "detach", "-p", str(p.pid)], capture_output=True)
        p.stdin.write("x\n")
        p.stdin.flush()
        self.buffer = int(p.stdout.readline().split()[1])
        return p, f

    def retained(self, p, *more):
        f = self.path("heap.json")
        out = self.memprof("heap", "-p", p.pid, "--retained", "--json", f, *more).stdout
        with open(f) as j, open(t.ROOT + "/doc/heap.schema.json") as schema:
            report = json.load(j)
            jsonschema.validate(report, json.load(schema))
        return report, out

    def of(self, report, function):
        """The one line of blocks that this function allocated most of, below variables."""
        found = [c for c in lines(report["retained"]) if c["allocated_at"] and c["allocated_at"]["function"] == function]
        self.assertEqual(len(found), 1, (function, [c["name"] for c in found]))
        return found[0]

    def check(self, report):
        buffers, tickets = self.of(report, "add_buffer"), self.of(report, "add_ticket")
        self.assertEqual((buffers["count"], buffers["own_bytes"]), (1010, 1010 * self.buffer))
        # The recording has all but the ten that are older.
        self.assertEqual(buffers["allocated_at"]["bytes"], 1000 * self.buffer)
        self.assertEqual(buffers["allocated_at"]["known_bytes"], 1000 * self.buffer)
        self.assertTrue(buffers["allocated_at"]["source"].endswith("sited.cc"))
        line = t.read(t.ROOT + "/tests/victims/sited.cc").splitlines()[buffers["allocated_at"]["line"] - 1]
        self.assertIn(b"malloc(200)", line)
        self.assertEqual((tickets["name"], tickets["type_source"], tickets["count"]), ("ticket", "stack", 1010))
        for thing, usable in (("known", 1000), ("unknown", 10)):
            # Each round makes a session, a node of the map, a ticket and a buffer.
            self.assertEqual(report["recording"][f"{thing}_count"] // usable, 4)

    def test_live(self):
        """heap --retained beside a recording: the line of code that allocated each line's blocks, and types by stacks"""
        p, f = self.recorded()
        report, out = self.retained(p)
        self.check(report)
        self.assertEqual((report["recording"]["path"], report["recording"]["live"]), (f, True))
        self.assertRegex(out, r"1,010 x ticket of \d+ B.*, allocated\s+at\s+add_ticket")
        self.assertIn(f"from {f}, still recording", out)

    def test_types(self):
        """heap beside a recording: where the blocks of each type and size were allocated"""
        p, _ = self.recorded()
        out = self.memprof("heap", "-p", p.pid).stdout
        self.assertRegex(out, r" 1,010 +2\d\d B +\(not known\)\n +allocated at add_buffer  sited.cc:\d+\n")
        self.assertRegex(out, r" 1,010 +\d+ B +ticket\n +allocated at add_ticket ")

    def test_ended(self):
        """--recording FILE uses a recording that has ended; one of another process is refused"""
        p, f = self.recorded()
        self.memprof("detach", "-p", p.pid)
        report, _ = self.retained(p)
        self.assertIsNone(report["recording"])
        self.assertFalse(any(c["allocated_at"] for c in lines(report["retained"])))
        report, _ = self.retained(p, "--recording", f)
        self.check(report)
        self.assertFalse(report["recording"]["live"])
        self.assertGreater(report["recording"]["ended_before_ns"], 0)
        other = self.start(f"{t.VICTIMS}/sited", stdin=subprocess.PIPE)
        self.assertEqual(other.stdout.readline(), "ready\n")
        r = self.memprof("heap", "-p", other.pid, "--retained", "--recording", f, status=2)
        self.assertIn("is a recording of process", r.stderr)
        self.memprof("heap", "-p", other.pid, "--recording", "/dev/null", status=13)

    def test_after_exec_or_damage(self):
        """a recording that cannot be read does not keep heap from its report"""
        p, f = self.recorded()
        self.memprof("pause", "-p", p.pid)
        with open(f, "r+b") as file:
            file.seek(0)
            file.write(b"\0" * 64)
        report, _ = self.retained(p)
        self.assertIsNone(report["recording"])
        self.assertEqual(len([c for c in lines(report["retained"]) if c["count"] == 1010 and c["own_bytes"] == 1010 * self.buffer]), 1)


if __name__ == "__main__":
    t.main()
