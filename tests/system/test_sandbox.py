#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sandboxed and limited targets: memprof records them, or refuses them by name before it changes anything."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import memprof_test as t

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
CGROUPS = "/sys/fs/cgroup"


def field(pid, name):
    return int(re.search(rf"^{name}:\s*(\d+)", t.read(f"/proc/{pid}/status").decode(), re.M).group(1))


def descendant(pid):
    """The innermost child; unshare and similar programs are above it."""
    while True:
        children = t.read(f"/proc/{pid}/task/{pid}/children").split()
        if not children:
            return pid
        pid = int(children[0])


class Sandbox(t.Case):
    def sandbox(self, *how, above=(), program="sandbox", **kw):
        kw.setdefault("stdin", subprocess.PIPE)
        p = self.start(*above, f"{t.VICTIMS}/{program}", *map(str, how), **kw)
        ready = p.stdout.readline()
        if ready.startswith("cannot"):
            self.skipTest(f"this kernel {ready.strip()}")
        self.assertEqual(ready, "ready\n")
        pid = descendant(p.pid)
        t.settle(pid)
        return p, pid

    def recorded(self, pid, **how):
        """Starts a recorder, and waits until it records."""
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"), **how)
        t.wait_for(lambda: "memprof-session" in t.maps(pid))
        self.wait_recorded(pid)
        return rec

    def end(self, rec):
        rec.terminate()
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0)

    def good_end(self, p, pid):
        os.kill(pid, 15)
        out, _ = p.communicate(timeout=120)
        self.assertEqual(out, "ok\n")

    def works(self, p, pid):
        before = t.identity(pid)
        r = self.report(self.record(pid, 0.3))
        self.assertGreater(r["totals"]["allocations"], 100)
        self.assertEqual(t.identity(pid), before)
        return r

    def refused(self, pid, status, text, above=()):
        before = t.identity(pid)
        r = subprocess.run([*above, t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("never")],
                           text=True, capture_output=True, timeout=60)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.assertRegex(r.stderr, r"\Amemprof: [^\n]*" + text + r"[^\n]*\n\Z")
        self.assertEqual(t.identity(pid), before)
        self.assertFalse(os.path.exists(self.path("never")))

    def test_strict(self):
        """attach refuses a process in seccomp strict mode"""
        p, pid = self.sandbox("strict")
        self.refused(pid, 11, "strict seccomp mode, which does not allow mmap; nothing was touched")
        p.stdin.close()
        self.assertEqual(p.stdout.read(), "ok\n")

    def test_filters(self):
        """attach refuses a seccomp filter against a needed system call by name; the program lives on"""
        for call, name in (("mmap", "mmap"), ("memfd_create", "memfd_create"), ("munmap", "munmap"),
                           ("mprotect", "mprotect"), ("madvise", "madvise"), ("dont-dump", "madvise"),
                           ("exec-mmap", "mmap of executable memory"), ("restart_syscall", "restart_syscall")):
            p, pid = self.sandbox("without", call)
            for _ in range(3):
                self.refused(pid, 11, f"seccomp filter of process {pid} does not allow {name}; nothing was touched")
            self.good_end(p, pid)

    def filtered_later(self, call, sig=signal.SIGUSR1):
        """Records a process that installs a seccomp filter for all its threads, or forks a child that does
        so, then ends the recorder."""
        p, pid = self.sandbox("later", call)
        before = t.identity(pid)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"), stderr=subprocess.PIPE)
        self.wait_recorded(pid)
        os.kill(pid, sig)
        said = p.stdout.readline()
        time.sleep(0.1)
        rec.terminate()
        _, err = rec.communicate(timeout=120)
        return p, pid, before, rec.returncode, said, err

    def text_as_before(self, pid, before):
        text = {k.split()[0]: v for k, v in t.identity(pid)["text"].items()}
        for where, was in before["text"].items():
            self.assertEqual(text[where.split()[0]], was, where)

    def runs_on(self, p, pid):
        """Checks that both threads of a program that installed its filter later still work."""
        def ticks():
            return int(t.read(f"/proc/{pid}/task/{pid}/stat").rsplit(b")", 1)[1].split()[11])
        before = ticks()
        t.wait_for(lambda: ticks() > before)
        self.assertEqual(p.stdout.readline(), "deep\n")

    def test_filter_later(self):
        """detach after the program installed a filter against munmap restores the text, keeps the pages"""
        for call in "munmap", "rt_sigreturn":
            p, pid, before, status, said, err = self.filtered_later(call)
            self.assertEqual(said, "filtered\n")
            self.assertEqual(status, 15, err)
            self.assertRegex(err, f"the text of process {pid} is restored, but its seccomp filter does not allow munmap")
            self.text_as_before(pid, before)
            r = subprocess.run([t.MEMPROF, "detach", "-p", str(pid)], text=True, capture_output=True, timeout=120)
            self.assertEqual(r.returncode, 15, r.stderr)
            self.assertIn("seccomp filter", r.stderr)
            self.text_as_before(pid, before)
            self.assertIn("memprof-session", t.maps(pid))
            self.runs_on(p, pid)
            if call == "munmap":
                self.good_end(p, pid)  # with the other filter, the handler of SIGTERM could not return

    def test_harmless_filter_later(self):
        """detach after the program installed a filter against restart_syscall or madvise removes all"""
        for call in "restart_syscall", "madvise":
            p, pid, before, status, said, err = self.filtered_later(call)
            # The recorder has dropped the privilege to read the filter; memprof detach has it.
            self.assertEqual((said, status), ("filtered\n", 15), err)
            self.text_as_before(pid, before)
            self.memprof("detach", "-p", pid)
            self.assertNotIn("memprof", t.maps(pid))
            self.text_as_before(pid, before)
            self.runs_on(p, pid)
            self.good_end(p, pid)

    def after_a_filter(self, call, how, *more):
        """Records a program that installs a filter which kills on a system call of the agent.  Then a thread
        allocates at stack depths that the agent has not read before."""
        p, pid = self.sandbox(how, call)
        rec = self.start(t.MEMPROF, "attach", "-q", "-p", str(pid), "-o", self.path("r"), *more, stderr=subprocess.PIPE)
        self.wait_recorded(pid)
        os.kill(pid, signal.SIGUSR1)
        self.assertEqual(p.stdout.readline(), "filtered\n", call)
        if how == "later-raw":
            t.wait_for(lambda: not self.agent_calls(pid))
            os.kill(pid, signal.SIGHUP)
        self.assertEqual(p.stdout.readline(), "deep\n", call)
        self.assertFalse(self.agent_calls(pid))
        rec.terminate()
        rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 15)  # the recorder may not read the filter
        self.memprof("detach", "-p", pid)
        self.assertNotIn("memprof", t.maps(pid))
        self.good_end(p, pid)

    def agent_calls(self, pid):
        return json.loads(subprocess.check_output([f"{t.VICTIMS}/block", str(pid)]))["may_syscall"]

    def test_filter_of_the_agents_calls(self):
        """the agent makes no more system calls once the program has called prctl() and installed a filter"""
        self.after_a_filter("rt_sigprocmask", "later")
        self.after_a_filter("futex", "later")
        self.after_a_filter("sched_yield", "later", "--lossless")

    def test_raw_filter_of_the_agents_calls(self):
        """the recorder notices a filter installed by seccomp(2) without prctl(), and the agent's calls end"""
        self.after_a_filter("rt_sigprocmask", "later-raw")

    def test_filtered_child(self):
        """detach restores the text of a forked child with a filter against munmap, and the child lives on"""
        p, pid, before, status, said, err = self.filtered_later("munmap", signal.SIGUSR2)
        child = int(said.split()[1])
        try:
            self.assertEqual(status, 0, err)
            self.assertIn("1 process forked from it still has memprof's pages", err)
            self.text_as_before(child, before)
            self.assertEqual(t.identity(pid)["text"], before["text"])
            self.assertNotIn("memprof", t.maps(pid))
            self.assertNotIn("Z", t.read(f"/proc/{child}/status").decode().split("State:\t")[1][:1])
        finally:
            os.kill(child, signal.SIGTERM)
        self.assertEqual(p.stdout.readline(), "ok\n")
        self.good_end(p, pid)

    def test_allow_list(self):
        """attach refuses a seccomp filter that kills on all unlisted system calls, and names the call"""
        p, pid = self.sandbox("allow")
        self.refused(pid, 11, "does not allow memfd_create")
        self.good_end(p, pid)

    def test_harmless_filter(self):
        """attach records a program whose seccomp filter forbids nothing that memprof needs"""
        p, pid = self.sandbox("without", "ptrace")
        self.works(p, pid)
        self.good_end(p, pid)

    def test_unreadable_filter(self):
        """attach refuses a process with a seccomp filter that memprof may not read"""
        p, pid = self.sandbox("without", "ptrace")
        self.refused(pid, 11, "may read only with CAP_SYS_ADMIN",
                     ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"])
        self.good_end(p, pid)

    def test_dispatch(self):
        """attach does not inject system calls into a thread with syscall user dispatch (as Wine has)"""
        p, pid = self.sandbox("dispatch")
        self.works(p, pid)
        self.good_end(p, pid)

    def test_no_new_privs(self):
        """attach records a process with no_new_privs"""
        p, pid = self.sandbox("nnp")
        self.works(p, pid)
        self.good_end(p, pid)

    def test_mdwe(self):
        """attach records a process with memory-deny-write-execute"""
        p, pid = self.sandbox("mdwe")
        self.works(p, pid)
        self.good_end(p, pid)

    def test_not_dumpable(self):
        """a process that is not dumpable is recorded by root, refused to its own user"""
        p, pid = self.sandbox("nodump", above=NOBODY)
        self.works(p, pid)
        os.chmod(self.dir, 0o777)
        self.refused(pid, 4, "", NOBODY)
        self.good_end(p, pid)

    def test_setuid(self):
        """a setuid program is recorded by root, refused to the user that it runs as"""
        exe = self.path("setuid")
        shutil.copy(f"{t.VICTIMS}/sandbox", exe)
        os.chmod(self.dir, 0o777)
        os.chown(exe, 65534, 65534)
        os.chmod(exe, 0o4755)
        p = self.start(exe, "none", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.works(p, p.pid)
        self.refused(p.pid, 4, "", NOBODY)
        self.good_end(p, p.pid)

    def test_namespaces(self):
        """attach records a process with user, pid, mount and network namespaces of its own"""
        p, pid = self.sandbox("none", above=["unshare", "-U", "-r", "-p", "-m", "-n", "-f", "--mount-proc"])
        self.assertNotEqual(os.readlink(f"/proc/{pid}/ns/user"), os.readlink("/proc/self/ns/user"))
        self.works(p, pid)
        self.good_end(p, pid)

    def test_address_space(self):
        """attach makes a smaller session if RLIMIT_AS is low, and is refused by name if that does not fit"""
        p, pid = self.sandbox("as", 600)
        size = field(pid, "VmSize")
        rec = self.recorded(pid)
        self.assertLess(field(pid, "VmSize") - size, 150 * 1024)
        self.end(rec)
        self.good_end(p, pid)
        p, pid = self.sandbox("as", 50)
        self.refused(pid, 10, "RLIMIT_AS leaves .* nothing was touched")
        self.good_end(p, pid)

    def test_locked(self):
        """the session of a process with mlockall(MCL_FUTURE) is not locked into memory"""
        p, pid = self.sandbox("lock")
        locked, rss = field(pid, "VmLck"), field(pid, "VmRSS")
        rec = self.recorded(pid)
        self.assertLess(field(pid, "VmLck") - locked, 1024)
        self.assertLess(field(pid, "VmRSS") - rss, 16 * 1024)
        self.end(rec)
        self.good_end(p, pid)

    def test_lock_limit(self):
        """attach refuses a process with mlockall(MCL_FUTURE) and a low RLIMIT_MEMLOCK by name"""
        p, pid = self.sandbox("lock", program="sandbox-static",
                              above=["prlimit", "--memlock=8388608:8388608", "--stack=262144", *NOBODY])
        self.refused(pid, 10, "RLIMIT_MEMLOCK")
        self.good_end(p, pid)

    def cgroup(self, controller):
        """Creates a cgroup of version 1, removed after the test.  Skips the test if the machine has none."""
        root = f"{CGROUPS}/{controller}"
        if not os.path.exists(f"{root}/tasks"):
            self.skipTest(f"no {controller} cgroup of version 1 is mounted")
        path = f"{root}/memprof-test-{os.getpid()}"
        os.mkdir(path)
        # Cleanups run after tearDown(), which ends the processes in the cgroup.
        self.addCleanup(os.rmdir, path)
        return path

    def test_memory_cgroup(self):
        """a session is not charged to a small memory cgroup; attach refuses one at its limit by name"""
        path = self.cgroup("memory")

        def put(name, value):
            with open(f"{path}/{name}", "w") as f:
                f.write(str(value))

        def usage():
            return int(t.read(f"{path}/memory.usage_in_bytes"))

        put("memory.limit_in_bytes", 12 << 20)
        p, pid = self.sandbox("none", preexec_fn=lambda: put("tasks", os.getpid()))
        before = usage()
        rec = self.recorded(pid)
        self.assertLess(usage() - before, 4 << 20)
        self.end(rec)
        put("memory.limit_in_bytes", usage() + (1 << 20))
        self.refused(pid, 10, r"memory cgroup /memprof-test-\d+ leaves")
        self.good_end(p, pid)

    def freezer(self, pid):
        """Puts all threads of the process into a cgroup that can freeze them.  Return: its path."""
        path = self.cgroup("freezer")
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"{path}/tasks", "w") as f:
                f.write(task)
        return path

    @contextlib.contextmanager
    def thawed_after(self, path):
        try:
            yield
        finally:
            with open(f"{path}/freezer.state", "w") as f:
                f.write("THAWED")

    @contextlib.contextmanager
    def frozen(self, path):
        with self.thawed_after(path):
            with open(f"{path}/freezer.state", "w") as f:
                f.write("FROZEN")
            yield

    def freeze_in_the_middle(self, path, pid, calls):
        """Attaches, and freezes the process after so many injected system calls.  Return: error output."""
        script = self.path("gdb")
        with open(script, "w") as f:
            f.write(f"set pagination off\nset confirm off\nbreak remote_syscall_at_entry\nignore 1 {calls}\n"
                    f"run attach -q -p {pid} -o {self.path('r')}\nshell echo FROZEN > {path}/freezer.state\n"
                    "delete\ncontinue\n")
        with self.thawed_after(path):
            r = subprocess.run(["gdb", "-batch", "-nx", "-x", script, t.MEMPROF], text=True, capture_output=True,
                               timeout=300)
            self.assertIn("exited with code 017", r.stdout, r.stderr)
            return r.stderr

    def test_frozen_while_attached(self):
        """attach to a process that is frozen meanwhile ends with a message, and detach restores it"""
        p, pid = self.sandbox("none")
        path = self.freezer(pid)
        before = t.identity(pid)
        for calls in (0, 2, 5):
            said = self.freeze_in_the_middle(path, pid, calls)
            self.assertRegex(said, rf"did not run in time .* remove what is left with: memprof detach -p {pid}\n")
            t.settle(pid)
            if t.identity(pid) != before:
                self.memprof("detach", "-p", pid)
            self.assertEqual(t.identity(pid), before)
        self.works(p, pid)
        self.good_end(p, pid)

    def test_frozen(self):
        """attach leaves a frozen process alone, and the process runs on when it is thawed"""
        p, pid = self.sandbox("none")
        before = t.identity(pid)
        with self.frozen(self.freezer(pid)):
            r = self.memprof("attach", "-q", "-p", pid, "-o", self.path("r"), status=17)
            said = re.search(r"thread (\d+) of .* did not stop in time .* the process was left alone", r.stderr)
            self.assertIn(said.group(1), os.listdir(f"/proc/{pid}/task"))
        self.assertEqual(t.identity(pid), before)
        self.works(p, pid)
        self.good_end(p, pid)

    def test_frozen_at_detach(self):
        """a recorder that had to try again to stop the process has restored it, and says so"""
        p, pid = self.sandbox("none")
        path, before = self.freezer(pid), t.identity(pid)
        rec = self.recorded(pid, stderr=subprocess.PIPE)
        with self.frozen(path):
            rec.send_signal(signal.SIGINT)
            time.sleep(3)  # the first attempt to stop it lasts two seconds, all of them ten
        said = rec.communicate(timeout=120)[1]
        self.assertEqual(rec.returncode, 0, said)
        self.assertNotIn("did not stop in time", said)
        self.assertEqual(t.identity(pid), before)
        self.works(p, pid)
        self.good_end(p, pid)

    def test_frozen_until_the_recorder_gives_up(self):
        """a recorder that cannot stop the process says what stays in it, and detach removes that later"""
        p, pid = self.sandbox("none")
        path, before = self.freezer(pid), t.identity(pid)
        rec = self.recorded(pid, stderr=subprocess.PIPE)
        with self.frozen(path):
            rec.send_signal(signal.SIGINT)
            said = rec.communicate(timeout=120)[1]
        self.assertEqual(rec.returncode, 15, said)
        self.assertRegex(said, rf"thread \d+ of process {pid} did not stop in time .* "
                               rf"the session stays in it, remove it with: memprof detach -p {pid}\n")
        self.memprof("detach", "-p", pid)
        self.assertEqual(t.identity(pid), before)
        self.works(p, pid)
        self.good_end(p, pid)

    def test_no_processor_time(self):
        """attach says that a thread gets no processor time, and leaves the process alone"""
        path = self.cgroup("cpu")
        # A few threads can all stop within the two milliseconds that the group gets while memprof waits.
        p = self.victim("crowd", "many", 4000)
        before = t.identity(p.pid)
        for name, value in (("cpu.cfs_period_us", 1000000), ("cpu.cfs_quota_us", 1000)):
            with open(f"{path}/{name}", "w") as f:
                f.write(str(value))
        with open(f"{path}/cgroup.procs", "w") as f:
            f.write(str(p.pid))
        try:
            r = self.memprof("attach", "-q", "-p", p.pid, "-o", self.path("r"), "--for", "1s", status=17)
            self.assertRegex(r.stderr, r"thread \d+ of .* did not stop in time "
                                       r"\(it is ready to run, but gets no processor time; \d+ of \d+ threads did not stop\); the process was left alone")
        finally:
            with open(f"{path}/cpu.cfs_quota_us", "w") as f:
                f.write("-1")
        # sigwait() takes the signal out of the first thread's mask as long as it waits: that thread must have run again.
        t.wait_for(lambda: t.identity(p.pid) == before)


if __name__ == "__main__":
    t.main()
