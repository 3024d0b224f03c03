# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which packages of Debian the linker took a program's parts from: ld -t -t lists the files."""
import os
import re
import subprocess


class Package:
    def __init__(self, name, version, arch, source, source_version, statically):
        self.name, self.version, self.arch = name, version, arch
        self.source, self.source_version = source, source_version
        self.statically = statically


def dynamic(path, tag):
    """The entries of a kind, NEEDED or SONAME, in an ELF file's dynamic section."""
    out = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=False,
                         env=dict(os.environ, LC_ALL="C")).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", out)


def files(program, link):
    """Return: the path of each file that became a part of the program (True), or that it needs at run time (False).
    @link: what ld -t -t printed, which has archives both as such and with each member that was used."""
    needed = set(dynamic(program, "NEEDED"))
    with open(link, encoding="utf-8") as f:
        lines = f.read().splitlines()
    members = [re.fullmatch(r"\((.*\.a)\).*|(.*\.a)\(.*\)", line) for line in lines]
    archives = {m[1] or m[2] for m in members if m}
    objects = {line for line in lines if line.endswith(".o") and not line.startswith("(")}
    shared = {line for line in lines if ".so" in line and needed & set(dynamic(line, "SONAME"))}
    # What has no absolute path is memprof's own.
    parts = {os.path.realpath(f): True for f in archives | objects if os.path.isabs(f)}
    return {**{os.path.realpath(f): False for f in shared}, **parts}


def query(sysroot, *arguments):
    """dpkg-query, about the packages of a sysroot (scripts/sysroot) if there is one."""
    database = ["--admindir", sysroot + "/var/lib/dpkg"] if sysroot else []
    return subprocess.run(["dpkg-query", *database, *arguments], capture_output=True, text=True, check=False).stdout


def owner(path, sysroot):
    """The name of the package that has the file, as dpkg-query -S prints it, or None."""
    # Before Debian merged /lib into /usr/lib packages used both names.
    for name in (path, path.removeprefix("/usr")):
        found = query(sysroot, "-S", name).split(": ")[0]
        if found:
            return found
    return None


def packages(program, link, sysroot=None):
    """Return: the packages, sorted by name, each with the sysroot that it is from, or ""."""
    sysroot = sysroot and os.path.realpath(sysroot)
    found = {}
    for path, statically in files(program, link).items():
        inside = sysroot if sysroot and path.startswith(sysroot + "/") else ""
        name = owner(path.removeprefix(inside), inside)
        if not name:
            raise SystemExit(f"linked: no package has {path}, which is a part of {program}")
        found[name, inside] = found.get((name, inside), False) or statically
    result = []
    for (name, inside), statically in sorted(found.items()):
        fields = query(inside, "-W", "-f", "${Package}|${Version}|${Architecture}|${source:Package}|${source:Version}", name)
        result.append((Package(*fields.split("|"), statically), inside))
    return result
