#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stacks through code without unwind tables: memprof finds the callers of functions that keep frame pointers,
and invents none for functions that do not.  Also tests real programs: JIT code, C called by Go, a browser."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

import memprof_test as t


def names(group):
    """Names of the functions, outermost first; "-" for code that is in no file."""
    return ["-" if re.fullmatch("0x[0-9a-f]+", f["function"]) else f["function"].split("(")[0]
            for f in group["backtrace"]]


def complete(report):
    return report["losses"]["stacks_complete"] / max(1, report["losses"]["stacks_total"])


@unittest.skipUnless(os.uname().machine == "x86_64", "only there callers are found by frame pointers")
class Untabled(t.Case):
    leader = None  # pid of the leader of a process group whose members write to the test's folder

    def tearDown(self):
        """Ends the process group before the folder is removed; cleanups would run too late for that."""
        if self.leader:
            t.wait_for(self.group_is_gone)
        super().tearDown()

    def group_is_gone(self):
        try:
            os.killpg(self.leader, signal.SIGKILL)
        except ProcessLookupError:
            return True
        for p in self.started:
            p.poll()  # reaps zombies, which also belong to the group
        return False

    def test_frame_pointers(self):
        """stacks through functions without tables are complete with frame pointers, else cut off there"""
        p = self.start(f"{t.VICTIMS}/untabled")
        lines = [p.stdout.readline().split() for _ in range(12)]
        f = self.record(p.pid, 1)
        report = self.report(f)
        self.finish(p)
        ends = {}
        for size, *chain in lines:
            groups = [g for g in report["allocation_groups"]
                      if g["allocated_count"] and g["size"] == int(size) * g["allocated_count"]]
            self.assertTrue(groups, chain)
            keeps = chain[2] in ("framed", "-framed")
            chain = [re.sub("^-.*", "-", c) for c in chain]
            for g in groups:
                self.assertEqual(g["complete"], keeps, names(g))
                if keeps:
                    self.assertEqual(names(g)[-7:], ["main", "begin", *chain, "malloc"])
                    self.assertTrue(g["by_frame_pointers"])
                    continue
                self.assertEqual(names(g), [*chain[2:], "malloc"])
                where = ("untabled", "no_unwind_information") if chain[0] != "-" else (None, "generated_code")
                ends[where] = ends.get(where, 0) + g["allocated_count"]
        self.assertEqual({(e["library"], e["reason"]): e["count"] for e in report["incomplete_stacks"]}, ends)
        out = self.memprof("report", f, "--verbose").stdout
        self.assertRegex(out, r"[1-9]\d* stacks? of [0-9,]+ allocations?: callers found by frame pointers")
        self.assertRegex(out, r"\d stacks? of [0-9,]+ allocations?: ends in untabled, code without unwind information")
        self.assertRegex(out, r"\d stacks? of [0-9,]+ allocations?: ends in no file, code that the program generated")

    def test_kept_by_copies(self):
        """merged recordings keep which stacks rely on frame pointers, and where stacks are incomplete"""
        p = self.start(f"{t.VICTIMS}/untabled")
        p.stdout.readline()
        f = self.record(p.pid)
        self.finish(p)
        merged = self.path("merged")
        self.memprof("merge", f, "-o", merged)
        wanted, got = self.report(f), self.report(merged)
        self.assertGreater(wanted["frame_pointer_stacks"]["count"], 0)
        self.assertEqual(got["frame_pointer_stacks"], wanted["frame_pointer_stacks"])
        self.assertEqual(got["incomplete_stacks"], wanted["incomplete_stacks"])

    def test_node(self):
        """stacks of node lead from C++ through V8's built-in functions and compiled code to _start"""
        if not shutil.which("node"):
            self.skipTest("no node")
        p = self.node()
        report = self.report(self.record(p.pid, 1))
        p.kill()
        self.assertGreater(complete(report), 0.9)
        through = [names(g) for g in report["allocation_groups"] if g["complete"] and g["by_frame_pointers"]]
        self.assertTrue(through)
        for stack in through:
            self.assertEqual(stack[0], "_start")
            self.assertLess(stack.index("uv_run"), stack.index("Builtins_JSEntry"))

    def test_go(self):
        """stacks of C code called by Go lead into the goroutine that called it"""
        p = self.victim("cgo", 2)
        report = self.report(self.record(p.pid))
        self.finish(p)
        self.assertGreater(complete(report), 0.9)
        churn = max(report["allocation_groups"], key=lambda g: g["allocated_count"])
        self.assertEqual(names(churn), ["runtime.goexit", "main.main.func2", "main.main.func1", "main._Cfunc_churn",
                                        "runtime.cgocall", "runtime.asmcgocall", churn["backtrace"][6]["function"],
                                        "churn", "malloc"])
        self.assertRegex(churn["backtrace"][6]["function"], "^_cgo_.*_churn$")
        tops = {names(g)[0] for g in report["allocation_groups"] if g["complete"]}
        self.assertLessEqual(tops, {"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_start", "clone3", "__clone3"})

    def test_java(self):
        """stacks of Java are complete if it keeps frame pointers; else reports say where they end"""
        if not shutil.which("java") or not os.path.exists(f"{t.VICTIMS}/Churn.class"):
            self.skipTest("no JDK")
        for option, least in (("-XX:+PreserveFramePointer", 0.9), ("-XX:-PreserveFramePointer", 0)):
            p = self.start("java", option, "-cp", t.VICTIMS, "Churn")
            self.assertEqual(p.stdout.readline(), "ready\n")
            report = self.report(self.record(p.pid, 1))
            self.finish(p)
            self.assertGreaterEqual(complete(report), least)
            reasons = {e["reason"]: e["count"] for e in report["incomplete_stacks"]}
            left = report["losses"]["stacks_total"] - report["losses"]["stacks_complete"]
            self.assertGreaterEqual(reasons.get("generated_code", 0), left / 2)

    def test_chromium(self):
        """stacks of chromium, which has nearly no call frame information, are complete by frame pointers"""
        program = "/usr/bin/chromium"
        if not os.path.exists(program):
            self.skipTest("package chromium is not installed (scripts/setup check others)")
        p = self.start(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                       "--remote-debugging-port=0", f"--user-data-dir={self.dir}/profile", "about:blank",
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        self.leader = p.pid
        active = self.path("profile/DevToolsActivePort")
        port = int(t.wait_for(lambda: os.path.exists(active) and t.read(active)).split()[0])

        def ask():
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            c.request("GET", "/json/version")
            self.assertIn("Browser", json.loads(c.getresponse().read()))
            c.close()
        ask()
        f = self.path("r")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", f)
        self.wait_recorded(p.pid)
        for _ in range(20):
            ask()
        self.detach(p.pid)
        self.assertEqual(rec.wait(timeout=120), 0)
        report = self.report(f)
        self.assertGreater(complete(report), 0.8)
        self.assertGreater(report["frame_pointer_stacks"]["count"], 0.8 * report["losses"]["stacks_total"])

    def test_qemu(self):
        """stacks of qemu lead through translated code, by rules that qemu registers for debuggers"""
        program = "/usr/bin/qemu-system-x86_64"
        if not os.path.exists(program):
            self.skipTest("package qemu-system-x86 is not installed (scripts/setup check others)")
        sock = self.path("qmp")
        p = self.start(program, "-display", "none", "-accel", "tcg", "-m", "64", "-net", "none",
                       "-chardev", f"socket,id=q,path={sock},server=on,wait=off", "-mon", "chardev=q,mode=control",
                       stderr=subprocess.DEVNULL)
        t.wait_for(lambda: os.path.exists(sock))
        rec = self.path("r")
        with socket.socket(socket.AF_UNIX) as s:
            t.wait_for(lambda: s.connect_ex(sock) == 0)
            with s.makefile("rw") as f:
                def say(command):
                    f.write(json.dumps({"execute": command}) + "\n")
                    f.flush()
                    return f.readline()
                f.readline()
                say("qmp_capabilities")
                attached = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", rec)
                self.wait_recorded(p.pid)
                say("system_reset")  # the firmware sets up the devices again
                t.wait_for(lambda: next(r["events"] for r in json.loads(self.memprof("status", "--json").stdout)
                                        if r["pid"] == p.pid) > 10000)
                self.detach(p.pid)
                self.assertEqual(attached.wait(timeout=120), 0)
        report = self.report(rec)
        self.assertGreater(complete(report), 0.8)
        through = [names(g) for g in report["allocation_groups"] if g["complete"] and "-" in names(g)]
        self.assertTrue(through)
        for stack in through:
            self.assertIn("start_thread", stack[:2])


if __name__ == "__main__":
    t.main()
