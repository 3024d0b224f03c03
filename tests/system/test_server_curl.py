#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The curl commands in the README of bytehound (before August 2021, "Usage"), and one of its users' scripts (linkerd2-proxy,
profiling/), word for word: they work with memprof server, and their numbers are those of memprof report."""
import json
import re
import subprocess
import xml.etree.ElementTree as xml

import memprof_test as t
import server_test as s

FLAMEGRAPH = 'curl "http://localhost:8080/data/last/export/flamegraph?lifetime=only_leaked" > flame.svg'
ASCII_TREE = 'curl "http://localhost:8080/data/last/allocation_ascii_tree?lifetime=only_leaked"'
BIGGEST = 'curl "http://localhost:8080/data/last/allocations?sort_by=size&order=dsc&count=3"'
CALL_SITES = ('curl "http://localhost:8080/data/last/allocation_groups?group_allocations_min=10&'
              'group_leaked_allocations_min=50%&sort_by=all.size&count=3"')
NAMED = "curl http://localhost:8080/data/last/export/flamegraph/flame.svg"
# Port 8080 may be in use on this machine, so the server has a network of its own.
NETWORK = ("unshare", "--net", "/usr/bin/python3", "-c", """
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, IFF_UP, IFF_LOOPBACK = 0x8914, 1, 8
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_LOOPBACK))
os.execv(sys.argv[1], sys.argv[1:])
""")


class Curl(s.Case):
    options = {"port": 8080, "prefix": NETWORK}

    def shell(self, command):
        """Runs a command line in the server's network; returns its output."""
        r = subprocess.run(["nsenter", "--net", "-t", str(self.server.process.pid), "sh", "-c", command], cwd=self.dir,
                           capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def flamegraph(self, text, cost):
        """Checks that the widest frame of a flame graph represents that many bytes, and returns its functions."""
        self.assertEqual(xml.fromstring(text).tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn(self.human(cost), text)
        return text

    def human(self, n):
        return next(f"{n / 1024 ** i:.1f} {unit}" for i, unit in ((2, "MiB"), (1, "KiB")) if n >= 1024 ** i)

    def test_flamegraph(self):
        """a flame graph of what was not freed"""
        self.assertEqual(self.shell(FLAMEGRAPH), "")
        text = t.read(self.path("flame.svg")).decode()
        totals = self.report(self.recording, "--lifetime", "only_leaked")["totals"]
        self.flamegraph(text, totals["allocated_bytes"])
        self.assertIn("open_session", text)
        self.assertNotIn("brief", text)

    def test_named_flamegraph(self):
        """a flame graph of all allocations, by its file name"""
        text = self.shell(NAMED)
        self.flamegraph(text, self.report(self.recording)["totals"]["allocated_bytes"])
        self.assertIn("brief", text)

    def test_ascii_tree(self):
        """a tree of what was not freed, which is that of memprof report"""
        tree = self.shell(ASCII_TREE)
        self.assertEqual(tree, self.memprof("report", self.recording, "--ascii-tree", "--lifetime", "only_leaked").stdout)
        self.assertRegex(tree, r" 2\.000 KB +20 .*open_session")
        self.assertNotIn("brief", tree)

    def test_biggest(self):
        """the three biggest allocations"""
        a = json.loads(self.shell(BIGGEST))
        self.assertEqual([x["size"] for x in a["allocations"]], [500000, 400000, 300000])
        self.assertEqual(a["total_count"], self.report(self.recording)["totals"]["allocations"])
        ours = json.loads(self.memprof("report", self.recording, "--view", "allocations", "--json", "--sort-by", "size",
                                       "--order", "dsc", "--count", 3).stdout)
        for key in ("address", "timestamp", "thread", "backtrace_id", "in_main_arena", "is_mmaped", "extra_space"):
            self.assertEqual([x[key] for x in a["allocations"]], [x[key] for x in ours["allocations"]], key)
        for x in a["allocations"]:
            self.assertIn("large", [re.sub(r"\(.*", "", f.get("function", "")) for f in x["backtrace"]])

    def test_call_sites(self):
        """call sites with 10 allocations of which half were not freed, by size; the percent sign is not encoded"""
        a = json.loads(self.shell(CALL_SITES))
        groups = [g for g in self.report(self.recording)["allocation_groups"]
                  if g["allocated_count"] >= 10 and 2 * g["leaked_count"] >= g["allocated_count"]]
        self.assertEqual([(g["backtrace_id"], g["all"]["allocated_count"], g["all"]["leaked_count"], g["all"]["size"])
                          for g in a["allocations"]],
                         [(g["backtrace_id"], g["allocated_count"], g["leaked_count"], g["size"])
                          for g in sorted(groups, key=lambda g: g["size"])])
        self.assertEqual([(g["all"]["allocated_count"], g["all"]["size"]) for g in a["allocations"]], [(20, 2000), (12, 3600)])
        self.assertEqual(a["total_count"], 2)

    def test_document(self):
        """the commands and the Python program in doc/rest.md work"""
        text = t.read(t.ROOT + "/doc/rest.md").decode()
        examples = text.split("\n## Examples\n")[1].split("\n## ")[0]
        commands = [c for c in re.findall("^    (curl .*)", examples, re.M) if not re.search("TOKEN|/live/|/mark", c)]
        self.assertGreater(len(commands), 5)
        for command in commands:
            self.shell("curl() { command curl --silent --fail \"$@\"; }; set -e; " + command)
        program = re.sub("^    ", "", examples[examples.index("    import json"):], flags=re.M)
        with open(self.path("program.py"), "w") as f:
            f.write(program.replace('shape="growing", ', "").replace(', size_min="1k"', ""))
        self.assertRegex(self.shell("/usr/bin/python3 program.py"), r"(?m)^\S+ large \S+shop.cc 14$")


if __name__ == "__main__":
    t.main()
