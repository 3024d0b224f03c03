#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks and memprof heap agree exactly with programs that keep their own list of blocks."""
import json
import os
import re
import signal
import struct
import subprocess
import time

import memprof_test as t

MASK = (1 << 64) - 1


class HeapCase(t.Case):
    mode = ()  # options that choose how the process's memory is read

    def ready(self, name, *args, **kw):
        """Starts a victim and waits for its "ready".  Return: the process, and the lines before that by their
        first word."""
        p = self.start(f"{t.VICTIMS}/{name}", *map(str, args), **kw)
        said = {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "ready":
                return p, said
            said.setdefault(word[0], []).append(word[1:])
        self.fail(f"{name} did not get ready")

    def unchanged(self, p, before):
        """Checks that the process runs unchanged, with no forked copy left."""
        self.assertIsNone(p.poll())
        self.assertEqual(t.read(f"/proc/{p.pid}/task/{p.pid}/children"), b"")
        self.assertEqual(t.identity(p.pid), before)

    def truth(self, p, said):
        addr, slots = said["table"][0]
        with open(f"/proc/{p.pid}/mem", "rb") as mem:
            mem.seek(int(addr, 16))
            raw = mem.read(int(slots) * 16)
        return {~a & MASK: size for a, size in struct.iter_unpack("=QQ", raw) if a > 1}

    def listed(self, p):
        f = self.path("list")
        out = self.memprof("heap", "-p", p.pid, "--list", f, *self.mode).stdout
        with open(f) as lines:
            return {int(a, 16): int(s) for a, s in (line.split()[:2] for line in lines)}, out

    def leaks(self, p, *more, status=None):
        """Runs memprof leaks.  Return: its result, its JSON report."""
        f = self.path("leaks.json")
        r = self.memprof("leaks", "-p", p.pid, "--json", f, *(more or self.mode), status=status)
        with open(f) as report:
            return r, json.load(report)


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
        """heap --list of a program with one thread has every block and size"""
        self.exact("blocks", "park", 1)

    def test_threads(self):
        """heap --list of waiting threads is exact: arenas, tcaches, mmapped and aligned blocks"""
        self.exact("blocks", "park", 2 if t.GUEST else 16)

    def test_foreign_sbrk(self):
        """heap --list is exact if the program itself moves the program break between allocations"""
        self.exact("blocks", "park", 1, "foreign")

    def test_noncontiguous(self):
        """heap --list is exact if brk() fails and the main arena is scattered"""
        self.exact("blocks", "park", 1, "noncontig")

    def test_all(self):
        """heap --list is exact with foreign sbrk(), failing brk() and threads together"""
        self.exact("blocks", "park", 4, "foreign", "noncontig")

    def test_static(self):
        """heap --list of a static, stripped program is exact"""
        self.exact("blocks-static", "park", 8)
        self.exact("blocks-static", "park", 1, "foreign", "noncontig")

    @t.unittest.skipUnless(os.path.exists(f"{t.VICTIMS}/blocks-musl-static"),
                           "musl's heaps are walked on x86_64 and aarch64 only")
    def test_musl(self):
        """heap --list of a static, stripped musl program (mallocng) is exact"""
        self.exact("blocks-musl-static", "park", 2 if t.GUEST else 8)

    def test_running(self):
        """heap --list of busy threads is wrong by at most a block each, or says that an arena is changing"""
        for name in ("blocks", "blocks-static"):
            p, said = self.ready(name, "run", 16)
            looks = right = 0
            while looks < (5 if t.FULL else 2) or not right:
                looks += 1
                self.assertLess(looks, 50, "an arena was in the middle of a change each time")
                time.sleep(0.3)
                p.send_signal(signal.SIGSTOP)
                t.wait_for(lambda: t.stopped(p.pid))
                got, out = self.listed(p)
                truth = self.truth(p, said)
                wrong = set(got.items()) ^ set(truth.items())
                if "DAMAGED" not in out and "changing the arena" not in out:
                    self.assertLessEqual(len({a for a, _ in wrong}), 16)
                    right += 1
                self.assertIn("T (stopped)", t.read(f"/proc/{p.pid}/status").decode())
                p.send_signal(signal.SIGCONT)
            p.kill()


class Leaks(HeapCase):
    def cases(self):
        """The name and the number of leaks of each program of cases.c."""
        listed = subprocess.run([f"{t.VICTIMS}/cases", "list"], capture_output=True, text=True)
        return [(name, int(leaks)) for name, leaks in map(str.split, listed.stdout.splitlines())]

    def case(self, name, leaks, **kw):
        """Runs memprof leaks on a program of cases.c.  Return: its JSON report."""
        p, _ = self.ready("cases", name, **kw)
        _, report = self.leaks(p, status=1 if leaks or name == "xor_list" else 0)
        p.kill()
        self.assertTrue(report["exact"], name)
        return report

    def test_cases(self):
        """leaks is right on 39 programs that hide pointers in different places, at least as LeakSanitizer"""
        right = lsan_right = 0
        wrong = {}
        names = self.cases()
        for name, leaks in names:
            found = self.case(name, leaks)["leaked"]["count"]
            right += found == leaks
            if found != leaks:
                wrong[name] = found
            if not os.path.exists(f"{t.VICTIMS}/cases-lsan"):  # not on every architecture
                continue
            r = subprocess.run([f"{t.VICTIMS}/cases-lsan", name], capture_output=True, text=True)
            m = re.search(r"leaked in (\d+) allocation", r.stderr)
            lsan_right += (int(m.group(1)) if m else 0) == leaks
        print(f"# memprof {right}, LeakSanitizer {lsan_right} of {len(names)}; wrong: {wrong}")
        self.assertEqual(len(names), 39)
        # Links that are stored as the difference of two addresses cannot be followed.
        self.assertLessEqual(set(wrong), {"xor_list"})
        self.assertGreaterEqual(right, lsan_right)

    def test_allocators(self):
        """leaks is right on the same programs (some of them; MEMPROF_FULL: all) with each walked allocator"""
        names = [case for case in self.cases() if case[0] != "xor_list"]
        if not t.FULL:
            # Of the pages that the program of lost_large has, mimalloc 2.0 and 2.1 have the same blocks.
            names = [case for i, case in enumerate(names) if i % 4 == 0 or case[0] == "lost_large"]
        for library in t.WALKED:
            with self.subTest(library):
                env = dict(os.environ, LD_PRELOAD=t.library(library))
                for name, leaks in names:
                    report = self.case(name, leaks, env=env)
                    self.assertEqual(report["leaked"]["count"], leaks, name)
                    self.assertTrue(any(h["allocator"] in library for h in report["heaps"]), name)

    def test_hot(self):
        """leaks on busy threads finds every planted leak, and no other"""
        # glibc has 8 arenas a processor.  A thread that shared the one of the planted blocks would sometimes have the
        # address of one in a register, when it frees the block before it.
        threads = min(16, 8 * os.cpu_count() - 1) if t.FULL else 2 if t.GUEST else 4
        p, said = self.ready("blocks", "run", threads, "leaks", 500)
        planted = {~int(a, 16) & MASK: int(s) for a, s in said["leak"]}
        before = t.identity(p.pid)["fds"]
        for _ in range(20 if t.FULL else 3):
            _, report = self.leaks(p, status=1)
            self.assertEqual(report["leaked"]["count"], len(planted))
            self.assertEqual(report["leaked"]["bytes"], sum(planted.values()))
            for cluster in report["clusters"]:
                for sample in cluster["samples"]:
                    self.assertEqual(planted[int(sample, 16)], cluster["size"])
        self.assertEqual(t.identity(p.pid)["fds"], before)

    def test_threads_and_static(self):
        """leaks finds the planted leaks of waiting threads and of a static program, also --in-place"""
        for name in ("blocks", "blocks-static"):
            p, _ = self.ready(name, "park", 6, "leaks", 300)
            _, report = self.leaks(p, status=1)
            self.assertEqual(report["leaked"]["count"], 300)
            r, in_place = self.leaks(p, "--in-place", status=1)
            self.assertEqual(in_place["leaked"], report["leaked"])
            self.assertEqual(in_place["mode"], "in-place")

    def test_types(self):
        """leaks shows class names, also if stripped, what leaked objects hold, and no content if unwanted"""
        for name in ("objects", "objects-stripped"):
            p, said = self.ready(name)
            r, report = self.leaks(p, status=1)
            by_type = {c["type"]: c for c in report["clusters"]}
            self.assertEqual(by_type["app::Node"]["count"], 1)
            self.assertEqual(by_type["app::Node"]["indirect_count"], 39)
            self.assertEqual(by_type["app::Holder<long [30]>"]["count"], 7)
            self.assertIn("a secret that nobody", by_type["text"]["preview"])
            self.assertIn("a secret that nobody", r.stdout)
            self.assertEqual((by_type["pointers"]["count"], by_type["pointers"]["size"] >= 48), (1, True))
            self.assertEqual(report["leaked"]["count"], 49)
            r, report = self.leaks(p, "--no-content", status=1)
            self.assertNotIn("secret", r.stdout + json.dumps(report))

    def test_why(self):
        """leaks --why shows the path from a global to a block, and what the block keeps reachable"""
        p, said = self.ready("objects")
        node = said["chain"][0][0]
        r, report = self.leaks(p, "--why", node, status=0)
        why = report["why"]
        self.assertTrue(why["reachable"])
        self.assertIn("global chain", why["root"])
        self.assertEqual([b["type"] for b in why["path"]], ["app::Node", "app::Node"])
        self.assertEqual(why["retained_count"], 2)
        self.assertEqual(why["pointers"], 1)
        self.assertIn("\n1 block points to it:\n", r.stdout)
        _, report = self.leaks(p, status=1)
        lost = next(c for c in report["clusters"] if c["type"] == "app::Node")["samples"][0]
        r, report = self.leaks(p, "--why", lost, status=0)
        self.assertFalse(report["why"]["reachable"])
        self.assertEqual(report["why"]["retained_count"], 1)
        self.memprof("leaks", "-p", p.pid, "--why", "10", status=0)

    def test_options(self):
        """leaks: --budget, --suppress, --baseline, --confirm, --require-exact, --dry-run, --max-pause"""
        p, _ = self.ready("objects")
        self.memprof("leaks", "-p", p.pid, "--budget", "1MB", status=0)
        self.memprof("leaks", "-p", p.pid, "--budget", "49blocks", status=0)
        self.memprof("leaks", "-p", p.pid, "--budget", "48blocks", status=1)
        supp = self.path("supp")
        with open(supp, "w") as f:
            f.write("# known\nleak:^app::*\nleak:pointer*\nleak:tex$\n")
        r, report = self.leaks(p, "--suppress", supp, status=1)
        self.assertEqual([c["type"] for c in report["clusters"] if not c["suppressed"]], ["text"])
        with open(supp, "w") as f:
            f.write("race:x\n")
        self.memprof("leaks", "-p", p.pid, "--suppress", supp, status=2)
        os.rename(self.path("leaks.json"), self.path("old.json"))
        self.leaks(p, "--baseline", self.path("old.json"), status=0)
        self.memprof("leaks", "-p", p.pid, "--baseline", supp, status=2)
        _, report = self.leaks(p, "--confirm", 3, "--interval", "100ms", status=1)
        self.assertEqual(report["leaked"]["count"], 49)
        self.leaks(p, "--require-exact", status=1)
        r = self.memprof("leaks", "-p", p.pid, "--dry-run", status=0)
        self.assertIn("predicted", r.stdout)
        self.assertNotIn("LEAKED", r.stdout)
        self.memprof("leaks", "-p", p.pid, "--max-pause", "1ms", status=4)


def bytes_of(text):
    number, unit = text.split()
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


class Heap(HeapCase):
    def account(self, p):
        out = self.memprof("heap", "-p", p.pid).stdout
        part = {what: bytes_of(size) for size, what in
                re.findall(r"^ *([0-9.]+ \w+) +[0-9.]+ % +(.*)$", out, re.M)}
        rss = bytes_of(re.search(r"^ *([0-9.]+ \w+) +the kernel reports", out, re.M).group(1))
        return out, part, rss

    def test_types(self):
        """heap counts the objects of each class, in a stripped program"""
        p, _ = self.ready("objects-stripped")
        out, _, _ = self.account(p)
        self.assertRegex(out, r" 7 +app::Holder<long \[30\]>")
        self.assertRegex(out, r" 22 +app::Node ")
        self.assertRegex(out, r" 100 +std::_Sp_counted_ptr_inplace<app::Node")

    def test_sum(self):
        """heap: the parts add up to the total, which is what the kernel reports"""
        for victim in (("objects",), ("blocks", "park", 8), ("blocks-static", "park", 2)):
            p, _ = self.ready(*victim)
            out, part, rss = self.account(p)
            total = part.pop("all of these")
            self.assertAlmostEqual(sum(part.values()), total, delta=max(total * 0.01, 300e3))
            self.assertAlmostEqual(total, rss, delta=max(rss * 0.02, 300e3))
            live = re.search(r"live blocks, ([0-9.]+ \w+):", out).group(1)
            untouched = re.search(r"; ([0-9.]+ \w+) of live blocks were never", out)
            whole = part["live blocks"] + (bytes_of(untouched.group(1)) if untouched else 0)
            self.assertAlmostEqual(whole, bytes_of(live), delta=max(whole * 0.01, 200e3))


if __name__ == "__main__":
    t.main()
