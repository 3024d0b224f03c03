#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs from Debian's packages under load: recorded, searched for leaks and attached to repeatedly.
Their answers stay right all the time, and afterwards they are as before.  doc/programs.md has the table.
test_detach.py tests Node, Go with C and Java; test_targets.py tests redis."""
import contextlib
import glob
import http.client
import itertools
import json
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import memprof_test as t

CYCLES = 10 if t.FULL else 2
CLIENTS = 2
ANSWERS = 20  # answers of the program during the recording that is checked
NOBODY = pwd.getpwnam("nobody")


def as_nobody(*argv):
    return ("setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups", *argv)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Load:
    """Clients that send requests all the time.  @connect: a context manager that yields a function, which
    sends one request and raises an exception if the answer is wrong."""

    def __init__(self, connect, clients=CLIENTS):
        self.stop, self.wrong, self.answers = threading.Event(), [], [0] * clients
        self.threads = [threading.Thread(target=self.run, args=(connect, i)) for i in range(clients)]

    def run(self, connect, i):
        try:
            with connect() as ask:
                while not self.stop.is_set():
                    ask()
                    self.answers[i] += 1
        except Exception as e:  # pylint: disable=broad-except
            self.wrong.append(repr(e))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        try:
            t.wait_for(lambda: all(self.answers) or self.wrong)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def must(condition, what):
    if not condition:
        raise AssertionError(what)


def left(pid, jit=False):
    """What must be the same afterwards.  A server can map other things meanwhile, also code (@jit)."""
    same = t.identity(pid)
    mine = r"memfd:memprof" if jit else r"memfd:memprof|r-xp 00000000 00:00 0 $"
    return {"text": same["text"], "signals": [s for s in same["signals"] if not s.startswith("SigBlk")],
            "memprof's": [m for m in t.maps(pid).split("\n") if re.search(mine, m)],
            "copied text": same["copied text"]}


def named_text(pid):
    """The text by file and offset: the same in processes that were forked from each other."""
    return {line.split(" ", 1)[1]: hashed for line, hashed in t.identity(pid)["text"].items()}


class Others(t.Case):
    """Each test starts a program and says what its recordings must contain."""

    def needs(self, package, *patterns):
        """Return: the program, its newest version.  Skips the test if its package is not installed."""
        for pattern in patterns:
            found = sorted(glob.glob(pattern))
            if found:
                return found[-1]
        return self.skipTest(f"package {package} is not installed (scripts/setup check others)")

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def attach(self, pid, ms):
        return self.memprof("attach", "-p", pid, "-o", self.path("rec.memprof"), "--for", f"{ms}ms").stdout

    def looked_at(self, pid, load, function, own_heap, complete):
        """Records the program while it gives some answers, and checks the recording."""
        f = self.path("answers.memprof")
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", f)
        self.wait_recorded(pid)
        n = sum(load.answers)
        t.wait_for(lambda: sum(load.answers) > n + ANSWERS or load.wrong)
        self.detach(pid)
        out, _ = rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0, out)
        self.assertIn("is restored", out)
        self.memprof("verify", f)
        r = self.report(f)
        if own_heap:
            self.assertIn("mapped by the program itself, not by malloc", out)
            self.assertIn("--tree --cost mapped", out)
            out = self.memprof("report", f, "--tree", "--cost", "mapped").stdout
        else:
            self.assertNotIn("by the program itself", out)
            self.assertGreater(r["totals"]["allocations"], 0)
            self.assertGreaterEqual(r["losses"]["stacks_complete"] / r["losses"]["stacks_total"], complete)
            out = " ".join(f["function"] for g in r["allocation_groups"] for f in g["backtrace"])
        if function:
            self.assertRegex(out, function)

    def searched(self, pid, known):
        """Runs leaks and heap on the program, which must have the same children afterwards."""
        before = t.children(pid)
        for argv in (("leaks", "--json", self.path("leaks.json")), ("heap",)):
            r = subprocess.run([t.MEMPROF, argv[0], "-p", str(pid), *argv[1:]], text=True,
                               capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
            if not known:
                self.assertRegex(r.stderr, r"no allocator that memprof knows has a block .*; it has PartitionAlloc \(chromium\)\n$")
                continue
            self.assertIn(r.returncode, (0, 1) if argv[0] == "leaks" else (0,), r.stdout + r.stderr)
            if argv[0] == "heap":
                self.assertRegex(r.stdout, r"live blocks")
        self.assertEqual(t.children(pid), before)

    def check(self, pid, connect, function=None, own_heap=False, complete=0.99, known=True, jit=False):
        """Records, searches and attaches to the program repeatedly under load; it must be as before then.
        @connect: as for Load.  @function: a pattern that the stacks of the recording must match.  @own_heap:
        the program maps its memory itself, which memprof must report.  @complete: the least part of the
        stacks that must be complete.  @known: memprof supports its allocator; if not, leaks and heap must
        report PartitionAlloc.  @jit: the program generates code while it runs."""
        with Load(connect):
            pass  # the program loads and maps some things at its first requests
        before = left(pid, jit)
        with Load(connect) as load:
            self.looked_at(pid, load, function, own_heap, complete)
            self.searched(pid, known)
            for i in range(CYCLES):
                n = sum(load.answers)
                self.assertIn("is restored", self.attach(pid, 50), f"cycle {i}")
                t.wait_for(lambda n=n: sum(load.answers) > n or load.wrong)
        self.assertEqual(load.wrong, [])
        self.assertEqual(left(pid, jit), before)
        self.assertFalse([link for link in t.links(pid) if "memfd:memprof" in link])
        self.assertNotIn(t.MEMPROF.encode(), b"".join(t.read(f"/proc/{c}/cmdline") for c in t.children(pid)))
        print(f"# {sum(load.answers)} right answers meanwhile", flush=True)

    def ends(self, p, status=0, sig=signal.SIGTERM):
        p.send_signal(sig)
        out, _ = p.communicate(timeout=120)
        self.assertEqual(p.returncode, status, out)

    def http(self, port, path, expected):
        @contextlib.contextmanager
        def connect():
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

            def ask():
                c.request("GET", path)
                r = c.getresponse()
                must((r.status, r.read()) == (200, expected), r.status)

            yield ask
            c.close()
        return connect

    def listening(self, connect):
        def ready():
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError), connect() as ask:
                ask()
                return True
        t.wait_for(ready)

    def pipe(self, *argv, expected):
        """Starts a program that answers each line on its standard input with a line.  @expected: a function
        that returns the right answer to the line N.  Return: the process, connect as for Load."""
        p = self.start(*argv, stdin=subprocess.PIPE, bufsize=1)
        lock = threading.Lock()

        @contextlib.contextmanager
        def connect():
            def ask():
                with lock:
                    ask.n = (ask.n + 1) % 50
                    p.stdin.write(f"{ask.n}\n")
                    answer = p.stdout.readline()
                must(answer == f"{expected(ask.n)}\n", answer)
            ask.n = 0
            yield ask
        return p, connect

    # ------------------------------------------------------------- web servers and proxies

    def nginx(self, workers):
        program = self.needs("nginx-light", "/usr/sbin/nginx")
        port = free_port()
        conf = self.write("nginx.conf", f"""daemon off; worker_processes {workers}; pid {self.dir}/pid; user root;
error_log {self.dir}/error warn; worker_shutdown_timeout 5s; events {{}}
http {{ access_log off; gzip on; gzip_types *; client_body_temp_path {self.dir}/a; proxy_temp_path {self.dir}/b;
 fastcgi_temp_path {self.dir}/c; uwsgi_temp_path {self.dir}/d; scgi_temp_path {self.dir}/e;
 server {{ listen 127.0.0.1:{port}; location / {{ return 200 'hello to everybody\\n'; }} }} }}
""")
        p = self.start(program, "-c", conf, "-e", self.path("error"))
        once = self.http(port, "/", b"hello to everybody\n")

        @contextlib.contextmanager
        def connect():  # one connection for each request, so that no client keeps an old worker alive
            def ask():
                with once() as one:
                    one()
            yield ask
        self.listening(connect)
        t.wait_for(lambda: len(t.children(p.pid)) == workers)
        return p, [program, "-c", conf, "-e", self.path("error"), "-s", "reload"], connect

    def test_nginx(self):
        """an nginx worker under load: recorded, searched for leaks, and as before afterwards"""
        p, _, connect = self.nginx(1)
        self.check(t.children(p.pid)[0], connect, "ngx_http_")
        self.ends(p)
        self.assertNotRegex(t.read(self.path("error")), rb"\[(warn|error|crit|alert|emerg)\]")

    def test_nginx_reload(self):
        """nginx -s reload while recorded, with or without --follow-fork: no request fails, all is restored"""
        p, reload, connect = self.nginx(2)
        first = t.children(p.pid)
        subprocess.run(reload, check=True, capture_output=True)  # nginx loads some things at its first reload
        t.wait_for(lambda: len(t.children(p.pid)) == 2 and not set(t.children(p.pid)) & set(first))
        clean = left(p.pid)
        with Load(connect) as load:
            for n, follow in enumerate(([], ["--follow-fork"]) * (3 if t.FULL else 1)):
                old = t.children(p.pid)
                out = self.path("out")
                with open(out, "w") as f:
                    rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path(f"r{n}-%p"), *follow,
                                     stdout=f, stderr=subprocess.STDOUT)
                self.wait_recorded(p.pid)
                subprocess.run(reload, check=True, capture_output=True)
                new = t.wait_for(lambda old=old: (lambda w: len(w) == 2 and not set(w) & set(old) and w)(
                    t.children(p.pid)))
                for w in new if follow else []:
                    self.wait_recorded(w)
                before = sum(load.answers)
                t.wait_for(lambda before=before: sum(load.answers) > before + 20 or load.wrong)
                self.memprof("detach", "-p", p.pid)
                self.assertEqual(rec.wait(timeout=120), 0)
                said = t.read(out).decode()
                self.assertIn("is restored", said)
                if follow:
                    self.assertRegex(said, r"(?m)^followed: 2 processes recorded \([1-9][0-9,]* allocations\)$")
                    for w in new:
                        self.assertRegex(said, rf"(?m)^  process {w}: [0-9,]+ allocations? in .*r{n}-{w}$")
                else:
                    self.assertIn("restored 2 processes that were forked from it", said)
                for pid in [p.pid, *new]:
                    self.assertNotIn("memprof", t.maps(pid))
                self.assertLessEqual(named_text(p.pid).items(), named_text(new[0]).items())
        self.assertEqual(load.wrong, [])
        self.assertEqual(left(p.pid), clean)
        self.ends(p)
        self.assertNotRegex(t.read(self.path("error")), rb"\[(warn|error|crit|alert|emerg)\]")

    def test_haproxy(self):
        """haproxy, whose memory pools call malloc() when many clients connect at once"""
        program = self.needs("haproxy", "/usr/sbin/haproxy")
        port = free_port()
        conf = self.write("haproxy.cfg", f"""global
 maxconn 500
 nbthread 1
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 60s
frontend f
 bind 127.0.0.1:{port}
 http-request return status 200 content-type text/plain lf-string "hello %[path]"
""")
        p = self.start(program, "-db", "-f", conf)

        @contextlib.contextmanager
        def connect():
            def ask():  # each half of a request holds a buffer
                with contextlib.ExitStack() as stack:
                    clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
                               for _ in range(60)]
                    for half in b"GET /everybody HTTP/1.1\r\nHost: ", b"here\r\nConnection: close\r\n\r\n":
                        for c in clients:
                            c.sendall(half)
                    for c in clients:
                        answer = stack.enter_context(c.makefile("rb")).read()
                        must(answer.endswith(b"\r\n\r\nhello /everybody"), answer)
            yield ask
        self.listening(connect)
        self.check(p.pid, connect, "http_|h1_|pool_|stream_")
        self.ends(p, -signal.SIGTERM)

    def test_php(self):
        """php-fpm, which maps its own heap and hardly uses malloc(): memprof reports that"""
        program = self.needs("php-fpm", "/usr/sbin/php-fpm*")
        os.chmod(self.dir, 0o755)
        sock = self.path("sock")
        conf = self.write("fpm.conf", f"""[global]
error_log = {self.dir}/log
daemonize = no
[www]
user = nobody
group = nogroup
listen = {sock}
listen.mode = 0666
pm = static
pm.max_children = 1
php_admin_value[memory_limit] = 1G
""")
        script = self.write("a.php", "<?php $a = []; $n = (int)$_GET['n'];\n"
                            "for ($i = 0; $i < $n; $i++) $a[] = str_repeat('x', 900 + $i % 7);\n"
                            "echo array_sum(array_map('strlen', $a));\n")
        p = self.start(program, "-n", "-y", conf, stderr=subprocess.DEVNULL)
        connect = fastcgi(sock, script, {n: b"%d" % sum(900 + i % 7 for i in range(n)) for n in (100, 50000)})
        self.listening(connect)
        worker = t.wait_for(lambda: t.children(p.pid))[0]
        self.check(worker, connect, r"(?s)MiB.*zend_.*mmap", own_heap=True)
        self.assertEqual(t.children(p.pid), [worker])  # the worker was not replaced
        # --follow-fork reports the same of a worker.
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("w-%p"), "--follow-fork",
                         stderr=subprocess.DEVNULL)
        self.wait_recorded(p.pid)
        os.kill(worker, signal.SIGTERM)
        self.wait_recorded(t.wait_for(lambda: [c for c in t.children(p.pid) if c != worker])[0])
        with Load(connect) as load:
            t.wait_for(lambda: sum(load.answers) > ANSWERS or load.wrong)
        self.assertEqual(load.wrong, [])
        self.detach(p.pid)
        out, _ = rec.communicate(timeout=120)
        self.assertRegex(out, r"followed: 1 process recorded \([0-9,]+ allocations?; [0-9.]+ MiB mapped by the programs "
                         r"themselves, not by malloc\)")
        self.ends(p)

    # ------------------------------------------------------------- databases and caches

    def test_mariadb(self):
        """mariadbd: C++ with many threads and a large address space"""
        program = self.needs("mariadb-server-core", "/usr/sbin/mariadbd")
        client = self.needs("mariadb-client-core", "/usr/bin/mariadb")
        sock = self.path("sock")
        os.mkdir(self.path("data"))
        p = self.start(program, "--no-defaults", "--user=root", f"--datadir={self.dir}/data", f"--socket={sock}",
                       "--skip-networking", "--skip-grant-tables", f"--pid-file={self.dir}/pid",
                       "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", f"--tmpdir={self.dir}",
                       f"--log-error={self.dir}/log", cwd=self.dir)

        @contextlib.contextmanager
        def connect():
            with subprocess.Popen([client, "--no-defaults", "-S", sock, "-N", "-B", "-n"], text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as c:
                def ask():
                    c.stdin.write("SELECT COUNT(*), SUM(seq), LENGTH(GROUP_CONCAT(seq ORDER BY seq DESC)) "
                                  "FROM (WITH RECURSIVE s AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM s "
                                  "WHERE seq < 200) SELECT seq FROM s) AS n;\n")
                    answer = c.stdout.readline()
                    must(answer == "200\t20100\t691\n", answer)
                try:
                    yield ask
                finally:
                    with contextlib.suppress(BrokenPipeError):
                        c.stdin.close()
        self.listening(connect)
        self.check(p.pid, connect, "mysql_execute_command|JOIN::|my_malloc")
        self.ends(p)

    def test_memcached(self):
        """memcached, which keeps values in slabs allocated at its start, and uses malloc() for the rest"""
        program = self.needs("memcached", "/usr/bin/memcached")
        sock = self.path("sock")
        p = self.start(program, "-u", "root", "-s", sock, "-U", "0", "-m", "64")

        @contextlib.contextmanager
        def connect():
            def ask():  # one connection for each request: memcached allocates its buffers by malloc()
                ask.n += 1
                key, value = b"%d" % threading.get_ident(), b"v" * (ask.n * 37 % 5000)
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(sock)
                    with s.makefile("rwb") as f:
                        f.write(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key))
                        f.flush()
                        must(f.readline() == b"STORED\r\n", "set")
                        must(f.readline() == b"VALUE %s 0 %d\r\n" % (key, len(value)), "get")
                        must((f.readline(), f.readline()) == (value + b"\r\n", b"END\r\n"), "value")
                        f.write(b"stats slabs\r\n")
                        f.flush()
                        must(any(line == b"END\r\n" for line in f), "stats")
            ask.n = 0
            yield ask
        self.listening(connect)
        self.check(p.pid, connect)
        self.ends(p)

    def postgres(self):
        """Starts a server as user nobody.  Return: the process, the folder of PostgreSQL's programs."""
        self.needs("postgresql-15", "/usr/lib/postgresql/*/bin/postgres")
        programs = os.path.dirname(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))[-1])
        data = self.path("data")
        os.chmod(self.dir, 0o755)
        os.mkdir(data, 0o700)
        os.chown(data, NOBODY.pw_uid, NOBODY.pw_gid)
        subprocess.run(as_nobody(f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "test", "--no-sync"),
                       check=True, capture_output=True, cwd="/")
        p = self.start(*as_nobody(f"{programs}/postgres", "-D", data, "-k", data, "-c", "listen_addresses=",
                                  "-c", "fsync=off", "-c", "autovacuum=off"), cwd="/",
                       stderr=subprocess.STDOUT, stdout=open(self.path("log"), "w"))
        self.listening(lambda: self.session(programs))
        return p, programs

    @contextlib.contextmanager
    def session(self, programs):
        """Opens a connection.  Yields a function that queries its backend; ask.pid is the backend's pid."""
        with subprocess.Popen([f"{programs}/psql", "-qAtX", "-h", self.path("data"), "-U", "test", "postgres"],
                              text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as c:
            def say(statement):
                c.stdin.write(statement + "\n")
                return c.stdout.readline().strip()

            def ask():
                answer = say("select md5(string_agg(x::text, ',')), count(*) from generate_series(1, 500) x;")
                must(answer == "2b9c1eece7b83a9272b9dcad7969fcfb|500", answer)
            try:
                ask.pid = int(say("select pg_backend_pid();") or 0)
                yield ask
            finally:
                with contextlib.suppress(BrokenPipeError):
                    c.stdin.close()

    def right(self, p):
        """Ends the server, and checks that it has logged no error."""
        self.ends(p, sig=signal.SIGINT)
        self.assertNotRegex(t.read(self.path("log")).decode(), r"ERROR|PANIC|WARNING|crash|signal \d")

    def test_postgresql_connections(self):
        """postgresql --follow-fork: short connections are one line of output, a long one is recorded"""
        p, programs = self.postgres()
        with Load(lambda: short(lambda: self.session(programs)), 2) as load:
            rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r-%p"), "--follow-fork",
                             stderr=subprocess.STDOUT)
            self.wait_recorded(p.pid)
            with self.session(programs) as ask:
                self.wait_recorded(ask.pid)
                for _ in range(20):
                    ask()
                n = sum(load.answers)
                t.wait_for(lambda: sum(load.answers) > n + (200 if t.FULL else 20) or load.wrong)
                self.memprof("detach", "-p", p.pid)
                said, _ = rec.communicate(timeout=120)
                self.assertEqual(rec.returncode, 0, said)
                ask()
        self.assertEqual(load.wrong, [])
        lines = [line for line in said.split("\n") if not re.match(r" *[0-9.]+s ", line)]
        self.assertLess(len(lines), 60, said)
        self.assertEqual(len([line for line in lines if line.startswith("followed: ")]), 1, said)
        m = re.search(r"^followed: ([0-9,]+) process(?:es)? recorded \(([0-9,]+) allocations?\)", said, re.M)
        self.assertGreater(int(m[1].replace(",", "")), 0)
        self.assertNotIn("refused", said)
        r = self.report(self.path(f"r-{ask.pid}"))
        self.assertGreater(r["totals"]["allocations"], 0)
        self.assertNotIn("memprof", t.maps(p.pid))
        self.right(p)

    @unittest.skipUnless(t.FULL, "in make check-all")
    def test_postgresql(self):
        """a PostgreSQL backend under load: recorded, searched for leaks, and as before afterwards"""
        p, programs = self.postgres()
        with self.session(programs) as one:
            lock = threading.Lock()

            @contextlib.contextmanager
            def connect():
                def ask():
                    with lock:
                        one()
                yield ask
            self.check(one.pid, connect, "palloc|MemoryContextAlloc")
        self.right(p)

    # ------------------------------------------------------------- interpreters

    def test_perl(self):
        """perl, which allocates every value by malloc()"""
        program = self.needs("perl", "/usr/bin/perl")
        p, connect = self.pipe(program, "-e", """$| = 1; while (my $n = <STDIN>) { my %h; my $sum = 0;
            $h{"k$_"} = "v" x ($_ % 50 + $n) for 1 .. 2000; $sum += length for values %h; print "$sum\n" }""",
                               expected=lambda n: sum(i % 50 + n for i in range(1, 2001)))
        self.check(p.pid, connect, "Perl_")
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, ""))

    def test_ruby(self):
        """ruby, with objects in pages of its own, long strings by malloc(), and a stack-scanning collector"""
        program = self.needs("ruby", "/usr/bin/ruby")
        p, connect = self.pipe(program, "-e", """$stdout.sync = true
            while l = gets
              h = {}
              (1..2000).each { |i| h["k#{i}"] = "v" * (i % 50 + l.to_i + 100) }
              puts h.values.sum(&:size)
            end""", expected=lambda n: sum(i % 50 + n + 100 for i in range(1, 2001)))
        self.check(p.pid, connect, "rb_|ruby_")
        out, _ = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (0, ""))

    # ------------------------------------------------------------- make check-all only

    @unittest.skipUnless(t.FULL, "in make check-all")
    def test_chromium(self):
        """chromium's browser process, which replaces malloc() by PartitionAlloc"""
        program = self.needs("chromium", "/usr/bin/chromium")
        p = self.start(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                       "--remote-debugging-port=0", f"--user-data-dir={self.dir}/profile", "about:blank",
                       stderr=subprocess.DEVNULL)
        active = self.path("profile/DevToolsActivePort")
        port = int(t.wait_for(lambda: os.path.exists(active) and t.read(active)).split()[0])

        @contextlib.contextmanager
        def connect():
            def ask():
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                c.request("GET", "/json/version")
                must("Browser" in json.loads(c.getresponse().read()), "version")
                c.close()
            yield ask
        self.listening(connect)
        # Debian builds it without call frame information: its functions keep frame pointers.
        self.check(p.pid, connect, "malloc|_Znwm", complete=0.9, known=False, jit=True)
        # chromium's mallopt() shares its code with hundreds of functions that return 0, so it is not hooked.
        self.assertEqual(self.report(self.path("answers.memprof"))["mallopts"], [])
        p.terminate()
        p.wait(timeout=120)

    @unittest.skipUnless(t.FULL, "in make check-all")
    def test_qemu(self):
        """qemu-system-x86_64: a machine without disks, emulated by a JIT, queried by QMP"""
        program = self.needs("qemu-system-x86", "/usr/bin/qemu-system-x86_64")
        sock = self.path("qmp")
        p = self.start(program, "-nodefaults", "-display", "none", "-accel", "tcg", "-m", "64",
                       "-chardev", f"socket,id=q,path={sock},server=on,wait=off", "-mon", "chardev=q,mode=control")
        lock = threading.Lock()
        t.wait_for(lambda: os.path.exists(sock))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(sock)
            with s.makefile("rw") as f:
                def say(command):
                    f.write(json.dumps({"execute": command}) + "\n")
                    f.flush()
                    return json.loads(f.readline())
                self.assertIn("QMP", json.loads(f.readline()))
                say("qmp_capabilities")

                @contextlib.contextmanager
                def connect():
                    def ask():
                        with lock:
                            must(say("query-status")["return"]["running"], "status")
                            must(len(say("query-commands")["return"]) > 100, "commands")
                    yield ask
                self.check(p.pid, connect, "qmp_|qobject|json", complete=0.9, jit=True)
        self.ends(p)

    @unittest.skipUnless(t.FULL, "in make check-all")
    def test_ffmpeg(self):
        """ffmpeg while it encodes: every frame is the same as without memprof"""
        program = self.needs("ffmpeg", "/usr/bin/ffmpeg")
        frames = self.path("frames")
        convert = lambda out, *more: [program, "-nostdin", "-loglevel", "error", *more, "-f", "lavfi", "-i",
                                      "testsrc2=s=320x240:r=100", "-c:v", "mpeg4", "-threads", "2", "-flags",
                                      "+bitexact", "-f", "framecrc", "-flush_packets", "1"]
        p = self.start(*convert(frames, "-re"), frames, stderr=subprocess.PIPE)
        t.wait_for(lambda: os.path.exists(frames))

        @contextlib.contextmanager
        def connect():
            def ask():
                size = os.path.getsize(frames)
                t.wait_for(lambda: os.path.getsize(frames) > size or p.poll() is not None)
                must(p.poll() is None, "it ended")
            yield ask
        self.check(p.pid, connect, "av_|avcodec_|ff_")
        self.ends(p, 255, signal.SIGINT)
        done = [line for line in t.read(frames).decode().split("\n") if line and line[0] != "#"]
        again = self.path("again")
        subprocess.run([*convert(again), "-frames:v", str(len(done)), again], check=True, timeout=600)
        self.assertEqual([line for line in t.read(again).decode().split("\n") if line and line[0] != "#"], done)
        print(f"# {len(done)} frames")

    @unittest.skipUnless(t.FULL, "in make check-all")
    def test_musl(self):
        """a program with musl (no unwind tables): recorded, searched for leaks, and as before afterwards"""
        p = self.victim("churn-musl", 4)

        @contextlib.contextmanager
        def connect():
            def ask():
                must(p.poll() is None, "it ended")
                time.sleep(0.01)
            yield ask
        self.check(p.pid, connect, "malloc", complete=0)
        self.finish(p)


@contextlib.contextmanager
def short(session):
    """Yields a function that opens a connection for each request."""
    def ask():
        with session() as once:
            once()
    yield ask


def fastcgi(sock, script, expected):
    """Requests @script from php-fpm, one request on each connection.  @expected: the answers by n; the values
    of n are requested in turn.  Return: connect as for Load."""
    def record(kind, body):
        return struct.pack(">BBHHBB", 1, kind, 1, len(body), 0, 0) + body

    def request(n):
        params = b"".join(struct.pack(">BB", len(k), len(v)) + k + v for k, v in
                          ((b"SCRIPT_FILENAME", script.encode()), (b"REQUEST_METHOD", b"GET"),
                           (b"QUERY_STRING", b"n=%d" % n)))
        return record(1, struct.pack(">HB5x", 1, 0)) + record(4, params) + record(4, b"") + record(5, b"")

    @contextlib.contextmanager
    def connect():
        def ask():
            n = next(turn)
            answer = b""
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(120)
                s.connect(sock)
                s.sendall(request(n))
                with s.makefile("rb") as f:
                    data = f.read()
            while data:
                _, kind, _, length, pad, _ = struct.unpack(">BBHHBB", data[:8])
                answer += data[8:8 + length] if kind == 6 else b""
                data = data[8 + length + pad:]
            must(answer.partition(b"\r\n\r\n")[2] == expected[n], answer)
        turn = itertools.cycle(expected)
        yield ask
    return connect


if __name__ == "__main__":
    t.main()
