#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs with debug information made to harm its reader: memprof's memory stays bounded, and it records and
reports them, at worst without names."""
import lzma
import os
import re
import struct
import subprocess
import threading
import zlib

import memprof_test as t

MIB = 1 << 20
GIB = 1 << 30

PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void *allocates(size_t n) { void *p = malloc(n); __asm__("" : "+r"(p)); return p; }
void *kept;
static void some(void) { for (int i = 0; i < 20; i++) free(allocates(4321)); }
int main(void) { kept = allocates(100); alarm(600); for (;;) { some(); usleep(1000); } }
"""


def bomb_xz(size):
    """An xz file of zeros: one compressed block many times, and the index."""
    one = lzma.compress(bytes(64 * MIB), check=lzma.CHECK_CRC32, preset=0)
    head, backward = one[:12], struct.unpack("<I", one[-8:-4])[0]
    index_size = (backward + 1) * 4
    block, index = one[12:-12 - index_size], one[-12 - index_size:-12]
    n = size // (64 * MIB)
    # Indicator, number of records, the record, padding, CRC32.
    record, at = index[2:-4].rstrip(b"\0"), n
    number = b""
    while at >= 0x80:
        number += bytes([at & 0x7f | 0x80])
        at >>= 7
    new = b"\0" + number + bytes([at]) + record * n
    new += bytes(-len(new) % 4)
    new += struct.pack("<I", zlib.crc32(new))
    tail = struct.pack("<I", len(new) // 4 - 1) + one[-4:-2]
    return head + block * n + new + struct.pack("<I", zlib.crc32(tail)) + tail + b"YZ"


def bomb_zlib(size):
    """A compressed section (gABI, "Compression Header") of zeros."""
    c = zlib.compressobj(9)
    chunk = c.compress(bytes(MIB)) + c.flush(zlib.Z_FULL_FLUSH)
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    again = c.compress(bytes(MIB)) + c.flush(zlib.Z_FULL_FLUSH)
    n = size // MIB
    adler = (size % 65521) << 16 | 1
    return struct.pack("<IIQQ", 1, 0, size, 1) + chunk + again * (n - 1) + b"\3\0" + struct.pack(">I", adler)


def nested(tag, depth, attributes):
    """Debug information of nested DIEs, each of which covers the whole program."""
    return f"""
        .section .debug_abbrev,"",@progbits
        .uleb128 1; .uleb128 0x11; .byte 1
        .uleb128 0x03,0x08, 0x11,0x01, 0x12,0x01, 0,0
        .uleb128 2; .uleb128 0x2e; .byte 1
        .uleb128 0x03,0x08, 0x11,0x01, 0x12,0x01, 0,0
        .uleb128 3; .uleb128 {tag}; .byte 1
        .uleb128 {"0x31,0x13," if attributes else ""} 0x11,0x01, 0x12,0x01, 0,0
        .byte 0
        .section .debug_info,"",@progbits
begin:  .long end - start
start:  .value 4
        .long 0
        .byte 8
        .uleb128 1; .string "deep.c"; .quad __executable_start, etext
        .uleb128 2; .string "deep"; .quad __executable_start, etext
        .rept {depth}
        .uleb128 3
        {attributes}
        .quad __executable_start, etext
        .endr
        .rept {depth}
        .byte 0
        .endr
        .byte 0, 0
end:
        .section .debug_aranges,"",@progbits
        .long 2f - 1f
1:      .value 2
        .long begin
        .byte 8, 0, 0, 0, 0, 0
        .quad __executable_start, 0x100000, 0, 0
2:
        .section .note.GNU-stack,"",@progbits
"""


class HostileFiles(t.Case):
    def compile(self, *more):
        exe, source = self.path("hostile"), self.path("hostile.c")
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", exe, source, *more], check=True)
        return exe

    def with_section(self, name, content, flags="readonly,debug"):
        exe, data = self.compile(), self.path("section")
        with open(data, "wb") as f:
            f.write(content)
        subprocess.run(["objcopy", "--add-section", f"{name}={data}", "--set-section-flags", f"{name}={flags}", exe],
                       check=True)
        return exe

    def mark_compressed(self, exe, name):
        """Sets SHF_COMPRESSED in the section header, which objcopy does not do."""
        out = subprocess.check_output(["readelf", "-SW", exe], text=True)
        index = int(re.search(rf"\[\s*(\d+)\] {re.escape(name)} ", out).group(1))
        with open(exe, "r+b") as f:
            f.seek(0x28)
            at = struct.unpack("<Q", f.read(8))[0] + index * 64 + 8
            f.seek(at)
            flags = struct.unpack("<Q", f.read(8))[0] | 0x800
            f.seek(at)
            f.write(struct.pack("<Q", flags))

    def measured(self, *argv):
        """Runs memprof; returns its largest resident set in bytes."""
        p = self.start(t.MEMPROF, *map(str, argv), stderr=subprocess.STDOUT)
        limit = threading.Timer(60, p.kill)
        limit.start()
        out = p.stdout.read()
        limit.cancel()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(p.returncode, 0, out)
        return usage.ru_maxrss * 1024

    def tried(self, exe, names=True):
        """Checks that memprof records and reports the program, and finds its leaks, with less than 1 GiB."""
        p = self.start(exe)
        t.settle(p.pid)
        f = self.path("r")
        peak = self.measured("attach", "-q", "-p", p.pid, "-o", f, "--for", "300ms")
        peak = max(peak, self.measured("report", f))
        peak = max(peak, self.measured("leaks", "-p", p.pid))
        print(f"# at most {peak >> 20} MiB", flush=True)
        self.assertIsNone(p.poll())
        self.assertLess(peak, GIB)
        r = self.report(f)
        self.assertGreater(t.calls(r)["malloc"], 10)
        self.assertIn("main" if names else "hostile", str(r))
        p.kill()

    def test_claims_terabytes(self):
        """compressed debug sections that claim terabytes do not exhaust memory"""
        for name in (".debug_info", ".debug_str", ".debug_frame", ".debug_line"):
            exe = self.with_section(name, struct.pack("<IIQQ", 1, 0, 1 << 42, 1) + zlib.compress(b"x" * 100))
            self.mark_compressed(exe, name)
            self.tried(exe)

    def test_zlib_bomb(self):
        """a compressed debug section that expands from 8 MiB to 8 GiB does not exhaust memory"""
        for name in (".debug_info", ".debug_frame"):
            exe = self.with_section(name, bomb_zlib(8 * GIB))
            self.mark_compressed(exe, name)
            self.tried(exe)

    def test_xz_bomb(self):
        """a .gnu_debugdata section that expands to 8 GiB does not exhaust memory"""
        exe = self.with_section(".gnu_debugdata", bomb_xz(8 * GIB))
        subprocess.run(["strip", exe], check=True)
        self.tried(exe, names=False)

    def test_fifo_for_a_debug_file(self):
        """a fifo in place of the debug file, found by link or by name, does not block memprof"""
        for link, where in ((True, ""), (True, ".debug/"), (False, "")):
            exe = self.compile()
            debug = self.path("hostile.debug")
            subprocess.run(["objcopy", "--only-keep-debug", exe, debug], check=True)
            if link:
                subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", exe], check=True)
            os.unlink(debug)
            if where:
                os.mkdir(self.path(".debug"))
            os.mkfifo(self.path(where + "hostile.debug"))
            self.tried(exe)
            os.unlink(self.path(where + "hostile.debug"))

    def test_zstd_bomb(self):
        """report refuses a chunk that expands to 1 GiB but claims 16 MiB or 4 GiB, with less than 200 MiB"""
        p = self.start(self.compile())
        t.settle(p.pid)
        recording = t.read(self.record(p.pid))
        at = recording.index(b"MPCK", recording.index(b"MPCK") + 4)  # the first chunk with events
        # Not made in this process: ru_maxrss of a child starts with the peak of its parent before exec.
        bomb = subprocess.run(f"head -c {GIB} /dev/zero | zstd -q -c", shell=True, capture_output=True, check=True).stdout
        for raw in (16 * MIB, 0xffffffff):
            head = recording[at:at + 8] + struct.pack("<III", raw, len(bomb), zlib.crc32(bomb))
            with open(self.path("bomb"), "wb") as f:
                f.write(recording[:at] + head + struct.pack("<I", zlib.crc32(head)) + bomb)
            r = self.start(t.MEMPROF, "report", "--verbose", self.path("bomb"), stderr=subprocess.STDOUT)
            out = r.stdout.read()
            _, status, usage = os.wait4(r.pid, 0)
            r.returncode = os.waitstatus_to_exitcode(status)
            self.assertIn("damaged chunk", out)
            self.assertLess(usage.ru_maxrss, 200 << 10)

    def test_inlined(self):
        """valid debug information: a backtrace has the chain of inlined functions and their outer function"""
        exe, source = self.path("inlined"), self.path("inlined.c")
        with open(source, "w") as f:
            f.write("""
                #include <stdlib.h>
                #include <unistd.h>
                static inline __attribute__((always_inline)) void *inner(size_t n) {
                    void *p = malloc(n); __asm__("" : "+r"(p)); return p; }
                static inline __attribute__((always_inline)) void *middle(size_t n) { return inner(n + 1); }
                __attribute__((noinline)) void *outer(size_t n) { void *p = middle(n); __asm__("" : "+r"(p)); return p; }
                int main(void) { alarm(600); for (;;) { free(outer(100)); usleep(1000); } }""")
        subprocess.run(["gcc", "-O2", "-g", "-o", exe, source], check=True)
        p = self.start(exe)
        t.settle(p.pid)
        r = self.report(self.record(p.pid))
        chain = [(f["function"], f["is_inline"]) for f in r["allocation_groups"][0]["backtrace"]]
        at = chain.index(("outer", False))
        self.assertIn(chain[at:at + 3], ([("outer", False), ("middle", True), ("inner", True)],), chain)

    def dwarf(self, text):
        asm = self.path("deep.S")
        with open(asm, "w") as f:
            f.write(text)
        return self.compile(asm)

    def test_deep_dwarf(self):
        """debug information with scopes nested up to a million deep does not exhaust memory or stack"""
        self.tried(self.dwarf(nested(0x0b, 1000000 if t.FULL else 200000, "")))

    def test_endless_origin(self):
        """an inlined function that is its own abstract origin does not cause an endless loop"""
        self.tried(self.dwarf(nested(0x1d, 3, ".long 3b - begin").replace(".uleb128 3\n", "3: .uleb128 3\n")))


if __name__ == "__main__":
    t.main()
