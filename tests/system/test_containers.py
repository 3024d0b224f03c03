#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Containers, made here of namespaces, a root file system and capability sets: what doc/containers.md says."""
import os
import re
import shutil
import subprocess

import yaml

import memprof_test as t

DOCUMENT = t.ROOT + "/doc/containers.md"
USER = 65534
# What a container of Docker or Podman gives its root, as far as a process can be traced by it.
CONTAINER = "+chown,+dac_override,+fowner,+kill,+setuid,+setgid,+sys_chroot"


def libraries(program):
    return re.findall(r"(/\S+\.so\S*)", subprocess.check_output(["ldd", program], text=True))


class Containers(t.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o777)
        self.tool = shutil.copy(t.MEMPROF, self.path("memprof"))

    def as_user(self, uid, capabilities, *argv, namespaces=()):
        """The command that runs argv as this user with exactly these capabilities (names as in the document)."""
        sets = "-all" + "".join(f",+{c.lower().removeprefix('cap_')}" for c in capabilities)
        return [*namespaces, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", f"--inh-caps={sets}",
                f"--ambient-caps={sets}", f"--bounding-set={sets}", *argv]

    def run_as(self, uid, capabilities, *argv, **kw):
        return subprocess.run(self.as_user(uid, capabilities, self.tool, *map(str, argv), **kw), text=True, timeout=120,
                              capture_output=True, stdin=subprocess.DEVNULL, cwd=self.dir)

    def target(self, uid=0, program="verify", *argv):
        p = self.start(*(self.as_user(uid, ()) if uid else ()), f"{t.VICTIMS}/{program}", *(argv or ("1",)))
        t.settle(p.pid)
        return p

    def works(self, uid, capabilities, pid, what, **kw):
        """Return: '', or the first message of memprof, with a check that it is one clear line."""
        out = self.path("r")
        argv = {"attach": ("attach", "-q", "-p", pid, "-o", out, "--for", "100ms"),
                "leaks": ("leaks", "-p", pid, "--budget", "1GB"),
                "heap": ("heap", "-p", pid),
                "faults": ("attach", "-q", "-p", pid, "--event=page-faults", "-o", out, "--for", "100ms")}[what]
        r = self.run_as(uid, capabilities, *argv, **kw)
        if os.path.exists(out):
            os.unlink(out)
        self.assertNotIn("memprof-session", t.maps(pid))
        if r.returncode == 0:
            return ""
        self.assertRegex(r.stderr, r"(?m)^memprof: [^\n]+$")
        return re.search(r"(?m)^memprof: ([^\n]+)$", r.stderr).group(1)

    def document_table(self):
        """The rows of the table of capabilities: who, capabilities, and what attach, leaks and heap do."""
        rows = re.findall(r"^\| (own|another user's)[^|]* \| ([^|]*) \| (yes|no) \| (yes|no) \|", t.read(DOCUMENT).decode(),
                          re.M)
        return [(whose, re.findall(r"CAP_\w+", capabilities), *does) for whose, capabilities, *does in rows]

    def test_table(self):
        """each row of the document's table of capabilities is true"""
        rows = self.document_table()
        self.assertGreaterEqual(len(rows), 4)
        self.assertIn("own", {r[0] for r in rows})
        own, others = self.target(USER), self.target()
        for whose, capabilities, records, reads in rows:
            p = own if whose == "own" else others
            with self.subTest(whose=whose, capabilities=capabilities):
                message = self.works(USER, capabilities, p.pid, "attach")
                self.assertEqual(records == "yes", not message, message)
                if records == "no":
                    self.assertIn("without CAP_SYS_PTRACE; try: sudo memprof", message)
                for command in "leaks", "heap":
                    message = self.works(USER, capabilities, p.pid, command)
                    self.assertEqual(reads == "yes", not message, message)
                    if reads == "no":
                        self.assertRegex(message, "CAP_SYS_PTRACE")
        self.finish(others)
        self.finish(own)

    def test_filtered(self):
        """a process with a seccomp filter needs CAP_SYS_ADMIN, and a memprof that has no filter itself"""
        p = self.start(f"{t.VICTIMS}/sandbox", "without", "ptrace", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        for command in "attach", "leaks", "heap":
            with self.subTest(command):
                few, enough = ["sys_ptrace", "dac_read_search"], ["sys_ptrace", "dac_read_search", "sys_admin"]
                self.assertRegex(self.works(USER, few, p.pid, command), "filter, which memprof may read only with CAP_SYS_ADMIN")
                self.assertEqual(self.works(USER, enough, p.pid, command), "")
        p.terminate()
        self.assertEqual(p.communicate(timeout=120)[0], "ok\n")

    def test_root_of_a_container(self):
        """root without CAP_SYS_PTRACE records a process whose capabilities it has, and restores it"""
        caps = CONTAINER.replace("+", "").split(",")
        p = self.start(*self.as_user(0, caps, f"{t.VICTIMS}/verify", "1"))
        t.settle(p.pid)
        before = t.identity(p.pid)
        for command in "attach", "leaks", "heap":
            self.assertEqual(self.works(0, caps, p.pid, command), "", command)
        after = t.identity(p.pid)
        del before["copied text"], after["copied text"]  # only CAP_SYS_ADMIN may see which pages were clean
        self.assertEqual(after, before)
        self.assertRegex(self.works(0, caps[:2], p.pid, "attach"), "not permitted")
        self.finish(p)

    def container(self, *more):
        """A small root file system with a victim and memprof, without libgcc_s and without symbols."""
        root = self.path("root")
        for f in (self.tool, f"{t.VICTIMS}/leaky"):
            for source, target in [(f, "/bin/" + os.path.basename(f))] + [(x, x) for x in libraries(f)]:
                os.makedirs(root + os.path.dirname(target), exist_ok=True)
                shutil.copy(source, root + target)
        for folder in ("proc", "out", "dev"):
            os.makedirs(f"{root}/{folder}", exist_ok=True)
        open(f"{root}/dev/null", "x").close()
        script = (f"mount --bind {root} {root} && mount --bind {self.path('out')} {root}/out && "
                  f"mount --bind /dev/null {root}/dev/null && "
                  f"mount -t proc proc {root}/proc && mount -o remount,bind,ro {root} && exec chroot {root} \"$@\"")
        os.makedirs(self.path("out"), exist_ok=True)
        p = self.start("unshare", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-ec", script, "sh",
                       *more, "/bin/leaky")
        inner = t.wait_for(lambda: (t.children(p.pid) or [0])[0])
        t.wait_for(lambda: os.readlink(f"/proc/{inner}/exe").endswith("leaky"))
        t.settle(inner)
        return inner

    def test_from_the_host(self):
        """the host's memprof records a process of a container by its pid there, and finds its files and names"""
        pid = self.container()
        self.assertEqual(re.search(r"NSpid:\s*\d+\s+(\d+)", t.read(f"/proc/{pid}/status").decode()).group(1), "1")
        found = self.memprof("doctor", "-p", pid, "-o", self.path("r")).stdout
        self.assertIn("in another pid namespace (a container)", found)
        self.assertIn("all mapped programs and libraries can be read", found)
        before = t.identity(pid)
        report = self.report(self.record(pid, 0.3))
        self.assertEqual(t.identity(pid), before)
        self.assertIn("remember_answer", {f["function"] for g in report["allocation_groups"] for f in g["backtrace"]})
        self.memprof("leaks", "-p", pid, "--budget", "1GB")
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_beside(self):
        """memprof in a container that shares the pid namespace, with a read-only root, writes to a volume"""
        pid = self.container()
        inside = ["nsenter", "-t", str(pid), "-p", "-m", "-r", "/bin/memprof"]
        r = subprocess.run([*inside, "attach", "-p", "1", "-o", "/out/r", "--for", "300ms"], text=True, capture_output=True,
                           timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertGreater(self.report(self.path("out/r"))["totals"]["allocations"], 100)
        r = subprocess.run([*inside, "leaks", "-p", "1", "--budget", "1GB"], text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        r = subprocess.run([*inside, "attach", "-q", "-p", "1", "-o", "/r", "--for", "300ms"], text=True, capture_output=True,
                           timeout=120)
        self.assertEqual((r.returncode, "Read-only file system" in r.stderr), (14, True), r.stderr)
        self.assertNotIn("memprof-session", t.maps(pid))

    def test_user_namespace(self):
        """root of a user namespace records a process of it, and not one outside"""
        maps = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        script = (f"{t.VICTIMS}/verify 1 & sleep 1; {self.tool} attach -p $! -o {self.path('r')} --for 300ms; s=$?; "
                  "kill $!; wait; exit $s")
        r = subprocess.run([*maps, "sh", "-c", script], text=True, capture_output=True, timeout=120, cwd=self.dir)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertGreater(self.report(self.path("r"))["totals"]["allocations"], 100)
        p = self.target()
        r = subprocess.run(["unshare", "--user", "--map-root-user", self.tool, "attach", "-q", "-p", str(p.pid), "-o",
                            self.path("r2")], text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertIn("in another user namespace, where memprof has no CAP_SYS_PTRACE; run memprof as root of the host", r.stderr)
        self.finish(p)

    def test_yaml(self):
        """the pods of the document and of packaging/kubernetes can be read, and have the capabilities that it says"""
        texts = re.findall(r"^    apiVersion:.*?(?=^\S)", t.read(DOCUMENT).decode(), re.M | re.S)
        self.assertTrue(texts)
        texts.append(t.read(t.ROOT + "/packaging/kubernetes/daemonset.yaml").decode())
        found = [x for text in texts for x in yaml.safe_load_all(text)]
        self.assertEqual({x["kind"] for x in found}, {"Pod", "Namespace", "DaemonSet"})
        for pod in (x for x in found if x["kind"] != "Namespace"):
            spec = pod["spec"]["template"]["spec"] if "template" in pod["spec"] else pod["spec"]
            self.assertTrue(spec["hostPID"])
            security = spec["containers"][0]["securityContext"]
            self.assertLessEqual({"SYS_PTRACE", "SYS_ADMIN", "DAC_READ_SEARCH"}, set(security["capabilities"]["add"]))
            self.assertEqual(security["seccompProfile"]["type"], "Unconfined")
            # Kubernetes refuses false beside CAP_SYS_ADMIN.
            self.assertNotIn("allowPrivilegeEscalation", security)

    def tearDown(self):
        super().tearDown()
        self.assertNotIn(self.dir, t.read("/proc/self/mounts").decode())


if __name__ == "__main__":
    t.main()
