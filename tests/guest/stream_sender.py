#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A MIPS64 machine sends its recording (memprof attach --to) and this one receives it (memprof gather).  The guest has no
network: a second serial line carries the connections."""
import contextlib
import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../system"))
import line
import machine
import memprof_test as t
import stream_test as s

IMAGE = os.environ.get("GUEST_IMAGE", "build/mips64/guest.cpio")
THREADS, OPS = 2, 2000

SCRIPT = f"""
cat >/tmp/line.py <<'END'
{t.read(line.__file__).decode()}
END
(umask 077; printf '%s' '{s.TOKEN.decode()}' >/tmp/token)
/usr/bin/python3 /tmp/line.py /dev/ttyS1 9743 >/tmp/listens &
R=$!
mkfifo /tmp/in
build/victims/exact {THREADS} {OPS} wait </tmp/in >/tmp/truth &
P=$!
exec 3>/tmp/in
until [ -s /tmp/listens ]; do sleep 0.2; done
memprof attach -q -p $P --history --lossless --to 127.0.0.1 --token /tmp/token --deliver-within 5m -o r.memprof &
A=$!
until memprof status -p $P 2>/dev/null | grep -q recording || ! kill -0 $A; do sleep 0.5; done
echo go >&3
until [ -s /tmp/truth ] || ! kill -0 $P; do sleep 0.2; done
memprof detach -p $P
wait $A
echo "status $?"
echo "truth $(cat /tmp/truth)"
exec 3>&-
kill $R $P
"""


class Receiver:
    """The host's end: connects to memprof gather at each mark."""
    def __init__(self, path, port):
        self.path, self.port = path, port
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        t.wait_for(lambda: os.path.exists(self.path))
        with socket.socket(socket.AF_UNIX) as serial:
            serial.connect(self.path)
            self.line = line.Line(serial.recv, serial.send)
            with contextlib.suppress(OSError):  # the guest has ended
                self.line.receive(self.connect)

    def connect(self):
        if self.line.connection:
            with contextlib.suppress(OSError):  # the receiver has closed it
                self.line.connection.shutdown(socket.SHUT_RDWR)
        connection = socket.create_connection(("127.0.0.1", self.port))
        threading.Thread(target=self.line.begin, args=(connection,), daemon=True).start()
        return connection


class StreamSender(s.Counted):
    def test_mips64_sends(self):
        """the recording that arrives is exact, complete and that of a MIPS64 process"""
        g = s.Gather(self, self.path("out"), "--recordings", 1)
        path = self.path("line")
        Receiver(path, g.port)
        with open(IMAGE + ".arch") as f:
            arch, kernel = f.read().split()
        with open(os.path.join(os.path.dirname(IMAGE), "stream.log"), "w") as log:
            lines = list(machine.run(arch, kernel, IMAGE, SCRIPT, 900, log=log, second_line=path))
        said = "\n".join(x for x in lines if not x.startswith("truth "))
        self.assertTrue("status 0" in lines, f"{said}\n{g.out}{g.err}")
        self.assertEqual(g.process.wait(60), 0, g.err)
        truth = json.loads(next(x for x in lines if x.startswith("truth "))[6:])
        self.exact(truth, self.path("out/r.memprof"))
        info = json.loads(self.memprof("info", "--json", self.path("out/r.memprof")).stdout)
        self.assertEqual(info["architecture"], arch)
        print("# " + g.out.strip().replace("\n", "\n# "))


t.main()
