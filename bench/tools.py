# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a program under each profiler and reads the results."""
import functools
import glob
import json
import os
import re
import resource
import subprocess
import time

LIB = "/usr/lib/x86_64-linux-gnu/"
LIBC = LIB + "libc.so.6"
LOST = ("lost_allocations", "lost_frees", "lost_reallocs", "lost_maps", "lost_other",
        "lost_no_slot", "queue_dropped_events", "stale")
SAMPLE = "512k"
TIMEOUT_S = 300


class Tool:
    """@command: makes the command line; @env: variables for the environment; @base: name of the tool with
    which this one is compared, or None."""

    def __init__(self, name, command=None, env=None, base="none"):
        self.name, self.env, self.base = name, env or {}, base
        self.command = command or (lambda argv, folder, build: argv)

    def bytes_and_losses(self, folder, build):
        """Returns bytes written; for memprof also the numbers of events and of lost events."""
        if not self.name.startswith("memprof"):
            files = [f for f in glob.glob(folder + "/out*") if os.path.isfile(f)]
            return {"bytes": sum(os.stat(f).st_size for f in files)} if files else {}
        report = memprof_report(folder, build)
        size = {"bytes": os.stat(folder + "/out").st_size}
        if report["event"] == "page-faults":
            return dict(size, events=report["totals"]["faults"], lost=report["losses"]["lost_faults"])
        return dict(size, events=report["totals"]["events"],
                    lost=lost_events(report))


def memprof_report(folder, build):
    text = subprocess.run([build + "/memprof", "report", folder + "/out", "--json"], text=True,
                          capture_output=True, check=True).stdout
    return json.loads(text)


def lost_events(report):
    return sum(report["losses"][k] for k in LOST)


def memprof(*options):
    return lambda argv, folder, build: [build + "/memprof", "run", "-q", *options, "-o",
                                        folder + "/out", "--", *argv]


def symbol(name):
    out = subprocess.run(["nm", "-D", LIBC], text=True, capture_output=True, check=True).stdout
    return "0x" + re.search(rf"^(\w+) T {name}@", out, re.M).group(1)


def uprobe(argv, folder, build):
    return [build + "/bench/uprobe", symbol("malloc"), symbol("free"), LIBC, *argv]


def preload(library, **env):
    return dict(env, LD_PRELOAD=LIB + library)


JEMALLOC = "libjemalloc.so.2"
TCMALLOC = "libtcmalloc.so.4"

TOOLS = {t.name: t for t in (
    Tool("none"),
    Tool("memprof", memprof()),
    Tool("memprof --history", memprof("--history")),
    Tool("memprof --no-thinning", memprof("--no-thinning")),
    Tool("memprof --lossless", memprof("--lossless")),
    Tool("memprof --sample", memprof("--sample", SAMPLE)),
    Tool("memprof --via=kernel", memprof("--via=kernel")),
    Tool("memprof --event=page-faults", memprof("--event=page-faults")),
    Tool("heaptrack", lambda argv, folder, build: ["heaptrack", "-o", folder + "/out", *argv]),
    Tool("uprobe", uprobe),
    Tool("massif", lambda argv, folder, build: ["valgrind", "-q", "--tool=massif",
                                                f"--massif-out-file={folder}/out", *argv]),
    Tool("jemalloc", env=preload(JEMALLOC), base=None),
    Tool("jemalloc's profiler", base="jemalloc",
         env=preload(JEMALLOC, MALLOC_CONF="prof:true,lg_prof_sample:19,prof_prefix:/dev/null/x")),
    Tool("tcmalloc", env=preload(TCMALLOC), base=None),
    Tool("tcmalloc's profiler", base="tcmalloc",
         env=preload(TCMALLOC, TCMALLOC_SAMPLE_PARAMETER="524288")),
)}


@functools.lru_cache(None)
def refusal(name, build):
    """Returns why a tool cannot run here, or None."""
    tool = TOOLS[name]
    folder = "/tmp"
    argv = tool.command([build + "/bench/pairs", "10", "0.01"], folder, build)
    if name in ("uprobe", "jemalloc's profiler"):
        r = subprocess.run(argv, env=dict(os.environ, **tool.env), text=True, capture_output=True)
        if r.returncode or "nvalid conf" in r.stderr:
            return (r.stderr.strip().split("\n") or ["does not run"])[-1]
    return None


def run(tool, argv, folder, build):
    """Runs @argv under @tool until it ends.  Returns its output, its wall time, and the CPU time of all
    its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with subprocess.Popen(tool.command(argv, folder, build), env=dict(os.environ, **tool.env),
                          text=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as p:
        try:
            out, err = p.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            raise
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode:
        raise RuntimeError(f"{tool.name}: {argv}: {out[-500:]}{err[-500:]}")
    return out, {"wall_s": wall, "cpu_s": after.ru_utime + after.ru_stime -
                 before.ru_utime - before.ru_stime}
