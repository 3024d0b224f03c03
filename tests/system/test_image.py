#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The container image, built and run by podman as the pods of packaging/kubernetes are: with their arguments, capabilities,
seccomp profile and read-only root, in the machine's pid namespace.  podman keeps its files in the test's folder."""
import os
import subprocess
import unittest

import yaml

import memprof_test as t
import test_packaging
from profile_store import Store

POD = "0f1e2d3c-0000-1111-2222-333344445555"
CONTAINER = "5" * 64


class Image(test_packaging.Trees):
    def setUp(self):
        super().setUp()
        # crun refuses both versions of cgroups at the same time.
        if os.path.ismount("/sys/fs/cgroup/unified"):
            subprocess.run(["umount", "/sys/fs/cgroup/unified"], check=True)
        self.engine = ["podman", "--root", self.path("storage"), "--runroot", self.path("run"), "--tmpdir", self.path("tmp"),
                       "--cgroup-manager=cgroupfs"]
        self.cgroups = []

    def tearDown(self):
        self.podman("rm", "--all", "--force", "--time=60")
        self.podman("rmi", "--all", "--force")
        for p in self.started:
            p.kill()
            p.wait()
        for path in reversed(self.cgroups):
            os.rmdir(path)
        super().tearDown()

    def podman(self, *argv, **kw):
        return subprocess.run([*self.engine, *argv], text=True, capture_output=True, check=True, timeout=600, **kw).stdout

    def build(self):
        """Builds the image on a Debian 12 of this machine's mirror."""
        base = self.path("base")
        self.debootstrap("bookworm", base)
        subprocess.run(["umount", base + "/proc"], check=True)
        with subprocess.Popen(["tar", "-C", base, "-cf", "-", "."], stdout=subprocess.PIPE) as tar:
            self.podman("import", "-", "localhost/base", stdin=tar.stdout)
        # chroot: podman needs no more than the test for it.
        test_packaging.make("image", "DIST=" + self.path("dist"), "ENGINE=" + " ".join(self.engine), "BASE=localhost/base",
                            "IMAGE_NAME=localhost/memprof", "IMAGE_OPTIONS=--isolation=chroot --network=host")

    def in_pod(self, pid):
        """Moves a process into the cgroup of a container of Kubernetes."""
        root = self.path("cgroup")
        os.mkdir(root)
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", root], check=True)
        for part in ("kubepods", "burstable", "pod" + POD, CONTAINER):
            root += "/" + part
            if not os.path.exists(root):
                os.mkdir(root)
                self.cgroups.append(root)
        with open(root + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(pid))

    @unittest.skipUnless(t.FULL, "podman: in make check-all")
    def test_daemonset(self):
        """the DaemonSet's container records the processes of pods, and no others, sends their profiles, and restores them"""
        self.build()
        self.assertIn("memprof attach", self.podman("run", "--rm", "--network=none", *self.limits(), "localhost/memprof"))
        p, other = self.victim("leaky"), self.victim("leaky")
        self.in_pod(p.pid)
        before = t.identity(p.pid)
        with open(t.ROOT + "/packaging/kubernetes/daemonset.yaml", encoding="utf-8") as f:
            _, daemonset = yaml.safe_load_all(f)
        container, = daemonset["spec"]["template"]["spec"]["containers"]
        security = container["securityContext"]
        store = Store()
        self.addCleanup(store.server_close)
        self.addCleanup(store.shutdown)
        args = [a.replace("COLLECTOR:4318", store.address).replace("$(NODE_NAME)", "node-1") for a in container["args"]]
        args = ["--metrics=127.0.0.1:0" if a.startswith("--metrics=") else a for a in args]
        self.assertTrue(security["readOnlyRootFilesystem"])
        run = self.start(*self.engine, "run", "--name=memprof", "--pid=host", "--network=host", "--cgroupns=private", "--read-only",
                         "--cap-drop=all", "--cap-add=" + ",".join(security["capabilities"]["add"]),
                         "--security-opt=seccomp=unconfined", f"--user={security['runAsUser']}", *self.limits(),
                         *(f"--tmpfs={m['mountPath']}" for m in container["volumeMounts"]), "localhost/memprof", *args,
                         stderr=subprocess.STDOUT)
        t.wait_for(lambda: run.poll() is not None or "memprof-session" in t.maps(p.pid))
        self.podman("stop", "--time=60", "memprof")
        out, _ = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, out)
        self.assertNotIn(f"process {other.pid} ", out)
        self.assertEqual(t.identity(p.pid), before)
        store.wait(1)
        body = b"".join(r[3] for r in store.requests)
        for text in (POD, CONTAINER, "node-1", "remember_answer"):
            self.assertIn(text.encode(), body)

    @staticmethod
    def limits():
        """podman's own limits can be more than the test may give."""
        return ("--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096")


if __name__ == "__main__":
    test_packaging.main()
