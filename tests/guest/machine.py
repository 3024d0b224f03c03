# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots a guest under qemu-system and reads what it says on its serial line."""
import os
import select
import subprocess
import tempfile
import time

import image

# Machine, console.
MACHINES = {
    "x86_64": (["qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-smp", "2"], "ttyS0"),
    "aarch64": (["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2"],
                "ttyAMA0"),
    "arm": (["qemu-system-arm", "-M", "virt", "-cpu", "cortex-a15", "-smp", "2"], "ttyAMA0"),
    "mips64": (["qemu-system-mips64el", "-M", "malta", "-cpu", "5KEc", "-vga", "none"], "ttyS0"),
    "mips64be": (["qemu-system-mips64", "-M", "malta", "-cpu", "5KEc", "-vga", "none"], "ttyS0"),
}
MEMORY = "1024"


class Silent(Exception):
    """The guest did not end in time, or died."""


def lines_of(process, deadline, silence):
    """Lines of the serial line, until the process ends."""
    fd, rest, heard = process.stdout.fileno(), b"", time.monotonic()
    while True:
        wait = min(deadline, heard + silence) - time.monotonic()
        if wait <= 0:
            raise Silent("the guest hangs")
        if not select.select([fd], [], [], wait)[0]:
            continue
        data, heard = os.read(fd, 65536), time.monotonic()
        if not data:
            raise Silent("the guest's machine went off before its end")
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")


def run(arch, kernel, initramfs, script, seconds, silence=960, log=None, second_line=None):
    """Boots, runs the shell script @script with the tests there, yields its lines.  Raises Silent after @seconds, or when
    nothing came for @silence seconds.  @second_line: path of a Unix socket, on which qemu listens, for a second serial line."""
    command, console = MACHINES[arch]
    lines = ["-serial", "mon:stdio", "-serial", f"unix:{second_line},server=on,wait=off"] if second_line else []
    with tempfile.NamedTemporaryFile(prefix="memprof-guest-") as initrd:
        with open(initramfs, "rb") as f:
            content = f.read()
        initrd.write(content + bytes(-len(content) % 512) + image.job(script))
        initrd.flush()
        p = subprocess.Popen(
            [*command, "-m", MEMORY, "-net", "none", "-nographic", *lines, "-no-reboot", "-kernel", kernel,
             "-initrd", initrd.name, "-append", f"console={console} panic=-1 quiet loglevel=4"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in lines_of(p, time.monotonic() + seconds, silence):
                if log:
                    log.write(line + "\n")
                    log.flush()
                if line == "> guest ends":
                    return
                # A message of the kernel may stand before it.
                if "> " in line:
                    yield line.split("> ", 1)[1]
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
