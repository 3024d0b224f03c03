#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--embed: recordings that contain the binaries they need, and how each file tool treats these."""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import zlib

import memprof_test as t

BINARY = 5  # type of chunk, src/formats/FORMAT.md
SOURCE = """#include <stdlib.h>
#include <unistd.h>
void *volatile k;
static __attribute__((noinline)) void secret_site(void) { k = malloc(77); }
int main(int n, char **v) { do secret_site(); while (n > 1 && !usleep(1000)); return *v[0] == 0; }
"""


def sha256(path):
    return hashlib.sha256(t.read(path)).hexdigest()


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


class Embed(t.Case):
    def program(self):
        """Builds a stripped program in a folder of its own, a copy of it elsewhere, and its debug file.
        Return: the program's path, the folder of debug files."""
        source, debug = self.path("p.c"), self.path("debug")
        os.mkdir(self.path("private"))
        program = self.path("private/program")
        with open(source, "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-g", "-O1", "-Wl,--build-id", "-o", program, source], check=True)
        notes = subprocess.run(["readelf", "-n", program], text=True, check=True, capture_output=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        where = f"{debug}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        os.makedirs(os.path.dirname(where))
        subprocess.run(["objcopy", "--only-keep-debug", program, where], check=True)
        subprocess.run(["strip", program], check=True)
        shutil.copy(program, self.path("kept"))
        return program, debug

    def run_program(self, program, *how, output="rec", status=0, **kw):
        f = self.path(output)
        r = subprocess.run([t.MEMPROF, "run", "-q", "--lossless", *how, "-o", f, "--", program], text=True,
                           capture_output=True, timeout=120, **kw)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return f, r

    def info(self, f):
        return json.loads(self.memprof("info", f, "--json").stdout)

    def frames(self, f):
        return {(x["function"], x.get("line")) for g in self.report(f)["allocation_groups"] for x in g["backtrace"]}

    def chunks(self, f):
        """Type, begin and end of each chunk's payload."""
        data, at = t.read(f), 12
        while at < len(data):
            stored = int.from_bytes(data[at + 12:at + 16], "little")
            yield data[at + 4], at + 24, at + 24 + stored
            at += 24 + stored

    def extracted(self, f, status=0):
        """Extracts the binaries.  Return: map from path in the folder to sha256, memprof's result."""
        out = self.path("extracted")
        shutil.rmtree(out, ignore_errors=True)
        r = self.memprof("extract", f, "-o", out, status=status)
        files = [os.path.relpath(os.path.join(at, name), out + "/binaries")
                 for at, _, names in os.walk(out + "/binaries") for name in names]
        return {"/" + name: sha256(f"{out}/binaries/{name}") for name in files}, r

    def test_elsewhere(self):
        """symbolize uses the embedded binaries of a deleted program; extract returns them byte for byte"""
        program, debug = self.program()
        without, _ = self.run_program(program, output="without")
        f, r = self.run_program(program, "--embed")
        self.assertRegex(r.stdout, r"binaries embedded: \d+ \(")
        shutil.rmtree(self.path("private"))
        out = self.path("out")
        self.memprof("symbolize", without, "-o", out, "-d", debug)
        self.assertFalse([x for x in self.frames(out) if x[0] == "secret_site"])
        r = self.memprof("symbolize", f, "-o", out, "-d", debug)
        self.assertIn("binaries found only in the recording: 1;", r.stdout)
        self.assertIn(("secret_site", 4), self.frames(out))
        for how in ("none", "partial", "full"):
            self.memprof("symbolize", f, "-o", out, "--anonymize", how)
            self.memprof("verify", out)
            self.assertEqual(self.info(out)["binaries_count"], 0)
            self.assertNotIn(BINARY, {kind for kind, _, _ in self.chunks(out)})
        files, _ = self.extracted(f)
        self.assertEqual(files[program], sha256(self.path("kept")))
        self.assertTrue(any("/libc.so" in name for name in files))
        for name in files:
            if name != program:
                self.assertEqual(files[name], sha256(name))
        info = self.info(f)
        self.assertEqual(info["binaries_count"], len(files))
        out = self.path("extracted/binaries")
        self.assertEqual(info["binaries_bytes"], sum(os.path.getsize(out + name) for name in files))
        self.assertIn(f"{len(files)} embedded", self.memprof("info", f).stdout)
        self.memprof("verify", f)

    def test_mapped_file(self):
        """attach --embed embeds the file that is mapped, not another file that now has its name"""
        program, _ = self.program()
        p = self.start(program, "on")
        t.settle(p.pid)
        os.unlink(program)
        shutil.copy("/bin/true", program)
        f = self.record(p.pid, 0.5, "--embed")
        files, _ = self.extracted(f)
        mine = [name for name in files if name.startswith(program)]
        self.assertEqual([files[name] for name in mine], [sha256(self.path("kept"))])

    def test_left_out(self):
        """--embed names and leaves out the file of an ended program if it was replaced by another file"""
        program, _ = self.program()
        p = self.start(program, "on")
        t.settle(p.pid)
        rec = self.start(t.MEMPROF, "attach", "--embed", "-p", str(p.pid), "-o", self.path("rec"),
                         stderr=subprocess.PIPE)
        while "recording process" not in rec.stderr.readline():
            self.assertIsNone(rec.poll())
        self.memprof("flush", "-p", p.pid)
        os.unlink(program)
        shutil.copy("/bin/true", program)
        p.kill()
        p.wait()
        _, said = rec.communicate(timeout=60)
        self.assertEqual(rec.returncode, 0, said)
        self.assertRegex(said, rf"memprof: not embedded: .*{program} \(replaced by another file\)")
        files, _ = self.extracted(self.path("rec"))
        self.assertTrue(files)
        self.assertNotIn(program, files)

    def test_damaged(self):
        """a damaged embedded binary: verify names it, extract leaves it out, the rest can still be read"""
        program, _ = self.program()
        f, _ = self.run_program(program, "--embed")
        whole, report = self.extracted(f)[0], self.report(f)
        data = bytearray(t.read(f))
        pieces = [x for x in self.chunks(f) if x[0] == BINARY]
        data[pieces[-1][2] - 1] ^= 0xff
        bad = self.path("bad")
        with open(bad, "wb") as out:
            out.write(data)
        r = self.memprof("verify", bad, status=13)
        self.assertRegex(r.stderr, r"^memprof: .*: the embedded binary /\S+ is damaged or incomplete\n$")
        broken = re.search(r"binary (\S+) is", r.stderr)[1]
        files, r = self.extracted(bad, status=13)
        self.assertIn(f"not extracted: {broken} (is damaged or incomplete)", r.stderr)
        del whole[broken]
        self.assertEqual(files, whole)
        self.assertEqual(self.report(bad), report)
        self.assertEqual(self.info(bad)["binaries_count"], len(whole))
        for tool in ("strip", "merge"):
            out = self.path(tool)
            r = self.memprof(tool, bad, "-o", out)
            self.assertIn("cut off; so is", r.stderr)
            self.assertEqual(self.extracted(out)[0], whole)
        cut = self.path("cut")
        with open(cut, "wb") as out:
            out.write(data[:pieces[-1][2] - 1])
        self.assertIn("cut off in a chunk", self.memprof("verify", cut, status=13).stderr)

    def test_file_tools(self):
        """strip and merge keep each embedded binary once; with --rotate the last piece has them all"""
        program, _ = self.program()
        f, _ = self.run_program(program, env=dict(os.environ, MEMPROF_EMBED="1"))
        other, _ = self.run_program(program, "--embed", output="other")
        files = self.extracted(f)[0]
        for tool, inputs in (("strip", (f,)), ("merge", (f, other))):
            out = self.path(tool)
            self.memprof(tool, *inputs, "-o", out)
            self.memprof("verify", out)
            self.assertEqual(self.extracted(out)[0], files)
        self.memprof("run", "-q", "--lossless", "--embed", "--history", "--rotate", "64k", "-o", self.path("r.memprof"), "--",
                     f"{t.VICTIMS}/exact", 3, 100000)
        pieces = sorted(glob.glob(self.path("r*.memprof")), key=lambda x: self.info(x)["piece"])
        self.assertGreater(len(pieces), 1)
        counts = [self.info(x)["binaries_count"] for x in pieces]
        self.assertEqual(counts[:-1], [0] * (len(pieces) - 1))
        self.assertGreater(counts[-1], 1)
        self.memprof("merge", *pieces, "-o", self.path("merged"))
        self.memprof("verify", self.path("merged"))
        self.assertEqual(self.extracted(self.path("merged"))[0], self.extracted(pieces[-1])[0])

    def test_full_disk(self):
        """no disk space for the embedded binaries is an error, and the rest of the recording can be read"""
        program, _ = self.program()
        os.mkdir(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", self.path("small")], check=True)
        try:
            f, r = self.run_program(program, "--embed", output="small/rec", status=14)
            self.assertIn("could not be written completely: No space left", r.stderr)
            report = self.report(f)
            self.assertIn("malloc", t.calls(report))
            self.assertEqual(report["end_reason"], "exited")
            self.assertIn("cut off in a chunk", self.memprof("verify", f, status=13).stderr)
        finally:
            subprocess.run(["umount", self.path("small")], check=True)

    def forge(self, *paths):
        """Return: a recording with embedded binaries that claim to come from these paths."""
        f, _ = self.run_program("/bin/true")
        data = t.read(f)
        end = [at for kind, at, _ in self.chunks(f) if kind == 3][0] - 24
        forged = b""
        for i, path in enumerate(paths):
            path = os.fsencode(path)
            raw = varint(len(path) + 1) + path + bytes([1, i]) + varint(4) + varint(0) + b"evil"
            stored = subprocess.run(["zstd", "-c"], input=raw, capture_output=True, check=True).stdout
            head = b"MPCK" + b"".join(n.to_bytes(4, "little") for n in (BINARY, len(raw), len(stored), zlib.crc32(stored)))
            forged += head + zlib.crc32(head).to_bytes(4, "little") + stored
        with open(self.path("forged"), "wb") as out:
            out.write(data[:end] + forged + data[end:])
        return self.path("forged")

    def test_hostile(self):
        """extract writes only inside its folder, whatever paths a recording has and symbolic links exist"""
        outside, out = self.path("outside"), self.path("out")
        os.mkdir(outside)
        os.makedirs(out + "/binaries/dir")
        os.symlink(outside, out + "/binaries/link")
        os.symlink(outside + "/x", out + "/binaries/file")
        os.symlink("..", out + "/binaries/dir/up")
        bad = ("../x", "/../x", "/a/../../../x", "..", "/", "/link/x", "/file", "/dir/up/x", "/dir", "/fine/x")
        good = ("/fine", "//same/./x", "/same/x")
        f = self.forge(*good, *bad)
        r = self.memprof("extract", f, "-o", out, status=13)
        for path in bad:
            self.assertIn(f"{path} (", r.stderr)
        self.assertIn("3 files", r.stdout)
        self.assertEqual(os.listdir(outside), [])
        self.assertEqual(sorted(os.listdir(out + "/binaries")), ["dir", "file", "fine", "link", "same"])
        self.assertEqual(sorted(os.listdir(out + "/binaries/same")), ["x", "x.02"])
        self.assertEqual(t.read(out + "/binaries/fine"), b"evil")
        self.memprof("extract", self.forge("/fine"), "-o", out)  # replaces the file of the first extract
        shutil.rmtree(out)
        os.mkdir(out)
        os.symlink(outside, out + "/binaries")
        self.memprof("extract", f, "-o", out, status=14)
        self.assertEqual(os.listdir(outside), [])


if __name__ == "__main__":
    t.main()
