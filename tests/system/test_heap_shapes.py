#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap without debug information: lists, trees, hash tables and arrays have the numbers of elements that the
programs print, and the right variables; what only looks a bit like them is none."""
import json
import re
import socket
import subprocess

import memprof_test as t

ROW = re.compile(r"^ *([\d,]+) +([\d,]+) +([\d.]+ \w+) +(?:[\d.]+ [KMG]?i?B)? +(\w.*)$")


def number(text):
    return int(text.replace(",", ""))


def lines(line):
    yield line
    for child in line["children"]:
        yield from lines(child)


class Shapes(t.Case):
    def ready(self, name, *args):
        """Starts a victim.  Return: the process; {name: (address, elements, blocks, bytes)}; {decoy: size}."""
        p = self.start(f"{t.VICTIMS}/{name}", *args)
        said, decoys = {}, {}
        for line in p.stdout:
            word = line.split()
            if word[0] == "ready":
                return p, said, decoys
            if word[0].startswith("decoy:"):
                decoys[word[0][6:]] = int(word[1])
            else:
                said[word[0]] = (None if word[1] == "0" else int(word[1], 16), *map(int, word[2:]))
        self.fail("no ready")

    def containers(self, *args):
        """Return: {address of its word: container}, and {type: its row of the table}."""
        f = self.path("retained.json")
        self.memprof("heap", *args, "--retained", "--json", f)
        with open(f) as j:
            report = json.load(j)
        found = {}
        for line in lines(report["retained"]):
            c = line["container"]
            if c and c["type_source"] == "shape":
                found[int(c["address_s"], 16)] = c
        return found, report

    def table(self, p):
        """Return: {type: (elements, containers, where the largest is)} of memprof heap."""
        out = self.memprof("heap", "-p", p.pid).stdout
        rows, last = {}, None
        for line in re.search(r"\ncontainers, .*\n.*\n((?:.+\n)*)", out)[1].splitlines():
            row = ROW.match(line)
            if row:
                last = row[4]
                rows[last] = [number(row[1]), number(row[2]), ""]
            else:
                rows[last][2] += line.strip()
        return rows

    def check(self, found, said, name, kind, slack=0):
        addr, elements = said[name][:2]
        # The word that leads to it is in the variable.
        at = [a for a in found if addr <= a < addr + 48 and found[a]["type"].startswith(kind)]
        self.assertTrue(at, name)
        c = found[min(at)]
        self.assertLessEqual(abs(c["elements"] - elements), slack, name)
        if len(said[name]) > 2 and not slack:
            self.assertEqual((c["blocks"], c["bytes"]), said[name][2:], name)
        return c

    KINDS = {"g_single": "singly linked list of 40-byte blocks", "g_both": "doubly linked list of 56-byte blocks",
             "g_intrusive": "doubly linked list of 88-byte blocks", "g_tail": "doubly linked list of 72-byte blocks",
             "g_tree": "binary tree of 136-byte blocks", "g_parents": "binary tree of 168-byte blocks",
             "g_sessions": "array of pointers to 120-byte blocks", "g_array": "array of pointers to 232-byte blocks"}
    BUSY = "g_both", "g_intrusive"
    HASHED = {"g_hash": "hash table of 184-byte blocks", "g_used": "doubly linked list of 184-byte blocks",
              "g_buckets": "hash table of 200-byte blocks"}

    def check_all(self, found, said, slack=0):
        for name, kind in self.KINDS.items():
            self.check(found, said, name, kind, slack if name in self.BUSY else 0)
        array = self.check(found, said, "g_array", self.KINDS["g_array"])
        self.assertEqual(array["unused_bytes"], said["g_array"][3] - 700 * 8)

    def check_table(self, p, said, decoys, place):
        """memprof heap has exactly these containers."""
        rows = self.table(p)
        for name, kind in (self.KINDS | self.HASHED).items():
            elements, count, where = rows.pop(kind)
            self.assertEqual((elements, count), (said[name][1], 1), name)
            self.assertRegex(where, place(name))
        self.assertEqual(rows.pop("singly linked list of 104-byte blocks"), [said["items"][1], 2000, ""])
        # Of decoys only the arrays that have their pointers are containers.
        self.assertEqual(sorted(rows), sorted(f"array of pointers to {size}-byte blocks" for size in decoys.values()))

    def test_symbols(self):
        """each idiom of C: exact numbers, in the variable that has it; decoys are no containers"""
        p, said, decoys = self.ready("shapes")
        found, report = self.containers("-p", p.pid)
        self.check_all(found, said)
        self.check_table(p, said, decoys, lambda name: rf"^{name}  \[shapes\]$")
        roots = {c["name"]: c for c in report["retained"]["children"]}
        for name, kind in self.KINDS.items():
            c = roots[name]["container"]
            self.assertEqual((c["elements"], c["type"]), (said[name][1], kind), name)
        c = self.check(found, said, "g_buckets", "hash table")
        self.assertEqual((c["buckets"], c["type_source"]), (1024, "shape"))
        nodes, = roots["g_tree"]["children"]
        self.assertEqual((nodes["name"], nodes["type_source"], nodes["count"]),
                         ("136-byte node of a binary tree", "shape", 2000))

    def test_stripped(self):
        """the same in a stripped program, by places in .bss"""
        p, said, decoys = self.ready("shapes-stripped")
        found, _ = self.containers("-p", p.pid)
        self.check_all(found, said)
        sections = subprocess.run(["readelf", "-SW", f"{t.VICTIMS}/shapes-stripped"], text=True, capture_output=True).stdout
        bss = int(re.search(r" \.bss +NOBITS +([0-9a-f]+) ", sections)[1], 16)
        with open(f"/proc/{p.pid}/maps") as maps:
            bss += int(maps.readline().split("-")[0], 16)

        def place(name):
            """One of the first three words of the variable."""
            return "|".join(rf"^\.bss\+{said[name][0] - bss + word:#x}  \[shapes-stripped\]$" for word in (0, 8, 16))

        self.check_table(p, said, decoys, place)

    def test_core(self):
        """the same of a core file"""
        p, said, _ = self.ready("shapes-stripped")
        found, _ = self.containers("--core", self.gcore(p), f"{t.VICTIMS}/shapes-stripped")
        self.check_all(found, said)

    def test_busy(self):
        """the same while threads move elements: one of them can be missing"""
        p, said, _ = self.ready("shapes-stripped", "busy")
        for mode in (), ("--in-place",), ("--pre-copy",):
            found, _ = self.containers("-p", p.pid, *mode)
            self.check_all(found, said, slack=1)

    def test_debug(self):
        """with debug information the elements have their types, and the same containers are found"""
        p, said, _ = self.ready("shapes-debug")
        rows = self.table(p)
        for kind, name in (("singly linked list of single", "g_single"), ("doubly linked list of both", "g_both"),
                           ("doubly linked list of tail_entry", "g_tail"), ("binary tree of leaf", "g_tree"),
                           ("binary tree of branch", "g_parents"), ("hash table of hashed", "g_hash"),
                           ("doubly linked list of hashed", "g_used"), ("hash table of bucketed", "g_buckets"),
                           ("array of pointers to session", "g_sessions"),
                           # No variable has the type of its elements, only that of the links in them.
                           ("doubly linked list of 88-byte blocks", "g_intrusive")):
            self.assertEqual(rows[kind][:2], [said[name][1], 1], name)
            self.assertIn(f"{name}  [shapes-debug]", rows[kind][2])
        self.assertEqual(rows["singly linked list of item"][:2], [10000, 2000])

    def test_std(self):
        """containers of a stripped C++ program by their shapes"""
        p, said, _ = self.ready("shapes_std-stripped")
        found, _ = self.containers("-p", p.pid)
        for name, kind in (("g_list", "doubly linked list"), ("g_map", "binary tree"), ("g_set", "binary tree"),
                           ("g_hash", "hash table"), ("g_vector", "array of pointers")):
            self.check(found, said, name, kind)


class Programs(t.Case):
    KEYS = 20000

    def test_redis(self):
        """redis-server with 20,000 keys: the dict of its database is a hash table with as many elements"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "",
                       "--enable-debug-command", "yes", cwd=self.dir,
                       stdout=subprocess.DEVNULL)
        t.wait_for(lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True).stdout == b"PONG\n")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(sock)
            s.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$12\r\nkey:%08d\r\n$8\r\n%08d\r\n" % (i, i) for i in range(self.KEYS)))
            answers = b""
            while answers.count(b"\n") < self.KEYS:
                answers += s.recv(1 << 20)
        # While it grows a dict has two tables.
        t.wait_for(lambda: "rehashing target" not in subprocess.run(["redis-cli", "-s", sock, "debug", "htstats", "0"],
                                                                    text=True, capture_output=True).stdout)
        found, _ = Shapes.containers(self, "-p", p.pid)
        large = [c for c in found.values() if c["buckets"] >= self.KEYS]
        self.assertEqual([(c["elements"], c["buckets"], c["blocks"]) for c in large], [(self.KEYS, 32768, self.KEYS + 1)])
        self.assertEqual(large[0]["type"], "hash table of 32-byte blocks")
        p.terminate()
        self.assertEqual(p.wait(), 0)

    def test_perl(self):
        """perl: the table of shared keys is a hash table with all 20,000 keys of a hash, and few more"""
        p = self.start("perl", "-e", f'my %h; $h{{"key$_"}} = $_ for 1..{self.KEYS}; $| = 1; print "ready\n"; sleep 1000')
        self.assertEqual(p.stdout.readline(), "ready\n")
        # Its entries end with the keys, so they differ in size.
        found, _ = Shapes.containers(self, "-p", p.pid)
        elements = max(c["elements"] for c in found.values() if c["type"].startswith("hash table of "))
        self.assertGreaterEqual(elements, self.KEYS)
        self.assertLess(elements, self.KEYS * 1.02)


if __name__ == "__main__":
    t.main()
