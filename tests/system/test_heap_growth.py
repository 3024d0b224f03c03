#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof heap --growth, --save and heap diff: what grew is what the programs themselves count (malloc_usable_size),
by variable and type, in one run and across runs."""
import json
import re
import shutil
import signal
import socket
import subprocess

import jsonschema
import memprof_test as t

VARIABLES = ("g_map", "g_cache", "g_log", "g_constant", "g_sessions")
THREAD = "t_buffer of threads worker-*"


def schema(name):
    with open(f"{t.ROOT}/doc/{name}.schema.json") as f:
        return json.load(f)


def lines(line):
    """The line and all below it."""
    yield line
    for child in line["children"]:
        yield from lines(child)


def amounts(line):
    """The bytes and blocks in each look; None where the look does not have the line."""
    return [a and (a["bytes"], a["blocks"]) for a in line["looks"]]


class GrowthCase(t.Case):
    def growing(self, program="growing", **kw):
        return self.start(program if "/" in program else f"{t.VICTIMS}/{program}", stdin=subprocess.PIPE, **kw)

    def say(self, p, *commands):
        """Sends commands to the victim.  Return: {name: (bytes, blocks)}."""
        said = {}
        for command in commands:
            p.stdin.write(command + "\n")
            p.stdin.flush()
            for line in p.stdout:
                word = line.split()
                if word[0] == "ready":
                    break
                said[word[0]] = (int(word[1]), int(word[2]))
        return said

    def save(self, p, name, *more):
        f = self.path(name)
        out = self.memprof("heap", "-p", p.pid, "--save", f, *more).stdout
        self.assertIn(f"saved: {f}", out)
        with open(f) as look:
            jsonschema.validate(json.load(look), schema("heap-look"))
        return f

    def result(self, f):
        with open(f) as j:
            report = json.load(j)
        jsonschema.validate(report, schema("heap-growth"))
        n = len(report["looks"])
        for line in lines(report["retained"]):
            self.assertEqual(len(line["looks"]), n)
            self.assertEqual(line["change_bytes"], (line["looks"][-1] or {"bytes": 0})["bytes"] -
                             (line["looks"][0] or {"bytes": 0})["bytes"])
        # Nothing is counted twice, and nothing is missing.
        if not report["retained"]["left_out"]:
            self.assertEqual(sum(c["change_bytes"] for c in report["retained"]["children"]),
                             report["retained"]["change_bytes"])
        return report

    def diff(self, *files, more=(), status=0):
        f = self.path("diff.json")
        r = self.memprof("heap", "diff", *files, "--json", f, *more, status=status)
        return self.result(f), r.stdout

    def named(self, report, name):
        found = [c for c in report["retained"]["children"] if c["name"] == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def check(self, report, said):
        """@said: by look, what the victim said."""
        for name, shown in [(v, v) for v in VARIABLES] + [("t_buffer", THREAD)]:
            wanted = [s[name] if s[name][1] else None for s in said]
            if any(wanted):
                self.assertEqual(amounts(self.named(report, shown)), wanted, name)
        self.assertEqual([(x["unreachable"]["bytes"], x["unreachable"]["count"]) for x in report["looks"]],
                         [s["leaked"] for s in said])

    def stretch(self, f, seconds):
        """Changes when the look was taken: this long after the first one."""
        with open(f) as look:
            data = json.load(look)
        self.first = getattr(self, "first", data["monotonic_ns"])
        data["monotonic_ns"] = self.first + int(seconds * 1e9)
        with open(f, "w") as look:
            json.dump(data, look)
        return f

    def look_and_change(self, p, changes, *more, status=0, between=lambda memprof, n: None):
        """Runs heap --growth, and sends the victim changes[i] after look i + 1, while memprof is stopped: its next
        look begins after two seconds.  Return: its output, and what the victim said at each look."""
        said = [self.say(p, "map 0")]
        m = self.start(t.MEMPROF, "heap", "-p", str(p.pid), "--growth", f"{2 * len(changes)}s", "--samples",
                       str(len(changes) + 1), *map(str, more), stderr=subprocess.PIPE)
        out, n = "", 0
        for line in m.stdout:
            out += line
            if not re.match(rf"look {n + 1} of", line):
                continue
            if n < len(changes):
                m.send_signal(signal.SIGSTOP)
                if changes[n]:
                    said.append(self.say(p, *changes[n]))
                between(m, n + 1)
                m.send_signal(signal.SIGCONT)
            n += 1
        self.assertEqual(m.wait(), status, m.stderr.read())
        return out, said


class Growth(GrowthCase):
    def test_looks(self):
        """heap --growth: variables, threads, types and what is unreachable, to the byte in each look; how they change"""
        p = self.growing()
        self.say(p, "map 1000", "log 50", "thread 1", "buffer 10000", "objects 100", "cache 500")
        before = t.identity(p.pid)
        f, saved = self.path("growth.json"), self.path("look.json")
        out, said = self.look_and_change(p, [
            ("map 5000", "cache 1200", "buffer 20000", "objects 300", "leak 2"),
            ("map 5000", "cache 400", "buffer 30000", "objects 300", "leak 2", "log 4000"),
            ("map 5000", "cache 1100", "buffer 40000", "objects 300", "leak 2")], "--json", f, "--save", saved)
        report = self.result(f)
        self.check(report, said)
        self.assertTrue(report["same_process"] and report["same_build"])
        self.assertEqual([x["exact"] for x in report["looks"]], [True] * 4)
        self.assertEqual(self.named(report, "g_constant")["how"], "constant")
        self.assertEqual(self.named(report, "g_cache")["how"], "fluctuates")
        self.assertEqual(self.named(report, "g_log")["how"], "changed once")
        for name in ("g_map", "g_sessions", THREAD):
            # Of equal steps, but the times between them are those of a busy machine.
            self.assertIn(self.named(report, name)["how"], ("grows steadily", "grows unevenly"), name)
        for line in (report["live"], self.named(report, "g_map")):
            rate = line["change_bytes"] / report["looks"][-1]["seconds"]
            self.assertGreater(line["bytes_per_second"], rate * 0.5)
            self.assertLess(line["bytes_per_second"], rate * 2)
        # The array of the table was replaced by larger ones: what hangs on it is the same line.
        # The allocator makes some blocks a little larger than others.
        entries = [x for x in lines(self.named(report, "g_map")) if x["looks"][0] and x["looks"][0]["count"] == 1000]
        self.assertEqual(len(entries), 2)
        for line in entries:
            for at, wanted in zip(line["looks"], (1000, 6000, 11000, 16000)):
                self.assertLessEqual(wanted - 10, at["count"])
                self.assertLessEqual(at["count"], wanted)
        # Each place of the table has one entry, or none.
        tables = [[a["blocks"] for a in x["looks"]] for x in report["containers"]
                  if x["name"] == "array of pointers to entry"]
        self.assertEqual(tables, [[1000, 6000, 11000, 16000]], report["containers"])
        sessions = [x for x in report["types"] if x["name"] == "session"]
        self.assertEqual([a["blocks"] for a in sessions[0]["looks"]], [100, 400, 700, 1000])
        self.assertRegex(out, r"\+(15,000|14,99\d)\s+grows (steadily|unevenly) +1,000 -> (16,000|15,99\d) x")
        self.assertRegex(out, r"changed once +g_log  \[growing\]  growing.cc:\d+")
        self.assertIn("of it unreachable: +", out)
        self.assertEqual(t.identity(p.pid), before)
        # The last look was saved.
        again = self.save(p, "again.json")
        self.assertEqual(self.diff(saved, again)[0]["live"]["how"], "constant")

    def test_modes(self):
        """each look is taken as --pre-copy or --in-place says"""
        p = self.growing()
        self.say(p, "map 1000", "thread 1", "buffer 10000")
        for mode in ("pre-copy", "in-place"):
            said, files = [], []
            for i in range(2):
                said.append(self.say(p, "map 500"))
                files.append(self.save(p, f"{mode}{i}", f"--{mode}"))
            report, _ = self.diff(*files)
            self.assertEqual([x["mode"] for x in report["looks"]], [mode] * 2)
            self.check(report, said)
            self.assertEqual(self.named(report, "g_map")["how"], "grew")

    def test_busy(self):
        """beside eight threads that allocate all the time, what they do not touch is exact"""
        p = self.growing()
        self.say(p, "map 5000", "busy 8")
        said, files = [], []
        for i in range(3):
            said.append(self.say(p, "map 500"))
            files.append(self.save(p, f"look{i}"))
        report, _ = self.diff(*files)
        self.check(report, said)
        self.assertEqual(self.named(report, "g_constant")["how"], "constant")

    def test_types_and_depth(self):
        """--count and --depth limit the lines; what is left out is summed up"""
        p = self.growing()
        self.say(p, "map 100", "log 10", "objects 10")
        a = self.save(p, "a")
        self.say(p, "map 100", "log 10", "objects 10", "cache 10")
        b = self.save(p, "b")
        report, out = self.diff(a, b, more=("--count", 1, "--depth", 1))
        self.assertEqual(len(report["retained"]["children"]), 1)
        self.assertGreater(report["retained"]["left_out"], 2)
        self.assertRegex(out, r"\(\d+ more\)")
        self.assertEqual(len(report["types"]), 1)

    def test_threads(self):
        """the data of a thread that ended and of the one that replaced it are one line; so are mappings and frames"""
        p = self.growing()
        one = self.say(p, "thread 1", "buffer 10000")
        a = self.save(p, "a")
        two = self.say(p, "thread 1", "buffer 30000")
        report, out = self.diff(a, self.save(p, "b"))
        self.check(report, [one, two])
        self.assertRegex(out, r"grew +t_buffer of threads worker-\*  \[growing\]  growing.cc:\d+")
        for line in report["retained"]["children"]:
            self.assertNotRegex(line["name"] or "", r"0x[0-9a-f]{6,}|thread \d")


class Diff(GrowthCase):
    def test_one_run(self):
        """heap diff of looks at one process: verdicts, rates and standard errors"""
        p = self.growing()
        said, files = [], []
        for i in range(5):
            said.append(self.say(p, "map 1000", f"cache {100 + 50 * (i % 2)}", f"log {40 if i == 3 else 0}"))
            files.append(self.stretch(self.save(p, f"look{i}"), 60 * i))
        report, out = self.diff(*files)
        self.check(report, said)
        how = {name: self.named(report, name)["how"] for name in ("g_map", "g_cache", "g_constant")}
        self.assertEqual(how, {"g_map": "grows steadily", "g_cache": "fluctuates", "g_constant": "constant"})
        self.assertEqual(self.named(report, "g_log")["how"], "new")
        self.assertIn("grows steadily", out)
        # Least squares, computed here.
        y = [s["g_map"][0] for s in said]
        slope = sum((i - 2) * v for i, v in enumerate(y)) / 10
        off = [v - sum(y) / 5 - slope * (i - 2) for i, v in enumerate(y)]
        error = (sum(e * e for e in off) / 3 / 10) ** 0.5
        line = self.named(report, "g_map")
        self.assertAlmostEqual(line["bytes_per_second"], slope / 60, places=3)
        self.assertAlmostEqual(line["standard_error"], error / 60, places=3)
        # Two of them are one difference.
        report, out = self.diff(files[0], files[4])
        self.assertEqual(self.named(report, "g_map")["how"], "grew")
        self.assertIsNone(self.named(report, "g_map")["standard_error"])
        self.assertIn("two looks show one difference", out)
        self.assertIn("not in order of time", self.memprof("heap", "diff", files[4], files[0], status=2).stderr)

    def restarted(self, program, then=None):
        """Two runs of a program (the second of another one, if given).  Return: the report, the text, what the
        runs said."""
        said, files = [], []
        for i, name in enumerate((program, then or program)):
            exe = self.path("server")
            shutil.copy(f"{t.VICTIMS}/{name}", exe)
            p = self.growing(exe)
            self.say(p, *["thread 1"] * (i + 1))
            said.append(self.say(p, f"map {1000 + 3000 * i}", "log 100", f"objects {50 + 40 * i}",
                                 f"buffer {10000 * (i + 1)}"))
            files.append(self.save(p, f"run{i}"))
            p.kill()
            p.wait()
        return *self.diff(*files), said, files

    def test_restart(self):
        """across a restart of the same build (other addresses, other thread ids) the same lines are compared"""
        report, out, said, files = self.restarted("growing")
        self.assertEqual((report["same_process"], report["same_build"]), (False, True))
        self.check(report, said)
        self.assertIsNone(report["live"]["bytes_per_second"])
        self.assertIn("different runs of the program, so there are no rates", out)
        self.assertEqual(self.named(report, "g_log")["how"], "constant")
        for name in ("g_map", "g_sessions", THREAD):
            self.assertEqual(self.named(report, name)["how"], "grew")
            self.assertNotIn("new", [x["how"] for x in lines(self.named(report, name))], name)
        r = self.memprof("heap", "diff", *files, "--budget", "1MB/h", status=2)
        self.assertIn("needs looks at one run", r.stderr)
        self.diff(*files, more=("--budget", "1MB"))
        self.diff(*files, more=("--budget", "10k"), status=1)

    def test_stripped(self):
        """variables without symbols are the same in two runs of one build, and not in those of different builds"""
        report, _, said, _ = self.restarted("growing-stripped")
        self.assertTrue(report["same_build"])
        places = [c for c in report["retained"]["children"] if c["kind"] == "data"]
        for name in ("g_map", "g_log", "g_sessions"):
            self.assertIn([s[name] for s in said], [amounts(c) for c in places], name)
        report, out, said, _ = self.restarted("growing-stripped", "growing-other")
        self.assertFalse(report["same_build"])
        self.assertIn("different builds", out)
        places = [c for c in report["retained"]["children"] if c["kind"] == "data" and c["module"] == "server"]
        self.assertLessEqual({c["how"] for c in places}, {"new", "vanished"})
        self.assertIn([said[0]["g_map"], None], [amounts(c) for c in places])
        self.assertIn([None, said[1]["g_map"]], [amounts(c) for c in places])

    def test_core(self):
        """heap --core --save: a core file has what the process has"""
        p = self.growing()
        said = self.say(p, "map 1000", "objects 50")
        a = self.save(p, "a")
        core = self.gcore(p)
        b = self.path("b")
        self.memprof("heap", "--core", core, "--save", b, f"{t.VICTIMS}/growing")
        with open(b) as look:
            jsonschema.validate(json.load(look), schema("heap-look"))
        report, _ = self.diff(a, b)
        self.assertEqual(report["live"]["how"], "constant")
        self.assertTrue(report["same_build"])
        for name in ("g_map", "g_sessions"):
            self.assertEqual(amounts(self.named(report, name)), [said[name]] * 2)

    def test_different_programs(self):
        """looks at different programs are refused"""
        p = self.growing()
        a = self.save(p, "a")
        q = self.start(f"{t.VICTIMS}/retained")
        for line in q.stdout:
            if line == "ready\n":
                break
        r = self.memprof("heap", "diff", a, self.save(q, "b"), status=2)
        self.assertIn("different programs: growing and retained", r.stderr)

    def test_damaged(self):
        """a damaged, incomplete, hostile or other file is refused, with a message"""
        p = self.growing()
        self.say(p, "map 100")
        good = self.save(p, "good")
        with open(good) as f:
            text = f.read()
        wrong = {
            "empty": "", "text": "hello", "array": "[1, 2]", "other": '{"clusters": []}', "zeros": "\0" * 100,
            "deep": '{"memprof_heap_look": 1, "retained": ' + "[" * 1000000, "version": '{"memprof_heap_look": 9}',
            "half": text[:len(text) // 2], "last": text.rstrip()[:-1], "sum": text.replace('"retained_bytes":', '"retained_bytes":1', 1),
            "negative": text.replace('"blocks":', '"blocks":-', 1).replace('"size":', '"size":-', 1),
            "huge": text.replace('"size":', '"size":99999999999999999999999', 1),
            "real": text.replace('"own_bytes":', '"own_bytes":0.', 1),
            "kind": text.replace('"kind":"blocks"', '"kind":"houses"', 1),
            "key": text.replace('"children"', '"offspring"'),
            "name": text.replace('"growing"', '"' + "g" * 5000 + '"', 1),
            "list": text.replace('"types":[', '"types":[7,', 1)}
        for name, content in wrong.items():
            f = self.path(name)
            with open(f, "w") as out:
                out.write(content)
            r = self.memprof("heap", "diff", good, f, status=2)
            self.assertRegex(r.stderr, rf"memprof: {f} (is|was) ", name)
            self.assertEqual(r.stderr.count("\n"), 1)
        for f, why in ((self.dir, "Is a directory"), (self.path("none"), "No such file"), (t.MEMPROF, "is not a look")):
            self.assertIn(why, self.memprof("heap", "diff", f, good, status=2).stderr)


class Ends(GrowthCase):
    def test_budget(self):
        """--budget: the exit status, for growth in all and per time"""
        p = self.growing()
        f = self.path("budget.json")
        for budget, status in (("100k", 1), ("10MiB/s", 0)):
            out, _ = self.look_and_change(p, [("map 2000",)], "--budget", budget, "--json", f, status=status)
            self.assertIn("above the budget of" if status else "within the budget of", out)
            self.assertEqual(self.result(f)["budget"]["verdict"], "above" if status else "within")
        files = []
        for i, change in enumerate(("map 0", "map 2000", "map 0", "leak 100", "map 2000")):
            self.say(p, change)
            files.append(self.stretch(self.save(p, f"look{i}"), 60 * i))
        # The map's step is of 200,000 bytes or a little more, in a minute; the leak is of 300,000.
        for looks, budget, status, text in (([0, 1], "100MB", 0, "within"), ([0, 1], "190k", 1, "above"),
                                            ([0, 1], "300k/min", 0, "within"), ([0, 1], "3k/s", 1, "above"),
                                            ([0, 1], "1G/d", 0, "within"), ([0, 1], "190k/min", 1, "above"),
                                            # A step is no rate.
                                            ([0, 1, 2], "1k/h", 0, "not certain"), ([0, 1, 2], "1k", 1, "above"),
                                            # What leaks counts, too.
                                            ([2, 3], "250k", 1, "above"), ([1, 3, 4], "1MB/h", 1, "above"),
                                            ([1, 3, 4], "100MB/h", 0, "within")):
            _, out = self.diff(*(files[i] for i in looks), more=("--budget", budget), status=status)
            self.assertIn(text, out, (looks, budget))

    def test_process_ends(self):
        """a process that ends between looks: what the looks before have, or the reason that there is nothing"""
        def kill(after):
            def between(_, n):
                if n == after:
                    p.kill()
                    p.wait()
            return between
        p = self.growing()
        f = self.path("ended.json")
        out, _ = self.look_and_change(p, [("map 2000",), (), ("map 0",)], "--json", f, status=6, between=kill(2))
        self.assertRegex(out, rf"process {p.pid} .*: this compares the 2 looks before")
        self.assertEqual(len(self.result(f)["looks"]), 2)
        p = self.growing()
        self.look_and_change(p, [()], status=6, between=kill(1))

    def test_exec(self):
        """a process that executes another program between looks is not compared with what it was"""
        p = self.growing()
        out, _ = self.look_and_change(p, [("map 2000",), ()], status=6, between=lambda m, n: n == 2 and self.execute(p))
        self.assertRegex(out, "executed another program.*: this compares the 2 looks before")
        # Also between saved looks, though the process has the same id and start time.
        p = self.growing()
        a = self.save(p, "a")
        self.execute(p)
        self.say(p, "map 1")
        report, out = self.diff(a, self.save(p, "b"))
        self.assertFalse(report["same_process"])
        self.assertIn("different runs of the program", out)

    def execute(self, p):
        old = t.read(f"/proc/{p.pid}/stat").rsplit(b")", 1)[1].split()[23:26]
        p.stdin.write("exec 1\n")
        p.stdin.flush()
        t.wait_for(lambda: t.read(f"/proc/{p.pid}/stat").rsplit(b")", 1)[1].split()[23:26] != old)

    def test_interrupted(self):
        """Ctrl-C between looks: what the looks before have; the process is left as it was"""
        p = self.growing()
        self.say(p, "map 100")
        before = t.identity(p.pid)
        f = self.path("cut.json")
        m = self.start(t.MEMPROF, "heap", "-p", str(p.pid), "--growth", "40m", "--samples", "3", stderr=subprocess.PIPE)
        for line in m.stdout:
            if line.startswith("look 1 of 3"):
                break
        m.send_signal(signal.SIGINT)
        out, err = m.communicate()
        self.assertEqual(m.returncode, 3)
        self.assertIn("interrupted after the first look", err)
        out, said = self.look_and_change(p, [("map 100",), ()], "--json", f,
                                         between=lambda m, n: n == 2 and m.send_signal(signal.SIGINT))
        self.assertIn("interrupted: this compares the 2 looks before", out)
        self.check(self.result(f), said)
        self.assertEqual(t.identity(p.pid), before)
        self.say(p, "map 1")

    def test_refused(self):
        """options that do not fit together are refused"""
        for args, why in ((("-p", 1, "--samples", 3), "need --growth"), (("-p", 1, "--budget", "1k"), "need --growth"),
                          (("-p", 1, "--growth", "60s", "--samples", 1), "not a number in its range"),
                          (("-p", 1, "--growth", "60s", "--samples", 101), "not a number in its range"),
                          (("-p", 1, "--growth", "0s"), "not a duration"), (("-p", 1, "--growth", "9000h"), "not a duration"), (("-p", 1, "--growth", "x"), "not a duration"),
                          (("-p", 1, "--growth", "1s", "--budget", "1k/y"), "not an amount"),
                          (("-p", 1, "--growth", "1s", "--budget", "/h"), "not an amount"),
                          (("-p", 1, "--save", "x", "--retained"), "cannot be combined"),
                          (("-p", 1, "--growth", "1s", "--tree"), "cannot be combined"),
                          (("-p", 1, "--growth", "1s", "--pprof", "x"), "cannot be combined"),
                          (("-p", 1, "--save", "x", "--list", "y"), "cannot be combined"),
                          (("-p", 1, "--save", "x", "--json", "y"), "need --retained or --growth"),
                          (("--core", "x", "--growth", "1s", "y"), "does not change"),
                          (("--growth", "1s"), "which process?"),
                          (("diff",), "needs 2 to 100 files"), (("diff", "x"), "needs 2 to 100 files"),
                          (("diff", "x", "y", "--budget", "z"), "not an amount"),
                          (("diff", "x", "y", "--depth", "0"), "not a number in its range")):
            self.assertIn(why, self.memprof("heap", *args, status=2).stderr)
        p = self.growing()
        r = self.memprof("heap", "-p", p.pid, "--save", "/nonexistent/look", status=3)
        self.assertIn("cannot write /nonexistent/look", r.stderr)
        p.kill()
        p.wait()
        self.assertIn("no process", self.memprof("heap", "-p", p.pid, "--growth", "1s", status=6).stderr)

    def test_leaks_hint(self):
        """memprof leaks says where to look on if nothing leaks, but the heap is large"""
        p = self.growing()
        self.say(p, "map 1000")
        self.assertNotIn("--growth", self.memprof("leaks", "-p", p.pid).stdout)
        self.say(p, "map 200000")
        out = self.memprof("leaks", "-p", p.pid).stdout
        self.assertEqual(out.splitlines()[-1], f"what keeps them: memprof heap -p {p.pid} --retained; what grows: "
                         f"memprof heap -p {p.pid} --growth 60s")
        self.say(p, "leak 1")
        self.assertNotIn("--growth", self.memprof("leaks", "-p", p.pid, status=1).stdout)


    def test_path(self):
        """the variables of a program in a folder called memprof-... keep blocks like any other"""
        exe = self.path("memprof-server")
        shutil.copy(f"{t.VICTIMS}/growing", exe)
        p = self.growing(exe)
        self.say(p, "map 100", "log 100")
        self.assertIn("no leaks", self.memprof("leaks", "-p", p.pid).stdout)


class Redis(GrowthCase):
    KEYS = 20000

    def fill(self, path, first):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$12\r\nkey:%08d\r\n$64\r\n%s\r\n" % (first + i, b"v" * 64)
                               for i in range(self.KEYS)))
            answers = b""
            while answers.count(b"\n") < self.KEYS:
                answers += s.recv(1 << 20)
            self.assertEqual(answers, b"+OK\r\n" * self.KEYS)

    def test_redis(self):
        """redis-server filled between looks: its keys grew, below the variable that keeps the database"""
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", cwd=self.dir,
                       stdout=subprocess.DEVNULL)
        t.wait_for(lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True).stdout == b"PONG\n")
        files = []
        for i in range(3):
            self.fill(sock, i * self.KEYS)
            files.append(self.save(p, f"look{i}"))
        report, _ = self.diff(*files)
        top = report["retained"]["children"][0]
        self.assertGreater(top["change_bytes"], report["live"]["change_bytes"] * 0.9)
        self.assertGreater(report["live"]["change_bytes"], 2 * self.KEYS * 100)
        # Each key has an entry, a name and a value.  While the table grows there are two of them.
        entries = [x for x in lines(top) if x["looks"][2] and x["looks"][2]["count"] >= self.KEYS]
        self.assertGreaterEqual(sum(x["looks"][2]["count"] for x in entries), 3 * self.KEYS)
        self.assertGreaterEqual(top["change_blocks"], 3 * 2 * self.KEYS)
        p.terminate()
        self.assertEqual(p.wait(), 0)


if __name__ == "__main__":
    t.main()
