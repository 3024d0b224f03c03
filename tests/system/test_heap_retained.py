#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap --retained: the bytes that each variable, stack and block retains are those that the programs
themselves count (malloc_usable_size), and they have the right names."""
import gzip
import json
import os
import re
import socket
import subprocess
import xml.etree.ElementTree

import jsonschema
import memprof_test as t

VICTIM = f"{t.VICTIMS}/retained"


def lines(line):
    """The line and all below it."""
    yield line
    for child in line["children"]:
        yield from lines(child)


class RetainedCase(t.Case):
    def ready(self, name="retained"):
        """Starts the victim.  Return: the process, {name: (bytes, blocks)}."""
        p = self.start(f"{t.VICTIMS}/{name}")
        said = {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "ready":
                return p, said
            said[word[0]] = (int(word[1]), int(word[2]))
        self.fail("no ready")

    def retained(self, *args):
        """Return: the report as JSON, which the schema allows, and as text."""
        f = self.path("retained.json")
        out = self.memprof("heap", *args, "--retained", "--json", f).stdout
        with open(f) as j, open(t.ROOT + "/doc/heap.schema.json") as schema:
            report = json.load(j)
            jsonschema.validate(report, json.load(schema))
        all_lines = report["retained"]
        self.assertEqual(all_lines["retained_bytes"], report["live"]["bytes"] - report["unreachable"]["bytes"])
        # Every block has one place: nothing is counted twice, and nothing is missing.
        for key in ("retained_bytes", "retained_blocks"):
            self.assertEqual(sum(c[key] for c in all_lines["children"]), all_lines[key])
        return report, out

    def named(self, report, name):
        found = [c for c in report["retained"]["children"] if c["name"] == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def amount(self, line):
        return line["retained_bytes"], line["retained_blocks"]


class Victim(RetainedCase):
    def check_variables(self, report, said, tid):
        for name in ("g_list", "g_tree", "g_sessions", "g_table", "g_inner", "g_half", "app::current", "serve()::kept"):
            line = self.named(report, name)
            self.assertEqual(self.amount(line), said[name], name)
            self.assertEqual(line["kind"], "variable")
            self.assertTrue(line["source"].endswith("retained.cc"))
            self.assertGreater(line["line"], 0)
            self.assertEqual(line["module"], os.path.realpath(VICTIM))
        self.assertEqual((report["unreachable"]["bytes"], report["unreachable"]["count"]), said["leaked"])
        of_thread = {c["kind"]: c for c in report["retained"]["children"] if c["thread"] == tid}
        self.assertEqual(self.amount(of_thread["frame"]), said["hold_on_stack"])
        self.assertIn("hold_on_stack()", of_thread["frame"]["name"])
        self.assertEqual(self.amount(of_thread["thread-local variable"]), said["t_buffer"])
        self.assertIn("t_buffer of thread", of_thread["thread-local variable"]["name"])

    def check_shared(self, report, said):
        block = next(b for s in report["retained"]["children"] if s["kind"] == "shared"
                     for b in s["children"] if self.amount(b) == said["shared"])
        self.assertEqual((block["roots"], sorted(block["root_names"])), (2, ["g_cache_a", "g_cache_b"]))

    def check_certainty(self, report, said):
        inner = self.named(report, "g_inner")
        self.assertEqual(inner["exact_bytes"], 0)
        # What hangs on the block itself does so by an exact pointer.
        self.assertEqual(inner["children"][0]["exact_bytes"], said["g_inner"][0])
        self.assertEqual(self.named(report, "g_half")["exact_bytes"], said["g_half:exact"][0])
        for name in ("g_list", "g_tree", "g_sessions", "serve()::kept"):
            self.assertEqual(self.named(report, name)["exact_bytes"], said[name][0], name)

    def check_lines(self, report):
        """The blocks of a list, of a tree and of a class are one line each, what they keep is below them."""
        nodes, = self.named(report, "g_list")["children"]
        self.assertEqual((nodes["count"], nodes["own_bytes"], nodes["children"]), (1000, 40000, []))
        leaves, = self.named(report, "g_tree")["children"]
        self.assertEqual((leaves["count"], leaves["children"]), (1023, []))
        table, = self.named(report, "g_sessions")["children"]
        sessions, = table["children"]
        self.assertEqual((table["count"], sessions["count"], sessions["name"]), (1, 500, "session"))
        names, = sessions["children"]
        self.assertEqual((names["count"], names["name"]), (500, "text"))

    def test_process(self):
        """heap --retained of a process: variables, threads, stacks and what is shared, to the byte, in all modes"""
        p, said = self.ready()
        tid = max(map(int, os.listdir(f"/proc/{p.pid}/task")))
        before = t.identity(p.pid)
        for mode in ((), ("--pre-copy",), ("--in-place",)):
            report, out = self.retained("-p", p.pid, *mode)
            self.check_variables(report, said, tid)
            self.check_shared(report, said)
            self.check_certainty(report, said)
            self.check_lines(report)
            self.assertEqual(report["threads_unwound"], 2)
            self.assertIn(f"hold_on_stack() of thread {tid} (worker-3)", out)
            self.assertRegex(out, r"500 x session of 72 B  \[retained\], such as 0x")
            self.assertRegex(out, r"at 0x[0-9a-f]+, reached from 2 roots: g_cache_[ab], g_cache_[ab]")
        self.assertEqual(t.identity(p.pid), before)

    def test_core(self):
        """heap --core --retained says the same of a core file as of the process"""
        p, said = self.ready()
        tid = max(map(int, os.listdir(f"/proc/{p.pid}/task")))
        report, out = self.retained("--core", self.gcore(p), VICTIM)
        self.assertEqual(report["mode"], "core")
        self.check_variables(report, said, tid)
        self.check_shared(report, said)
        self.check_certainty(report, said)
        self.assertIn("core of process", out)

    def test_stripped(self):
        """without symbols the same bytes are kept by places in .bss, and by functions without a name"""
        p, said = self.ready("retained-stripped")
        report, _ = self.retained("-p", p.pid)
        places = {self.amount(c): c for c in report["retained"]["children"] if c["module"] == VICTIM + "-stripped"}
        for name in ("g_list", "g_tree", "g_sessions"):
            self.assertEqual(places[said[name]]["kind"], "data", name)
            self.assertRegex(places[said[name]]["name"], r"^\.bss\+0x[0-9a-f]+$")
        self.assertEqual(places[said["hold_on_stack"]]["kind"], "frame")
        self.assertIn("a function without a symbol of thread", places[said["hold_on_stack"]]["name"])
        block = next(b for s in report["retained"]["children"] if s["kind"] == "shared"
                     for b in s["children"] if self.amount(b) == said["shared"])
        self.assertEqual(block["roots"], 2)

    def test_of(self):
        """--of shows one subtree: of a variable, of a block with the way to it, of a block that nothing reaches"""
        p, said = self.ready()
        report, _ = self.retained("-p", p.pid)
        sessions = self.named(report, "g_sessions")["children"][0]["children"][0]
        for name in ("g_sessions", "retained.cc:g_sessions"):
            f = self.path("of.json")
            self.memprof("heap", "-p", p.pid, "--retained", "--of", name, "--json", f)
            only = json.loads(t.read(f))["retained"]
            self.assertEqual([c["name"] for c in only["children"]], ["g_sessions"])
            self.assertEqual(self.amount(only), said["g_sessions"])
        out = self.memprof("heap", "-p", p.pid, "--retained", "--of", "0x" + sessions["address_s"], "--json", f).stdout
        of_block = json.loads(t.read(f))
        self.assertEqual([x["name"] for x in of_block["path"]], ["several variables", "g_sessions", "session*[]", "session"])
        # An object with its name, which is text of 100 bytes.
        self.assertEqual(self.amount(of_block["retained"]), (72 + 104, 2))
        self.assertRegex(out, r"kept by:\n.*\n  g_sessions")
        leaked = json.loads(self.leaks(p))["clusters"][0]["samples"][0]
        out = self.memprof("heap", "-p", p.pid, "--retained", "--of", "0x" + leaked).stdout
        self.assertIn("is in a live block that nothing points to", out)
        r = self.memprof("heap", "-p", p.pid, "--retained", "--of", "g_nothing", status=2)
        self.assertIn("no variable called 'g_nothing' keeps a block", r.stderr)

    def test_why(self):
        """leaks --why names the variable, the thread-local variable and the function whose frame has the address"""
        p, said = self.ready()
        tid = max(map(int, os.listdir(f"/proc/{p.pid}/task")))
        report, _ = self.retained("-p", p.pid)
        roots = {c["kind"]: c for c in report["retained"]["children"] if c["thread"] == tid}
        for line, root in ((self.named(report, "g_list"), "global g_list, declared at retained.cc:"),
                           (self.named(report, "serve()::kept"), "global serve()::kept"),
                           (roots["thread-local variable"], f"thread-local variable t_buffer of thread {tid} (worker-3)"),
                           (roots["frame"], f"stack, in hold_on_stack() of thread {tid} (worker-3), at 0x")):
            f = self.path("why.json")
            out = self.memprof("leaks", "-p", p.pid, "--why", line["children"][0]["address_s"], "--json", f).stdout
            self.assertIn(root, json.loads(t.read(f))["why"]["root"])
            self.assertIn("is kept by: " + root, out)
        p.kill()
        p, said = self.ready("retained-stripped")
        report, _ = self.retained("-p", p.pid)
        place = next(c for c in report["retained"]["children"] if self.amount(c) == said["g_sessions"])
        out = self.memprof("leaks", "-p", p.pid, "--why", place["children"][0]["address_s"]).stdout
        self.assertIn(f"is kept by: global data of {VICTIM}-stripped, {place['name']}, at 0x", out)

    def leaks(self, p):
        f = self.path("leaks.json")
        self.memprof("leaks", "-p", p.pid, "--json", f, status=1)
        return t.read(f)

    def test_files(self):
        """folded stacks, pprof and flame graphs have all retained bytes, below the names of the roots"""
        p, said = self.ready()
        svg, icicle, folded, pprof = (self.path(n) for n in ("f.svg", "i.svg", "folded", "pprof"))
        report, _ = self.retained("-p", p.pid, "--flamegraph", svg, "--icicle", icicle, "--collapsed", folded,
                                  "--pprof", pprof, "--tree")
        stacks = [line.rsplit(" ", 1) for line in t.read(folded).decode().splitlines()]
        self.assertEqual(sum(int(n) for _, n in stacks), report["retained"]["retained_bytes"])
        of_list = sum(int(n) for s, n in stacks if s.split(";")[0] == "g_list")
        self.assertEqual(of_list, said["g_list"][0])
        for f in (svg, icicle):
            text = "".join(xml.etree.ElementTree.parse(f).getroot().itertext())
            self.assertIn("g_sessions", text)
            self.assertIn("500 x session of 72 B", text)
        env = dict(os.environ, HOME=self.dir, XDG_CONFIG_HOME=self.dir, PPROF_TMPDIR=self.dir)
        r = subprocess.run(["go", "tool", "pprof", "-raw", pprof], text=True, capture_output=True, env=env, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        samples = re.search(r"^Samples:\n.*\n((?: +\d+ +\d+: .*\n)+)", r.stdout, re.M)[1]
        self.assertEqual(sum(int(line.split()[1].rstrip(":")) for line in samples.splitlines()),
                         report["retained"]["retained_bytes"])
        self.assertIn(b"g_sessions", gzip.decompress(t.read(pprof)))

    def test_depth_and_count(self):
        """--depth and --count limit the lines, and what is left out is summed up"""
        p, _ = self.ready()
        f = self.path("few.json")
        out = self.memprof("heap", "-p", p.pid, "--retained", "--depth", 1, "--count", 2, "--json", f).stdout
        few = json.loads(t.read(f))["retained"]
        self.assertEqual([c["kind"] for c in few["children"]][2:], ["rest"])
        self.assertEqual(sum(c["retained_bytes"] for c in few["children"]), few["retained_bytes"])
        self.assertRegex(out, r"\(\d+ smaller\)")
        deepest = [grandchild["kind"] for c in few["children"] for child in c["children"] for grandchild in child["children"]]
        self.assertLessEqual(set(deepest), {"rest"})

    def test_refused(self):
        """options that do not fit together are refused"""
        for args, why in ((("-p", 1, "--depth", 3), "need --retained"),
                          (("-p", 1, "--json", "x"), "need --retained"),
                          (("--core", "x", "y"), "--core needs --retained"),
                          (("--core", "x", "--retained"), "also needs the program"),
                          (("--core", "x", "--retained", "-p", 1, "y"), "cannot be combined"),
                          (("--retained",), "which process?"),
                          (("-p", 1, "--retained", "--depth", 0), "not a number in its range"),
                          (("-p", 1, "--retained", "--depth", 65), "not a number in its range"),
                          (("-p", 1, "--retained", "--count", 0), "not a number in its range"),
                          (("-p", 1, "--retained", "y"), "y")):
            self.assertIn(why, self.memprof("heap", *args, status=2).stderr)
        r = self.memprof("heap", "--core", VICTIM, "--retained", VICTIM, status=2)
        self.assertIn("is not a core file", r.stderr)


class Redis(RetainedCase):
    KEYS = 20000

    def fill(self, path):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$12\r\nkey:%08d\r\n$64\r\n%s\r\n" % (i, b"v" * 64)
                               for i in range(self.KEYS)))
            answers = b""
            while answers.count(b"\n") < self.KEYS:
                answers += s.recv(1 << 20)
            self.assertEqual(answers, b"+OK\r\n" * self.KEYS)

    def test_redis(self):
        """redis-server with 20,000 keys: most of its heap hangs on the dict of its database, which server reaches"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", cwd=self.dir,
                       stdout=subprocess.DEVNULL)
        t.wait_for(lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True).stdout == b"PONG\n")
        self.fill(sock)
        report, _ = self.retained("-p", p.pid)
        top = report["retained"]["children"][0]
        self.assertGreater(top["retained_bytes"], report["live"]["bytes"] * 0.6)
        databases = top["children"][0]
        self.assertGreater(databases["retained_bytes"], top["retained_bytes"] * 0.9)
        # Other variables of the program have the address of the databases, too.
        self.assertIn("server", databases["root_names"] or [top["name"]])
        # The table of the dict: a power of two with room for all keys, or, while it grows, two of them.
        tables = [x for x in lines(databases) if x["own_bytes"] >= 8 * self.KEYS and x["count"] == 1]
        self.assertTrue(tables)
        entries = [e for table in tables for e in lines(table) if e["count"] >= self.KEYS // 3]
        self.assertGreaterEqual(sum(e["count"] for e in entries), self.KEYS)
        self.assertGreaterEqual(sum(x["retained_blocks"] for x in tables), self.KEYS)
        self.assertTrue(report["exact"])
        p.terminate()
        self.assertEqual(p.wait(), 0)


if __name__ == "__main__":
    t.main()
