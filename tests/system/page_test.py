# SPDX-License-Identifier: MIT OR Apache-2.0
"""Helpers of the tests of the web page: chromium, a program to record, and the page as a reader uses it."""
import functools
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import memprof_test as t
import server_test as s

PAGE = os.path.join(os.path.dirname(t.MEMPROF), "web/index.html")
DRIVER = os.path.join(t.ROOT, "tests/page/browser.mjs")

# Grows in a map, has a burst, two threads, blocks of many sizes, and frames of the C++ library in its stacks.
PROGRAM = """
#include <cstdlib>
#include <map>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>

static std::map<int, std::string> names;
static void *volatile kept[1000];
static int n;
__attribute__((noinline)) static void open_session(int i) { names[i] = std::string(40 + i % 50, 'x'); }
__attribute__((noinline)) static void *cache(int size) { return kept[n++] = malloc(size); }
__attribute__((noinline)) static void brief(int size) { free(kept[999] = malloc(size)); }
static void worker()
{
	pthread_setname_np(pthread_self(), "worker");
	for (int i = 0; i < 40; i++)
		cache(70 << i % 10);
}
int main()
{
	char c;
	(void)!read(0, &c, 1);
	for (int phase = 0; phase < 10; phase++) {
		void *burst = cache(300000);
		for (int i = 0; i < 20; i++) {
			open_session(20 * phase + i);
			brief(50 + i);
		}
		usleep(130000);
		free(burst);
		if (phase == 5)
			std::thread(worker).join();
	}
	(void)!write(1, "done\\n", 5);
	(void)!read(0, &c, 1);
	return 0;
}
"""


def needed(case):
    """A class of tests that need chromium and the page; in CI both must be there."""
    there = (all(map(os.path.exists, ("/usr/bin/chromium", f"{t.ROOT}/web/node_modules/playwright-core", PAGE))) and
             os.path.getsize(PAGE))
    return unittest.skipUnless(there or os.environ.get("CI"),
                               "chromium, playwright-core or the page is missing (scripts/setup check, make)")(case)


class Browser:
    """Chromium, which tests/page/browser.mjs drives."""
    def __init__(self):
        self.process = subprocess.Popen(["node", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __getattr__(self, command):
        return functools.partial(self.ask, command)

    def ask(self, command, **given):
        """Has a command of browser.mjs executed; returns its value."""
        self.process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the browser has ended at {command} {given}"
        answer = json.loads(line)
        assert "error" not in answer, f"{command} {given}: {answer['error']}"
        return answer["value"]

    def stop(self):
        self.process.stdin.close()
        try:
            status = self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.process.stdout.close()
        assert status == 0, f"the browser ended with status {status}"


def number(text):
    """A number of data-value as a number, other texts as they are."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def hash_of(view, filters=(), **choices):
    """The part of a URL that says what the page shows.  @filters: pairs or a dict."""
    query = urllib.parse.urlencode([*dict(filters).items(), *choices.items()])
    return f"#{view}?{query}" if query else f"#{view}"


def options_of(filters):
    """Filters as options of memprof report."""
    return [x for name, value in dict(filters).items() for x in ("--" + name.replace("_", "-"), value)]


class Pages(t.Case):
    """Tests with one browser for a class."""
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="memprof-test-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)

    def open(self, url, **look):
        """Opens a page and waits until it has drawn what it shows."""
        self.browser.open(url=url, **look)
        self.browser.settle()

    def show(self, view, filters=(), **choices):
        """Lets the page that is open show something else."""
        self.browser.go(hash=hash_of(view, filters, **choices))
        self.browser.settle()

    def act(self, command, **given):
        """Does something in the page and waits until it has drawn what follows."""
        self.browser.ask(command, **given)
        self.browser.settle()

    def clean(self, origin):
        """Checks that nothing went wrong in the page, and that it asked only where it may."""
        self.assertEqual(self.browser.errors(), [])
        self.assertEqual([r for r in self.browser.requests() if not r.startswith((origin, "data:"))], [])

    def choices(self):
        """The query of the URL."""
        return dict(urllib.parse.parse_qsl(self.browser.url().partition("#")[2].partition("?")[2]))

    def view(self):
        return self.browser.url().partition("#")[2].partition("?")[0]

    def views(self):
        """The names of the views that the page offers."""
        links = self.browser.attributes(selector="nav[aria-label=Views] a", name="href")
        return [a.partition("#")[2].partition("?")[0] for a in links]

    def rows(self, caption=None):
        """All rows of the table with this caption, or of the only one: a dict by title of the column for each."""
        more = ".more button"
        while self.browser.texts(selector=more):
            self.act("click", selector=more)
        tables = [x for x in self.browser.tables() if caption in (None, x["caption"])]
        self.assertEqual(len(tables), 1, [x["caption"] for x in tables])
        return [dict(zip(tables[0]["columns"], map(number, row))) for row in tables[0]["rows"]]


class Served(Pages):
    """Tests of the page of a server with the recordings `program`, `redis` and `sampled`."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = {name: f"{cls.shared}/{name}.memprof" for name in ("program", "redis", "sampled")}
        s.record(s.build(cls.shared, "program", PROGRAM), cls.files["program"])
        record_redis(cls.shared, cls.files["redis"])
        record_leaky(cls.files["sampled"])
        cls.server = s.Server(*cls.files.values())
        cls.addClassCleanup(cls.server.end)
        cls.ids = dict(zip(cls.files, (r["id"] for r in cls.server.get("/list").json())))
        cls.url = cls.server.url + "/"

    def show(self, view, filters=(), name="program", **choices):
        super().show(view, filters, recording=self.ids[name], **choices)

    def ask(self, endpoint, filters=(), name="program", **parameters):
        """The answer of the server."""
        a = self.server.get(f"/data/{self.ids[name]}/{endpoint}", {**dict(filters), **parameters})
        self.assertEqual(a.status, 200, a.body)
        return a.json()

    def filtered(self, filters=(), name="program"):
        """What memprof report --json says."""
        return self.report(self.files[name], *options_of(filters))

    def listed(self, view, filters=(), name="program", *more):
        """What memprof report --view says."""
        return self.report(self.files[name], "--view", view, *options_of(filters), *more)


def record_redis(folder, recording):
    socket = f"{folder}/redis.sock"
    p = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
                         stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        t.wait_for(lambda: os.path.exists(socket))
        memprof = subprocess.Popen([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", recording],
                                   stdout=subprocess.DEVNULL)
        t.wait_for(lambda: s.recorded(p.pid) or memprof.poll() is not None)
        subprocess.run(["redis-benchmark", "-s", socket, "-t", "set,lpush", "-n", "2000", "-r", "2000", "-q"],
                       stdout=subprocess.DEVNULL, check=True, timeout=120)
        subprocess.run([t.MEMPROF, "detach", "-p", str(p.pid)], check=True, capture_output=True, timeout=120)
        assert memprof.wait(timeout=120) == 0
    finally:
        p.kill()
        p.wait()


def record_leaky(recording):
    p = subprocess.Popen([f"{t.VICTIMS}/leaky"], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        t.settle(p.pid)
        subprocess.run([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", recording, "--sample", "4k", "--for", "500ms"],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)
    finally:
        p.kill()
        p.wait()
