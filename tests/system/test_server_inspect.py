#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server: leaks and retained memory of a process while it is being recorded; the process continues unchanged."""
import contextlib
import glob
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

import memprof_test as t
import server_test as s

# Loses blocks, and keeps others in a variable; answers each byte of its input.
LOSER = """
#include <cstdlib>
#include <cstring>
#include <unistd.h>

void *keeper[100];
__attribute__((noinline)) static void lose()
{
	void *volatile p = malloc(1000);
	memset(p, 1, 1000);
	strcpy((char *)p, "secret of the program");
	p = nullptr;
}
__attribute__((noinline)) static void keep()
{
	for (void *&p : keeper)
		p = malloc(3000);
}
__attribute__((noinline)) static void overwrite()
{
	volatile char stack[4096];
	for (volatile char &c : stack)
		c = 0;
}
int main()
{
	char c;
	(void)!read(0, &c, 1);
	for (int i = 0; i < 20; i++)
		lose();
	keep();
	overwrite();
	do {
		(void)!write(1, "done\\n", 5);
	} while (read(0, &c, 1) == 1);
	return 0;
}
"""
LOST, SIZE = 20, 1000


class Inspect(t.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="memprof-test-")
        cls.addClassCleanup(cls.shared.cleanup)
        cls.program = s.build(cls.shared.name, "loser", LOSER)

    def setUp(self):
        super().setUp()
        self.victim_process = self.start(self.program, stdin=subprocess.PIPE)
        self.pid = self.victim_process.pid
        t.settle(self.pid)
        self.recording = self.path("rec.memprof")
        self.recorder = self.start(t.MEMPROF, "attach", "-q", "-p", str(self.pid), "-o", self.recording)
        t.wait_for(lambda: s.recorded(self.pid))
        self.server = s.Server(self.recording)
        self.step()

    def tearDown(self):
        try:
            self.server.end()
        finally:
            super().tearDown()

    def step(self):
        """Lets the program do something: it must answer."""
        self.victim_process.stdin.write("x")
        self.victim_process.stdin.flush()
        self.assertEqual(self.victim_process.stdout.readline(), "done\n")

    def post(self, endpoint, status=200):
        a = self.server.get("/data/last/" + endpoint, method="POST")
        self.assertEqual(a.status, status, a.body[:500])
        return a

    def status(self):
        return dict(re.findall(r"^(State|TracerPid):\s+(\S+)", t.read(f"/proc/{self.pid}/status").decode(), re.M))

    def unchanged(self):
        """The program is neither stopped nor traced, and works."""
        t.wait_for(lambda: self.status() == {"State": "S", "TracerPid": "0"})
        self.step()

    def inspectors(self):
        """The processes of memprof that inspect the program."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                argv = t.read(path).split(b"\0")
            except OSError:
                continue
            if argv[:1] == [b"memprof"] and b"-p" in argv and str(self.pid).encode() in argv:
                found.append(int(path.split("/")[2]))
        return found

    def test_leaks(self):
        """leaks: what was lost, how much and where it was allocated, without contents; the program continues"""
        self.assertEqual([r["in_progress"] for r in self.server.get("/list").json()], [True])
        report = self.post("leaks").json()
        self.assertEqual((report["pid"], report["mode"]), (self.pid, "copy"))
        (lost,) = [c for c in report["clusters"] if SIZE <= c["size"] < SIZE + 32]
        # A register or an old stack slot may still point to the last one.
        self.assertIn(lost["count"], (LOST - 1, LOST))
        self.assertIn("lose", " ".join(f["function"] for f in lost["stack"]))
        self.assertEqual({c["preview"] for c in report["clusters"]}, {None})
        self.assertNotIn("secret", str(report))
        self.assertEqual(report["recording"]["path"], os.path.realpath(self.recording))
        self.unchanged()
        self.assertEqual(self.post("leaks").json()["leaked"], report["leaked"])
        self.unchanged()

    def test_retained(self):
        """retained: the variable that keeps most; the program continues"""
        report = self.post("retained").json()
        self.assertEqual(report["pid"], self.pid)
        first = report["retained"]["children"][0]
        self.assertEqual((first["name"], first["kind"]), ("keeper", "variable"))
        self.assertGreaterEqual(first["retained_bytes"], 100 * 3000)
        self.unchanged()

    def test_not_in_progress(self):
        """409 when the recording has ended; GET is 405"""
        for endpoint in ("leaks", "retained"):
            a = self.server.get("/data/last/" + endpoint)
            self.assertEqual((a.status, a.headers["Allow"]), (405, "POST"))
        self.memprof("detach", "-p", str(self.pid))
        self.assertEqual(self.recorder.wait(timeout=120), 0)
        for endpoint in ("leaks", "retained"):
            self.assertIn("not in progress", self.post(endpoint, status=409).text)
        self.assertEqual([r["in_progress"] for r in self.server.get("/list").json()], [False])
        self.unchanged()

    def test_traced(self):
        """409 with the command's reason, in one line, when another program traces the process"""
        strace = self.start("strace", "-q", "-p", str(self.pid), "-o", self.path("strace"))
        t.wait_for(lambda: self.status()["TracerPid"] == str(strace.pid))
        for endpoint in ("leaks", "retained"):
            a = self.post(endpoint, status=409)
            self.assertIn("strace", a.text)
            self.assertNotRegex(a.text, "^memprof:")
            self.assertEqual(a.text.count("\n"), 1)
        strace.terminate()
        strace.wait(timeout=60)
        self.unchanged()
        self.post("leaks")

    def test_client_leaves(self):
        """a client that leaves ends the command, at whatever moment; the process is neither stopped nor changed"""
        before = t.identity(self.pid)
        host, port = self.server.address.rsplit(":", 1)
        for endpoint in ("leaks", "retained"):
            for i in range(15):
                with socket.create_connection((host, int(port))) as c:
                    c.sendall(f"POST /data/last/{endpoint} HTTP/1.1\r\nHost: {self.server.address}\r\n\r\n".encode())
                    time.sleep(0.02 * i)
                    # A reset: it has left, and not only no further requests.
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                t.wait_for(lambda: not self.inspectors())
                self.unchanged()
        self.assertEqual(t.identity(self.pid), before)
        self.post("leaks")

    def test_command_killed(self):
        """kill -9 of the command: 500 with the reason, the process continues, and the next request is answered"""
        answers = []
        for _ in range(100):
            asks = threading.Thread(target=lambda: answers.append(self.server.get("/data/last/leaks", method="POST")))
            asks.start()
            for pid in t.wait_for(lambda: self.inspectors() or not asks.is_alive() and [0]):
                if pid:
                    with contextlib.suppress(ProcessLookupError):  # it can end before it is killed
                        os.kill(pid, signal.SIGKILL)
            asks.join()
            self.unchanged()
            if answers[-1].status == 500:
                break
        self.assertEqual((answers[-1].status, answers[-1].text), (500, "memprof leaks was ended by signal 9\n"))
        self.post("leaks")

    def test_server_killed(self):
        """kill -9 of the server while it inspects the process: the command ends, and the process continues"""
        asks = threading.Thread(target=self.ask_in_vain)
        asks.start()
        t.wait_for(self.inspectors)
        self.server.process.kill()
        self.server.process.wait()
        asks.join()
        t.wait_for(lambda: not self.inspectors())
        self.unchanged()
        self.server.process.stdout.close()
        self.server = s.Server(self.recording)

    def ask_in_vain(self):
        try:
            self.server.get("/data/last/retained", method="POST")
        except (OSError, s.http.client.HTTPException):
            pass


if __name__ == "__main__":
    t.main()
