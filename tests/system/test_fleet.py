#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof attach with several processes, a name or --all: one recorder for all of them, new ones are followed, and it is said
which are left out and why."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import memprof_test as t


def flood(p):
    """Has the program allocate.  Return: its numbers since its start."""
    p.stdin.write("go\n")
    p.stdin.flush()
    return json.loads(p.stdout.readline())


def children(pid):
    return [int(p) for p in t.read(f"/proc/{pid}/task/{pid}/children").split()]


def own(name):
    """Return: a name that no other run of this test uses; at most 15 characters, as the kernel keeps them."""
    return f"{name}-{os.getpid()}"


def sees_kernel_threads():
    """Not in a pid namespace, such as that of scripts/check-fresh."""
    return os.path.exists("/proc/2/comm") and t.read("/proc/2/comm") == b"kthreadd\n"


def cpu_ns(pid):
    return sum(int(t.read(f"/proc/{pid}/task/{tid}/schedstat").split()[0]) for tid in os.listdir(f"/proc/{pid}/task"))


class Fleet(t.Case):
    def named(self, name, *args):
        """Starts flood under a name of its own."""
        f = self.path(name)
        if not os.path.exists(f):
            shutil.copy(t.VICTIMS + "/flood", f)
        p = self.start(f, *map(str, args or (1, 1000)), stdin=subprocess.PIPE)
        t.settle(p.pid)
        return p

    def attach(self, *options, prefix=()):
        err = open(self.path("errors"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(err.close)
        return self.start(*prefix, t.MEMPROF, "attach", *map(str, options), stderr=err)

    def errors(self):
        return t.read(self.path("errors")).decode()

    def lines(self, rec, pattern, n=1):
        """Reads the output until n lines have matched.  Return: all."""
        out = []
        while n:
            line = rec.stdout.readline()
            if not line:
                raise AssertionError(f"{out}{self.errors()}")
            out.append(line)
            n -= bool(re.search(pattern, line))
        return "".join(out)

    def end(self, rec, status=0):
        rec.send_signal(signal.SIGINT)
        out, _ = rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, status, out + self.errors())
        return out

    def sums(self, d, pid):
        """Return: allocations in the profiles of a process."""
        total = 0
        for f in glob.glob(f"{d}/*-{pid}-*"):
            out = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=alloc_objects", f], capture_output=True, text=True,
                                 check=True).stdout
            total += int(re.search(r"of (\d+) total|$", out)[1] or 0)
        return total

    def untouched(self, found):
        for pid, was in found.items():
            is_now = t.identity(pid)
            for what in ("text", "fds", "tasks", "signals"):
                self.assertEqual(is_now[what], was[what], what)
            self.assertNotIn("memprof-session", t.maps(pid))

    def test_several(self):
        """several -p: one recorder, each process has its own exact profiles, and is left as it was"""
        d = self.path("profiles")
        victims = [self.named("shop") for _ in range(3)]
        before = [flood(p)["mallocs"] for p in victims]
        found = {p.pid: t.identity(p.pid) for p in victims}
        rec = self.attach("-p", victims[0].pid, "-p", f"{victims[1].pid},{victims[2].pid}", "--push", d, "--every", "1s")
        self.lines(rec, "recording process", 3)
        recorder, = children(rec.pid)
        self.assertEqual({self.recorder(pid) for pid in found}, {recorder})
        after = [flood(p)["mallocs"] for p in victims]
        time.sleep(1.5)
        self.assertRegex(self.end(rec), r"pushed \d+ profiles")
        self.assertEqual([self.sums(d, pid) for pid in found], [a - b for a, b in zip(after, before)])
        self.assertEqual({os.path.basename(f).split("-")[1] for f in glob.glob(d + "/*")}, {str(pid) for pid in found})
        self.untouched(found)
        self.assertEqual(self.errors(), "")

    def test_recordings(self):
        """-o with %p: a recording of each process"""
        victims = [self.named("shop") for _ in range(2)]
        before = [flood(p)["mallocs"] for p in victims]
        rec = self.attach("-p", f"{victims[0].pid} {victims[1].pid}\n", "-o", self.path("%p.memprof"))
        self.lines(rec, "recording process", 2)
        after = [flood(p)["mallocs"] for p in victims]
        self.end(rec)
        self.assertEqual([self.report(self.path(f"{p.pid}.memprof"))["totals"]["allocations"] for p in victims],
                         [a - b for a, b in zip(after, before)])
        self.assertIn("needs %p", self.memprof("attach", "-p", 1, "-p", 2, "-o", self.path("x"), status=2).stderr)

    def test_name(self):
        """-n with --push: all processes of this name, also those that start later; the end of one is told"""
        first = self.named(own("name"))
        rec = self.attach("-n", own("name"), "--push", self.path("d"))
        self.lines(rec, rf"recording process {first.pid} \({own('name')}\)")
        second = self.named(own("name"))
        self.lines(rec, rf"recording process {second.pid} \({own('name')}\)")
        first.kill()
        first.wait(60)
        self.lines(rec, rf"process {first.pid} \({own('name')}\) has ended")
        self.end(rec)

    def test_all(self):
        """--all --comm: those that match, and how many are left out for which reason; a program that executes another one"""
        mine = [self.named(own("all")) for _ in range(2)]
        other = self.named(own("other"))
        time.sleep(5)
        found = {p.pid: t.identity(p.pid) for p in mine}
        rec = self.attach("--all", "--comm", f"^{own('all')}$", "--push", self.path("d"))
        out = self.lines(rec, "recording process", 2)
        said = re.search(r"found 2 processes; left out: (.*)", out)[1]
        if sees_kernel_threads():
            self.assertRegex(said, r"[\d,]+ of the kernel or ending")
        self.assertRegex(said, r"[\d,]+ with a name that --comm does not match")
        self.assertRegex(said, r"\d+ memprof itself")
        self.assertEqual({int(p) for p in re.findall(r"recording process (\d+)", out)}, set(found))
        late = self.start("sh", "-c", f"read x; exec {self.path(own('all'))} 1 1000", stdin=subprocess.PIPE)
        time.sleep(1.2)
        late.stdin.write("\n")
        late.stdin.flush()
        self.lines(rec, rf"recording process {late.pid} \({own('all')}\)")
        self.assertNotIn("memprof-session", t.maps(other.pid))
        self.end(rec)
        self.untouched(found)

    def test_min_rss(self):
        """--min-rss: a process is recorded when it has become large enough"""
        p = self.start("/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'%s', 0, 0, 0)\n"
                       "print(flush=True); sys.stdin.readline(); x = bytearray(64 << 20)\nsys.stdin.readline()" % own("rss"),
                       stdin=subprocess.PIPE)
        p.stdout.readline()
        rec = self.attach("--all", "--comm", f"^{own('rss')}$", "--min-rss", "60M", "--metrics", "0")
        self.assertIn("1 smaller than --min-rss", self.lines(rec, "left out"))
        p.stdin.write("\n")
        p.stdin.flush()
        self.lines(rec, rf"recording process {p.pid} ")
        self.end(rec)

    def test_most(self):
        """--most: no more are recorded at the same time; when one ends, another one is"""
        victims = {p.pid: p for p in (self.named(own("most")) for _ in range(3))}
        rec = self.attach("--all", "--comm", f"^{own('most')}$", "--most", "2", "--metrics", "0")
        out = self.lines(rec, "recording process", 2)
        recorded = [int(pid) for pid in re.findall(r"recording process (\d+)", out)]
        left, = set(victims) - set(recorded)
        time.sleep(2)
        self.assertNotIn("memprof-session", t.maps(left))
        victims[recorded[0]].kill()
        victims[recorded[0]].wait(60)
        self.lines(rec, rf"recording process {left} ")
        self.end(rec)

    def test_refused(self):
        """a process that cannot be recorded is named, with the reason; the others are recorded"""
        sandbox = self.start(t.VICTIMS + "/sandbox", "strict", stdin=subprocess.PIPE)
        sandbox.stdout.readline()
        p = self.named("shop")
        rec = self.attach("-p", sandbox.pid, "-p", p.pid, "--push", self.path("d"))
        self.lines(rec, rf"recording process {p.pid} ")
        t.wait_for(lambda: re.search(rf"process {sandbox.pid} .*strict seccomp mode", self.errors()))
        self.end(rec, 11)

    def cgroup(self, name, pid):
        """Moves a process to a new cgroup of any version, removed after the test."""
        root = next((d for d in ("pids", "unified", "") if os.path.exists(f"/sys/fs/cgroup/{d}/cgroup.procs")), None)
        self.assertIsNotNone(root, "no cgroup is mounted")
        path = os.path.join("/sys/fs/cgroup", root, name)
        os.mkdir(path)
        self.addCleanup(os.rmdir, path)
        with open(path + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(pid))
        return path

    def test_cgroup(self):
        """--cgroup and --container: the processes in them, by their paths and ids"""
        group = f"memprof-test-{os.getpid()}"
        container = f"{os.getpid():064x}"
        a, b, c = (self.named(own("cgroup")) for _ in range(3))
        self.cgroup(group, a.pid)
        self.cgroup(f"docker-{container}.scope", b.pid)
        time.sleep(5)
        for option, recorded in ((("--cgroup", "/" + group), a), (("--cgroup", f"/sys/fs/cgroup/{group}/"), a),
                                 (("--cgroup", "/none", "--cgroup", "/" + group), a),
                                 (("--container", container), b), (("--container", container[:-2]), b)):
            rec = self.attach("--all", "--comm", f"^{own('cgroup')}$", *option, "--metrics", "0")
            out = self.lines(rec, "recording process")
            self.assertRegex(out, rf"recording process {recorded.pid} ")
            self.assertRegex(out, rf"2 not in the {option[0][2:]}")
            self.end(rec)
        self.assertNotIn("memprof-session", t.maps(c.pid))

    def test_cgroup_namespace(self):
        """--cgroup in a cgroup namespace, as a container has one: by the paths that process 1 sees; else it is an error"""
        group, inner = f"memprof-test-{os.getpid()}", f"memprof-test-inner-{os.getpid()}"
        p = self.named(own("inside"))
        self.cgroup(group, p.pid)
        time.sleep(5)
        namespace = self.start("sh", "-c", "read x; exec unshare --cgroup sleep 1000", stdin=subprocess.PIPE)
        self.cgroup(inner, namespace.pid)
        namespace.stdin.write("\n")
        namespace.stdin.flush()
        t.wait_for(lambda: t.read(f"/proc/{namespace.pid}/comm") == b"sleep\n")
        enter = ("nsenter", f"--cgroup=/proc/{namespace.pid}/ns/cgroup")
        self.assertIn(f"/../{group}\n", subprocess.check_output([*enter, "cat", f"/proc/{p.pid}/cgroup"], text=True))
        options = ("--all", "--comm", f"^{own('inside')}$", "--cgroup", "/" + group, "--metrics", "0")
        rec = self.attach(*options, prefix=enter)
        self.lines(rec, rf"recording process {p.pid} ")
        self.end(rec)
        rec = self.attach(*options, prefix=(*enter, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"))
        self.assertEqual(rec.wait(60), 4)
        self.assertIn("a cgroup namespace of its own", self.errors())

    def test_traced(self):
        """a process that another program traces is left out until that one has left"""
        p = self.named(own("traced"))
        time.sleep(5)
        tracer = self.start("strace", "-qq", "-e", "trace=none", "-o", "/dev/null", "-p", str(p.pid))
        t.wait_for(lambda: f"TracerPid:\t{tracer.pid}\n" in t.read(f"/proc/{p.pid}/status").decode())
        rec = self.attach("--all", "--comm", f"^{own('traced')}$", "--metrics", "0")
        self.lines(rec, "1 traced by another program at the moment")
        time.sleep(2)
        self.assertNotIn("memprof-session", t.maps(p.pid))
        tracer.terminate()
        self.lines(rec, rf"recording process {p.pid} ")
        self.end(rec)
        self.assertEqual(self.errors(), "")

    def test_permission(self):
        """processes that may not be traced are left out, and counted"""
        self.named(own("root"))
        time.sleep(5)
        rec = self.attach("--all", "--comm", f"^{own('root')}$", "--metrics", "0",
                          prefix=("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"))
        self.assertIn("found 0 processes", self.lines(rec, "1 without permission to trace them"))
        self.end(rec)

    def test_cost(self):
        """the cost of a recording is that of its own process, though one recorder has several"""
        quiet = self.start("/usr/bin/python3", "-c", "while True:\n for _ in range(100000): pass\n x = bytearray(5000)")
        busy = self.named("cost", 1, 20000)
        t.settle(quiet.pid)
        rec = self.attach("-p", f"{quiet.pid},{busy.pid}", "--overhead", "50%", "--push", self.path("d"))
        self.lines(rec, "recording process", 2)
        recorder, = children(rec.pid)
        before = cpu_ns(recorder), cpu_ns(quiet.pid)
        while cpu_ns(recorder) < before[0] + 1000000000:
            flood(busy)
        used = cpu_ns(recorder) - before[0]
        part = json.loads(self.memprof("status", "-p", quiet.pid, "--json").stdout)[0]["overhead"]["cost"]
        self.assertLess(part * (cpu_ns(quiet.pid) - before[1]), used / 2)
        self.end(rec)

    def test_many_end(self):
        """forty busy processes are all left as they were when the command ends"""
        victims = [self.named(own("many")) for _ in range(40)]
        found = {p.pid: t.identity(p.pid) for p in victims}
        rec = self.attach("-n", own("many"), "--push", self.path("d"))
        self.lines(rec, "recording process", 40)
        for p in victims:
            p.stdin.write("go\n")
            p.stdin.flush()
        self.end(rec)
        for p in victims:
            p.stdout.readline()
        self.assertEqual(self.errors(), "")
        self.untouched(found)

    def test_wrong(self):
        """options that cannot be meant are refused before a process is touched"""
        for options, status, message in ((("--all", "-p", "1"), 2, "--all cannot be used with -p and -n"),
                                         (("-p", "1", "--comm", "x"), 2, "--comm needs --all"),
                                         (("--all", "--comm", "("), 2, "--comm"),
                                         (("--all", "--cgroup", "x"), 2, "does not begin with a slash"),
                                         (("--all", "--container", "no-such-one"), 2, "no container of docker, podman"),
                                         (("--all", "--min-rss", "x"), 2, "--min-rss"),
                                         (("--all", "--most", "0"), 2, "--most"),
                                         (("--all", "--to", "h"), 2, "--to cannot be used with"),
                                         (("--all", "--background"), 2, "--background cannot be used with"),
                                         (("-p", "1,x", "--push", "d"), 2, "'1,x' is not"),
                                         (("-p", "4194300", "-p", "4194301", "--metrics", "0"), 3, "there is no process 4194300")):
            self.assertIn(message, self.memprof("attach", *options, status=status).stderr)
        if sees_kernel_threads():
            self.assertIn("process 2 (kthreadd) is a kernel thread",
                          self.memprof("attach", "-p", "2", "-p", "3", "--metrics", "0", status=5).stderr)

    def test_metrics(self):
        """the metrics of all processes are in one answer; a killed recorder is told, and memprof detach restores"""
        victims = [self.named(own("shop")) for _ in range(3)]
        rec = self.attach("-n", own("shop"), "--metrics", "0")
        out = self.lines(rec, "recording process", 3)
        url = re.search(r"metrics at (\S+)$", out, re.M)[1]
        truth = {p.pid: flood(p)["mallocs"] for p in victims}

        def scrape():
            with urllib.request.urlopen(url, timeout=60) as r:
                return r.read().decode()

        t.wait_for(lambda: {int(pid): int(n) for pid, n in re.findall(
            r'^memprof_allocations_total\{pid="(\d+)",service="shop-\d+"\} (\d+)$', scrape(), re.M)} == truth)
        self.assertIn("\nmemprof_recorded_processes 3\n", scrape())
        recorder, = children(rec.pid)
        os.kill(recorder, signal.SIGKILL)
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 15)
        self.assertIn("the recorder was killed; memprof detach -p PID", self.errors())
        for p in victims:
            self.detach(p.pid)
            self.assertNotIn("memprof-session", t.maps(p.pid))
            flood(p)

    def test_abandoned(self):
        """an earlier recorder was killed while it installed or restored the hooks: the process is restored, and recorded anew"""
        for point in ("open-prepared", "patch-written", "close-restored", "close-muted"):
            with self.subTest(point):
                p = self.named("shop")
                found = {p.pid: t.identity(p.pid)}
                r = subprocess.run([t.FAULTY, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--for", "1ms"],
                                   env=dict(os.environ, MEMPROF_FAULT=point), stdin=subprocess.DEVNULL, check=False)
                self.assertEqual(r.returncode, -signal.SIGKILL)
                self.assertIn("memprof-session", t.maps(p.pid))
                before = flood(p)["mallocs"]
                d = self.path(point)
                rec = self.attach("-p", p.pid, "-p", self.named("bank").pid, "--push", d)
                out = self.lines(rec, "recording process", 2)
                after = flood(p)["mallocs"]
                out += self.end(rec)
                self.assertIn("its recorder was killed; its profiles begin anew", out + self.errors())
                self.assertEqual(self.sums(d, p.pid), after - before)
                self.untouched(found)

    def test_terminated(self):
        """SIGTERM to both processes, as systemd sends it to a service, ends the recordings, and restores the processes"""
        victims = [self.named("shop") for _ in range(3)]
        found = {p.pid: t.identity(p.pid) for p in victims}
        rec = self.attach("-p", ",".join(str(pid) for pid in found), "--push", self.path("d"))
        self.lines(rec, "recording process", 3)
        recorder, = children(rec.pid)
        os.kill(recorder, signal.SIGTERM)
        os.kill(recorder, signal.SIGHUP)
        rec.send_signal(signal.SIGTERM)
        out, _ = rec.communicate(timeout=120)
        self.assertEqual((rec.returncode, self.errors()), (0, ""), out)
        self.untouched(found)

    def test_killed(self):
        """when the command is killed, its recorder restores all processes, and removes its files"""
        victims = [self.named(own("shop")) for _ in range(3)]
        found = {p.pid: t.identity(p.pid) for p in victims}
        tmp = self.path("tmp")
        os.mkdir(tmp)
        rec = self.attach("-n", own("shop"), "--metrics", "0", prefix=("env", "TMPDIR=" + tmp))
        self.lines(rec, "recording process", 3)
        recorder, = children(rec.pid)
        self.assertEqual(len(os.listdir(tmp)), 1)
        rec.kill()
        rec.wait(60)
        t.wait_for(lambda: not os.path.exists(f"/proc/{recorder}"))
        self.untouched(found)
        self.assertEqual(os.listdir(tmp), [])


if __name__ == "__main__":
    t.main()
