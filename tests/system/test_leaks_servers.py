#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many leak reports in a row on servers under load are exact and leave nothing behind: 3 rounds, or 500 with
make check-all or ROUNDS=500.  test_leaks_safe.py does the same with python and redis."""
import http.client
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import threading
import time

import memprof_test as t

ROUNDS = int(os.environ.get("ROUNDS", 500 if t.FULL else 3))
NOBODY = pwd.getpwnam("nobody")


def left(pid):
    """What must be the same afterwards.  Descriptors and other mappings are the server's own business."""
    status = t.read(f"/proc/{pid}/status").decode()
    return (re.findall(r"^(?:SigBlk|SigIgn|SigCgt|TracerPid|Threads):.*$", status, re.M),
            [m for m in t.maps(pid).split("\n") if "memprof" in m or "memfd" in m], t.children(pid),
            t.identity(pid)["text"])


class Servers(t.Case):
    def rounds(self, pid, calm=True):
        """Runs memprof leaks repeatedly.  @calm: all reports must have the same leaks."""
        before = left(pid)
        fds = len(os.listdir(f"/proc/{pid}/fd"))
        found = set()
        for i in range(ROUNDS):
            f = self.path("leaks.json")
            r = subprocess.run([t.MEMPROF, "leaks", "-p", str(pid), "--json", f], text=True,
                               capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            self.assertIn(r.returncode, (0, 1), f"round {i}: {r.stdout}{r.stderr}")
            report = json.loads(t.read(f))
            self.assertTrue(report["exact"], f"round {i}: {r.stdout}")
            self.assertEqual(report["mode"], "copy")
            found.add((report["leaked"]["count"], report["leaked"]["bytes"]))
            self.assertEqual(t.children(pid), before[2], f"round {i}")
        self.assertEqual(left(pid), before)
        self.assertLessEqual(abs(len(os.listdir(f"/proc/{pid}/fd")) - fds), 8)
        print(f"# {ROUNDS} reports on process {pid}: leaked {sorted(found)}")
        if calm:
            self.assertEqual(len(found), 1)

    def test_nginx(self):
        """leaks on nginx under load: each answer to a client is whole, and the error log is empty"""
        conf = self.path("nginx.conf")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with open(conf, "w") as f:
            f.write(f"daemon off; worker_processes 1; pid {self.dir}/pid; error_log {self.dir}/error warn;\n"
                    "events {} http { access_log off; client_body_temp_path /tmp; gzip on; gzip_types *;\n"
                    f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 'hello to everybody\\n'; }} }} }}\n")
        nginx = self.start("/usr/sbin/nginx", "-c", conf, "-e", self.path("error"))
        worker = t.wait_for(lambda: t.children(nginx.pid))[0]
        stop, wrong, served = threading.Event(), [], [0] * 4

        def load(i):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                while not stop.is_set():
                    c.request("GET", "/" + "x" * (served[i] % 500))
                    r = c.getresponse()
                    if r.status != 200 or r.read() != b"hello to everybody\n":
                        wrong.append(r.status)
                    served[i] += 1
            except OSError as e:
                wrong.append(e)

        threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        try:
            # A new worker has all signals blocked until it is ready.
            t.wait_for(lambda: wrong or all(served))
            self.rounds(worker)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        nginx.terminate()
        self.assertEqual(nginx.wait(), 0)
        self.assertEqual(t.read(self.path("error")), b"")

    def postgres(self):
        """Starts a PostgreSQL server.  Return: its process, the command line of pgbench."""
        bin_dir = subprocess.run(["sh", "-c", "echo /usr/lib/postgresql/*/bin"], text=True,
                                 capture_output=True).stdout.split()[-1]
        as_nobody = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
        data = self.path("data")
        os.chmod(self.dir, 0o755)
        os.mkdir(data, 0o700)
        os.chown(data, NOBODY.pw_uid, NOBODY.pw_gid)
        subprocess.run([*as_nobody, f"{bin_dir}/initdb", "-D", data, "-A", "trust", "-U", "test", "--no-sync"],
                       check=True, capture_output=True, cwd="/")
        p = self.start(*as_nobody, f"{bin_dir}/postgres", "-D", data, "-k", data, "-c", "listen_addresses=",
                       "-c", "fsync=off", "-c", "autovacuum=off", cwd="/", stderr=subprocess.STDOUT,
                       stdout=open(self.path("log"), "w"))
        pgbench = [f"{bin_dir}/pgbench", "-h", data, "-U", "test", "postgres"]
        for _ in range(300):
            if not subprocess.run([*pgbench, "-i", "-q"], capture_output=True).returncode:
                break
            time.sleep(0.2)
        return p, pgbench

    def backends(self, postmaster):
        """Waits until the two clients of pgbench have a backend each, and no other client has one: pgbench begins
        with a connection that soon ends."""
        seen = set()

        def both():
            local = {}
            for c in t.children(postmaster):
                try:
                    title = t.read(f"/proc/{c}/cmdline")
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if b"[local]" in title:
                    local[c] = title
            # Only the clients' transactions have such a statement.
            seen.update(c for c, title in local.items() if b"UPDATE" in title)
            return len(seen) == 2 and seen == set(local)
        t.wait_for(both)
        return sorted(seen)

    def test_postgresql(self):
        """leaks on a PostgreSQL backend and the postmaster under load: no transaction fails"""
        p, pgbench = self.postgres()
        load = self.start(*pgbench, "-c", "2", "-T", "100000", stderr=subprocess.STDOUT)
        self.rounds(self.backends(p.pid)[0], calm=False)
        self.rounds(p.pid)
        self.assertIsNone(load.poll())
        load.send_signal(signal.SIGINT)
        out, _ = load.communicate(timeout=60)
        self.assertNotRegex(out, r"error|aborted|failed: [1-9]")
        p.terminate()
        self.assertEqual(p.wait(), 0)
        self.assertNotRegex(t.read(self.path("log")).decode(), r"ERROR|PANIC|WARNING|crash|signal \d")


if __name__ == "__main__":
    t.main()
