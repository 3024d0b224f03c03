#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A core dump of a recorded process is nearly the same as one without memprof."""
import glob
import os
import re
import resource
import signal
import subprocess
import unittest

import memprof_test as t

PATTERN = t.read("/proc/sys/kernel/core_pattern").decode().strip()
MORE = 4 << 20  # bytes by which a core may grow: the agent, copied text, what threads happen to map


def cores_allowed():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def not_in_cores(pid):
    """Start addresses of the mappings that a core leaves out."""
    left_out, current = {}, None
    for line in t.read(f"/proc/{pid}/smaps").decode().split("\n"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if m:
            current = line
        elif line.startswith("VmFlags:") and " dd" in line:
            left_out[current] = line
    return left_out


class Cores(t.Case):
    def crash(self, how, recorded):
        """Crashes the program.  Return: signal, size of its core, size on disk, functions of the stack."""
        d = self.path(f"{how}-{recorded}")
        os.mkdir(d)
        p = self.start(f"{t.VICTIMS}/crash", how, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       cwd=d, preexec_fn=cores_allowed)
        self.assertEqual(p.stdout.readline(), "ready\n")
        with open(f"/proc/{p.pid}/coredump_filter", "w") as f:
            f.write("0x7f")  # everything, also shared mappings
        if recorded:
            rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                             stderr=subprocess.PIPE)
            self.wait_recorded(p.pid)
        p.stdin.close()
        p.wait(120)
        if recorded:
            rec.wait(120)
        core, = glob.glob(f"{d}/*")
        gdb = subprocess.run(["gdb", "-nx", "-batch", "-ex", "bt", f"{t.VICTIMS}/crash", core],
                             text=True, capture_output=True, timeout=120,
                             env={**os.environ, "DEBUGINFOD_URLS": ""})
        frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+)", gdb.stdout, re.M)
        st = os.stat(core)
        return -p.returncode, st.st_size, st.st_blocks * 512, frames

    @unittest.skipIf(PATTERN[:1] in ("|", "/", ""), "cores go elsewhere on this machine")
    def test_size_and_backtrace(self):
        """recording adds less than 4 MiB to the core of a crash and keeps its backtrace up to the agent"""
        for how in ("segv", "free", "malloc"):
            sig, size, blocks, frames = self.crash(how, False)
            self.assertEqual(sig, signal.SIGSEGV if how == "segv" else signal.SIGABRT)
            self.assertIn("inner", frames)
            self.assertEqual(frames[-1], "main", frames)
            with_sig, with_size, with_blocks, with_frames = self.crash(how, True)
            print(f"# {how}: {size} bytes, recorded {with_size}; on disk {blocks} and {with_blocks}; "
                  f"stack {with_frames}")
            self.assertEqual(with_sig, sig)
            self.assertLess(with_size, size + MORE)
            self.assertLess(with_blocks, blocks + MORE)
            if how == "malloc":  # the agent called malloc(), and gdb has no unwind tables of the agent
                own = with_frames[:with_frames.index("??")]
                self.assertIn("__GI___libc_malloc", own)
                self.assertEqual(own, frames[:len(own)])
            else:
                self.assertEqual(with_frames, frames)

    def test_left_out(self):
        """the session block and the agent's data are excluded from cores, in the target and the recorder"""
        p = self.victim("idle", 2, stdin=subprocess.PIPE)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"),
                         stderr=subprocess.PIPE)
        self.wait_recorded(p.pid)
        left_out = not_in_cores(p.pid)
        self.assertEqual(sum("memfd:memprof-session" in m for m in left_out), 1, left_out)
        gate = [flags for m, flags in left_out.items() if "memfd:" not in m and " wf" in flags]
        self.assertEqual(len(gate), 1, left_out)
        for line in t.maps(rec.pid).split("\n"):
            if "memfd:memprof-session" in line:
                self.assertIn(line.split()[0], " ".join(not_in_cores(rec.pid)))
        rec.send_signal(signal.SIGINT)
        self.assertEqual(rec.wait(120), 0)


if __name__ == "__main__":
    t.main()
