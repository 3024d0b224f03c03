# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forked children stay unharmed, have recordings of their own if followed, and are restored by detach."""
import glob
import json
import os
import re
import signal
import socket
import subprocess
import time

from memprof_test import Case, FULL, GUEST, MEMPROF, VICTIMS, identity, main, maps, read, wait_for


class Fork(Case):
    def setUp(self):
        super().setUp()
        self.pids = []

    def tearDown(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        super().tearDown()

    def family(self):
        # On an emulated processor, the victim's threads pause now and then.
        return self.victim("family", 200000 if GUEST else 0, stdin=subprocess.PIPE)

    def tell(self, p, line):
        p.stdin.write(line + "\n")
        p.stdin.flush()
        return p.stdout.readline().strip()

    def fork(self, p, line="fork"):
        pid = int(self.tell(p, line))
        self.pids.append(pid)
        return pid

    def leak(self, p, pid):
        """Makes the child leak 10 blocks of 5000 bytes."""
        os.kill(pid, signal.SIGUSR1)
        self.assertEqual(p.stdout.readline().strip(), "done")

    def leaked_5000(self, f):
        r = self.report(f, "--leaks")
        return sum(b["size"] == 5000 for b in r["leaks"])

    def session_in(self, pid):
        return "memprof" in maps(pid)

    def test_unharmed(self):
        """children of fork and posix_spawn stay unharmed while memprof attaches, records and detaches"""
        p = self.family()
        for _ in range(200 if FULL else 5):
            p.stdin.write("storm 20\n")
            p.stdin.flush()
            self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "200ms")
            self.assertEqual(p.stdout.readline().strip(), "bad 0")

    def test_slow_child(self):
        """a child forked while attach seizes its parent, and slow to reach its own stop, is released"""
        p = self.family()
        rec = self.start_until("all-seized", "attach", "-q", "-p", p.pid, "-o", self.path("r"),
                               env={"MEMPROF_FAIL": "child-born"})
        p.stdin.write("fork\n")
        p.stdin.flush()
        child = wait_for(lambda: [int(x) for tid in os.listdir(f"/proc/{p.pid}/task")
                                  for x in read(f"/proc/{p.pid}/task/{tid}/children").split()])[0]
        self.pids.append(child)
        rec.send_signal(signal.SIGCONT)
        self.wait_recorded(p.pid)
        self.assertEqual(p.stdout.readline(), f"{child}\n")
        wait_for(lambda: b"TracerPid:\t0\n" in read(f"/proc/{child}/status"))
        self.leak(p, child)
        rec.terminate()
        self.assertEqual(rec.wait(timeout=120), 0)
        self.assertFalse(self.session_in(child))

    def test_detach_restores_children(self):
        """detach restores the children that were forked during the recording, and their children"""
        p = self.family()
        before = self.fork(p)
        clean = identity(before)["text"]
        self.memprof("attach", "-p", p.pid, "-o", self.path("r"), "--background")
        pids = [self.fork(p) for _ in range(3)]
        os.kill(pids[0], signal.SIGUSR2)
        pids.append(int(p.stdout.readline()))
        self.pids.append(pids[-1])
        for pid in pids:
            self.assertTrue(self.session_in(pid))
        self.memprof("detach", "-p", p.pid)
        for pid in pids:
            self.assertFalse(self.session_in(pid), pid)
            self.assertEqual({k.split()[0]: v for k, v in identity(pid)["text"].items()},
                             {k.split()[0]: v for k, v in clean.items()})
            self.leak(p, pid)

    def test_detach_child(self):
        """detach restores a single child, also when its recorder and its parent are dead"""
        p = self.family()
        self.memprof("attach", "-p", p.pid, "-o", self.path("r"), "--background")
        one, two = self.fork(p), self.fork(p)
        r = self.memprof("detach", "-p", one)
        self.assertIn("forked from a recorded one", r.stdout)
        self.assertFalse(self.session_in(one))
        self.assertTrue(self.session_in(two))
        recorder = self.recorder(p.pid)
        os.kill(recorder, signal.SIGKILL)
        p.kill()
        p.wait()
        self.memprof("detach", "-p", two)
        self.assertFalse(self.session_in(two))
        self.leak(p, two)

    def test_attach_child(self):
        """a forked child that carries its parent's hooks is recorded like any other process"""
        p = self.family()
        self.memprof("attach", "-p", p.pid, "-o", self.path("r"), "--background")
        pid = self.fork(p)
        self.memprof("attach", "-p", pid, "-o", self.path("child"), "--background")
        self.leak(p, pid)
        self.memprof("detach", "-p", pid)
        self.assertEqual(self.leaked_5000(self.path("child")), 10)
        self.assertFalse(self.session_in(pid))
        self.memprof("detach", "-p", p.pid)

    def test_follow_fork(self):
        """--follow-fork: each child, and a child's child, has a recording of its own"""
        p = self.family()
        self.memprof("attach", "-p", p.pid, "-o", self.path("%e-%p.memprof"), "--follow-fork",
                     "--background")
        pids = [self.fork(p) for _ in range(3)]
        for pid in pids:
            self.wait_recorded(pid)
        os.kill(pids[1], signal.SIGUSR2)
        pids.append(int(p.stdout.readline()))
        self.pids.append(pids[-1])
        self.wait_recorded(pids[-1])
        for pid in pids:
            self.leak(p, pid)
        recorders = [self.recorder(pid) for pid in pids + [p.pid]]
        for r in recorders:  # a recorder maps the session of its target, but has none itself
            self.memprof("status", "-p", r, status=16)
        self.memprof("detach", "-p", p.pid)
        for pid in pids:
            wait_for(lambda pid=pid: not self.session_in(pid))
        for r in recorders:
            wait_for(lambda r=r: not os.path.exists(f"/proc/{r}"))
        for pid in pids:
            f = self.path(f"family-{pid}.memprof")
            self.assertEqual(self.leaked_5000(f), 10)
            self.assertEqual(self.report(f)["pid"], pid)
            self.leak(p, pid)
        self.assertEqual(self.leaked_5000(self.path(f"family-{p.pid}.memprof")), 0)

    def recorders(self, pid):
        """The pids of all processes of memprof attach -p PID."""
        found = []
        for d in os.listdir("/proc"):
            try:
                args = d.isdigit() and read(f"/proc/{d}/cmdline").split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if args and args[0] == MEMPROF.encode() and str(pid).encode() in args:
                found.append(int(d))
        return found

    def test_leaderless(self):
        """--follow-fork: children whose first thread has ended are recorded"""
        p = self.victim("torture", "leaderless-children")
        self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r-%p"), "--follow-fork", "--lossless",
                     "--for", "3500ms")
        recordings = [r for r in glob.glob(self.path("r-*")) if not r.endswith(f"-{p.pid}")]
        self.assertGreaterEqual(len(recordings), 2)
        for r in recordings:
            self.assertGreater(self.report(r)["totals"]["allocations"], 1000)
        self.assertIn("ok", self.finish(p))

    def test_follower_killed(self):
        """kill -9 of memprof attach --follow-fork ends all recordings and restores all processes"""
        p = self.family()
        rec = self.start(MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r-%p"), "--follow-fork",
                         stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        pids = [self.fork(p) for _ in range(2)]
        for pid in pids:
            self.wait_recorded(pid)
            self.leak(p, pid)
        self.assertEqual(len(self.recorders(p.pid)), 4)
        rec.kill()
        rec.wait()
        wait_for(lambda: not self.recorders(p.pid), 30)
        for pid in [p.pid] + pids:
            self.assertFalse(self.session_in(pid))
        for pid in pids:
            self.assertEqual(self.leaked_5000(self.path(f"r-{pid}")), 10)
        self.memprof("report", self.path(f"r-{p.pid}"))

    def test_follower_killed_and_detached(self):
        """detach right after kill -9 of memprof attach --follow-fork waits for the recorder and restores"""
        p = self.family()
        clean = identity(p.pid)
        for i in range(40 if FULL else 8):
            rec = self.start(MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r-%p"), "--follow-fork",
                             stderr=subprocess.DEVNULL)
            if i % 2:
                wait_for(lambda: self.session_in(p.pid))
            time.sleep(0.02 * i)
            rec.kill()
            rec.wait()
            r = subprocess.run([MEMPROF, "detach", "-p", str(p.pid)], text=True, capture_output=True, timeout=120)
            self.assertNotIn("already traced", r.stderr)
            self.assertTrue(r.returncode == 0 or "has no memprof session" in r.stderr, r.stderr)
            wait_for(lambda: not self.recorders(p.pid), 30)
            self.assertEqual(identity(p.pid), clean)

    def test_parent_ends_first(self):
        """--follow-fork: when the parent ends, its children are recorded until they end"""
        p = self.family()
        rec = self.start(MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r.memprof"),
                         "--follow-fork")
        self.wait_recorded(p.pid)
        pid = self.fork(p)
        self.wait_recorded(pid)
        p.stdin.write("quit\n")
        p.stdin.close()
        p.wait()
        self.leak(p, pid)
        self.assertIsNone(rec.poll())
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(rec.wait(timeout=120), 0)
        # Without placeholders in the name, memprof inserts pid and count before the suffix.
        f = self.path(f"r-{pid}-1.memprof")
        self.assertEqual(self.leaked_5000(f), 10)
        self.assertEqual(self.report(f)["end_reason"], "exited")

    def test_follow_exec(self):
        """--follow-exec: the next program of the process has a recording of its own"""
        rec = self.start(MEMPROF, "run", "-q", "-o", self.path("x.%n"), "--follow-exec", "--",
                         "/bin/sh", "-c", f"exec {VICTIMS}/flood 1 1000", stdin=subprocess.PIPE)
        def flood():
            for s in json.loads(self.memprof("status", "--json").stdout):
                if s["name"] == "flood" and s["recording"] == self.path("x.1") \
                        and s["state"] == "recording":
                    return True
        wait_for(flood)
        rec.stdin.write("go\n")
        rec.stdin.close()
        self.assertEqual(rec.wait(timeout=120), 0)
        self.assertEqual(self.report(self.path("x.0"))["end_reason"], "execed")
        r = self.report(self.path("x.1"))
        self.assertEqual({f["function"]: f["calls"] for f in r["functions"]}["malloc"], 1000)

    def wrapped(self, *options, program="flood 1 1000"):
        """Records a shell wrapper from its start; lets the program that it executes go when it is recorded."""
        rec = self.start(MEMPROF, "run", "-o", self.path("x.memprof"), *options, "--", "/bin/sh", "-c",
                         f"exec {VICTIMS}/{program}", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        def recorded():
            return rec.poll() is not None or any(
                s["name"] == "flood" and s["recording"] == self.path("x.memprof") and s["state"] == "recording"
                for s in json.loads(self.memprof("status", "--json").stdout))
        if not options:
            wait_for(recorded)
        out, err = rec.communicate("go\n", timeout=120)
        return rec.returncode, out, err

    def test_wrapper(self):
        """run follows exec: the recording and the summary are of the program, not of its wrapper"""
        status, out, err = self.wrapped()
        self.assertEqual(status, 0, err)
        self.assertIn("executed another program, which is recorded instead", err)
        self.assertEqual(out.count("recorded "), 1, out)
        self.assertIn("the program ended", out)
        r = self.report(self.path("x.memprof"))
        self.assertIn("flood", r["executable"])
        self.assertEqual({f["function"]: f["calls"] for f in r["functions"]}["malloc"], 1000)
        self.assertEqual(os.listdir(self.dir), ["x.memprof"])

    def test_wrapper_not_followed(self):
        """run --no-follow-exec: the recording ends when the wrapper executes the program"""
        status, out, err = self.wrapped("--no-follow-exec")
        self.assertEqual(status, 0, err)
        self.assertIn("executed another program", out)
        self.assertEqual(self.report(self.path("x.memprof"))["end_reason"], "execed")

    def test_wrapper_of_a_short_program(self):
        """run: an executed program that ended too early is reported, and its exit status is returned"""
        r = self.memprof("run", "-o", self.path("x"), "--", "/bin/sh", "-c", "exec /bin/sh -c 'exit 7'", status=7)
        self.assertRegex(r.stderr, "executed another program, which (ended before memprof was attached to it; (the "
                         "recording is of the program before|there is no recording)|is recorded instead)")
        self.assertEqual(os.path.exists(self.path("x")), "there is no recording" not in r.stderr)

    def test_follow_fork_and_exec(self):
        """--follow-fork --follow-exec: a program that a child executes has a recording of its own"""
        p = self.family()
        self.memprof("attach", "-p", p.pid, "-o", self.path("%e-%p-%n"), "--follow-fork",
                     "--follow-exec", "--background")
        pid = self.fork(p, f"exec {VICTIMS}/leaky")
        wait_for(lambda: self.recorder(pid) and glob.glob(self.path(f"leaky-{pid}-*")))
        self.memprof("detach", "-p", p.pid)
        wait_for(lambda: not self.session_in(pid))
        self.assertTrue(self.report(glob.glob(self.path(f"leaky-{pid}-*"))[0])["pid"] == pid)

    def test_bad_placeholder(self):
        """attach names an unknown placeholder of -o"""
        r = self.memprof("attach", "-p", os.getpid(), "-o", "x-%q", status=2)
        self.assertIn("%q", r.stderr)


class Nginx(Fork):
    for name in [n for n in dir(Fork) if n.startswith("test_")]:
        locals()[name] = None
    del name

    def setUp(self):
        super().setUp()
        self.port = self.free_port()
        os.mkdir(self.path("html"))
        with open(self.path("html/index.html"), "w") as f:
            f.write("hello\n" * 1000)
        with open(self.path("nginx.conf"), "w") as f:
            f.write(f"""daemon off; worker_processes 2; pid {self.dir}/pid; user root;
error_log {self.dir}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; gzip on; gzip_types text/html;
 client_body_temp_path {self.dir}/a; proxy_temp_path {self.dir}/b; fastcgi_temp_path {self.dir}/c;
 uwsgi_temp_path {self.dir}/d; scgi_temp_path {self.dir}/e;
 server {{ listen 127.0.0.1:{self.port}; root {self.dir}/html; }} }}
""")
        self.nginx = self.start("/usr/sbin/nginx", "-c", self.path("nginx.conf"),
                                stderr=subprocess.DEVNULL)
        wait_for(lambda: self.get() == 200)

    def tearDown(self):
        self.nginx.terminate()
        self.nginx.wait()
        super().tearDown()

    @staticmethod
    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def get(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
                s.sendall(b"GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")
                answer = b""
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    answer += part
            m = re.match(rb"HTTP/1.1 (\d+)", answer)
            return int(m.group(1)) if m else 0
        except OSError:
            return 0

    def workers(self):
        out = subprocess.run(["pgrep", "-P", str(self.nginx.pid)], capture_output=True, text=True)
        return [int(x) for x in out.stdout.split()]

    def test_prefork_server(self):
        """nginx: --follow-fork records the new workers after a reload, while requests are served"""
        old = self.workers()
        clean = identity(self.nginx.pid)["text"]
        self.memprof("attach", "-p", self.nginx.pid, "-o", self.path("%e-%p"), "--follow-fork",
                     "--history", "--background")
        self.nginx.send_signal(signal.SIGHUP)
        new = wait_for(lambda: (lambda w: len(w) == 2 and not set(w) & set(old) and w)(
            self.workers()))
        for w in new:
            self.wait_recorded(w)
        for _ in range(200):
            self.assertEqual(self.get(), 200)
        self.memprof("detach", "-p", self.nginx.pid)
        for w in new:
            wait_for(lambda w=w: not self.session_in(w))
        self.assertEqual(identity(self.nginx.pid)["text"], clean)
        self.assertEqual(self.get(), 200)
        files = [self.path(f"nginx-{w}") for w in new]
        for f in files:
            wait_for(lambda f=f: self.report(f)["end_reason"] == "detached")
        reports = [self.report(f) for f in files]
        # Each request allocates pools on the worker's heap, and frees them.
        self.assertGreater(sum(r["totals"]["allocations"] for r in reports), 200)
        self.assertTrue(all(r["restored"] for r in reports))
        parts, one = self.check_merged([self.path(f"nginx-{self.nginx.pid}"), *files])
        # The workers run one program at one address: the merged file has each common stack once.
        sites = lambda r: {tuple(f["address"] for f in g["backtrace"]) for g in r["allocation_groups"]}
        self.assertTrue(sites(parts[1]) & sites(parts[2]))
        self.assertEqual(sites(one), set.union(*map(sites, parts)))
        self.assertEqual(len(one["allocation_groups"]), len(sites(one)))
        text = self.memprof("report", self.path("merged"), "--verbose").stdout
        for r in parts:
            self.assertRegex(text, rf"\n +{r['pid']}  .nginx: .*allocated, .* live in .* blocks?\n")
        for argv in (("strip",), ("report", "--replay"), ("report", "--from-map", "[heap]")):
            out = [] if "--from-map" in argv else ["-o", self.path("x")]
            self.assertIn("processes", self.memprof(*argv, self.path("merged"), *out, status=2).stderr)

    def check_merged(self, files):
        """Merges recordings of several processes: each sum is that of the parts, each block is counted in its
        process.  Return: the reports of the parts, the report of the merged file."""
        out = self.path("merged")
        self.memprof("merge", *files, "-o", out)
        self.memprof("verify", out)
        parts, one = [self.report(f) for f in files], self.report(out)
        for key in one["totals"]:
            if not key.startswith("peak") and key != "unique_backtrace_count":
                self.assertEqual(one["totals"][key], sum(r["totals"][key] for r in parts), key)
        self.assertGreaterEqual(one["totals"]["peak_bytes"], max(r["totals"]["peak_bytes"] for r in parts))
        self.assertLessEqual(one["totals"]["peak_bytes"], sum(r["totals"]["peak_bytes"] for r in parts))
        by_pid = {x["pid"]: x for x in one["processes"]}
        for r in parts:
            for key in ("allocations", "allocated_bytes", "frees", "leaked_count", "leaked_bytes"):
                self.assertEqual(by_pid[r["pid"]][key], r["totals"][key], (r["pid"], key))
        # The index of the merged file has the same sums.
        text = self.memprof("report", out, "--quick").stdout.replace(",", "")
        self.assertRegex(text, rf" in {one['totals']['allocations']} allocations; {one['totals']['frees']} blocks")
        self.assertRegex(text, rf"live .* in {one['totals']['leaked_count']} blocks at the end")
        self.assertNotRegex(text, "(?m)^peak")
        # The merged file has the mappings of each process at the times when its recorder read them.
        looks = lambda f: json.loads(self.memprof("report", f, "--view", "maps", "--json").stdout)["map_usage"]
        merged = looks(out)
        for f, r in zip(files, parts):
            self.assertEqual([x["maps"] for x in merged if x["pid"] == r["pid"]], [x["maps"] for x in looks(f)])
            self.assertRegex(self.memprof("report", out, "--view", "maps").stdout, rf"\n.* {r['pid']}  \[heap\]\n")
        return parts, one


if __name__ == "__main__":
    main()
