#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debug information from debuginfod servers: found, used only if it is right, never waited for without bounds,
and never asked for unless the user wants it."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import memprof_test as t

LINE = re.compile(r"exact\.c:\d+")


class Server:
    """A server that notes what it is asked for, and answers everything alike, or never."""

    def __init__(self, answer=None):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.answer, self.requests, self.open = answer, [], []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                request = connection.recv(4096).decode()
                if not request:
                    continue
                self.requests.append(request.split()[1])
                if self.answer is None:
                    self.open.append(connection)
                    continue
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(self.answer) + self.answer)
                connection.close()

    def close(self):
        if self.socket.fileno() < 0:
            return
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()
        for c in self.open:
            c.close()


class Debuginfod(t.Case):
    def setUp(self):
        super().setUp()
        self.program, self.served = self.path("exact"), self.path("served")
        os.mkdir(self.served)
        subprocess.run(["objcopy", "--only-keep-debug", f"{t.VICTIMS}/exact", f"{self.served}/exact.debug"], check=True)
        subprocess.run(["strip", "-o", self.program, f"{t.VICTIMS}/exact"], check=True)
        notes = subprocess.run(["readelf", "-n", self.program], text=True, capture_output=True, check=True).stdout
        self.build_id = re.search(r"Build ID: (\w+)", notes)[1]
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("DEBUGINFOD_") and not k.lower().endswith("_proxy")}
        self.environment.update(DEBUGINFOD_CACHE_PATH=self.path("cache"), HOME=self.dir)

    def server(self):
        """Starts a real server of the served folder; returns its URL when it has indexed it."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        log = self.path("log")
        with open(log, "w") as f:
            self.start("debuginfod", "-v", "-d", ":memory:", "-p", str(port), "-F", self.served,
                       env=self.environment, stdout=f, stderr=subprocess.STDOUT)
        url = f"http://127.0.0.1:{port}"
        t.wait_for(lambda: self.find(url).returncode == 0)
        shutil.rmtree(self.path("cache"), ignore_errors=True)
        return url

    def false_server(self, answer=None):
        s = Server(answer)
        self.addCleanup(s.close)
        return s

    def find(self, url):
        shutil.rmtree(self.path("cache"), ignore_errors=True)
        return subprocess.run(["debuginfod-find", "debuginfo", self.build_id], capture_output=True,
                              env=dict(self.environment, DEBUGINFOD_URLS=url), timeout=120)

    def memprof_with(self, *argv, status=0, **environment):
        r = subprocess.run([t.MEMPROF, *argv], text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL,
                           env=dict(self.environment, **environment))
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def run_stripped(self, *options, **environment):
        """Records the stripped program; returns memprof's result and the recording."""
        f = self.path("rec")
        return self.memprof_with("run", "-q", *options, "-o", f, "--", self.program, "1", "2000", **environment), f

    def functions(self, recording):
        """The functions of the program itself, with their lines."""
        report = self.report(recording)
        return {(f["function"], bool(f.get("line"))) for g in report["allocation_groups"] for f in g["backtrace"]
                if (f.get("library") or "").endswith("exact")}

    def assert_unnamed(self, recording):
        names = self.functions(recording)
        self.assertTrue(names)
        self.assertTrue(all(n.startswith("exact+0x") and not line for n, line in names if n != "_start"), names)

    def assert_named(self, recording):
        names = self.functions(recording)
        self.assertIn(("main", True), names)
        self.assertFalse([n for n, _ in names if "+0x" in n], names)

    def symbolize(self, recording, *options, **environment):
        out = self.path("named")
        return self.memprof_with("symbolize", recording, "-o", out, *options, **environment), out

    def test_names(self):
        """symbolize and the end of a recording get functions and lines from a server, and say so; the cache serves
        the second time"""
        url = self.server()
        _, recording = self.run_stripped()
        self.assert_unnamed(recording)
        r, out = self.symbolize(recording, "--debuginfod", DEBUGINFOD_URLS=url)
        self.assert_named(out)
        self.assertRegex(r.stdout, r"debuginfod: debug information of 1 of \d+ files?; [\d.]+ KiB downloaded\n")
        self.started[0].kill()
        self.started[0].wait()
        r, out = self.symbolize(recording, DEBUGINFOD_URLS=url)
        self.assert_named(out)
        self.assertRegex(r.stdout, r"debuginfod: debug information of 1 of \d+ files?, from the cache\n")

    def test_end_of_recording(self):
        """run and attach ask when the process is released, if DEBUGINFOD_URLS is set"""
        url = self.server()
        r, recording = self.run_stripped(DEBUGINFOD_URLS=url)
        self.assert_named(recording)
        self.assertIn("debuginfod: debug information of 1 of ", r.stdout)
        self.assertRegex(r.stdout, LINE)

    def test_other_machine(self):
        """The debug file is enough if this machine does not have the program"""
        url = self.server()
        _, recording = self.run_stripped()
        os.rename(self.program, self.path("elsewhere"))
        _, out = self.symbolize(recording, DEBUGINFOD_URLS=url)
        self.assert_named(out)

    def test_off(self):
        """No server is asked without DEBUGINFOD_URLS, nor with --no-debuginfod, nor by report"""
        server = self.false_server(b"")
        _, recording = self.run_stripped("--no-debuginfod", DEBUGINFOD_URLS=server.url)
        self.symbolize(recording, "--no-debuginfod", DEBUGINFOD_URLS=server.url)
        self.symbolize(recording)
        self.memprof_with("report", recording, "--verbose", DEBUGINFOD_URLS=server.url)
        self.memprof_with("doctor", "-p", str(os.getpid()), DEBUGINFOD_URLS=server.url)
        self.assertEqual(server.requests, [])
        self.assertFalse(os.path.exists(self.path("cache")))

    def test_wrong_answer(self):
        """A file with another build id, or a part of the right one, is not used"""
        other = self.path("other.debug")
        subprocess.run(["objcopy", "--only-keep-debug", f"{t.VICTIMS}/leaky", other], check=True)
        right = t.read(f"{self.served}/exact.debug")
        for answer in (t.read(other), b"not an ELF file", right[:len(right) // 2]):
            with self.subTest(size=len(answer)):
                shutil.rmtree(self.path("cache"), ignore_errors=True)
                server = self.false_server(answer)
                _, recording = self.run_stripped()
                r, out = self.symbolize(recording, DEBUGINFOD_URLS=server.url)
                self.assert_unnamed(out)
                self.assertIn(f"/buildid/{self.build_id}/debuginfo", server.requests)
                if not right.startswith(answer):
                    self.assertIn("of another build; not used", r.stderr)

    def test_silent_server(self):
        """A server that does not answer is asked for one file only, and memprof continues without it"""
        server = self.false_server()
        r, recording = self.run_stripped(DEBUGINFOD_URLS=server.url, DEBUGINFOD_TIMEOUT="1")
        self.assert_unnamed(recording)
        self.assertEqual(len(server.requests), 1)
        self.assertIn(f"no answer from {server.url} for 1 s; no more files were asked for", r.stderr)

    def test_dead_server(self):
        """A port without a server: said once"""
        with socket.create_server(("127.0.0.1", 0)) as s:
            url = f"http://127.0.0.1:{s.getsockname()[1]}"
        _, recording = self.run_stripped()
        r, out = self.symbolize(recording, DEBUGINFOD_URLS=url)
        self.assert_unnamed(out)
        self.assertEqual(r.stderr.count("no more files were asked for"), 1, r.stderr)

    def test_detached_first(self):
        """While a server is slow, the process has long been released; a signal continues without the server"""
        server = self.false_server()
        p = self.start(self.program, "1", "2000000000", stdout=subprocess.DEVNULL)
        t.settle(p.pid)
        before = t.identity(p.pid)
        recorder = self.start(t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", self.path("rec"),
                              env=dict(self.environment, DEBUGINFOD_URLS=server.url), stderr=subprocess.PIPE)
        self.assertEqual(self.wait_recorded(p.pid), recorder.pid)
        recorder.send_signal(signal.SIGINT)
        t.wait_for(lambda: server.requests)
        self.assertEqual(t.identity(p.pid), before)
        self.assertIn("TracerPid:\t0\n", t.read(f"/proc/{p.pid}/status").decode())
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, out + error)
        self.assertIn("interrupted; no more files were asked for", error)
        self.assert_unnamed(self.path("rec"))

    def test_family_first(self):
        """Forked children of a program that ended have been restored, too, while a server is slow"""
        server = self.false_server()
        code = "import os, time; pid = os.fork(); time.sleep(0 if pid else 600); print(pid, flush=True)"
        p = self.start(t.MEMPROF, "run", "-q", "-o", self.path("rec"), "--", "/usr/bin/python3", "-c", code,
                       env=dict(self.environment, DEBUGINFOD_URLS=server.url), stderr=subprocess.DEVNULL)
        child = int(p.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        t.wait_for(lambda: server.requests)
        self.assertNotIn("memprof", t.maps(child))
        server.close()
        self.assertEqual(p.wait(timeout=120), 0)

    def test_no_library(self):
        """Without libdebuginfod memprof says what to install, and continues"""
        os.mkdir(self.path("lib"))
        with open(self.path("lib/libdebuginfod.so.1"), "w"):
            pass
        _, recording = self.run_stripped()
        r, out = self.symbolize(recording, "--debuginfod", LD_LIBRARY_PATH=self.path("lib"))
        self.assert_unnamed(out)
        self.assertIn("cannot open libdebuginfod.so.1 (Debian: package libdebuginfod1)", r.stderr)

    def test_gaps(self):
        """The report says which file lacks symbols, how much that matters, and what the user can do about it"""
        _, recording = self.run_stripped()
        text = self.memprof("report", recording).stdout
        self.assertRegex(text, r"no names +exact: \d+ of \d+ addresses, in stacks of (100|9\d) % of the bytes\n"
                         r" +exact: compile with -g, or memprof symbolize -d FOLDER with the debug file\n")
        verbose = self.memprof("report", recording, "--verbose").stdout
        self.assertRegex(verbose, r" exact: of \d+ addresses \d+ without a function \(stacks of [\d.]+ \w+\), ")
        gap = next(g for g in self.report(recording)["missing_symbols"] if g["library"] == "exact")
        self.assertEqual((gap["path"], gap["build_id"]), (self.program, self.build_id))
        self.assertEqual((gap["debug_package"], gap["debug_url"]), (None, None))
        self.assertGreater(gap["without_function"], 0)
        self.assertLessEqual(gap["without_function"], gap["without_line"])
        self.assertLessEqual(gap["without_line"], gap["addresses"])
        self.assertGreater(gap["bytes_without_function"], 0)
        # As the advice says.
        folder = self.path(f"folder/.build-id/{self.build_id[:2]}")
        os.makedirs(folder)
        os.rename(f"{self.served}/exact.debug", f"{folder}/{self.build_id[2:]}.debug")
        _, out = self.symbolize(recording, "-d", self.path("folder"))
        self.assert_named(out)
        self.assertNotRegex(self.memprof("report", out).stdout, "no (names|lines)")
        # Not even for _start, of the C library's start files.
        self.assertEqual([g for g in self.report(out)["missing_symbols"] if g["library"] == "exact"], [])

    def test_gap_elsewhere(self):
        """If the file is not on this machine, a server might have its symbols"""
        _, recording = self.run_stripped()
        os.rename(self.program, self.path("elsewhere"))
        text = self.memprof_with("report", recording, DEBUGINFOD_URLS="http://127.0.0.1:1/ http://127.0.0.1:2")
        self.assertIn(f" memprof symbolize {recording} --debuginfod -o OUT\n", text.stdout)
        r = self.memprof_with("report", recording, "--verbose", DEBUGINFOD_URLS="http://127.0.0.1:1/ http://127.0.0.1:2")
        self.assertIn(f"not on this machine; http://127.0.0.1:1/buildid/{self.build_id}/debuginfo\n", r.stdout)

    def test_called(self):
        """redis-server, a link to redis-check-rdb: its name wherever it is shown, the file as path, and the package
        that has its symbols"""
        if os.path.realpath(shutil.which("redis-server")) != "/usr/bin/redis-check-rdb":
            self.skipTest("redis-server is no link here")
        sock = self.path("redis.sock")
        p = self.start("redis-server", "--port", "0", "--unixsocket", sock, "--save", "", "--dir", self.dir)
        ping = lambda: subprocess.run(["redis-cli", "-s", sock, "ping"], text=True, capture_output=True).stdout
        t.wait_for(lambda: ping() == "PONG\n")
        doctor = self.memprof("doctor", "-p", p.pid).stdout
        background = self.path("background")
        self.memprof("attach", "--background", "-p", p.pid, "-o", background)
        status = [s["name"] for s in json.loads(self.memprof("status", "--json").stdout) if s["pid"] == p.pid]
        subprocess.run(["redis-cli", "-s", sock, "debug", "populate", "1000"], capture_output=True)
        subprocess.run(["redis-cli", "-s", sock, "set", "key", "x" * 10000], capture_output=True)
        self.detach(p.pid)
        heap = [self.memprof("heap", *o, "-p", p.pid).stdout for o in ((), ("--retained",), ("--growth", "1s"))]
        self.assertEqual(status, ["redis-server"])
        report = self.report(background)
        self.assertEqual((report["executable"], report["called"]), ("/usr/bin/redis-check-rdb", "redis-server"))
        gap = next(g for g in report["missing_symbols"] if g["library"] == "redis-server")
        self.assertEqual((gap["path"], gap["debug_package"]), ("/usr/bin/redis-check-rdb", "redis-tools-dbgsym"))
        self.assertTrue(gap["debug_url"].endswith(f"/buildid/{gap['build_id']}/debuginfo"))
        for text in (doctor, *heap, *(self.memprof("report", background, *o).stdout
                                     for o in ((), ("--verbose",), ("--tree",), ("--view", "libraries")))):
            self.assertIn("redis-server", text)
            self.assertNotIn("redis-check-rdb", text)

    def test_environment_of_program(self):
        """A program that memprof runs gets the user's DEBUGINFOD_URLS"""
        r = self.memprof_with("run", "-q", "-o", self.path("rec"), "--", "/bin/sh", "-c", "echo urls=$DEBUGINFOD_URLS",
                              DEBUGINFOD_URLS="http://127.0.0.1:1")
        self.assertIn("urls=http://127.0.0.1:1\n", r.stdout)


if __name__ == "__main__":
    t.main()
