#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof leaks on a process that is being recorded: where, when and by which thread leaks were allocated."""
import gzip
import os
import subprocess
import time

import memprof_test as t

LEAKED = {"plant_left": (30, 88), "plant_right": (20, 88), "plant_grown": (1, 5000), "plant_list": (1, 300)}


class Join(t.Case):
    def planted(self):
        """Starts the program, which makes 50 early leaks at once."""
        p = self.start(f"{t.VICTIMS}/plant", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def plant(self, p):
        p.stdin.write("x\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "planted\n")

    def record_on(self, p, *more):
        """Starts a recorder in the background.  Return: the path of its recording."""
        f = self.path("live.memprof")
        self.memprof("attach", "-q", "-p", p.pid, "-o", f, "--background", *more)
        self.addCleanup(subprocess.run, [t.MEMPROF, "detach", "-p", str(p.pid)], capture_output=True)
        return f

    def leaks(self, p, *more, status=1):
        """Runs memprof leaks.  Return: its result, its JSON report."""
        f = self.path("leaks.json")
        r = self.memprof("leaks", "-p", p.pid, "--json", f, *more, status=status)
        return r, t.json.loads(t.read(f))

    def functions(self, cluster):
        return [f["function"] for f in cluster["stack"] or []]

    def of(self, report, function):
        """The one cluster that was allocated in this function."""
        found = [c for c in report["clusters"] if function in self.functions(c)]
        self.assertEqual(len(found), 1, report["clusters"])
        return found[0]

    def check_clusters(self, p, report, rounds=1, early=50):
        for function, (count, size) in LEAKED.items():
            c = self.of(report, function)
            self.assertEqual(c["count"], rounds * count, function)
            self.assertGreaterEqual(c["size"], size)
            # The stack is: the functions from the thread's start, this function, the allocator.
            self.assertRegex(self.functions(c)[-1], "malloc|calloc|realloc")
            self.assertEqual(self.functions(c)[-2], function)
            if function != "plant_right":
                self.assertEqual(c["thread"], p.pid)
                self.assertFalse(c["several_threads"])
                self.assertIn("main", self.functions(c))
            else:
                self.assertNotEqual(c["thread"], p.pid)
        unknown = [c for c in report["clusters"] if c["stack"] is None]
        self.assertEqual([(c["count"], c["age_ns"], c["thread"]) for c in unknown],
                         [(early, None, None)] if early else [])
        said = report["recording"]
        self.assertEqual(said["unknown_count"], early)
        self.assertEqual(said["known_count"], rounds * 56)
        self.assertEqual(said["known_count"] + said["unknown_count"], report["leaked"]["count"])
        self.assertEqual(said["known_bytes"] + said["unknown_bytes"], report["leaked"]["bytes"])
        self.assertEqual((said["freed_count"], said["uncertain_count"]), (0, 0))

    def test_session(self):
        """memprof's own mapping, to which a block's words may lead, is not reported as the block's file"""
        p = self.planted()
        self.record_on(p)
        _, report = self.leaks(p)
        block = int(report["clusters"][0]["samples"][0], 16)
        session = next(int(line.split("-")[0], 16) for line in t.maps(p.pid).splitlines() if "memprof-session" in line)
        with open(f"/proc/{p.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(block + 16)
            mem.write((session + 64).to_bytes(8, "little"))
        r, report = self.leaks(p)
        self.assertEqual([c["owner"] for c in report["clusters"] if "memfd" in (c["owner"] or "")], [], r.stdout)

    def test_live(self):
        """leaks beside a recorder shows stack, age and thread of every leak since the recording began"""
        p = self.planted()
        before = t.identity(p.pid)
        f = self.record_on(p)
        start = time.monotonic()
        self.plant(p)
        time.sleep(0.3)
        r, report = self.leaks(p)
        took = (time.monotonic() - start) * 1e9
        self.check_clusters(p, report)
        self.assertEqual(report["recording"]["path"], f)
        self.assertTrue(report["recording"]["live"])
        for c in report["clusters"]:
            if c["stack"]:
                self.assertLessEqual(c["youngest_age_ns"], c["age_ns"])
                self.assertGreaterEqual(c["youngest_age_ns"], 300e6)
                self.assertLessEqual(c["age_ns"], took)
        self.assertIn("it has 56 leaked blocks", r.stdout)
        self.assertRegex(r.stdout, r"not in the recording: 50 leaked blocks \(.*\), allocated before it began")
        self.assertRegex(r.stdout, rf"by thread {p.pid}( \(plant\))?, at\n.*malloc.*\n +> plant_left ")
        self.assertNotIn("memprof attach", r.stdout)
        # --why for a block in the recording, and for one that is older.
        for function, stack in (("plant_left", True), (None, False)):
            c = self.of(report, function) if function else next(c for c in report["clusters"] if not c["stack"])
            r, why = self.leaks(p, "--why", c["samples"][0], status=0)
            self.assertEqual(function in self.functions(why["why"]), stack)
            self.assertIn("plant_left" if stack else "not in the recording", r.stdout)
        # A second round, while the recording continues: the oldest age is that of the first round.
        self.plant(p)
        _, again = self.leaks(p)
        self.check_clusters(p, again, rounds=2)
        left = self.of(again, "plant_left")
        self.assertGreater(left["age_ns"], left["youngest_age_ns"] + 200e6)
        self.assertTrue(self.of(again, "plant_right")["several_threads"])
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(t.identity(p.pid), before)

    def test_none(self):
        """leaks beside a recorder reports no leaks of a program that has none, and names the recording"""
        p = self.start("/bin/sh", "-c", "echo ready; read line", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.record_on(p)
        r, report = self.leaks(p, status=0)
        self.assertEqual(report["leaked"]["count"], 0)
        self.assertIn(f"stacks: from {f}, still recording\n", r.stdout)
        self.assertIn("no leaks", r.stdout)

    def test_graphs(self):
        """leaks --flamegraph, --collapsed, --pprof contain the leaks, with the blocks that only these hold"""
        p = self.planted()
        self.record_on(p)
        self.plant(p)
        svg, folded, pprof = (self.path(n) for n in ("f.svg", "folded", "pprof"))
        self.leaks(p, "--flamegraph", svg, "--collapsed", folded, "--pprof", pprof)
        cost = {}
        for line in t.read(folded).decode().splitlines():
            stack, n = line.rsplit(" ", 1)
            found = [f for f in LEAKED if f in stack] or [stack]
            cost[found[0]] = cost.get(found[0], 0) + int(n)
        self.assertEqual(cost, {"plant_left": 30 * 88, "plant_right": 20 * 88, "plant_grown": 5000,
                                "plant_list": 5 * 300, "(no stack)": 50 * 88})
        for function in LEAKED:
            self.assertIn(function, t.read(svg).decode())
            self.assertIn(function.encode(), gzip.decompress(t.read(pprof)))

    def test_file(self):
        """leaks --recording uses a recording that has ended, and refuses those of other processes"""
        p = self.planted()
        other = self.planted()
        f = self.record_on(p)
        self.plant(p)
        self.memprof("detach", "-p", p.pid)
        self.plant(p)
        r, report = self.leaks(p, "--recording", f)
        # The second round was made after the recording ended.
        self.assertEqual(report["recording"]["known_count"], 56)
        self.assertEqual(report["recording"]["unknown_count"], 106)
        self.assertFalse(report["recording"]["live"])
        self.assertGreater(report["recording"]["ended_before_ns"], 0)
        self.assertIn("or after it ended", r.stdout)
        self.assertEqual(self.of(report, "plant_left")["count"], 30)
        # Without --recording, the report suggests memprof attach.
        r, report = self.leaks(p)
        self.assertIsNone(report["recording"])
        self.assertIn(f"memprof attach -p {p.pid}", r.stdout)
        r = self.memprof("leaks", "-p", other.pid, "--recording", f, status=2)
        self.assertIn(f"recording of process {p.pid}", r.stderr)
        r = self.memprof("leaks", "-p", other.pid, "--flamegraph", self.path("x.svg"), status=2)
        self.assertIn("needs stacks", r.stderr)
        self.assertFalse(os.path.exists(self.path("x.svg")))
        self.memprof("leaks", "-p", p.pid, "--recording", "/dev/null", status=3)

    def test_exec(self):
        """leaks --recording refuses a recording of the program that the process ran before execve()"""
        p = self.start("/usr/bin/python3", "-c",
                       "import os\nprint('ready', flush=True)\ninput()\n"
                       f"os.execv('{t.VICTIMS}/plant', ['plant'])", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        f = self.record(p.pid)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "ready\n")
        r = self.memprof("leaks", "-p", p.pid, "--recording", f, status=2)
        self.assertIn("another program", r.stderr)

    def test_suppress_and_baseline(self):
        """leaks beside a recorder: --suppress matches functions; --baseline covers the oldest leaks first"""
        p = self.planted()
        self.leaks(p)
        os.rename(self.path("leaks.json"), self.path("old.json"))
        self.record_on(p)
        self.plant(p)
        with open(self.path("supp"), "w") as f:
            f.write("leak:plant_l\nleak:^plant_grown$\n")
        _, report = self.leaks(p, "--suppress", self.path("supp"))
        kept = [c for c in report["clusters"] if not c["suppressed"]]
        self.assertEqual(sorted(c["count"] for c in kept), [20, 50])
        r, report = self.leaks(p, "--baseline", self.path("old.json"))
        known = {c["count"]: c["known_count"] for c in report["clusters"]}
        self.assertEqual((known[50], known[30], known[20]), (50, 0, 0))
        self.assertRegex(r.stdout, "LEAKED: 56 blocks")

    def test_sampled(self):
        """leaks beside a sampling recorder shows some stacks, all of them right"""
        p = self.planted()
        self.record_on(p, "--sample", "512")
        for _ in range(20):
            self.plant(p)
        r, report = self.leaks(p)
        for c in report["clusters"]:
            if c["stack"]:
                function = self.functions(c)[-2]
                self.assertIn(function, LEAKED)
                self.assertGreaterEqual(c["size"], LEAKED[function][1])
                self.assertLess(c["size"], LEAKED[function][1] + 16)
        said = report["recording"]
        self.assertGreater(said["known_count"], 20)
        self.assertLess(said["known_count"], 20 * 56)
        self.assertEqual(said["known_count"] + said["unknown_count"], 50 + 20 * 56)
        self.assertIn("or not sampled", r.stdout)


if __name__ == "__main__":
    t.main()
