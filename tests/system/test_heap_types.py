#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap by debug information: types of blocks, and containers with their elements, blocks, bytes and unused
capacity, are what the programs themselves count."""
import json
import os
import re
import subprocess

import memprof_test as t

NUMBER = r"([\d,]+)"


def number(text):
    return int(text.replace(",", ""))


class ContainersCase(t.Case):
    def ready(self, name, *args, env=None):
        """Starts a victim.  Return: the process, and the lines that it prints before "ready"."""
        p = self.start(f"{t.VICTIMS}/{name}", *args, env={**os.environ, **(env or {})})
        lines = []
        for line in p.stdout:
            if line == "ready\n":
                return p, [line.split() for line in lines]
            lines.append(line)
        self.fail("no ready")

    def retained(self, *args):
        """Return: {name of the variable: its line}, and all lines."""
        f = self.path("retained.json")
        self.memprof("heap", *args, "--retained", "--json", f)
        report = json.loads(t.read(f))
        self.assertEqual(report["notes"], [])
        tops = report["retained"]["children"]
        return {re.sub(r"\[abi:cxx11\]| of thread .*", "", c["name"]): c for c in tops}, tops

    def listed(self, p):
        """Return: of memprof heap, {type: blocks} and {container: (elements, containers)}."""
        out = self.memprof("heap", "-p", p.pid).stdout
        self.assertNotIn("contradict", out)
        types = {m[2]: number(m[1]) for m in re.finditer(rf"^ *[\d.]+ \w+ +{NUMBER} {{13,}}(\S.*?)(?:  \[.*)?$", out, re.M)}
        containers = {m[3]: (number(m[1]), number(m[2])) for m in re.finditer(
            rf"^ *{NUMBER} +{NUMBER} +[\d.]+ \w+ (?: +[\d.]+ \w+| {{10}})  (\S.*)$", out, re.M)}
        return types, containers


class Standard(ContainersCase):
    def check_variables(self, said, *args):
        variables, _ = self.retained(*args)
        wanted = {w[1]: list(map(int, w[2:])) for w in said if w[0] == "variable"}
        self.assertEqual(len(wanted), 15)
        for name, amounts in wanted.items():
            c = variables[name]["container"]
            got = [c[key] for key in ("elements", "blocks", "bytes", "unused_bytes", "buckets")]
            self.assertEqual(got, amounts, name)
            self.assertEqual(c["type_source"], "dwarf")
        self.assertRegex(variables["g_vector"]["type"], r"^std::vector<app::session>$")
        self.assertEqual(variables["g_words"]["type"], "std::unordered_set<std::string>")
        self.assertEqual(variables["g_map"]["children"][0]["name"], "node of std::map<int, app::session>")
        self.assertEqual(variables["g_array"]["children"][0]["name"], "array of std::unique_ptr<app::session[]>")
        square = variables["g_shape"]["children"][0]
        self.assertEqual(square["name"], "shared_ptr control block of app::square (make_shared)")
        array, = variables["g_shapes"]["children"]
        self.assertEqual({c["name"]: c["count"] for c in array["children"]}, {"app::square": 10, "app::shape": 10})
        adopted = sorted(c["name"] for c in variables["g_adopted"]["children"])
        self.assertEqual(adopted, ["app::session", "shared_ptr control block of app::session"])

    def check_sums(self, p):
        types, containers = self.listed(p)
        self.assertEqual(types["node of std::map<int, app::server::entry>"], 200)
        self.assertEqual(types["node of std::map<std::string, std::list<int>>"], 60)
        self.assertEqual(types["app::session"], 201)  # of g_adopted and of g_server.entries
        self.assertEqual(types["shared_ptr control block of app::session (make_shared)"], 201)
        # Of g_string, g_nested, g_lists, g_server.entries, g_tree, and of 11 squares whose text has 52 characters; of names in hold_on_stack().
        self.assertEqual(types["text of std::string"], 1 + 480 + 60 + 200 + 121 + 11 + 30)
        self.assertEqual(containers["std::vector<std::string>"], (1030, 41))
        # Of held in hold_on_stack().
        held = [c for c in containers if re.match(r"std::map<short( int)?, app::session>", c)]
        self.assertEqual([containers[c] for c in held], [(250, 1)])

    def test_libstdcxx(self):
        """containers of libstdc++: elements, blocks, bytes, unused bytes and buckets are the program's, of the process and of a core"""
        p, said = self.ready("containers")
        before = t.identity(p.pid)
        for mode in ((), ("--pre-copy",), ("--in-place",)):
            self.check_variables(said, "-p", p.pid, *mode)
        self.check_sums(p)
        self.assertEqual(t.identity(p.pid), before)
        self.check_variables(said, "--core", self.gcore(p), f"{t.VICTIMS}/containers")

    def test_tls_behind_bss(self):
        """a thread-local variable has its name where the kernel has merged its mapping with the .bss of libstdc++"""
        for _ in range(3000):  # address space layout randomization places them so in about one of 140 processes
            p, said = self.ready("containers")
            maps = re.search(r"libstdc\S+\n\w+-(\w+) rw-p 00000000 00:00 0 *\n", t.maps(p.pid))
            tls = int(next(w[2] for w in said if w[0] == "thread-local"), 16)
            first = re.search(r"(\w+)-\w+ rw-p \w+ \S+ \d+ +\S*libstdc", t.maps(p.pid))
            if maps and first and int(first[1], 16) < tls < int(maps[1], 16):
                break
            p.kill()
            p.communicate()
        else:
            self.skipTest("this kernel does not map thread-local storage directly behind a library")
        self.check_variables(said, "-p", p.pid)
        self.check_variables(said, "--core", self.gcore(p), f"{t.VICTIMS}/containers")

    def test_libcxx(self):
        """the same with libc++, built by clang"""
        if not os.path.exists(f"{t.VICTIMS}/containers-libcxx"):
            self.skipTest("not built for this architecture")
        p, said = self.ready("containers-libcxx")
        self.check_variables(said, "-p", p.pid)
        self.check_sums(p)

    def test_debuglink(self):
        """the debug information can be in a file of its own"""
        p, said = self.ready("containers-debuglink")
        self.check_variables(said, "-p", p.pid)

    def test_busy(self):
        """while a thread changes one container the others are counted exactly, and that one is right or not shown"""
        p, said = self.ready("containers", "busy")
        for _ in range(3):
            f = self.path("busy.json")
            self.memprof("heap", "-p", p.pid, "--retained", "--json", f)
            tops = {c["name"].replace("[abi:cxx11]", ""): c for c in json.loads(t.read(f))["retained"]["children"]}
            for w in said:
                if w[0] == "variable" and w[1] in ("g_map", "g_hash", "g_vector", "g_multiset"):
                    self.assertEqual(tops[w[1]]["container"]["elements"], int(w[2]))
            busy = tops.get("g_busy", {}).get("container")
            if busy and busy["type"] == "std::map<int, int>":
                self.assertEqual(busy["elements"], busy["blocks"])
                self.assertLessEqual(busy["elements"], 300)

    def test_without(self):
        """without debug information no variable of the program has a type, and no container is claimed"""
        p, said = self.ready("containers-nodebug")
        variables, tops = self.retained("-p", p.pid)
        for w in said:
            if w[0] == "variable" and w[1] in variables:
                self.assertIsNone(variables[w[1]]["type"], w[1])
                c = variables[w[1]]["container"]
                self.assertTrue(c is None or c["type_source"] != "dwarf", w[1])


class Typed(ContainersCase):
    def test_c(self):
        """C: arrays, lists, trees, unions, flexible arrays, packed structures, thread-local variables, and pointers that are not followed"""
        p, said = self.ready("typed")
        types, _ = self.listed(p)
        for *words, n in said:
            self.assertEqual(types.get(" ".join(words)), int(n), words)
        variables, _ = self.retained("-p", p.pid)
        self.assertEqual(variables["table"]["type"], "session*[1024]")
        self.assertEqual(variables["main()::of_function"]["type"], "session*")
        self.assertEqual(variables["t_tree"]["type"], "leaf*")
        # Not followed: void *, a structure that is defined nowhere, and a pointer into the middle of a block.
        for name in ("anything", "opaque", "dangling_end"):
            self.assertIsNone(variables[name]["children"][0]["type_source"], name)


# A variable whose structures only other units define: one does, or two do differently.
UNITS = {
    "a.c": """
        struct item; struct twice; struct item *items; struct twice *different;
        void make_b(void); void make_c(void);
        int puts(const char *); int fflush(void *); int pause(void);
        int main(void) { make_b(); make_c(); puts("ready"); fflush(0); for (;;) pause(); }""",
    "b.c": """
        #include <stdlib.h>
        struct item { struct item *next; long n[5]; };
        struct twice { long n; struct item *in_b; long more[4]; };
        extern struct item *items; extern struct twice *different; struct twice *own_b;
        void make_b(void) {
            for (int i = 0; i < 20; i++) {
                struct item *it = calloc(1, sizeof(*it)); it->next = items; items = it;
            }
            different = calloc(1, 48); own_b = calloc(1, sizeof(*own_b));
        }""",
    "c.c": """
        #include <stdlib.h>
        struct twice { char *text; double in_c; int no, no2; double d[5]; };
        struct twice *own_c;
        void make_c(void) { own_c = calloc(1, sizeof(*own_c)); }""",
}


class Units(ContainersCase):
    def check(self, *flags):
        for name, text in UNITS.items():
            with open(f"{self.dir}/{name}", "w") as f:
                f.write(text)
        subprocess.run(["gcc", "-O1", *flags, "-o", "it", *UNITS], check=True, cwd=self.dir)
        p = self.start(f"{self.dir}/it")
        self.assertEqual(p.stdout.readline(), "ready\n")
        variables, _ = self.retained("-p", p.pid)
        items, = variables["items"]["children"]
        self.assertEqual((items["name"], items["count"]), ("item", 20))
        self.assertIsNone(variables["different"]["children"][0]["type_source"])
        for name in ("own_b", "own_c"):
            self.assertEqual(variables[name]["children"][0]["name"], "twice", name)
        p.kill()

    def test_units(self):
        """structures that another unit defines, but not if two define different ones; in formats of DWARF"""
        for flags in (("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-gsplit-dwarf")):
            self.check(*flags)

    def test_missing_dwo(self):
        """debug information in files that are not there is said to be missing"""
        self.check("-gdwarf-5", "-gsplit-dwarf")
        for f in os.listdir(self.dir):
            if f.endswith(".dwo"):
                os.unlink(f"{self.dir}/{f}")
        p = self.start(f"{self.dir}/it")
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertIn("debug information of 3 units is in files that cannot be read", self.memprof("heap", "-p", p.pid).stdout)


class GLib(ContainersCase):
    def check(self, p, said):
        variables, _ = self.retained("-p", p.pid)
        for name, elements, *more in said:
            c = variables[name]["container"]
            self.assertEqual(c["elements"], int(elements), name)
            if more:
                self.assertEqual([c["blocks"], c["bytes"]], list(map(int, more)), name)
            else:
                self.assertEqual(c["type"], "GHashTable")
                self.assertGreaterEqual(c["buckets"], c["elements"])
                self.assertEqual(c["buckets"] & (c["buckets"] - 1), 0)

    def test_glib(self):
        """GLib's GHashTable, GList, GSList and GPtrArray, whose nodes are in slices or in blocks"""
        if not os.path.exists(f"{t.VICTIMS}/glibs"):
            self.skipTest("not built for this architecture")
        p, said = self.ready("glibs", env={"G_SLICE": "always-malloc"})
        self.check(p, said)
        types, containers = self.listed(p)
        self.assertEqual((types["node of GList"], types["node of GSList"]), (1000, 2000))
        self.assertEqual(types["GHashTable"], 3)
        self.assertEqual(containers["GHashTable"], (900 + 3000 + 50, 3))
        # In slices, blocks with which several variables share the same.
        p, said = self.ready("glibs")
        in_slices = self.listed(p)[1]
        for name in ("GHashTable", "GList", "GSList", "GPtrArray"):
            self.assertEqual(in_slices[name], containers[name], name)
        out = self.memprof("heap", "-p", p.pid).stdout
        self.assertRegex(out, r"1,000 +1 +23\.4 KiB +GList\n")
        self.assertRegex(out, r"2,000 +1 +31\.2 KiB +GSList\n")


if __name__ == "__main__":
    t.main()
