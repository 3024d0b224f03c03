#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python module and its pytest plug-in (bindings/python, doc/python.md), on real processes."""
import ctypes
import gc
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import threading

import memprof_test as t

LIBRARY = os.path.join(os.path.dirname(t.MEMPROF), "libmemprof.so.1")
PACKAGE = t.ROOT + "/bindings/python"
HEADER = t.ROOT + "/src/api/memprof.h"
os.environ.update(LIBMEMPROF=LIBRARY, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
import memprof  # noqa: E402
from memprof import _c  # noqa: E402

# Executes the lines that it reads.
VICTIM = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Module(t.Case):
    def setUp(self):
        super().setUp()
        self.library = self.path("libleaky.so")
        subprocess.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-o", self.library, t.ROOT + "/tests/library/leaky_module.c"],
                       check=True)

    def python(self):
        """A process that does what do() tells it."""
        p = self.start(sys.executable, "-c", VICTIM, self.library, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def do(self, p, line):
        p.stdin.write(line + "\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "done\n")

    def script(self, text, *arguments, **env):
        """Runs a Python program; returns what it printed."""
        r = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)], text=True, capture_output=True,
                           timeout=120, stdin=subprocess.DEVNULL, env=dict(os.environ, **env))
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def fails(self, code, f, *arguments, **options):
        """Calls what must raise memprof.Error with the code; returns the exception."""
        with self.assertRaises(memprof.Error) as caught:
            f(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertTrue(str(caught.exception).isprintable() and str(caught.exception))
        return caught.exception


class Interface(Module):
    """The module against memprof.h."""
    def compiled(self, prints):
        """What a C program prints that includes the header."""
        with open(self.path("x.c"), "w") as f:
            f.write(f'#include <stddef.h>\n#include <stdio.h>\n#include "{HEADER}"\nint main(void)\n{{\n{prints}\n}}\n')
        subprocess.run(["cc", "-o", self.path("x"), self.path("x.c")], check=True)
        return subprocess.run([self.path("x")], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]

    def header(self):
        return re.sub(r"/\*.*?\*/", "", t.read(HEADER).decode(), flags=re.S)

    def structures(self):
        """The structures of the header, each with the names of its members."""
        for name, body in re.findall(r"^struct memprof_(\w+) \{(.*?)^\};", self.header(), re.S | re.M):
            body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r" \1", body)
            yield name, [re.findall(r"\w+", part.split("[")[0])[-1] for line in body.split(";")[:-1] for part in line.split(",")]

    def test_structures(self):
        """each structure of the header has the same members in the module, at the same places"""
        found = dict(self.structures())
        self.assertGreater(len(found), 14)
        classes = {name: getattr(_c, "".join(map(str.capitalize, name.split("_")))) for name in found}
        prints, expected = [], []
        for name, members in found.items():
            self.assertEqual([n for n, _ in classes[name]._fields_], members, name)
            prints.append(f'printf("{name} %zu\\n", sizeof(struct memprof_{name}));')
            expected.append(f"{name} {ctypes.sizeof(classes[name])}")
            for m in members:
                prints.append(f'printf("{name}.{m} %zu %zu\\n", offsetof(struct memprof_{name}, {m}), '
                              f'sizeof(((struct memprof_{name} *)0)->{m}));')
                expected.append(f"{name}.{m} {getattr(classes[name], m).offset} {getattr(classes[name], m).size}")
        self.assertEqual(self.compiled("\n".join(prints)), expected)

    def test_constants(self):
        """each constant of the header is in the module"""
        names = [n for body in re.findall(r"^enum memprof_\w+ \{(.*?)\};", self.header(), re.S | re.M)
                 for n in re.findall(r"MEMPROF_(\w+)", body)]
        self.assertGreater(len(names), 40)
        values = self.compiled("\n".join(f'printf("%lld\\n", (long long)MEMPROF_{n});' for n in names))
        self.assertEqual([str(getattr(memprof, n, None)) for n in names], values, names)

    def test_functions(self):
        """each symbol of the library has a prototype"""
        symbols = re.findall(r"memprof_(\w+);", t.read(t.ROOT + "/src/api/memprof.map").decode())
        self.assertEqual(sorted(_c._PROTOTYPES), sorted(symbols))

    def test_version(self):
        """the package has the library's version"""
        self.assertIn(f'\nversion = "{memprof.version()}"\n', t.read(PACKAGE + "/pyproject.toml").decode())
        self.assertIn(memprof.version(), self.memprof("--version").stdout)

    def test_library_missing(self):
        """without the library: the import succeeds, the first use raises an ImportError that names it"""
        out = self.script("""
            import memprof
            try:
                memprof.open("x")
            except ImportError as e:
                print(e)""", LIBMEMPROF=self.path("nowhere.so"))
        self.assertIn(self.path("nowhere.so"), out)
        self.assertIn("LIBMEMPROF", out)


class Recordings(Module):
    def test_requests(self):
        """flush, pause, resume and mark: the file has what happened before, and the paused part is missing"""
        p, f = self.python(), self.path("r")
        with memprof.attach(p.pid, f, flags=memprof.HISTORY) as s:
            self.assertEqual(s.path, f)
            self.assertEqual(s.look().state, memprof.IS_RECORDING)
            self.do(p, "lib.keep(10, 70001)")
            first = s.flush()
            with memprof.open(f, size_min=70001, size_max=70001) as r:
                self.assertEqual(r.about().sums.live_blocks, 10)
            self.assertLessEqual(first.file_bytes, os.path.getsize(f))
            s.pause()
            self.assertEqual(s.look().state, memprof.IS_PAUSED)
            self.do(p, "lib.lose(7, 70002)")
            s.resume()
            marked = s.mark("höhe")
            self.assertGreater(marked.time_ns, first.time_ns)
            self.do(p, "lib.lose(5, 70003)")
        self.assertTrue(s.closed)
        with memprof.open(f, size_min=70001, size_max=70003) as r:
            sizes = {(g.min_size, g.max_size): g.live_blocks for g in r.groups()}
            self.assertEqual(sizes, {(70001, 70001): 10, (70003, 70003): 5})
        with memprof.open(f, marker="höhe", size_min=70001) as r:
            self.assertEqual(r.about().sums.allocations, 5)
        # The first bytes of the file, up to a position, are a recording of what was before.
        with open(f, "rb") as whole, open(self.path("part"), "wb") as part:
            part.write(whole.read(first.file_bytes))
        with memprof.open(self.path("part"), size_min=70001) as r:
            self.assertEqual((r.about().sums.live_blocks, r.about().sums.live_bytes), (10, 700010))
            self.assertTrue(r.about().incomplete)

    def test_groups_and_frames(self):
        """groups have their sums, and frames their functions, lines and libraries, as in memprof report"""
        p, f = self.python(), self.path("rëc")
        with memprof.attach(p.pid, f):
            self.do(p, "lib.keep(10, 70001)")
            self.do(p, "lib.burst(9000000)")
        with memprof.open(f) as r:
            about = r.about()
            self.assertEqual((about.pid, about.incomplete, about.executable), (p.pid, None, os.path.realpath(sys.executable)))
            live, peak = (next(r.groups(by)) for by in (memprof.LIVE_BYTES, memprof.PEAK_BYTES))
            self.assertEqual((live.live_blocks, live.live_bytes), (10, 700010))
            self.assertEqual((peak.peak_bytes, peak.live_bytes), (9000000, 0))
            self.assertGreaterEqual(about.sums.peak_bytes, 9700010)
            frames = {x.function: x for x in live.stack}
            self.assertEqual((frames["keep"].library, frames["keep"].inlined), ("libleaky.so", False))
            self.assertEqual(os.path.basename(frames["keep"].source), "leaky_module.c")
            self.assertGreater(frames["keep"].line, 0)
            self.assertIn("burst", [x.function for x in peak.stack])
            self.assertIn("leaky_module.c", str(frames["keep"]))
            self.assertEqual(r.frames(0), [])
            self.assertEqual(r.frames(0xffffffff), [])
            for by, name in ((memprof.LIVE_BYTES, "live_bytes"), (memprof.ALLOCATIONS, "allocations")):
                costs = [getattr(g, name) for g in r.groups(by)]
                self.assertEqual(costs, sorted(costs, reverse=True))
                self.assertGreater(min(costs), 0)
            report = self.report(f)
            self.assertEqual(about.sums.allocations, report["totals"]["allocations"])
            self.assertEqual(set(r.losses()), set(report["losses"]))
            self.assertEqual({k: report["losses"][k] for k in r.losses()}, r.losses())

    def test_exact(self):
        """the sums are those that a program with many threads counted itself"""
        p, f = self.victim("exact", 4, 100000, "wait", stdin=subprocess.PIPE), self.path("r")
        with memprof.attach(p.pid, f, flags=memprof.LOSSLESS) as s:
            p.stdin.write("go\n")
            p.stdin.flush()
            truth = json.loads(p.stdout.readline())
        # Not the markers of the victim, and not what glibc allocates for a thread.
        with memprof.open(f, size_max=7000000, negative_function_regex="pthread_create") as r:
            sums = r.about().sums
            self.assertEqual((sums.live_blocks, sums.live_bytes, sums.allocated_bytes),
                             (truth["live_blocks"], truth["live_bytes"], truth["allocated_bytes"]))
            self.assertEqual(sum(g.allocated_bytes for g in r.groups(memprof.ALLOCATED_BYTES)), sums.allocated_bytes)

    def test_end_of_process(self):
        """the process ends: wait() and the descriptor report it, the recording is complete, and requests raise ENDED"""
        p = self.python()
        with memprof.attach(p.pid, self.path("r")) as s:
            self.assertEqual((s.wait(0), s.wait(0.01)), (False, False))
            self.assertEqual(select.select([s], [], [], 0)[0], [])
            self.do(p, "lib.keep(1000, 80001)")
            p.stdin.close()
            self.assertTrue(s.wait())
            self.assertTrue(s.wait(0))
            self.assertEqual(select.select([s], [], [], 0)[0], [s])
            self.assertEqual((s.look().state, s.look().lost), (memprof.IS_COMPLETE, 0))
            self.fails(memprof.ENDED, s.flush)
            self.fails(memprof.ENDED, s.mark, "late")
        with memprof.open(self.path("r"), size_min=80001, size_max=80001) as r:
            self.assertEqual((r.about().sums.allocations, r.about().incomplete), (1000, None))

    def test_restored(self):
        """after stop() the process is as before; stop() and close() can be repeated"""
        p = self.victim("churn", 2, 100)
        before = t.identity(p.pid)
        s = memprof.attach(p.pid, self.path("r"))
        self.assertTrue(self.recorder(p.pid))
        s.stop()
        s.stop()
        after = t.identity(p.pid)
        for k in ("text", "fds", "tasks"):
            self.assertEqual(before[k], after[k], k)
        s.close()
        s.close()
        self.finish(p)

    def test_callbacks(self):
        """messages and progress arrive; an exception in a callback harms nothing, and callbacks live as long as the session"""
        p, seen, lines = self.python(), [], []
        with memprof.attach(p.pid, self.path("r"), progress=lambda x: seen.append(x), message=lambda x: lines.append(x)) as s:
            gc.collect()
            self.do(p, "lib.keep(3, 90001)")
            t.wait_for(lambda: len(seen) > 1)
        self.assertEqual((seen[0].state, seen[-1].state), (memprof.IS_RECORDING, memprof.IS_COMPLETE))
        self.assertGreaterEqual(seen[-1].allocations, 3)
        self.assertTrue(all(isinstance(x, str) and "\n" not in x for x in lines))
        out = self.script("""
            import sys, memprof
            def bad(_):
                raise KeyError("in a callback")
            with memprof.attach(int(sys.argv[1]), sys.argv[2], progress=bad) as s:
                s.flush()
            print("complete")""", p.pid, self.path("r"))
        self.assertIn("complete", out)
        self.assertIn("in a callback", out)
        self.do(p, "pass")

    def test_filters(self):
        """filters: a keyword's underscore, truth values, several values of one filter, and errors that name the field"""
        p, f = self.python(), self.path("r")
        with memprof.attach(p.pid, f, flags=memprof.HISTORY):
            self.do(p, "lib.keep(3, 70001)")
            self.do(p, "lib.burst(300000)")

        def counted(**filters):
            with memprof.open(f, size_min=70001, size_max=300000, **filters) as r:
                return r.about().sums.allocations
        self.assertEqual(counted(), 4)
        self.assertEqual((counted(lifetime="only_leaked"), counted(lifetime="only-temporary")), (3, 1))
        self.assertEqual((counted(from_="0%", to="100%"), counted(from_="100%")), (4, 0))
        self.assertEqual((counted(mmaped=True), counted(mmaped=False)), (1, 3))
        self.assertEqual((counted(thread=[p.pid, "nobody"]), counted(thread=["nobody"])), (4, 0))
        self.assertEqual(counted(function_regex="^keep$"), 3)
        self.assertIn("colour", str(self.fails(memprof.USAGE, memprof.open, f, colour="red")))
        self.assertIn("lifetime", str(self.fails(memprof.USAGE, memprof.open, f, lifetime="eternal")))

    def test_leaks(self):
        """leaks: counts, sizes, and stacks of those that were allocated during the recording"""
        p = self.python()
        self.do(p, "lib.lose(50, 60001)")
        with memprof.attach(p.pid, self.path("r")):
            self.do(p, "lib.lose(100, 50001)")
            with memprof.leaks(p.pid) as leaks:
                about, found = leaks.about(), list(leaks)
                self.assertEqual((about.exact, about.no_stacks), (True, None))
                self.assertEqual([x.example for x in leaks], [x.example for x in found])
                # An old value of a register or in a stack can keep one.
                during = [x for x in found if 50001 <= x.block_size < 51000]
                before = [x for x in found if 60001 <= x.block_size < 61000]
                self.assertTrue(90 <= sum(x.count for x in during) <= 100, found)
                self.assertTrue(40 <= sum(x.count for x in before) <= 50, found)
                self.assertEqual({x.stack_id for x in before}, {0})
                for x in during:
                    self.assertIn("lose", [f.function for f in x.stack])
                    self.assertEqual(x.thread, p.pid)
                    self.assertGreater(x.age_ns, 0)
                self.assertEqual(before[0].stack, [])
            with memprof.leaks(p.pid, recording=self.path("r"), mode=memprof.MODE_IN_PLACE, no_content=True) as leaks:
                self.assertTrue(any("lose" in [f.function for f in x.stack] for x in leaks))
                self.assertEqual({x.preview for x in leaks}, {None})
        with memprof.leaks(p.pid) as leaks:
            self.assertTrue(leaks.about().no_stacks)
            self.assertEqual({x.stack_id for x in leaks}, {0})

    def test_heap(self):
        """the heap by type, and of what the resident memory consists"""
        p = self.victim("objects")
        with memprof.heap(p.pid) as heap:
            about, types = heap.about(), list(heap)
            self.assertTrue(about.exact)
            self.assertEqual(sum(x.count for x in types), about.live_blocks)
            self.assertEqual(sum(x.bytes for x in types), about.live_bytes)
            self.assertEqual([x.bytes for x in heap], sorted((x.bytes for x in types), reverse=True))
            self.assertEqual(sum(getattr(about, n) for n in ("live", "cached", "metadata", "free", "stacks", "modules_data",
                                                             "modules_text", "files", "shared", "anonymous")), about.total)
            self.assertTrue(any(x.type == "app::Node" and os.path.basename(x.library) == "objects" for x in types), types)


class Misuse(Module):
    def test_errors(self):
        """errors have their code, errno and text"""
        p, f = self.python(), self.path("r")
        gone = self.start("true")
        gone.wait()
        for function in (memprof.attach, memprof.leaks, memprof.heap):
            self.fails(memprof.NO_PROCESS, function, gone.pid)
        self.fails(memprof.USAGE, memprof.attach, p.pid, f, flags=1 << 40)
        self.fails(memprof.USAGE, memprof.attach, p.pid, self.path("%q"))
        self.fails(memprof.RECORDING, memprof.open, "/bin/true")
        self.assertEqual(self.fails(memprof.RECORDING, memprof.open, self.path("none")).errno, 2)
        self.assertIn("No such file", str(self.fails(memprof.OUTPUT, memprof.attach, p.pid, self.path("none/r"))))
        with memprof.attach(p.pid, f) as s:
            self.fails(memprof.ATTACHED, memprof.attach, p.pid, self.path("other"))
            for name in ("", "two\nlines", "x" * 401):
                self.fails(memprof.USAGE, s.mark, name)
        with memprof.open(f) as r:
            self.fails(memprof.USAGE, r.groups, by=99)
        self.do(p, "pass")

    def test_wrong_values(self):
        """what C would cut off or ignore is refused: names of options, numbers that are too large, null bytes"""
        for options in ({"colour": 1}, {"size": 8}):
            self.assertRaises(TypeError, memprof.attach, os.getpid(), **options)
        for options in ({"depth": 1 << 32}, {"depth": -1}, {"for_ms": 1 << 64}):
            self.assertRaises(OverflowError, memprof.attach, os.getpid(), **options)
        self.assertRaises(TypeError, memprof.attach, os.getpid(), depth=1.5)
        self.assertRaises(OverflowError, memprof.attach, os.getpid() + (1 << 32))
        self.assertRaises(ValueError, memprof.attach, os.getpid(), "a\0b")
        self.assertRaises(ValueError, memprof.open, "a\0b")
        self.assertRaises(ValueError, memprof.open, "x", thread="a\0b")
        self.assertRaises(TypeError, memprof.attach, "1")

    def test_closed(self):
        """closed objects raise ValueError, also iterators that have begun; closing again does nothing"""
        p, f = self.python(), self.path("r")
        s = memprof.attach(p.pid, f)
        self.do(p, "lib.lose(100, 50001)")
        leaks, heap = memprof.leaks(p.pid), memprof.heap(p.pid)
        leak = next(iter(leaks))
        s.close()
        r = memprof.open(f)
        begun, fresh, ended = r.groups(), r.groups(memprof.PEAK_BYTES), r.groups()
        group = next(begun)
        ended.close()
        for x in (r, leaks, heap, s):
            x.close()
            x.close()
            self.assertTrue(x.closed)
        for use in (s.look, s.flush, s.pause, s.resume, s.wait, s.stop, s.fileno, lambda: s.mark("x"), r.about, r.losses, r.groups,
                    lambda: r.frames(1), lambda: next(begun), lambda: next(fresh), lambda: group.stack, leaks.about,
                    lambda: list(leaks), lambda: leak.stack, heap.about, lambda: list(heap)):
            self.assertRaises(ValueError, use)
        self.assertEqual(s.path, f)
        self.assertGreater(group.live_bytes + leak.bytes, 0)
        begun.close()
        del begun, fresh, group, leak

    def test_not_closed(self):
        """what was not closed: garbage, and a Python that ends, leave the process as it was"""
        p = self.python()
        before = t.identity(p.pid)
        out = self.script("""
            import gc, sys, memprof
            pid, path = int(sys.argv[1]), sys.argv[2]
            memprof.attach(pid, path)
            gc.collect()
            kept = memprof.attach(pid, path)
            r = memprof.open(path)
            groups = r.groups()
            next(groups, None)
            print("end")""", p.pid, self.path("r"))
        self.assertEqual(out, "end\n")
        after = t.identity(p.pid)
        for k in ("text", "fds", "tasks"):
            self.assertEqual(before[k], after[k], k)
        self.do(p, "lib.keep(1, 1)")
        self.memprof("verify", self.path("r"))

    def test_fork(self):
        """a forked child can neither use nor end its parent's session, and its end does not end it"""
        p = self.python()
        out = self.script("""
            import os, sys, memprof
            with memprof.attach(int(sys.argv[1]), sys.argv[2]) as s:
                if not os.fork():
                    try:
                        s.flush()
                    except ValueError:
                        print("refused", flush=True)
                    s.close()
                    sys.exit()
                os.wait()
                s.flush()
                print(s.look().state)""", p.pid, self.path("r"))
        self.assertEqual(out.split(), ["refused", str(memprof.IS_RECORDING)])

    def test_threads(self):
        """threads use a session while another closes it: each call returns or raises"""
        p, ends = self.python(), []
        s = memprof.attach(p.pid, self.path("r"))

        def use(f):
            try:
                while True:
                    f()
            except (memprof.Error, ValueError) as e:
                ends.append(e)
        begun = s.look().duration_ns
        threads = [threading.Thread(target=use, args=(f,)) for f in (s.flush, s.flush, s.look, s.wait, lambda: s.mark("x"))]
        for x in threads:
            x.start()
        t.wait_for(lambda: s.look().duration_ns > begun + 50000000)
        s.close()
        for x in threads:
            x.join()
        self.assertEqual(len(ends), len(threads))
        self.assertEqual([e for e in ends if isinstance(e, memprof.Error) and e.code != memprof.ENDED], [])
        self.memprof("verify", self.path("r"))

    def test_interrupt(self):
        """Ctrl-C ends wait()"""
        p = self.python()
        waiter = self.start(sys.executable, "-c", textwrap.dedent("""
            import sys, memprof
            with memprof.attach(int(sys.argv[1]), sys.argv[2]) as s:
                try:
                    print("waits", flush=True)
                    s.wait()
                except KeyboardInterrupt:
                    print("interrupted")"""), str(p.pid), self.path("r"))
        self.assertEqual(waiter.stdout.readline(), "waits\n")
        waiter.send_signal(signal.SIGINT)
        self.assertEqual(waiter.communicate(timeout=120)[0], "interrupted\n")
        self.assertEqual(waiter.returncode, 0)


CONFTEST = """
import ctypes, os, pytest
lib = ctypes.CDLL(os.environ["LEAKY"])
lib.burst.argtypes = lib.flood.argtypes = [ctypes.c_size_t]
lib.keep.argtypes = lib.lose.argtypes = [ctypes.c_int, ctypes.c_size_t]

@pytest.fixture
def leaky():
    return lib

@pytest.fixture
def fixture_of_9_mb():
    lib.burst(9 << 20)
    yield
    lib.burst(9 << 20)
"""


class Plugin(Module):
    """Runs pytest on test files.  Each run must leave no processes and no temporary files."""
    def setUp(self):
        super().setUp()
        for name in ("tests", "tmp"):
            os.mkdir(self.path(name))
        self.env = dict(os.environ, LEAKY=self.library, TMPDIR=self.path("tmp"))
        self.write("conftest.py", CONFTEST)

    def write(self, name, text):
        with open(self.path("tests/" + name), "w") as f:
            f.write(textwrap.dedent(text))

    def begin(self, *options, prefix=()):
        return self.start(*prefix, sys.executable, "-m", "pytest", "-p", "memprof.pytest_plugin", "-p", "no:cacheprovider", "-rA",
                          "--color=no", *options, cwd=self.path("tests"), env=self.env, stderr=subprocess.STDOUT)

    def left(self, pid):
        """Asserts that nothing is left of a run that had this pid."""
        for other in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = t.read(f"/proc/{other}/cmdline").split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            self.assertNotEqual([os.path.basename(x) for x in command[2:4]], [b"_helper.py", str(pid).encode()])
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def run_tests(self, text, *options, prefix=(), status=None, **env):
        """Runs a test file; returns the output, and what became of each test."""
        self.write("test_it.py", text)
        self.env.update(env)
        p = self.begin(*options, prefix=prefix)
        out = p.communicate(timeout=300)[0]
        results = {name: result for result, name in re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) test_it\.py::(\S+)", out, re.M)}
        self.left(p.pid)
        if status is not None:
            self.assertEqual(p.returncode, status, out)
        return out, results

    def told(self, out, name):
        """What pytest prints about a test that failed."""
        return re.search(rf"^_+ (?:ERROR at setup of )?(?:\w+\.)?{name} _+\n(.*?)(?=^[_=]+ )", out, re.M | re.S)[1]

    def test_limits(self):
        """limits of the peak: what is above fails with the peak, the limit and the stacks; fixtures do not count"""
        out, results = self.run_tests("""
            import pytest, unittest
            from conftest import lib
            limit = pytest.mark.limit_memory

            @limit("10 MB")
            def test_above(leaky):
                leaky.burst(11 << 20)
                leaky.burst(1 << 20)

            @limit("10 MB")
            def test_below(leaky):
                for _ in range(5):
                    leaky.burst(9 << 20)

            @limit("8MiB")
            def test_fixture(fixture_of_9_mb, leaky):
                leaky.burst(7 << 20)

            @limit("5 MB")
            def test_just_above(leaky):
                leaky.burst(5 << 20)

            @limit("7.5m")
            @pytest.mark.parametrize("mb", [7, 8])
            def test_parameter(leaky, mb):
                leaky.burst(mb << 20)

            @limit(8000000)
            class TestOfClass:
                def test_inherits(self, leaky):
                    leaky.burst(8000001)

                @limit("9 MB")
                def test_own(self, leaky):
                    leaky.burst(8000001)

            class TestUnittest(unittest.TestCase):
                @limit("1 MB")
                def test_case_above(self):
                    lib.burst(2 << 20)

                @limit("1 MB")
                def test_case_fails(self):
                    lib.burst(2 << 20)
                    self.assertEqual(1, 2)

                @limit("3 MB")
                def test_case_below(self):
                    lib.burst(2 << 20)

            def test_unmarked(leaky):
                leaky.burst(50 << 20)
            """, status=1)
        failed = {"test_above", "test_just_above", "test_parameter[8]", "TestOfClass::test_inherits", "TestUnittest::test_case_above",
                  "TestUnittest::test_case_fails"}
        self.assertEqual({n for n, r in results.items() if r == "FAILED"}, failed, out)
        self.assertEqual(len(results), 12, out)
        above = self.told(out, "test_above")
        self.assertRegex(above, r"had 11\.\d MiB allocated at its peak, more than its limit of 10\.0 MiB")
        self.assertRegex(above, r"\n  11\.0 MiB in 1 block\n(?: .*\n)*?      burst \(\S*leaky_module\.c:\d+\)\n")
        self.assertIn("--memprof-dir DIR", above)
        self.assertRegex(self.told(out, "test_just_above"), r"had 5,24\d,\d{3} B .* limit of 5,242,880 B")
        fails = self.told(out, "test_case_fails")
        self.assertIn("1 != 2", fails)
        self.assertNotIn("MiB", fails)
        self.assertNotIn("memprof:", out)

    def test_leaks(self):
        """leaks=N: what the test leaked is counted and shown with its stack; what is reachable, or older, is not"""
        out, results = self.run_tests("""
            import pytest
            limit = pytest.mark.limit_memory

            def test_leaks_before(leaky):
                leaky.lose(300, 4000)

            @limit(leaks=0)
            def test_leaks_many(leaky):
                leaky.lose(300, 5000)

            @limit(leaks=1000)
            def test_leaks_permitted(leaky):
                leaky.lose(300, 6000)

            @limit(leaks=0)
            def test_keeps(leaky):
                leaky.keep(300, 7000)
                leaky.burst(7000)

            @limit(leaks=0)
            def test_garbage():
                for _ in range(300):
                    ring = [bytearray(8000)]
                    ring.append(ring)

            @limit("1 MB", leaks=0)
            def test_both(leaky):
                leaky.lose(300, 9000)
            """, status=1)
        self.assertEqual({n for n, r in results.items() if r == "FAILED"}, {"test_leaks_many", "test_both"}, out)
        self.assertEqual(len(results), 6, out)
        many = self.told(out, "test_leaks_many")
        # An old value somewhere in Python can keep a block, and so what the analysis counts is at most the truth.
        found = re.search(r"leaked (\d+) blocks of (\S+) (\S+), 0 permitted:\n  (\S+ \S+) in (\d+) blocks \((.*)\)", many)
        self.assertTrue(200 <= int(found[1]) <= 300, many)
        self.assertIn("zeros", found[6])
        self.assertRegex(many, r"\n      lose \(\S*leaky_module\.c:\d+\)\n")
        both = self.told(out, "test_both")
        self.assertIn("limit of 1.0 MiB", both)
        self.assertIn("0 permitted", both)

    def test_arguments(self):
        """wrong arguments are an error of the test that names them"""
        wrong = {"(\"10 XB\")": "10 XB", "()": "neither a size nor leaks", "(leaks=-1)": "leaks=-1", "(leaks=True)": "leaks=True",
                 "(\"1 MB\", 3)": "positional argument", "(colour=1)": "colour", "(-5)": "-5", "(\"\")": "''", "(leaks=\"1\")": "'1'"}
        out, results = self.run_tests("import pytest\n" + "".join(
            f"@pytest.mark.limit_memory{x}\ndef test_{i}():\n    pass\n" for i, x in enumerate(wrong)), status=1)
        self.assertEqual(results, {f"test_{i}": "ERROR" for i in range(len(wrong))}, out)
        for i, text in enumerate(wrong.values()):
            self.assertIn("limit_memory: ", self.told(out, f"test_{i}"))
            self.assertIn(text, self.told(out, f"test_{i}"))
        out, results = self.run_tests("import pytest\n" + "".join(
            f"@pytest.mark.limit_memory({x})\ndef test_{i}():\n    pass\n"
            for i, x in enumerate(('"1 gb"', '"100000"', '"1.5MiB"', '"64 K"', "100000", '"99999B"', '"1 TiB", leaks=0'))), status=0)
        self.assertEqual(set(results.values()), {"PASSED"}, out)

    def test_own_outcome(self):
        """what a test does itself wins: its failure, skip and xfail; a test that is expected to fail can do so by its limit"""
        out, results = self.run_tests("""
            import pytest
            pytestmark = pytest.mark.limit_memory("1 MB", leaks=0)

            def test_fails(leaky):
                leaky.burst(5 << 20)
                raise KeyError("its own")

            def test_skips(leaky):
                leaky.burst(5 << 20)
                pytest.skip("now")

            def test_xfails(leaky):
                leaky.burst(5 << 20)
                pytest.xfail("now")

            @pytest.mark.skipif(True, reason="always")
            def test_never():
                pass

            @pytest.mark.xfail
            def test_expected(leaky):
                leaky.burst(5 << 20)

            @pytest.mark.xfail(strict=True)
            def test_unexpected():
                pass

            def test_raises(leaky):
                with pytest.raises(ZeroDivisionError):
                    1 / 0
            """, status=1)
        self.assertEqual(results, {"test_fails": "FAILED", "test_xfails": "XFAIL", "test_expected": "XFAIL",
                                   "test_unexpected": "FAILED", "test_raises": "PASSED"}, out)
        self.assertIn("2 failed, 1 passed, 2 skipped, 2 xfailed", out)
        self.assertIn("its own", self.told(out, "test_fails"))
        self.assertNotIn("MiB", self.told(out, "test_fails"))

    def test_list(self):
        """--memprof records all tests and lists those with the highest peaks; --memprof-dir keeps readable recordings"""
        out, results = self.run_tests("""
            import pytest

            @pytest.mark.parametrize("mb", range(1, 12))
            def test_peak(leaky, mb):
                leaky.burst(mb << 20)

            @pytest.mark.limit_memory("100 MB")
            def test_many(leaky):
                leaky.keep(1000, 30000)

            @pytest.mark.parametrize("x", ["a/b", "a b", "%p"])
            def test_name(leaky, x):
                leaky.burst(1000)

            def test_skips():
                pytest.skip("")
            """, "--memprof", "--memprof-dir", "kept", "--memprof-most", "5", status=0)
        table = out[out.index("memprof: 5 of 16 tests"):]
        rows = re.findall(r"^ *(\S+ \S+) +(\S+ \S+) +([\d,]+)  test_it\.py::(\S+)$", table, re.M)
        self.assertEqual([r[3] for r in rows], ["test_many"] + [f"test_peak[{n}]" for n in (11, 10, 9, 8)], out)
        self.assertRegex(rows[0][0], r"^28\.[67] MiB$")
        self.assertGreaterEqual(int(rows[0][2].replace(",", "")), 1000)
        kept = self.path("tests/kept/")
        self.assertEqual(len(os.listdir(kept)), 16)
        self.assertTrue(all(re.fullmatch(r"[A-Za-z0-9_.-]+\.memprof", f) for f in os.listdir(kept)), os.listdir(kept))
        totals = self.report(kept + "test_it.py-test_peak-11.memprof")["totals"]
        self.assertTrue(11 << 20 <= totals["peak_bytes"] < 12 << 20)
        self.memprof("verify", kept + "test_it.py-test_many.memprof")
        out, _ = self.run_tests("def test_peak(leaky):\n    leaky.burst(1)\n", "--memprof-dir", "kept", status=0)
        self.assertNotIn("memprof:", out)
        self.assertEqual(len(os.listdir(kept)), 16)

    def test_not_possible(self):
        """without the library, a marked test fails with the reason, and the others pass"""
        out, results = self.run_tests("""
            import pytest
            @pytest.mark.limit_memory("1 GB")
            def test_marked():
                pass
            def test_unmarked():
                pass
            """, LIBMEMPROF=self.path("none.so"), status=1)
        self.assertEqual(results, {"test_marked": "FAILED", "test_unmarked": "PASSED"}, out)
        self.assertIn(self.path("none.so"), self.told(out, "test_marked"))

    def test_unprivileged(self):
        """an ordinary user's tests are measured; where attaching is not permitted, a marked test fails with the reason"""
        for path in (self.dir, self.path("tests"), self.path("tmp")):
            os.chmod(path, 0o777)
        # The folder of memprof's sources can be closed to the user.
        shutil.copytree(PACKAGE + "/memprof", self.path("package/memprof"))
        shutil.copy(LIBRARY, self.dir)
        out, results = self.run_tests("""
            import ctypes, pytest
            limit = pytest.mark.limit_memory("10 MB", leaks=0)

            @limit
            def test_below(leaky):
                leaky.burst(1 << 20)

            @limit
            def test_above(leaky):
                leaky.burst(11 << 20)

            def test_not_dumpable():
                ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)

            @limit
            def test_not_permitted():
                pass
            """, prefix=t.UNPRIVILEGED, status=1, PYTHONPATH=self.path("package"), LIBMEMPROF=self.path("libmemprof.so.1"))
        self.assertEqual(results, {"test_below": "PASSED", "test_above": "FAILED", "test_not_dumpable": "PASSED",
                                   "test_not_permitted": "FAILED"}, out)
        self.assertIn("limit of 10.0 MiB", self.told(out, "test_above"))
        self.assertRegex(self.told(out, "test_not_permitted"), "cannot measure this test: .*(?i:permi|ptrace)")

    def test_losses(self):
        """events that are lost while the helper does not run: a test within its limit warns, one above it says so"""
        text = """
            import os, pytest, signal
            from conftest import lib

            def lose_events():
                helper = int(open(f"/proc/self/task/{os.getpid()}/children").read())
                os.kill(helper, signal.SIGSTOP)
                lib.flood(3000000)
                os.kill(helper, signal.SIGCONT)

            @pytest.mark.limit_memory("10 MB")
            def test_below():
                lose_events()

            @pytest.mark.limit_memory("1 MB")
            def test_above():
                lib.burst(2 << 20)
                lose_events()
            """
        out, results = self.run_tests(text, "--memprof", status=1)
        doubt = r"(?:[\d,]+ events? lost|[\d,]+ allocations? estimated from others)"
        self.assertEqual(results, {"test_below": "PASSED", "test_above": "FAILED"}, out)
        self.assertRegex(out, rf"MemprofWarning: test_below kept its memory limit, but not for certain: {doubt}")
        self.assertRegex(self.told(out, "test_above"), rf"The figures are not exact: {doubt}")
        self.assertRegex(out, rf"test_it\.py::test_below \({doubt}")
        out, results = self.run_tests(text, "-W", "error::memprof.pytest_plugin.MemprofWarning", "-k", "below", status=1)
        self.assertEqual(results, {"test_below": "FAILED"}, out)

    def test_costs_nothing(self):
        """without marks and options there is no helper, and the library is not loaded"""
        self.run_tests("""
            import os, sys
            def test_it():
                assert open(f"/proc/self/task/{os.getpid()}/children").read() == ""
                assert "libmemprof" not in open("/proc/self/maps").read()
                assert "memprof._client" not in sys.modules
            """, status=0)

    def test_forks_and_children(self):
        """a test that forks, starts programs and threads, and waits for its own children, is measured"""
        out, results = self.run_tests("""
            import asyncio, os, pytest, subprocess, sys, threading
            pytestmark = pytest.mark.limit_memory("10 MB")

            def test_fork(leaky):
                pid = os.fork()
                if not pid:
                    leaky.burst(20 << 20)
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0

            def test_program():
                subprocess.run([sys.executable, "-c", "x = bytearray(20 << 20)"], check=True)

            def test_thread(leaky):
                x = threading.Thread(target=leaky.burst, args=(11 << 20,))
                x.start()
                x.join()

            def test_async(leaky):
                async def work():
                    await asyncio.sleep(0)
                    leaky.burst(11 << 20)
                asyncio.run(work())

            def test_folder(tmp_path, monkeypatch):
                monkeypatch.chdir(tmp_path)
            """, "--memprof-dir", "kept", "--basetemp", self.path("base"), status=1)
        self.assertEqual(results, {"test_fork": "PASSED", "test_program": "PASSED", "test_thread": "FAILED", "test_async": "FAILED",
                                   "test_folder": "PASSED"}, out)
        self.assertEqual(len(os.listdir(self.path("tests/kept"))), 5)

    def test_killed(self):
        """pytest is interrupted or killed in a test: the helper ends, and its files are gone"""
        for sig in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
            self.write("test_it.py", """
                import pytest, time
                @pytest.mark.limit_memory("1 MB")
                def test_long():
                    print("begun", flush=True)
                    time.sleep(600)
                """)
            p = self.begin("-s")
            for line in p.stdout:
                if "begun" in line:
                    break
            p.send_signal(sig)
            p.communicate(timeout=120)
            t.wait_for(lambda: os.listdir(self.path("tmp")) == [])

            def gone():
                try:
                    self.left(p.pid)
                except AssertionError:
                    return False
                return True
            t.wait_for(gone)


if __name__ == "__main__":
    t.main()
