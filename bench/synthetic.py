# SPDX-License-Identifier: MIT OR Apache-2.0
"""Benchmarks on workloads that count their pairs of malloc and free, or their pages; the results are
nanoseconds per pair or page."""
import json
import os
import re
import subprocess
import tempfile
import time

import tools

MAIN = ["none", "memprof", "memprof --lossless", "memprof --sample", "heaptrack"]
OTHERS = ["jemalloc", "jemalloc's profiler", "tcmalloc", "tcmalloc's profiler"]

UNITS = {"page-faults": ("page", 1)}  # what a workload counts, and events per unit; others count PAIR
PAIR = ("pair", 2)

# name: (program and arguments, tools)
CASES = {
    "pairs-10": (["pairs", "10"], MAIN + OTHERS + ["uprobe", "massif"]),
    "pairs-50": (["pairs", "50"], MAIN),
    "pairs-100": (["pairs", "100"], MAIN),
    "parser": (["parser", "30"], MAIN),
    "mixed-8": (["mixed", "8"], MAIN),
    "mixed-1": (["mixed", "1"], MAIN),
    "threads": (["shared", "4"], MAIN),
    "threads-1": (["shared", "1"], MAIN),
    "threads-2": (["shared", "2"], MAIN),
    "paths": (["paths"], MAIN),
    "via-kernel": (["pairs", "10"], ["none", "memprof", "memprof --via=kernel", "heaptrack"]),
    "page-faults": (["pages"], ["none", "memprof", "memprof --event=page-faults", "heaptrack"]),
}


def once(name, tool, build, seconds):
    argv = [f"{build}/bench/{CASES[name][0][0]}", *CASES[name][0][1:], str(seconds)]
    with tempfile.TemporaryDirectory(prefix="memprof-bench-") as folder:
        out, use = tools.run(tools.TOOLS[tool], argv, folder, build)
        got = json.loads(re.search(r"^\{\"wall_ns.*\}$", out, re.M).group())
        got["recorder_cpu_s"] = use["cpu_s"] - got["process_cpu_s"]
        extra = tools.TOOLS[tool].bytes_and_losses(folder, build)
        if "bytes" in extra:
            extra["bytes_per_event"] = extra["bytes"] / (UNITS.get(name, PAIR)[1] * got["pairs"])
        return dict(got, **extra)


def instructions(tool, build, depth=10, pairs=300):
    """Returns instructions per pair, by single-stepping some pairs of the running program."""
    t = tools.TOOLS[tool]
    with tempfile.TemporaryDirectory(prefix="memprof-bench-") as folder:
        argv = t.command([build + "/bench/pairs", str(depth), "0"], folder, build)
        p = subprocess.Popen(argv, env=dict(os.environ, **t.env), text=True, cwd=folder,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             start_new_session=True)
        try:
            for line in p.stdout:
                if line.startswith("0x"):
                    break
            time.sleep(1)
            pid = int(subprocess.run(["pgrep", "-n", "-x", "pairs", "-s", str(p.pid)], text=True,
                                     capture_output=True, check=True).stdout)
            r = subprocess.run([build + "/bench/steps", str(pid), line.strip(), str(pairs)],
                               text=True, capture_output=True, check=True)
            os.kill(pid, 15)
            p.wait(timeout=60)
            return float(r.stdout)
        finally:
            if p.poll() is None:
                os.killpg(p.pid, 9)
                p.wait()
            p.stdout.close()


# Live blocks, threads beside the reader, rings, and whether blocks are culled, as memprof does by default.
RECORDER = ([(live, jobs, 1, cull) for live in (0, 100_000, 10_000_000) for jobs in (1, 2, 3) for cull in (True, False)] +
            [(100_000, jobs, rings, True) for rings in (64, 256) for jobs in (1, 2, 3)] + [(50_000_000, 1, 1, True)])


def recorder(row, build, million):
    """Runs bench/programs/recorder, which feeds the recorder of the row of RECORDER with @million events."""
    live, jobs, rings, cull = row
    with tempfile.TemporaryDirectory(prefix="memprof-bench-") as folder:
        argv = [build + "/bench/recorder", live, million, folder + "/out", 1000 if cull else 0, jobs, rings]
        return json.loads(subprocess.run(list(map(str, argv)), text=True, capture_output=True, check=True).stdout)
