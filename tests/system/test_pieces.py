#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--rotate: each piece is a recording by itself, and memprof merge joins them to one."""
import glob
import json
import os
import re

import memprof_test as t

SUMS = ("foreign_frees", "allocations", "allocated_bytes", "frees", "failed_reallocs")


class Pieces(t.Case):
    def record(self, *how, output="r.memprof", argv=None, **env):
        """Records a program in pieces.  Return: the counts of the program itself, the pieces."""
        argv = argv or (f"{t.VICTIMS}/exact", 3, 300000)
        os.environ.update(env)
        try:
            out = self.memprof("run", "--lossless", *how, "-o", self.path(output), "--", *argv)
        finally:
            for name in env:
                del os.environ[name]
        files = sorted(glob.glob(self.path("r*")), key=lambda f: self.info(f)["piece"])
        self.assertGreater(len(files), 1)
        self.assertRegex(out.stdout, rf"recording: {len(files)} pieces, the last one is {files[-1]} ")
        truth = json.loads(out.stdout[out.stdout.index("{"):].split("\n")[0]) if "{" in out.stdout else None
        return truth, files

    def info(self, f):
        return json.loads(self.memprof("info", f, "--json").stdout)

    def merged(self, files):
        out = self.path("merged")
        self.memprof("merge", *reversed(files), "-o", out)
        self.memprof("verify", out)
        return out

    def check_quick(self, full, f):
        """Checks that the index of @f has the sums and stacks of its events."""
        quick = self.memprof("report", f, "--quick", "--verbose").stdout
        text = quick.replace(",", "")
        totals = full["totals"]
        self.assertRegex(text, rf" in {totals['allocations']} allocations?; {totals['frees']} blocks?")
        self.assertRegex(text, rf"live .* in {totals['leaked_count']} blocks? at the end")
        whole = self.memprof("report", f, "--leaks", "--verbose").stdout
        # The index does not have how the sites grew.
        whole = re.sub(r", (grows steadily|plateau|was a burst|sawtooth)(?=\n|\):\n)", "", whole)
        sites = lambda x: sorted(x[x.index("Not freed, by bytes"):].split("\n"))
        self.assertEqual(sites(quick), sites(whole))
        if not totals["culled_count"]:  # the events of these are counted, but not in the file
            self.assertEqual(totals["events"], sum(self.info(f)["events"].values()))

    def check(self, files):
        """Checks that each piece is whole and continues where the previous one ended, and that the merged
        recording is their sum.  Return: the merged recording's report, the reports of the pieces."""
        reports = [self.report(f, "--leaks") for f in files]
        for f, r in zip(files, reports):
            self.memprof("verify", f)
            self.assertEqual(r["end_reason"], "pieced" if f != files[-1] else "exited")
            quick = self.memprof("report", f, "--quick").stdout.replace(",", "")
            self.assertRegex(quick, rf" in {r['totals']['allocations']} allocations?; {r['totals']['frees']} blocks?")
            self.assertRegex(quick, rf"live .* in {r['totals']['leaked_count']} blocks? at the end")
        one = self.report(self.merged(files), "--leaks")
        self.check_quick(one, self.path("merged"))
        for key in SUMS:
            self.assertEqual(one["totals"][key], sum(r["totals"][key] for r in reports), key)
        for a, b in zip(reports, reports[1:]):
            for what in ("count", "bytes"):
                self.assertEqual(a["totals"]["leaked_" + what], b["totals"]["carried_" + what])
        self.assertEqual(one["totals"]["carried_count"], 0)
        live = lambda r: sorted((b["address"], b["size"], b["extra_space"], b["thread"], b["in_main_arena"])
                                for b in r["leaks"])
        self.assertEqual(live(one), live(reports[-1]))
        self.assertEqual(one["totals"]["peak_bytes"], max(r["totals"]["peak_bytes"] for r in reports))
        self.assertEqual(one["losses"]["stacks_total"], sum(r["losses"]["stacks_total"] for r in reports))
        calls = [t.calls(r) for r in reports]
        self.assertEqual(t.calls(one), {f: sum(c.get(f, 0) for c in calls) for f in t.calls(one)})
        unresolved = [g for g in reports[1]["allocation_groups"] if not g["backtrace"][0]["function"]]
        self.assertEqual(unresolved, [])
        return one, reports

    def test_pieces(self):
        """--rotate: the merged pieces agree with a program that counts its own calls"""
        os.chown(self.dir, 65534, 65534)  # another user's folder, as under sudo
        os.chmod(self.dir, 0o700)
        truth, files = self.record("--history", "--rotate", "200k")
        one, _ = self.check(files)
        c, totals = t.calls(one), one["totals"]
        self.assertEqual(files[0], self.path("r.memprof"))
        self.assertEqual(files[1], self.path("r-1.memprof"))
        self.assertEqual(c["malloc"], truth["malloc"] + 1)
        self.assertEqual(totals["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(totals["failed_reallocs"], truth["realloc_failed"])
        self.assertEqual(totals["leaked_count"], truth["live_blocks"] + 3 + 1)  # dtvs, stdout's buffer
        live = {(int(b["address"]), b["size"]) for b in one["leaks"]}
        self.assertEqual(len([b for b in truth["live"] if b[0] and tuple(b) not in live]), 0)
        self.assertEqual(self.report(files[0])["id"], one["id"])
        # Folded stacks of the merged recording have the same total.
        text = self.memprof("report", self.path("merged"), "--collapsed", "--cost", "allocated").stdout
        self.assertEqual(sum(int(x.rsplit(" ", 1)[1]) for x in text.splitlines()), totals["allocated_bytes"])

    def test_options(self):
        """--rotate with --cull, MEMPROF_ROTATE and %n; merge refuses or reports a cut piece"""
        _, files = self.record("--cull", "1ms", output="r-%n.memprof", MEMPROF_ROTATE="64k",
                               argv=(f"{t.VICTIMS}/exact", 2, 3000000))
        self.assertEqual([os.path.basename(f) for f in files], [f"r-{i}.memprof" for i in range(len(files))])
        self.check(files)
        os.truncate(files[0], os.path.getsize(files[0]) - 1)
        r = self.memprof("merge", *files[:2], "-o", self.path("x"), status=13)
        self.assertRegex(r.stderr, r"^memprof: .*r-0.memprof was cut off: .*\n$")
        self.assertFalse(os.path.exists(self.path("x")))
        os.truncate(files[1], os.path.getsize(files[1]) - 1)
        r = self.memprof("merge", files[1], "-o", self.path("x"))
        self.assertIn("was cut off; so is", r.stderr)
        self.memprof("run", "--rotate", "1k", "--", "/bin/true", status=2)

    def test_sampled(self):
        """--rotate with --sample: merge makes one sample, without the blocks carried between pieces"""
        _, files = self.record("--sample", "100", "--rotate", "64k")
        parts, one = [self.info(f)["events"] for f in files], self.info(self.merged(files))["events"]
        self.assertEqual(one["free"], sum(p["free"] for p in parts))
        self.assertLess(one["alloc"], sum(p["alloc"] for p in parts))

    def test_no_room(self):
        """if the next piece cannot be created, the recording continues in the present file, and says so"""
        os.mkdir(self.path("r-1.memprof"))
        out = self.memprof("run", "-q", "--lossless", "--history", "--rotate", "64k", "-o", self.path("r.memprof"), "--",
                           f"{t.VICTIMS}/exact", 3, 150000)
        self.assertRegex(out.stderr, r"memprof: the next piece could not be created \(.*\): .* same file\n")
        self.assertEqual(len(re.findall("the next piece", out.stderr)), 1)
        truth = json.loads(out.stdout[out.stdout.index("{"):].split("\n")[0])
        self.assertEqual(t.calls(self.report(self.path("r.memprof")))["malloc"], truth["malloc"] + 1)

    def test_keep(self):
        """--keep: only the newest finished pieces and the last one remain, whole, and they say what is missing"""
        with open(self.path("r-77.memprof"), "w") as f:
            f.write("mine")  # a name as of a piece, but the recording does not write it
        out = self.memprof("run", "--lossless", "--history", "--rotate", "64k", "--keep", 2, "-o",
                           self.path("r.memprof"), "--", f"{t.VICTIMS}/exact", 3, 400000)
        truth = json.loads(out.stdout[out.stdout.index("{"):].split("\n")[0])
        self.assertEqual(t.read(self.path("r-77.memprof")), b"mine")
        os.unlink(self.path("r-77.memprof"))
        files = sorted(glob.glob(self.path("*")), key=lambda f: self.info(f)["piece"])
        numbers = [self.info(f)["piece"] for f in files]
        last = numbers[-1]
        self.assertGreater(last, 2)
        self.assertEqual(numbers, [last - 2, last - 1, last])
        self.assertEqual(files, [self.path(f"r-{i}.memprof") for i in numbers])
        self.assertIn(f"recording: {last + 1} pieces, {last - 2} of them deleted (--keep); from {files[0]} to {files[-1]} "
                      "remain", out.stdout)
        self.assertIn(f"the newest 2 of the pieces before; {last - 2} deleted", self.memprof("info", files[-1]).stdout)
        for f in files:
            self.memprof("verify", f)
        merged = self.merged(files)
        for f in (files[0], merged):
            said = rf"\npiece       from .* s of a recording on, .*\n.* pieces 0 to {last - 3}, of which old ones are del"
            self.assertRegex(self.memprof("report", f).stdout, said)
            self.assertRegex(self.memprof("report", f, "--verbose").stdout, said)
            self.assertEqual(self.report(f)["piece"], last - 2)
        one = self.report(merged, "--leaks")
        self.assertLess(one["totals"]["frees"], truth["free"])
        self.assertEqual(one["totals"]["leaked_count"], truth["live_blocks"] + 3 + 1)  # dtvs, stdout's buffer
        live = {(int(b["address"]), b["size"]) for b in one["leaks"]}
        self.assertEqual([b for b in truth["live"] if b[0] and tuple(b) not in live], [])

    def test_keep_forked(self):
        """--keep with --follow-fork: each process keeps its own newest pieces"""
        work = """import os, time
pid, end = os.fork(), time.monotonic() + 6
while time.monotonic() < end: x = [bytes(700) for _ in range(100)]
if pid: os.wait()"""
        self.memprof("run", "-q", "--lossless", "--history", "--follow-fork", "--rotate", "64k", "--keep", 1, "-o",
                     self.path("r.memprof"), "--", "/usr/bin/python3", "-c", work)
        pieces = {}
        for f in glob.glob(self.path("*")):
            info = self.info(f)
            pieces.setdefault(info["pid"], []).append(info["piece"])
        self.assertEqual(len(pieces), 2)
        for numbers in pieces.values():
            self.assertGreater(max(numbers), 1)
            self.assertEqual(sorted(numbers), [max(numbers) - 1, max(numbers)])

    def test_keep_refused(self):
        """--keep needs --rotate and a number"""
        r = self.memprof("run", "--keep", 2, "--", "/bin/true", status=2)
        self.assertIn("--keep needs --rotate", r.stderr)
        for bad in ("0", "x", "-1", ""):
            r = self.memprof("run", "--rotate", "1M", "--keep", bad, "--", "/bin/true", status=2)
            self.assertRegex(r.stderr, "--keep: '.*' is not a number of pieces")


if __name__ == "__main__":
    t.main()
