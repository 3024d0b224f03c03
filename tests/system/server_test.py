# SPDX-License-Identifier: MIT OR Apache-2.0
"""Helpers of the tests of memprof server: recordings whose numbers are known, and the server itself."""
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import urllib.parse

import memprof_test as t

# Waits for its input before and after its work, so that the recording has all of it and nothing else.
SHOP = """
#include <cstdlib>
#include <malloc.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void *volatile kept[100];
static int n;
__attribute__((noinline)) static void open_session() { kept[n++] = malloc(100); }
__attribute__((noinline)) static void *cache() { return kept[n++] = malloc(300); }
__attribute__((noinline)) static void brief() { free(kept[99] = malloc(50)); }
__attribute__((noinline)) static void *large(int size) { return kept[n++] = malloc(size); }
template <class T> __attribute__((noinline)) static void box(T value) { kept[n++] = new T(value); }
static void worker()
{
	pthread_setname_np(pthread_self(), "worker");
	void *p = malloc(100);
	p = realloc(p, 200);
	kept[n++] = realloc(p, 5000);
	free(realloc(malloc(10), 70));
}
int main()
{
	char c;
	(void)!read(0, &c, 1);
	mallopt(M_MMAP_THRESHOLD, 250000);
	for (int i = 0; i < 20; i++)
		open_session();
	for (int i = 0; i < 12; i++) {
		void *p = cache();
		if (i % 2)
			free(p);
	}
	for (int i = 0; i < 30; i++)
		brief();
	for (int i = 5; i > 2; i--)
		large(i * 100000);
	box(std::vector<long>());
	std::thread(worker).join();
	(void)!write(1, "done\\n", 5);
	(void)!read(0, &c, 1);
	return 0;
}
"""


def build(folder, name="shop", source=SHOP):
    """Compiles a program with debug information; returns its path."""
    path = f"{folder}/{name}"
    with open(path + ".cc", "w") as f:
        f.write(source)
    subprocess.run(["g++", "-g", "-O1", "-o", path, path + ".cc"], check=True)
    return path


def record(program, recording, *options):
    """Records the work of a program as above, all of it and one by one."""
    p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    memprof = None
    try:
        t.settle(p.pid)
        memprof = subprocess.Popen([t.MEMPROF, "attach", "-q", "--history", "--lossless", "-p", str(p.pid), "-o",
                                    recording, *options], stdout=subprocess.DEVNULL)
        t.wait_for(lambda: recorded(p.pid) or memprof.poll() is not None)
        subprocess.run([t.MEMPROF, "mark", "-p", str(p.pid), "work"], check=True, capture_output=True, timeout=120)
        p.stdin.write("x")
        p.stdin.flush()
        assert p.stdout.readline() == "done\n"
        subprocess.run([t.MEMPROF, "detach", "-p", str(p.pid)], check=True, capture_output=True, timeout=120)
        assert memprof.wait(timeout=120) == 0
    finally:
        for x in filter(None, (memprof, p)):
            x.kill()
            x.wait()
        p.stdin.close()
        p.stdout.close()
    return recording


def recorded(pid):
    status = subprocess.run([t.MEMPROF, "status", "--json"], capture_output=True, check=True, timeout=120).stdout
    return any(s["pid"] == pid and s["state"] == "recording" for s in json.loads(status))


def has_page(server):
    """Whether memprof was built with the page for browsers."""
    return "html" in server.get("/", headers={"Accept": "text/html"}).headers["Content-Type"]


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Server:
    """A running `memprof server`; end() ends it and checks how it ended."""
    def __init__(self, *arguments, port=0, prefix=()):
        self.process = subprocess.Popen([*prefix, t.MEMPROF, "server", "--port", str(port), *map(str, arguments)],
                                        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.said, found = "", None
        while not found:
            line = self.process.stdout.readline()
            self.said += line
            found = re.search(r"http://(\S+?)/(?:\?token=(\w+))?$", line.strip())
            if not line:
                self.process.kill()
                self.process.wait()
                self.process.stdout.close()
                raise AssertionError(f"the server did not start: {self.said!r}")
        self.address, self.token = found.groups()
        self.url = "http://" + self.address

    def get(self, path, parameters=(), method="GET", headers=None, body=None):
        """@parameters: pairs or a dict; without: the path can have its own query.  Return: an Answer."""
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        c = http.client.HTTPConnection(self.address, timeout=120)
        try:
            c.request(method, path, body=body, headers=headers or {})
            return Answer(c.getresponse())
        finally:
            c.close()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.process.stdout.close()
        assert status == 0, f"the server ended with status {status}"


class Case(t.Case):
    """Tests of one server, with the recording `shop` unless a class makes others."""
    options = {}  # of Server

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.recordings = cls.record_all()
        cls.server = Server(*cls.recordings, **cls.options)
        cls.addClassCleanup(cls.server.end)

    @classmethod
    def record_all(cls):
        cls.recording = record(build(cls.shared), cls.shared + "/shop.memprof")
        return [cls.recording]

    def get(self, path, parameters=(), status=200, **more):
        a = self.server.get(path, parameters, **more)
        self.assertEqual(a.status, status, f"{path} {parameters}: {a.body[:500]}")
        return a

    def data(self, endpoint, parameters=(), **more):
        """The answer of an endpoint of the last recording."""
        return self.get("/data/last/" + endpoint, parameters, **more)
