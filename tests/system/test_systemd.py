#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The services of systemd, started and stopped by a real systemd.  It is process 1 of new namespaces, with this machine's files
below an overlay in memory."""
import glob
import os
import re
import shutil
import subprocess
import time

import memprof_test as t
import test_packaging

# Makes the root directory and becomes systemd.  What the machine starts at boot is not started.
BOOT = """
root=$1 files=$2
mount --make-rprivate / 2>/dev/null || : # no mount in the chroot of scripts/check-fresh, where all mounts are private
mount -t tmpfs tmpfs "$root"
mkdir "$root/upper" "$root/work" "$root/root"
mount -t overlay overlay -o lowerdir=/,upperdir="$root/upper",workdir="$root/work" "$root/root"
root=$root/root
for d in run tmp dev home; do mount -t tmpfs tmpfs "$root/$d"; done
mount -t proc proc "$root/proc"
mount --bind -o ro "$root/proc/sys" "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for f in null zero full random urandom; do touch "$root/dev/$f"; mount --bind "/dev/$f" "$root/dev/$f"; done
find "$root/etc/systemd/system" "$root/usr/lib/systemd/system" -name '*.wants' -prune -exec rm -rf {} +
rm -rf "$root"/etc/default/memprof* "$root/var/lib/memprof" "$root/usr/sbin/policy-rc.d"
cp -r "$files/." "$root"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
exec env -i container=memprof-test PATH="$PATH" chroot "$root" /lib/systemd/systemd --unit=test.target --show-status=no \
	--log-target=null
"""
TARGET = "[Unit]\nDescription=Test\nRequires=basic.target systemd-journald.socket\nAfter=basic.target\nAllowIsolate=yes\n"


class Systemd(t.Case):
    def setUp(self):
        super().setUp()
        files = self.path("files")
        test_packaging.make("install-services", "prefix=/usr", "DESTDIR=" + files)
        self.put("usr/bin/memprof", t.MEMPROF)
        for name in ("shop", "bank"):
            self.put("opt/" + name, t.VICTIMS + "/leaky")
        with open(files + "/usr/lib/systemd/system/test.target", "w", encoding="ascii") as f:
            f.write(TARGET)
        # Its own cgroup, where it is the owner of all.
        mounts = t.read("/proc/self/mounts").decode()
        self.cgroup = f"{re.search(r'(?m)^[^ ]+ ([^ ]+) cgroup2 ', mounts)[1]}/memprof-test-{os.getpid()}"
        os.mkdir(self.cgroup)
        self.addCleanup(self.remove_cgroup)
        os.mkdir(self.path("root"))
        join = f'echo 0 >{self.cgroup}/cgroup.procs; exec "$@"'
        p = self.start("sh", "-euc", join, "sh", "unshare", "--mount", "--propagation=unchanged", "--pid", "--cgroup", "--uts", "--ipc",
                       "--net", "--fork", "--kill-child", "sh", "-euc", BOOT, "sh", self.path("root"), files)
        self.init = t.wait_for(lambda: (t.children(p.pid) or [0])[0])
        self.root = f"/proc/{self.init}/root"
        t.wait_for(lambda: p.poll() is not None or self.systemctl("is-active", "test.target", statuses=None) == "active")
        self.assertIsNone(p.poll(), "systemd has ended")

    def put(self, name, source):
        path = self.path("files/" + name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(source, path)

    def remove_cgroup(self):
        def empty():
            for d, _, _ in os.walk(self.cgroup, topdown=False):
                try:
                    os.rmdir(d)
                except OSError:
                    return False
            return not os.path.exists(self.cgroup)
        t.wait_for(empty)

    def inside(self, *argv, statuses=(0,)):
        r = subprocess.run(["nsenter", "-t", str(self.init), "-m", "-p", "-C", "-i", "-u", "-n", "-r", *map(str, argv)], text=True,
                           capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        if statuses:
            self.assertIn(r.returncode, statuses, f"{argv}: {r.stdout}{r.stderr}")
        return r.stdout.strip()

    def systemctl(self, *argv, **kw):
        return self.inside("systemctl", *argv, **kw)

    def log(self, unit):
        return self.inside("journalctl", "--no-pager", "-o", "cat", "-u", unit)

    def wait_said(self, unit, pattern, times):
        """Waits until the log of a unit has a pattern this many times."""
        def said():
            return len(re.findall(pattern, self.log(unit))) == times
        try:
            t.wait_for(said)
        except AssertionError:
            self.fail(f"{unit} did not say '{pattern}' {times} times:\n{self.log(unit)}")

    def pids(self, unit):
        """Return: the processes of a unit, as this test sees them."""
        found = glob.glob(f"{self.cgroup}/**/{unit}.service/cgroup.procs", recursive=True)
        return sorted(int(p) for f in found for p in t.read(f).split())

    def service(self, name, *options):
        """Starts a program as a service.  Return: its pid."""
        self.inside("systemd-run", "-q", "--unit=" + name, *options, "/opt/" + name)
        pid, = t.wait_for(lambda: self.pids(name))
        t.settle(pid)
        return pid

    def recorded(self, pid):
        t.wait_for(lambda: "memprof-session" in t.maps(pid))

    def profiles(self, where, name):
        return glob.glob(f"{self.root}/var/lib/memprof{where}/{name}-*.pb.gz")

    def options(self, unit, text):
        with open(f"{self.root}/etc/default/{unit}", "w", encoding="ascii") as f:
            f.write(f'MEMPROF_OPTIONS="{text}"\n')

    def test_units(self):
        """systemd finds no fault in the units, and does not give the services a seccomp filter"""
        files = [f"/usr/lib/systemd/system/memprof{x}.service" for x in ("", "@shop")]
        r = subprocess.run(["nsenter", "-t", str(self.init), "-m", "-p", "-r", "systemd-analyze", "verify", "--man=no", *files],
                           text=True, capture_output=True, timeout=120)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.systemctl("start", "memprof", "memprof@shop")
        for unit in ("memprof", "memprof@shop"):
            for pid in t.wait_for(lambda: (lambda p: len(p) == 2 and p)(self.pids(unit))):
                self.assertIn("Seccomp:\t0\n", t.read(f"/proc/{pid}/status").decode())
        t.wait_for(lambda: "no process has this name yet" in self.log("memprof@shop"))

    def test_machine(self):
        """memprof.service records all services, also one with a seccomp filter and a user of its own, and restores them"""
        shop = self.service("shop", "-p", "SystemCallFilter=@system-service", "-p", "DynamicUser=yes", "-p", "PrivateTmp=yes")
        bank = self.service("bank")
        time.sleep(5)
        before = {pid: t.identity(pid) for pid in (shop, bank)}
        self.systemctl("start", "memprof")
        for pid in before:
            self.recorded(pid)
        # Its own processes are memprof: neither is recorded.
        self.systemctl("start", "memprof@none")
        time.sleep(6)
        self.assertNotRegex(self.log("memprof"), r"recording process \d+ \(memprof\)")
        self.assertTrue(os.listdir(self.root + "/var/cache/memprof"))
        self.systemctl("stop", "memprof", "memprof@none")
        self.assertEqual(self.systemctl("show", "--value", "-p", "Result", "memprof"), "success", self.log("memprof"))
        self.assertEqual({pid: t.identity(pid) for pid in before}, before)
        for name in ("shop", "bank"):
            profile, = self.profiles("", name)
            out = subprocess.run(["go", "tool", "pprof", "-top", profile], text=True, capture_output=True, check=True).stdout
            self.assertIn("remember_answer", out)

    def test_name(self):
        """memprof@NAME.service: the processes of this name, with options of its own"""
        shop, bank = self.service("shop"), self.service("bank")
        self.options("memprof@shop", "--every 1s --push /var/lib/memprof/shop --label 'team=the shop'")
        self.systemctl("start", "memprof@shop")
        self.recorded(shop)
        for pid in self.pids("memprof@shop"):
            self.assertIn(b"\0team=the shop\0", t.read(f"/proc/{pid}/cmdline"))
        t.wait_for(lambda: len(self.profiles("/shop", "shop")) > 1)
        self.systemctl("stop", "memprof@shop")
        self.assertEqual(self.systemctl("show", "--value", "-p", "Result", "memprof@shop"), "success")
        for pid in shop, bank:
            self.assertNotIn("memprof-session", t.maps(pid))
        self.assertNotIn(f"process {bank}", self.log("memprof@shop"))

    def test_killed(self):
        """all of the service is killed: it records the process anew; its command is killed: first the recorder restores the process"""
        shop = self.service("shop")
        drop_in = self.root + "/etc/systemd/system/memprof@.service.d"
        os.mkdir(drop_in)
        with open(drop_in + "/test.conf", "w", encoding="ascii") as f:
            f.write("[Service]\nRestartSec=1\n")
        self.systemctl("daemon-reload")
        self.systemctl("start", "memprof@shop")
        said = r"recording process \d+ \(shop\)"
        self.wait_said("memprof@shop", said, 1)
        first = self.pids("memprof@shop")
        # systemd kills one process after the other: a recorder that runs could restore the process in between.
        self.systemctl("kill", "--signal=STOP", "memprof@shop")
        self.systemctl("kill", "--signal=KILL", "memprof@shop")
        self.wait_said("memprof@shop", said, 2)
        self.assertIn("its recorder was killed; its profiles begin anew", self.log("memprof@shop"))
        second = self.pids("memprof@shop")
        self.assertFalse(set(first) & set(second))
        self.systemctl("kill", "--signal=KILL", "--kill-who=main", "memprof@shop")
        self.wait_said("memprof@shop", said, 3)
        self.assertEqual(self.log("memprof@shop").count("its recorder was killed"), 1)
        self.assertFalse(set(second) & set(self.pids("memprof@shop")))
        self.systemctl("stop", "memprof@shop")
        self.assertNotIn("memprof-session", t.maps(shop))

    def test_removed(self):
        """the package's scripts: removing it ends the services, and restores the processes; purging it removes the profiles"""
        for name in ("prerm", "postrm"):
            self.inside("cp", f"{t.ROOT}/packaging/maintainer/{name}", "/opt")
        shop = self.service("shop")
        self.systemctl("start", "memprof", "memprof@shop")
        t.wait_for(lambda: "recording process" in self.log("memprof@shop"))
        self.inside("sh", "/opt/prerm", "upgrade", "0.3")
        self.assertTrue(self.pids("memprof@shop"))
        self.inside("sh", "/opt/prerm", "remove")
        self.assertEqual(self.pids("memprof") + self.pids("memprof@shop"), [])
        self.assertNotIn("memprof-session", t.maps(shop))
        self.assertTrue(self.profiles("/shop", "shop"))
        self.inside("sh", "/opt/postrm", "purge")
        self.assertFalse(glob.glob(self.root + "/var/*/memprof"))

    def test_wrong_options(self):
        """wrong options are not tried again"""
        self.options("memprof", "--push /var/lib/memprof --every 0")
        # Type=exec: systemctl fails if systemd learns of memprof's end before it learns of its execve().
        self.systemctl("start", "memprof", statuses=(0, 1))
        t.wait_for(lambda: self.systemctl("is-active", "memprof", statuses=None) == "failed")
        self.assertEqual(self.systemctl("show", "--value", "-p", "NRestarts", "memprof"), "0")
        t.wait_for(lambda: "is not a duration" in self.log("memprof"))


if __name__ == "__main__":
    t.main()
