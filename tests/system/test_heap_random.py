#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap --retained on random programs (tests/victims/random_graph.c), which find by the definition what each of
their variables, frames and blocks retains.  By what looks like a pointer each answer is right, to the byte.  By the
program's own pointers, which cannot be told from others, most are: the shares are printed.

With MEMPROF_FULL=1, 200 programs; RANDOM_SEED=N runs one of them."""
import collections
import json
import os

import memprof_test as t

SEEDS = [int(os.environ["RANDOM_SEED"])] if "RANDOM_SEED" in os.environ else range(1, 201 if t.FULL else 41)
# Of 10,000 blocks so many have a false pointer, or a hidden one.  Half of the programs have none.
NOISE = (0, 10, 0, 100, 0, 1000)
MODES = ((), ("--pre-copy",), ("--in-place",))


Answer = collections.namedtuple("Answer", "true seen exact wrong")  # true, seen: bytes and blocks


class Truth:
    """What the program says."""
    def __init__(self, out):
        self.roots, self.blocks, self.sharing = {}, {}, {}
        for line in out:
            if line == "ready\n":
                return
            what, rest = line.strip().replace("  ", " ").split(" ", 1)
            if what == "root":
                rest, *n = rest.rsplit(" ", 7)
                kind, name = rest.split("|")
                n = list(map(int, n))
                self.roots[kind, name, n[0]] = Answer(tuple(n[1:3]), tuple(n[3:5]), n[5], n[6])
            elif what == "block":
                addr, *n = rest.split()
                n = list(map(int, n))
                self.blocks[addr] = Answer(tuple(n[1:3]), tuple(n[3:5]), n[5], n[6])
                self.sharing[addr] = n[7]
            else:
                n = list(map(int, rest.split()))
                self.unreachable = Answer(tuple(n[:2]), tuple(n[2:4]), 0, 0)
        raise AssertionError("the program ended")


class Shares:
    """How many of the answers are right; and how many claim only what is so, though perhaps not all of it."""
    def __init__(self):
        self.answers = collections.defaultdict(list)

    def add(self, noise, what, answer):
        certain = "exact 100 %" if answer.seen[0] == answer.exact else "others"
        for key in (what, what + ", " + certain):
            self.answers[noise, key].append(answer)

    def __str__(self):
        out = []
        for (noise, what), answers in sorted(self.answers.items()):
            right = sum(a.true == a.seen for a in answers)
            claims = sum(not a.wrong for a in answers)
            out.append(f"# noise {noise / 100:g} %: {what}: of {len(answers)} answers {right / len(answers):.1%} are right, "
                       f"{claims / len(answers):.1%} claim nothing wrong")
        return "\n".join(out)


def lines(line):
    """The line and all below it."""
    yield line
    for child in line["children"]:
        yield from lines(child)


class Random(t.Case):
    def retained(self, *args):
        f = self.path("r.json")
        self.memprof("heap", *args, "--retained", "--json", f, "--depth", 64, "--count", 100000)
        return json.loads(t.read(f))

    def key(self, line):
        """The name that the program gives to the root."""
        name = line["name"].split(" of thread ")[0]
        if line["kind"] == "frame":
            name = name.split("(")[0]
        return line["kind"], name, line["thread"]

    def check_roots(self, report, truth, what):
        found = {}
        for line in report["retained"]["children"]:
            if line["kind"] not in ("shared", "rest"):
                found.setdefault(self.key(line), []).append(line)
        for key, answer in truth.roots.items():
            got = found.get(key, [])
            if not answer.seen[1]:
                self.assertEqual(got, [], (what, key))
                continue
            self.assertEqual(len(got), 1, (what, key))
            self.assertEqual((got[0]["retained_bytes"], got[0]["retained_blocks"]), answer.seen, (what, key))
            self.assertEqual(got[0]["exact_bytes"], answer.exact, (what, key))

    def check_blocks(self, report, truth, what):
        """Blocks that have a line of their own.  Return: their addresses."""
        checked = set()
        for line in lines(report["retained"]):
            addr = format(line["address"], "x") if line["kind"] == "blocks" and line["count"] == 1 else None
            if addr not in truth.blocks:
                continue
            checked.add(addr)
            answer = truth.blocks[addr]
            self.assertEqual((line["retained_bytes"], line["retained_blocks"]), answer.seen, (what, addr))
            self.assertEqual(line["exact_bytes"], answer.exact, (what, addr))
            if line["roots"]:
                self.assertEqual(line["roots"], truth.sharing[addr], (what, addr))
        return checked

    def check_one(self, pid, addr, truth, what):
        """--of of a block."""
        answer = truth.blocks[addr]
        report = self.retained("-p", pid, "--of", "0x" + addr)
        r = report["retained"]
        self.assertEqual((r["retained_bytes"], r["retained_blocks"]), answer.seen, (what, addr))

    def program(self, seed, noise, **kw):
        """Starts a program.  Return: it, what it says, and how to repeat it."""
        blocks = 300 + seed * 7919 % 2700
        p = self.start(f"{t.VICTIMS}/random_graph", str(seed), str(blocks), str(noise), **kw)
        truth = Truth(p.stdout)
        what = f"RANDOM_SEED={seed}: random_graph {seed} {blocks} {noise}"
        for key, answer in (*truth.roots.items(), *truth.blocks.items()) if not noise else ():
            self.assertEqual((answer.true, answer.wrong), (answer.seen, 0), (what, key))
        return p, truth, what

    def check(self, report, truth, what):
        """Return: the addresses of the blocks that have a line of their own."""
        self.assertTrue(report["exact"], what)
        self.check_roots(report, truth, what)
        self.assertEqual((report["unreachable"]["bytes"], report["unreachable"]["count"]), truth.unreachable.seen, what)
        everything = report["retained"]
        for key in ("retained_bytes", "retained_blocks"):
            self.assertEqual(sum(c[key] for c in everything["children"]), everything[key], what)
        checked = self.check_blocks(report, truth, what)
        self.assertGreater(len(checked), 4, what)
        return checked

    def one_program(self, seed, shares, **kw):
        noise = NOISE[seed % len(NOISE)]
        p, truth, what = self.program(seed, noise, **kw)
        checked = self.check(self.retained("-p", p.pid, *MODES[seed // len(NOISE) % len(MODES)]), truth, what)
        # One without a line of its own.
        for addr in sorted(set(truth.blocks) - checked)[:1]:
            self.check_one(p.pid, addr, truth, what)
        for answer in truth.roots.values():
            if answer.seen[1] or answer.true[1]:
                shares.add(noise, "roots", answer)
        for addr in checked:
            shares.add(noise, "blocks", truth.blocks[addr])
        p.kill()
        p.wait()

    def test_random(self):
        """heap --retained of random programs: each answer is what the program says, to the byte"""
        shares = Shares()
        for seed in SEEDS:
            self.one_program(seed, shares)
        print(shares, flush=True)

    def test_allocators(self):
        """the same with other allocators"""
        shares = Shares()
        for seed, name in enumerate(t.WALKED * 2, 1001):
            self.one_program(seed, shares, env=dict(os.environ, LD_PRELOAD=t.library(name)))

    def core(self, seed, **kw):
        """Return: the report of a core file of a program, what that says, how to repeat it."""
        p, truth, what = self.program(seed, NOISE[seed], **kw)
        return self.retained("--core", self.gcore(p), f"{t.VICTIMS}/random_graph"), truth, what

    def test_core(self):
        """the same of a core file"""
        # A function that is bound late leaves registers below the stack pointer, and gcore leaves out the pages
        # without access by which memprof sees where a stack ends.
        for seed in (2, 3):
            self.check(*self.core(seed, env=dict(os.environ, LD_BIND_NOW="1")))

    def test_dead_frames(self):
        """what is below a stack pointer is not thread-local data"""
        report, truth, what = self.core(3)
        names = {name for line in lines(report["retained"]) for name in line["root_names"]
                 if format(line["address"], "x") in truth.blocks}
        self.assertGreater(len(names), 5)
        self.assertFalse([name for name in names if name.startswith("thread-local data")], what)


if __name__ == "__main__":
    t.main()
