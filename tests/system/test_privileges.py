#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof drops privileges, and other users can see nothing of a recording."""
import os
import re
import stat
import subprocess

import memprof_test as t

SYS_PTRACE, DAC_READ_SEARCH, SYS_NICE, CHECKPOINT_RESTORE = 1 << 19, 1 << 2, 1 << 23, 1 << 40
SECRET = "s3cret-9f31c7d2"


def thread_fields(pid, name):
    """The values of a field in the status of every thread."""
    return [re.search(rf"^{name}:\s*(\S+)", t.read(f"/proc/{pid}/task/{tid}/status").decode(), re.M).group(1)
            for tid in os.listdir(f"/proc/{pid}/task")]


class Privileges(t.Case):
    def test_drops(self):
        """the threads of a recorder keep only the capabilities that it needs"""
        p = self.victim("verify", 2)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("r"))
        recorder = self.wait_recorded(p.pid)
        most = SYS_PTRACE | DAC_READ_SEARCH | SYS_NICE | CHECKPOINT_RESTORE

        def dropped():
            caps = [int(c, 16) for c in thread_fields(recorder, "CapPrm")]
            return len(caps) >= 3 and 0 in caps and not any(c & ~most for c in caps)
        t.wait_for(dropped)
        main = int(re.search(r"CapPrm:\s*(\S+)", t.read(f"/proc/{recorder}/status").decode()).group(1), 16)
        self.assertEqual(main & SYS_PTRACE, SYS_PTRACE)
        self.assertEqual(set(thread_fields(recorder, "NoNewPrivs")), {"1"})
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0)
        self.assertIn("ok", self.finish(p))

    def test_only_ptrace(self):
        """CAP_SYS_PTRACE is enough to record a process of another user, without perf events"""
        p = self.victim("verify", 2)
        before = t.identity(p.pid)
        os.chmod(self.dir, 0o777)
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                            "--inh-caps=-all,+sys_ptrace", "--ambient-caps=-all,+sys_ptrace",
                            "--bounding-set=-all,+sys_ptrace", "--no-new-privs",
                            t.MEMPROF, "attach", "-p", str(p.pid), "-o", self.path("r"), "--for", "500ms"],
                           text=True, capture_output=True, timeout=300)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn("does not allow perf events", r.stderr)
        after = t.identity(p.pid)
        # Only root may see which pages were clean before.  Here they stay anonymous copies of the file's.
        del before["copied text"], after["copied text"]
        self.assertEqual(after, before)
        report = self.report(self.path("r"))
        self.assertGreater(report["losses"]["stacks_complete"], 0.99 * report["losses"]["stacks_total"])
        functions = {f["function"] for g in report["allocation_groups"] for f in g["backtrace"]}
        self.assertIn("run", functions)
        self.assertIn("ok", self.finish(p))

    def test_file_mode(self):
        """a recording has mode 600, whatever the umask"""
        p = self.victim("verify", 1)
        self.addCleanup(os.umask, os.umask(0))
        r = self.record(p.pid, 0.2)
        self.assertEqual(stat.S_IMODE(os.stat(r).st_mode), 0o600)
        self.finish(p)

    def test_links(self):
        """attach -o refuses a symbolic link and a fifo"""
        p = self.victim("verify", 1)
        other, link, fifo = self.path("other"), self.path("link"), self.path("fifo")
        with open(other, "w") as f:
            f.write("untouched")
        os.symlink(other, link)
        os.mkfifo(fifo)
        for path in (link, fifo):
            r = self.memprof("attach", "-q", "-p", p.pid, "-o", path, "--for", "100ms", status=14)
            self.assertRegex(r.stderr, "it exists and is not a regular file")
        self.assertEqual(t.read(other), b"untouched")
        self.assertTrue(os.path.islink(link))
        self.assertNotIn("memprof-session", t.maps(p.pid))
        self.finish(p)

    def test_outputs(self):
        """every other output file also has mode 600, and a symbolic link or fifo is refused"""
        p = self.victim("verify", 3)
        self.addCleanup(os.umask, os.umask(0))
        r, other = self.record(p.pid, 0.2), self.path("other")
        commands = {
            "json": ("report", r, "--json", "-o"),
            "svg": ("report", r, "--flamegraph"),
            "text.gz": ("report", r, "-o"),
            "diff": ("diff", r, r, "-o"),
            "symbolized": ("symbolize", r, "-o"),
            "stripped": ("strip", r, "-o"),
            "list": ("heap", "-p", p.pid, "--list"),
            "leaks": ("leaks", "-p", p.pid, "--recording", r, "--budget", "1GB", "--json"),
            "graph": ("leaks", "-p", p.pid, "--recording", r, "--budget", "1GB", "--flamegraph"),
        }
        with open(other, "w") as f:
            f.write("untouched")
        for name, command in commands.items():
            with self.subTest(name):
                path, link, fifo = self.path(name), self.path("link-" + name), self.path("fifo-" + name)
                self.memprof(*command, path)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                with open(path, "wb"):
                    os.chmod(path, 0o666)
                self.memprof(*command, path)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                self.assertGreater(os.stat(path).st_size, 0)
                os.symlink(other, link)
                os.mkfifo(fifo)
                for bad in (link, fifo):
                    refused = subprocess.run([t.MEMPROF, *map(str, command), bad], text=True,
                                             stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
                    self.assertNotEqual(refused.returncode, 0)
                    self.assertRegex(refused.stderr, "it exists and is not a regular file")
        self.assertEqual(t.read(other), b"untouched")
        self.assertIn('"totals"', self.memprof("report", r, "--json", "-o", "/dev/stdout").stdout)
        self.memprof("report", r, "--json", "-o", "/dev/null")
        self.finish(p)

    def test_detach_by_user(self):
        """a user without capabilities ends a recording of an own process, and is told that --keep needs one"""
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chmod(self.dir, 0o777)
        p = self.start(*user, f"{t.VICTIMS}/verify", "2")
        t.settle(p.pid)
        before = t.identity(p.pid)

        def run(*argv):
            return subprocess.run([*user, t.MEMPROF, *argv], text=True, capture_output=True, timeout=300)
        r = run("attach", "-q", "-p", str(p.pid), "-o", self.path("r"), "--background")
        self.assertEqual(r.returncode, 0, r.stderr)
        r = run("detach", "-p", str(p.pid), "--keep")
        self.assertEqual(r.returncode, 4, r.stdout)
        self.assertIn("needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", r.stderr)
        r = run("detach", "-p", str(p.pid))
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertRegex(r.stdout, r"the recorder \(pid \d+\) ended the recording and restored it: /")
        after = t.identity(p.pid)
        # Only root may see which pages were clean before.
        del before["copied text"], after["copied text"]
        self.assertEqual(after, before)
        self.assertIn("ok", self.finish(p))
        self.report(self.path("r"))

    def test_no_other_files(self):
        """attach makes no file in /tmp, /run, /dev/shm or /var/tmp, not even while it records"""
        shared = ("/tmp", "/run", "/dev/shm", "/var/tmp")
        p = self.victim("verify", 1)
        # In the recorder's mount namespace these folders are empty, so that it alone makes files there.  What
        # could be in them outside, memprof and the folder for the recording, it gets by a descriptor and as ".".
        script = "; ".join([f"exec 9<{t.MEMPROF}", *(f"mount -n -t tmpfs none {d}" for d in shared),
                            f"mkdir -p {self.dir}", f"mount -nc --bind . {self.dir}", f"cd {self.dir}",
                            f"exec /proc/self/fd/9 attach -q -p {p.pid} -o r"])
        rec = self.start("unshare", "-m", "sh", "-ec", script, cwd=self.dir)

        def made():
            return [f"{d}/{f}" for d in shared for f in os.listdir(f"/proc/{rec.pid}/root{d}")
                    if f"{d}/{f}" != self.dir]
        self.assertEqual(self.wait_recorded(p.pid), rec.pid)
        self.assertEqual(made(), [])
        self.memprof("flush", "-p", p.pid)
        self.assertEqual(made(), [])
        self.memprof("detach", "-p", p.pid)
        self.assertEqual(rec.wait(120), 0)
        self.assertEqual(os.listdir(self.dir), ["r"])
        self.finish(p)

    def test_no_secrets(self):
        """a recording contains neither environment variables nor contents of memory"""
        p = self.start("/usr/bin/python3", "-c",
                       "import os, time\nend = time.time() + 60\nprint(flush=True)\n"
                       "while time.time() < end:\n x = [os.environ['PASSWORD'] + str(i) for i in range(1000)]\n"
                       " time.sleep(.01)\n",
                       env={**os.environ, "PASSWORD": SECRET, "PYTHONMALLOC": "malloc"})
        p.stdout.readline()
        r = self.record(p.pid, 0.5)
        self.assertGreater(self.report(r)["totals"]["allocations"], 100)
        data = b"".join(t.payloads(r))
        self.assertIn(b"while time.time() < end", data)  # the command line, which is recorded
        self.assertFalse(SECRET.encode() in data)
        for name in ("USER", "PATH", "HOME"):
            if len(os.environ.get(name, "")) > 8:
                self.assertFalse(os.environ[name].encode() in data, name)


if __name__ == "__main__":
    t.main()
