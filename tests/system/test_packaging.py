#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What users install: make install, the Debian package, and the static program, each used as a user would: in
trees of other systems, which the test enters by chroot.  The test has a mount namespace of its own, so that no
mount outlives it."""
import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import unittest

import jsonschema

import memprof_test as t

BUILD = os.path.relpath(os.path.dirname(t.MEMPROF), t.ROOT)
STATIC = f"{t.ROOT}/{BUILD}/static/memprof"
RELEASES = os.environ.get("RELEASES", t.ROOT + "/build/releases")
VERSION = re.search(r"^VERSION := (.*)$", t.read(t.ROOT + "/Makefile").decode(), re.M)[1]
PAGE_PACKAGES = t.ROOT + "/build/web/packages.json"  # scripts/build-page
# A program of every Debian, which allocates and keeps a block in each round.
PERL = ("perl", "-e", "for (;;) { my @a = map { 'x' x ($_ % 500) } 1..1000; push @kept, 'x' x 500; "
        "select(undef, undef, undef, 0.01); }")
PYTHON = "python" + subprocess.run(["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True,
                                   capture_output=True, check=True).stdout.strip()
# What the JSON schema of SPDX 2.3 requires (schemas/spdx-schema.json in github.com/spdx/spdx-spec, tag v2.3), and
# what chapters 6 to 8 and 11 of the specification say of the values.
ID = {"type": "string", "pattern": "^SPDXRef-[A-Za-z0-9.-]+$"}
SUM = {"type": "object", "required": ["algorithm", "checksumValue"],
       "properties": {"algorithm": {"enum": ["SHA1", "SHA256"]}, "checksumValue": {"pattern": "^[0-9a-f]{40,64}$"}}}
REFERENCE = {"type": "object", "required": ["referenceCategory", "referenceType", "referenceLocator"],
             "properties": {"referenceCategory": {"const": "PACKAGE-MANAGER"},
                            "referenceLocator": {"pattern": "^pkg:(deb/debian/[^/@]+@[^?]+[?]arch=|npm/(%40[a-z0-9-]+/)?[a-z0-9-]+@[0-9.]+$)"}}}
RELATION = {"type": "object", "required": ["spdxElementId", "relatedSpdxElement", "relationshipType"],
            "properties": {"relationshipType": {"enum": ["DESCRIBES", "CONTAINS", "STATIC_LINK", "DYNAMIC_LINK",
                                                         "GENERATED_FROM"]}}}
SPDX = {
    "type": "object", "required": ["SPDXID", "creationInfo", "dataLicense", "name", "spdxVersion", "documentNamespace"],
    "properties": {
        "spdxVersion": {"const": "SPDX-2.3"}, "dataLicense": {"const": "CC0-1.0"}, "SPDXID": {"const": "SPDXRef-DOCUMENT"},
        "documentNamespace": {"pattern": "^https://[^#]+$"},
        "creationInfo": {"type": "object", "required": ["created", "creators"], "properties": {
            "created": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
            "creators": {"type": "array", "minItems": 1, "items": {"pattern": "^(Person|Organization|Tool): "}}}},
        "packages": {"type": "array", "items": {
            "type": "object", "required": ["SPDXID", "downloadLocation", "name", "versionInfo"],
            "properties": {"SPDXID": ID, "externalRefs": {"type": "array", "items": REFERENCE}}}},
        "files": {"type": "array", "items": {
            "type": "object", "required": ["SPDXID", "checksums", "fileName"],
            "properties": {"SPDXID": ID, "checksums": {"type": "array", "minItems": 1, "items": SUM,
                                                       "contains": {"properties": {"algorithm": {"const": "SHA1"}}}}}}},
        "relationships": {"type": "array", "items": RELATION}}}


def make(*arguments, folder=t.ROOT):
    """Runs make, not as a part of the make that runs the tests."""
    r = subprocess.run(["make", "-C", folder, f"O={BUILD}", *arguments], text=True, capture_output=True, timeout=1200,
                       env=t.environment_without_make(), stdin=subprocess.DEVNULL)
    if r.returncode:
        raise AssertionError(f"make {arguments}: {r.stdout[-2000:]}{r.stderr[-2000:]}")


def mirror():
    """The mirror of this machine's Debian, as in scripts/check-fresh."""
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(COMPONENT)"], text=True,
                         capture_output=True, check=True).stdout
    return re.search("^(.*) bookworm main$|$", out, re.M)[1] or "http://deb.debian.org/debian"


def without_new_calls():
    """Lets system calls that are newer than Linux 4.17 fail with ENOSYS, in this process and what it executes.  rseq is the
    first of them on x86-64; io_pgetevents came with it."""
    first, allow, enosys = 333, 0x7fff0000, 0x00050000 | 38
    code = b"".join(struct.pack("HBBI", *i) for i in ((0x20, 0, 0, 0), (0x35, 0, 1, first), (0x06, 0, 0, enosys),
                                                      (0x06, 0, 0, allow)))
    text = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))  # struct sock_fprog
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "prctl")


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files)


class Install(t.Case):
    def test_uninstall(self):
        """make install puts everything below prefix, and make uninstall removes each file of it"""
        make("install", "prefix=/opt/memprof", "DESTDIR=" + self.dir)
        root = self.path("opt/memprof")
        self.assertEqual(os.listdir(self.dir), ["opt"])
        found = files_of(root)
        for name in ("bin/memprof", "bin/memprof-replay", "share/man/man1/memprof.1", "share/man/man1/memprof-leaks.1",
                     "share/man/man1/memprof-replay.1", "share/bash-completion/completions/memprof",
                     "share/zsh/site-functions/_memprof", "share/fish/vendor_completions.d/memprof.fish",
                     "lib/systemd/system/memprof.service", "lib/systemd/system/memprof@.service",
                     "lib/libmemprof.so", "lib/libmemprof.so.1", "lib/libmemprof.a", "lib/pkgconfig/memprof.pc", "include/memprof.h",
                     "share/man/man3/libmemprof.3", f"lib/{PYTHON}/dist-packages/memprof/pytest_plugin.py", "share/doc/memprof/examples/CMakeLists.txt", "share/doc/memprof/LICENSE-MIT", "share/doc/memprof/SECURITY.md", "share/doc/memprof/doc/safety.md"):
            self.assertIn(name, found)
        out = subprocess.run([root + "/bin/memprof", "--version"], text=True, capture_output=True, check=True).stdout
        self.assertEqual(out, f"memprof {VERSION}\n")
        self.assertIn("\nExecStart=/opt/memprof/bin/memprof attach --all ",
                      t.read(root + "/lib/systemd/system/memprof.service").decode())
        make("uninstall", "prefix=/opt/memprof", "DESTDIR=" + self.dir)
        self.assertEqual(files_of(self.dir), [])

    def test_library(self):
        """a project finds the installed library by pkg-config, links it in both ways, and uses it and memprof in its tests by CMake"""
        make("install", "prefix=" + self.dir)
        env = dict(os.environ, PKG_CONFIG_PATH=self.path("lib/pkgconfig"), LD_LIBRARY_PATH=self.path("lib"),
                   PATH=f"{self.path('bin')}:{os.environ['PATH']}")

        def run(*argv):
            r = subprocess.run(argv, text=True, capture_output=True, env=env, cwd=self.dir, timeout=600)
            self.assertEqual(r.returncode, 0, r.stdout[-2000:] + r.stderr[-2000:])
            return r.stdout

        header = t.read(t.ROOT + "/src/api/memprof.h").decode()
        version = ".".join(re.search(rf"(?m)^#define MEMPROF_API_{x} (\d+)$", header)[1] for x in ("MAJOR", "MINOR"))
        self.assertEqual(run("pkg-config", "--modversion", "memprof"), version + "\n")
        source = self.path("share/doc/memprof/examples/self.c")
        for options, needed in (((), True), (("--static",), False)):
            flags = run("pkg-config", "--cflags", "--libs", *options, "memprof").split()
            if not needed:
                flags = [self.path("lib/libmemprof.a") if x == "-lmemprof" else x for x in flags]
            run("cc", source, *flags, "-o", self.path("self"))
            self.assertEqual("libmemprof.so.1" in run("readelf", "-d", self.path("self")), needed)
            self.assertRegex(run(self.path("self")), r"\d+ allocations, [1-9]\d* bytes are live")
        run("cmake", "-S", os.path.dirname(source), "-B", self.path("cmake"))
        run("cmake", "--build", self.path("cmake"))
        out = run("ctest", "--output-on-failure", "--test-dir", self.path("cmake"))
        self.assertIn("100% tests passed, 0 tests failed out of 4", out)
        self.memprof("verify", self.path("cmake/recorded.memprof"))

    def test_python(self):
        """the installed Python module finds the installed library, and pytest the installed plug-in"""
        make("install", "prefix=" + self.dir)
        env = dict(os.environ, LD_LIBRARY_PATH=self.path("lib"), PYTHONPATH=self.path(f"lib/{PYTHON}/dist-packages"))
        for argv, found in ((("-c", "import memprof; print(memprof.version())"), VERSION), (("-m", "pytest", "--markers"), "limit_memory")):
            out = subprocess.run([sys.executable, *argv], text=True, capture_output=True, env=env, cwd=self.dir, check=True).stdout
            self.assertIn(found, out)

    def test_version(self):
        """the changelog begins with the version, and the manual pages have it"""
        self.assertEqual(re.search("^## (.*) - ", t.read(t.ROOT + "/CHANGELOG.md").decode(), re.M)[1], VERSION)
        self.assertRegex(t.read(t.ROOT + "/SECURITY.md").decode(), rf"(?m)^\| {VERSION} \| yes \|$")
        for page in glob.glob(t.ROOT + "/doc/*.[13]"):
            self.assertIn(f'"memprof {VERSION}"', t.read(page).decode().splitlines()[0])


class Trees(t.Case):
    """Folders that are the root of a process."""
    def tearDown(self):
        for p in self.started:
            p.kill()
            p.wait()
        # Also what debootstrap mounted and left when it failed.
        for line in reversed(t.read("/proc/self/mounts").decode().splitlines()):
            where = line.split(" ")[1]
            if where.startswith(self.dir + "/"):
                subprocess.run(["umount", "--lazy", where], check=True)
        super().tearDown()

    def mount_proc(self, root):
        os.makedirs(root + "/proc", exist_ok=True)
        subprocess.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)

    def tree(self, source=None):
        """A folder with /proc and nothing else but a copy of a tree of scripts/releases."""
        root = self.path("root")
        if source:
            subprocess.run(["cp", "-a", source + "/.", root], check=True)
            for folder in ("lib", "lib64"):
                if not os.path.exists(f"{root}/{folder}"):
                    os.symlink("usr/" + folder, f"{root}/{folder}")
            # Links that lead to the files of the source.
            for d, _, names in os.walk(root):
                for link in (f"{d}/{n}" for n in names if os.path.islink(f"{d}/{n}")):
                    to = os.readlink(link)
                    if to.startswith(source):
                        os.remove(link)
                        os.symlink(to.removeprefix(source), link)
        self.mount_proc(root)
        return root

    def debootstrap(self, release, root):
        r = subprocess.run(["debootstrap", "--variant=minbase", release, root, mirror()], text=True, capture_output=True,
                           timeout=1200)
        self.assertEqual(r.returncode, 0, r.stdout[-2000:] + r.stderr[-2000:])
        self.mount_proc(root)

    def inside(self, root, *argv, statuses=(0,), first=None):
        r = subprocess.run(["chroot", root, *map(str, argv)], text=True, capture_output=True, timeout=300,
                           stdin=subprocess.DEVNULL, preexec_fn=first)
        self.assertIn(r.returncode, statuses, f"{argv}: {r.stdout}{r.stderr}")
        return r.stdout

    def profile(self, root, *program, memprof="/memprof", ready=None, first=None):
        """memprof of the tree records a program of the tree, reads its recording, and looks for leaks in it.
        @ready: returns true when the program's threads have begun their work; None: t.settle() decides.  @first: what a
        process that becomes memprof does before."""
        p = self.start("chroot", root, *program)
        if ready:
            t.wait_for(ready)
        else:
            t.settle(p.pid)
        before = t.identity(p.pid)
        self.inside(root, memprof, "attach", "-q", "-p", p.pid, "-o", "/rec.memprof", "--for", "500ms", first=first)
        self.assertEqual(t.identity(p.pid), before)
        self.inside(root, memprof, "verify", "/rec.memprof")
        report = json.loads(self.inside(root, memprof, "report", "/rec.memprof", "--json"))
        self.assertEqual(report["memprof_version"], VERSION)
        self.assertGreater(t.calls(report)["malloc"], 100)
        self.inside(root, memprof, "leaks", "-p", p.pid, "--json", "/leaks.json", statuses=(0, 1), first=first)
        with open(root + "/leaks.json", encoding="utf-8") as f:
            self.assertGreater(sum(h["live_bytes"] for h in json.load(f)["heaps"]), 0)

    def list_users(self, root, *program, user):
        """memprof of the tree lists processes with the same name, and who their user is."""
        p, q = (self.start("chroot", root, *program) for _ in range(2))
        t.settle(p.pid)
        t.settle(q.pid)
        name = t.read(f"/proc/{q.pid}/comm").decode().strip()
        r = subprocess.run(["chroot", root, "/memprof", "attach", "-n", name], text=True, capture_output=True, timeout=60)
        self.assertEqual(r.returncode, 2)
        for pid in (p.pid, q.pid):
            self.assertRegex(r.stderr, rf" {pid} +{re.escape(user)} ")


class Static(Trees):
    @classmethod
    def setUpClass(cls):
        make("static")

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("root"))
        shutil.copy(STATIC, self.path("root/memprof"))

    def test_libraries(self):
        """the static program needs no library and no interpreter"""
        out = subprocess.run(["readelf", "-ldW", STATIC], text=True, capture_output=True, check=True).stdout
        self.assertNotRegex(out, "NEEDED|INTERP")

    def test_addresses(self):
        """the static program sends recordings to addresses, and says that it looks up no names"""
        token = self.path("token")
        with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write("a token of the tests, long enough")
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        for host, said in ((f"127.0.0.1:{port}", "refused"), (f"localhost:{port}", "refused"), (f"[::1]:{port}", "no connection"),
                           ("example.org", "looks up no names")):
            r = subprocess.run([STATIC, "attach", "-p", str(os.getpid()), "--to", host, "--token", token], text=True,
                               capture_output=True, timeout=120)
            self.assertEqual(r.returncode, 14, r.stderr)
            self.assertIn(said, r.stderr)

    def test_empty(self):
        """a tree without any file but a static program: no /etc, no shell, no libraries"""
        shutil.copy(f"{t.VICTIMS}/churn-musl-static", self.path("root/victim"))
        root = self.tree()
        self.profile(root, "/victim")
        self.list_users(root, "/victim", user="?")

    def test_musl(self):
        """a tree with busybox and musl, as Alpine has them"""
        root = self.tree()
        for source, name in (("/bin/busybox", "bin/busybox"), (f"{t.VICTIMS}/churn-musl", "victim"),
                             ("/lib/ld-musl-x86_64.so.1", "lib/ld-musl-x86_64.so.1")):
            os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
            shutil.copy(source, f"{root}/{name}")
        self.assertIn("memprof", self.inside(root, "/bin/busybox", "ls", "/"))
        self.profile(root, "/victim")

    def test_old_kernel(self):
        """system calls that are newer than Linux 4.17 are missing"""
        shutil.copy(f"{t.VICTIMS}/churn-musl-static", self.path("root/victim"))
        self.profile(self.tree(), "/victim", first=without_new_calls)

    def release(self, name):
        source = f"{RELEASES}/{name}"
        if not os.path.exists(source + "/.complete"):
            self.skipTest("packages of other releases are not there: scripts/releases fetches them")
        root = self.tree(source)
        shutil.copy(f"{t.VICTIMS}/truth-2.31", root + "/victim")
        # Two threads end before that; struct truth of tests/victims/truth.h begins with the number of those that stay.
        truth = root + "/truth"
        self.profile(root, "/victim", "/truth", "run", "2",
                     ready=lambda: os.path.exists(truth) and t.read(truth).startswith(struct.pack("=I", 2)))

    def test_bullseye(self):
        """the C library of Debian 11, from packages"""
        self.release("bullseye")

    def test_trixie(self):
        """the C library of Debian 13, from packages"""
        self.release("trixie")

    @unittest.skipUnless(t.FULL, "make check-all makes these trees")
    def test_debian(self):
        """Debian 11, 12 and 13, as debootstrap makes them"""
        for release in ("bullseye", "bookworm", "trixie"):
            with self.subTest(release):
                root = self.path(release)
                self.debootstrap(release, root)
                shutil.copy(STATIC, root + "/memprof")
                self.profile(root, *PERL)
                # Debian's nsswitch.conf names libraries that would be loaded for this.
                shutil.copy(root + "/usr/bin/perl", root + "/of-tree")
                self.list_users(root, "/of-tree", *PERL[1:], user="root")


class Debian(Trees):
    def packages(self):
        make("deb", "DIST=" + self.dir)
        return glob.glob(self.path("*.deb"))

    def test_lintian(self):
        """lintian finds no error and no warning in the packages"""
        subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *self.packages()], check=True)

    @unittest.skipUnless(t.FULL, "make check-all makes this tree")
    def test_installed(self):
        """apt installs the package in a new Debian 12, where memprof then records a process"""
        root = self.path("bookworm")
        self.debootstrap("bookworm", root)
        package, = (p for p in self.packages() if os.path.basename(p).startswith("memprof_"))
        shutil.copy(package, root + "/memprof.deb")
        shutil.copy("/etc/resolv.conf", root + "/etc")
        self.inside(root, "apt-get", "install", "-qq", "-y", "--no-install-recommends", "/memprof.deb")
        self.profile(root, *PERL, memprof="memprof")
        self.inside(root, "apt-get", "purge", "-qq", "-y", "memprof")
        self.assertEqual(glob.glob(root + "/usr/**/*memprof*", recursive=True), [])


class Release(t.Case):
    def check(self, path):
        """The document is valid, its relations are between its elements, and each package is the one installed."""
        document = json.loads(t.read(path))
        jsonschema.validate(document, SPDX)
        elements = {e["SPDXID"]: e for e in (document, *document["packages"], *document["files"])}
        self.assertEqual(len(elements), 1 + len(document["packages"]) + len(document["files"]))
        for r in document["relationships"]:
            self.assertLessEqual({r["spdxElementId"], r["relatedSpdxElement"]}, set(elements))
        memprof, *others = document["packages"]
        self.assertEqual((memprof["name"], memprof["versionInfo"]), ("memprof", VERSION))
        in_page = {(p["name"], p["version"]) for p in json.loads(t.read(PAGE_PACKAGES))}
        of_npm = [p for p in others if p["SPDXID"].startswith("SPDXRef-Package-npm-")]
        self.assertEqual({(p["name"], p["versionInfo"]) for p in of_npm}, in_page)
        for p in others:
            if p in of_npm:
                self.assertIn(f"@{p['versionInfo']}", p["externalRefs"][0]["referenceLocator"])
                continue
            installed = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", p["name"]], text=True, capture_output=True,
                                       check=True).stdout
            self.assertEqual(p["versionInfo"], installed)
        return document

    def linked(self, document, program, kind):
        """The names of the packages that a program is linked with."""
        names = {p["SPDXID"]: p["name"] for p in document["packages"]}
        file, = (f["SPDXID"] for f in document["files"] if f["fileName"] == "./" + program)
        return {names[r["relatedSpdxElement"]] for r in document["relationships"]
                if (r["spdxElementId"], r["relationshipType"]) == (file, kind)}

    def check_sums(self, document, root):
        for f in document["files"]:
            sums = {s["algorithm"]: s["checksumValue"] for s in f["checksums"]}
            self.assertEqual(sums["SHA256"], hashlib.sha256(t.read(os.path.join(root, f["fileName"]))).hexdigest())

    def test_sbom(self):
        """the SBOM names the libraries of each program, by the packages that are installed here"""
        make("sbom", "DIST=" + self.dir)
        document = self.check(self.path(f"memprof-{VERSION}.spdx.json"))
        self.check_sums(document, f"{t.ROOT}/{BUILD}")
        needed = subprocess.run(["dpkg-shlibdeps", "-O", "-e" + t.MEMPROF], text=True, capture_output=True, check=True,
                                cwd=self.control()).stdout
        self.assertEqual(self.linked(document, "memprof", "DYNAMIC_LINK"), {x.split()[0] for x in needed.partition("=")[2].split(",")})
        self.assertLess(self.linked(document, "libmemprof.so.1", "DYNAMIC_LINK"), self.linked(document, "memprof", "DYNAMIC_LINK"))
        self.assertEqual(self.linked(document, "libmemprof.so.1", "CONTAINS"), set())
        self.assertLessEqual({"libc6-dev", "libdw-dev", "libzstd-dev", "libiberty-dev"},
                             self.linked(document, "static/memprof", "STATIC_LINK"))
        self.assertEqual(self.linked(document, "static/memprof", "DYNAMIC_LINK"), set())
        self.assertEqual(self.linked(document, "static/memprof", "CONTAINS"), {p["name"] for p in json.loads(t.read(PAGE_PACKAGES))})
        self.assertEqual(self.linked(document, "memprof-replay", "CONTAINS"), set())

    def control(self):
        """A folder in which dpkg-shlibdeps works."""
        os.mkdir(self.path("debian"))
        shutil.copy(t.ROOT + "/packaging/control", self.path("debian"))
        return self.dir

    def test_tarball(self):
        """the static program's tarball has the licences of all that is linked in, and an SBOM with the check sums"""
        make("static-tarball", "DIST=" + self.dir)
        tarball, = glob.glob(self.path("*.tar.gz"))
        subprocess.run(["tar", "-C", self.dir, "-xf", tarball], check=True)
        root = tarball.removesuffix(".tar.gz")
        document = self.check(root + "/share/doc/memprof/memprof.spdx.json")
        self.check_sums(document, root)
        self.assertIn("\nExecStart=/usr/local/bin/memprof attach -n %i ",
                      t.read(root + "/lib/systemd/system/memprof@.service").decode())
        self.assertLessEqual(self.linked(document, "bin/memprof", "STATIC_LINK"),
                             set(os.listdir(root + "/share/doc/memprof/licences")))

    @unittest.skipUnless(t.FULL and os.path.exists(t.ROOT + "/.git"), "make check-all builds the last commit twice")
    def test_reproducible(self):
        """two builds of the source tarball, in folders whose names have different lengths, give the same bytes"""
        make("dist", "DIST=" + self.dir)
        source = self.path(f"memprof-{VERSION}.tar.gz")
        sums = []
        for folder in (self.path("a"), self.path("another/folder")):
            os.makedirs(folder)
            subprocess.run(["tar", "-C", folder, "--strip-components=1", "-xf", source], check=True)
            make("-j2", "static", folder=folder)
            make("deb", folder=folder)
            make("static-tarball", folder=folder)
            make("sbom", folder=folder)
            made = f"{folder}/{BUILD}/dist"
            self.assertEqual(len(os.listdir(made)), 8)
            sums.append({name: hashlib.sha256(t.read(f"{made}/{name}")).hexdigest() for name in os.listdir(made)})
        self.assertEqual(*sums)


def main():
    # A mount namespace of its own: what is mounted in it ends with the test.
    if not os.geteuid() and "MEMPROF_OWN_MOUNTS" not in os.environ:
        os.environ["MEMPROF_OWN_MOUNTS"] = "1"
        private = ["unshare", "--mount"]
        # In the chroot of scripts/check-fresh / is no mount, which could be made private; all mounts there are.
        if subprocess.run([*private, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            private += ["--propagation", "unchanged"]
        os.execvp("unshare", [*private, sys.executable, *sys.argv])
    t.main()


if __name__ == "__main__":
    main()
