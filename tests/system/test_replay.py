#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof-replay repeats the recorded operations under several allocators; memprof itself counts them."""
import json
import os
import subprocess

import memprof_test as t

REPLAY = os.path.join(os.path.dirname(t.MEMPROF), "memprof-replay")
ALLOCATORS = ("", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0")


class Replay(t.Case):
    def recording(self, *how, argv=(f"{t.VICTIMS}/exact", 4, 20000)):
        f = self.path("rec")
        self.memprof("run", "-q", "--lossless", *how, "-o", f, "--", *argv)
        return f

    def export(self, f, *options):
        out = self.path("replay")
        self.memprof("report", f, "--replay", *options, "-o", out)
        return out

    def replay(self, f, status=0, preload=""):
        r = subprocess.run([REPLAY, "--json", f], text=True, capture_output=True, timeout=120,
                           env={**os.environ, "LD_PRELOAD": preload})
        self.assertEqual(r.returncode, status, r.stderr)
        return json.loads(r.stdout) if not status else r.stderr

    def again(self, f):
        """Records the replay.  Return: the sums of the replayed operations."""
        out = self.path("again")
        self.memprof("run", "-q", "--lossless", "-o", out, "--", REPLAY, f)
        groups = [g for g in self.report(out)["allocation_groups"]
                  if any(x["function"] == "replay_op" for x in g["backtrace"])]
        return {key: sum(g[key] for g in groups)
                for key in ("allocated_count", "size", "freed_count", "leaked_count", "leaked_bytes")}

    def expected(self, f, *options):
        totals = self.report(f, *options)["totals"]
        return {"allocated_count": totals["allocations"], "size": totals["allocated_bytes"],
                "freed_count": totals["frees"], "leaked_count": totals["leaked_count"],
                "leaked_bytes": totals["leaked_bytes"]}

    def test_same(self):
        """the replay of a recording of four threads, recorded again, has the same counts and bytes"""
        f = self.recording()
        self.assertEqual(self.again(self.export(f)), self.expected(f))

    def test_filter_and_culled(self):
        """the replay of a filtered or a culled recording, recorded again, has the same counts and bytes"""
        f = self.recording()
        options = ("--size-min", "200")
        self.assertEqual(self.again(self.export(f, *options)), self.expected(f, *options))
        f = self.recording("--cull", "5ms")
        self.assertEqual(self.again(self.export(f)), self.expected(f))

    def test_allocators(self):
        """replays under glibc, jemalloc, tcmalloc, mimalloc keep block contents and leave the same bytes"""
        f = self.recording(argv=("/usr/bin/python3", "-c", "import json; json.dumps(list(range(99999)))"))
        totals = self.report(f)["totals"]
        out = self.export(f)
        for preload in ALLOCATORS:
            r = self.replay(out, preload=preload)
            self.assertEqual(r["live_bytes"], totals["leaked_bytes"])
            self.assertEqual(r["live_blocks"], totals["leaked_count"])
            self.assertEqual(r["recorded_peak_bytes"], totals["peak_bytes"])
            self.assertGreaterEqual(r["peak_rss"], r["end_rss"] // 2)

    def test_bad_input(self):
        """memprof-replay refuses cut, compressed and foreign files; report --replay refuses a sample"""
        f = self.recording(argv=(f"{t.VICTIMS}/exact", 1, 500))
        out = self.export(f)
        data = t.read(out)
        for bad in (b"", data[:-1], data[:16], b"x" * 200, data[:24] + b"\xff" * 4 + data[28:]):
            with open(out, "wb") as file:
                file.write(bad)
            self.assertRegex(self.replay(out, status=1), r"^memprof-replay: .*(not a replay file|damaged).*\n$")
        self.memprof("report", f, "--replay", "-o", self.path("x.gz"))
        self.assertIn("compressed", self.replay(self.path("x.gz"), status=1))
        f = self.recording("--sample", "1k")
        self.assertIn("is a sample", self.memprof("report", f, "--replay", status=2).stderr)


if __name__ == "__main__":
    t.main()
