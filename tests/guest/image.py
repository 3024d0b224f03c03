# SPDX-License-Identifier: MIT OR Apache-2.0
"""A guest's root file system: an initramfs with memprof, the victims, python and busybox."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Parts of python's library that no test imports.
UNUSED = ("test", "idlelib", "lib2to3", "ensurepip", "distutils", "pydoc_data", "sqlite3", "curses",
          "venv", "turtle.py", "sitecustomize.py")


def needed(path):
    """The shared libraries, and the paths of loaders, that an ELF file asks for."""
    out = subprocess.run(["readelf", "-ldW", path], capture_output=True, text=True,
                         env=dict(os.environ, LC_ALL="C")).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out) + \
        re.findall(r"interpreter: /(.*)\]", out)


class Image:
    def __init__(self, sysroot, stage):
        self.sysroot, self.stage = sysroot, stage
        self.have = set()

    def put(self, source, name):
        """One file; links are followed."""
        to = os.path.join(self.stage, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns(
                *UNUSED, "config-3*", "__pycache__"))
        else:
            shutil.copy(source, to)

    def library(self, name):
        """A shared library of the sysroot, and what it needs."""
        if name in self.have:
            return
        self.have.add(name)
        if "/" in name:
            self.put(f"{self.sysroot}/{name}", name)
            return
        for folder in ("lib/*", "usr/lib/*"):
            found = glob.glob(f"{self.sysroot}/{folder}/{name}")
            if found:
                self.put(found[0], os.path.relpath(found[0], self.sysroot))
                self.libraries_of(found[0])
                return
        raise FileNotFoundError(f"{name} is not in {self.sysroot}")

    def libraries_of(self, path):
        for name in needed(path):
            self.library(name)

    def program(self, path, name, strip):
        self.put(path, name)
        self.libraries_of(path)
        if strip:
            subprocess.run([strip, "-g", f"{self.stage}/{name}"], check=True)

    def python(self):
        self.program(f"{self.sysroot}/usr/bin/python3.11", "usr/bin/python3", None)
        self.put(f"{self.sysroot}/usr/lib/python3.11", "usr/lib/python3.11")
        self.put(f"{self.sysroot}/usr/lib/python3/dist-packages/tap",
                 "usr/lib/python3/dist-packages/tap")
        for lib in glob.glob(f"{self.sysroot}/usr/lib/python3.11/lib-dynload/*.so"):
            self.libraries_of(lib)
        # Compiling them would take the guest a minute.
        subprocess.run(["/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode",
                        "unchecked-hash", "-s", self.stage, "-p", "/", f"{self.stage}/usr/lib"],
                       check=True)


def archive(stage):
    """The folder in the format of an initramfs (the kernel's driver-api/early-userspace); the same bytes
    for the same content."""
    names = []
    for folder, _, files in os.walk(stage):
        names += [folder, *(os.path.join(folder, f) for f in files)]
    for name in names:
        os.utime(name, (0, 0), follow_symlinks=False)
    names = "\n".join(sorted(os.path.relpath(name, stage) for name in names))
    return subprocess.run(["cpio", "--quiet", "--reproducible", "-o", "-H", "newc", "-R", "0:0"],
                          cwd=stage, input=names.encode(), capture_output=True, check=True).stdout


def build(sysroot, folder, out, strip, *victims):
    """@folder: where memprof was built; @strip: the architecture's strip; @victims: paths."""
    with tempfile.TemporaryDirectory(prefix="memprof-guest-") as stage:
        image = Image(sysroot, stage)
        image.put(f"{sysroot}/bin/busybox", "bin/busybox")
        image.python()
        image.program(f"{folder}/memprof", "guest/build/memprof", strip)
        for victim in victims:
            image.program(victim, f"guest/build/victims/{os.path.basename(victim)}", None)
        for lib in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0", "libgcc_s.so.1"):
            image.library(lib)
        with open(out + ".new", "wb") as f:
            f.write(archive(stage))
        os.rename(out + ".new", out)


def tests(name="*"):
    """What a test needs beside the image: its file, what all tests share, recordings, the first process."""
    shared = [p for p in glob.glob(f"{ROOT}/tests/system/*.py") if "/test_" not in p]
    return sorted([*shared, *glob.glob(f"{ROOT}/tests/system/test_{name}.py"),
                   *glob.glob(f"{ROOT}/tests/recordings/*"), f"{ROOT}/tests/guest/init.sh"])


def job(text):
    """An initramfs to stand behind another one: the tests as they are now, and the script /job."""
    with tempfile.TemporaryDirectory(prefix="memprof-guest-") as stage:
        image = Image(None, stage)
        for source in tests():
            image.put(source, "guest/" + os.path.relpath(source, ROOT))
        os.rename(f"{stage}/guest/tests/guest/init.sh", f"{stage}/init")
        with open(f"{stage}/job", "w") as f:
            f.write(text)
        return archive(stage)
