#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The web page for all who use it: without a mouse, on a phone, in the dark, by links, as a file; and with names that
are meant to harm it."""
import subprocess

import memprof_test as t
import server_test as s
from page_test import Pages, Served, needed

WIDTHS = (390, 1024, 2560)
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSED = """(() => {
  const e = document.activeElement;
  const text = e.getAttribute("href") ?? e.getAttribute("aria-label") ?? e.textContent;
  return [e.tagName, text, [...document.querySelectorAll("*")].indexOf(e)];
})()"""
EVIL = "</script><img src=x onerror=alert(1)>'&<script>alert(2)</script>"
PROGRAM = "x'\"><script>alert(3)<"

HOSTILE = """
#include <stdlib.h>
#include <unistd.h>
void *evil(int n) __asm__(NAME);
__attribute__((noipa)) void *evil(int n) { return malloc(n); }
int main(void)
{
	char c;
	(void)!read(0, &c, 1);
	for (int i = 0; i < 50; i++)
		*(void *volatile *)&(void *){0} = evil(100 + i);
	(void)!write(1, "done\\n", 5);
	(void)!read(0, &c, 1);
	return 0;
}
"""


class Looks(Pages):
    def check_looks(self, url):
        """A view at each width has nothing that axe-core finds, and does not scroll to the side."""
        for dark in (False, True):
            for width in WIDTHS:
                self.act("look", width=width, dark=dark)
                where = f"{url} {width} {'dark' if dark else 'light'}"
                self.assertEqual(self.browser.evaluate(expression=TOO_WIDE), 0, where)
                if width != 2560:
                    self.assertEqual(self.browser.axe(), [], where)

    def states(self, program):
        """Each view that needs something to be chosen has it."""
        chosen = {"source": {"file": program + ".cc"}, "diff": {"at": "50%"}, "overview": {"size_min": "10"}}
        return {view: chosen.get(view, {}) for view in (*self.views(), "source")}


@needed
class Use(Looks, Served):
    def setUp(self):
        super().setUp()
        self.open(self.url)

    def tearDown(self):
        self.clean(self.url)
        super().tearDown()

    def test_looks(self):
        """every view, light and dark, on a phone and on a wide screen: axe-core finds nothing, no scrolling to the side"""
        for view, choices in self.states(f"{self.shared}/program").items():
            with self.subTest(view=view):
                self.show(view, **choices)
                self.check_looks(self.browser.url())

    def tab_to(self, wanted):
        """Presses Tab until something has the focus; returns all that had it."""
        seen = []
        while not seen or not wanted(seen[-1]):
            self.browser.press(key="Tab")
            seen.append(self.browser.evaluate(expression=FOCUSED))
            self.assertNotIn(seen[-1], seen[:-1], "the focus is where it was")
        return seen

    def test_keyboard(self):
        """Tab reaches the content, all views and the filters; keys add a filter, open a view and sort a table"""
        seen = self.tab_to(lambda e: e[1].startswith("Filter"))
        self.assertIn("Skip to the content", str(self.browser.texts(selector="a.skip")))
        self.assertEqual([e[1].partition("?")[0] for e in seen if e[0] == "A" and "?" not in e[1] and e[1] != "#content"][1:],
                         ["#" + v for v in self.views()])
        self.act("press", key="Enter")
        self.tab_to(lambda e: e[0] == "INPUT")
        for key in "cache":
            self.browser.press(key=key)
        self.act("press", key="Enter")
        self.assertEqual(self.choices(), {"function_regex": "cache"})
        self.act("reload")
        self.tab_to(lambda e: e[1].startswith("#libraries"))
        self.act("press", key="Enter")
        self.assertEqual((self.view(), self.choices()), ("libraries", {"function_regex": "cache"}))
        self.assertEqual(self.browser.evaluate(expression=FOCUSED)[0], "H1")
        self.tab_to(lambda e: e[0] == "BUTTON" and e[1].startswith("Allocations"))
        for order in ("descending", "ascending"):
            self.act("press", key="Enter")
            (table,) = self.browser.tables()
            at = table["columns"].index("Allocations")
            self.assertEqual(table["sorts"][at], order)
            self.assertEqual({x for i, x in enumerate(table["sorts"]) if i != at}, {"none"})
            values = [int(row[at]) for row in table["rows"]]
            self.assertEqual(values, sorted(values, reverse=order == "descending"))

    def shown(self):
        return self.browser.url(), self.browser.texts(selector="main")

    def test_skip(self):
        """the first Tab leads to a link that skips the views"""
        self.browser.press(key="Tab")
        self.act("press", key="Enter")
        self.assertEqual(self.browser.evaluate(expression=FOCUSED)[0], "H1")

    def test_links(self):
        """every state is a link: opened anew it shows the same, and Back leads to the one before"""
        states = []
        for view, choices in (("overview", {"over_time": "sites"}), ("threads", {"function_regex": "cache"}),
                              ("sizes", {"sizes_sort": "count", "size_min": "60"}), ("flame", {"cost": "count", "invert": "yes"}),
                              ("groups", {"by": "line", "sort": "leaked_bytes"}), ("allocations", {"page": "2", "sort": "size"})):
            self.show(view, **choices)
            states.append(self.shown())
            self.act("reload")
            self.assertEqual(self.shown(), states[-1])
            self.assertLessEqual(choices.items(), self.choices().items())
        for before in reversed(states[:-1]):
            self.act("back")
            self.assertEqual(self.shown(), before)

    def test_unknown(self):
        """links to what is not there: the overview, or what the server says"""
        self.browser.go(hash="#nothing?cost=wrong")
        self.browser.settle()
        self.assertEqual(self.browser.texts(selector="h1"), ["Overview"])
        self.browser.go(hash="#overview?recording=" + 32 * "0")
        self.browser.settle()
        self.assertEqual(len(self.browser.texts(selector="main [role=alert]")), 1)
        self.assertTrue(all("404" in e for e in self.browser.errors()))
        self.open(self.url)

    def test_server_ended(self):
        """the server has ended: the page says so"""
        server = s.Server(self.files["program"])
        try:
            self.open(server.url)
        finally:
            server.end()
        self.browser.go(hash="#libraries")
        self.browser.settle()
        (text,) = self.browser.texts(selector="main [role=alert]")
        self.assertIn("The server does not answer. Has it ended?", text)
        self.open(self.url)


@needed
class File(Looks):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = s.build(cls.shared, "evil program")
        cls.recording = s.record(cls.program, cls.shared + "/rec.memprof")
        cls.url = f"file://{cls.shared}/page.html"
        subprocess.run([t.MEMPROF, "report", cls.recording, "--html", cls.shared + "/page.html"], check=True,
                       capture_output=True)

    def test_file(self):
        """report --html: each view has its numbers, makes no request, and looks as it should"""
        self.open(self.url)
        self.assertEqual(self.views(), ["overview", "leaks", "flame", "tree", "groups", "libraries", "threads", "sizes"])
        report, growth = self.report(self.recording), s.Server(self.recording)
        try:
            sites = growth.get("/data/last/growth").json()["sites"]
        finally:
            growth.end()
        facts = self.browser.attributes(selector=".fact strong", name="data-value")
        self.assertEqual([int(v) for v in facts],
                         [report["totals"][k] for k in ("leaked_bytes", "peak_bytes", "allocated_bytes", "temporary")])
        for view, column, expected in (
                ("leaks", "Live bytes", [x["leaked_bytes"] for x in sites]),
                ("groups", "Allocated", [g["size"] for g in report["allocation_groups"]]),
                *((v, "Allocated", [x.get("direct", x)["size"] for x in self.report(self.recording, "--view", v)[v]])
                  for v in ("libraries", "threads", "sizes"))):
            self.show(view)
            self.assertEqual(sorted(row[column] for row in self.rows()), sorted(expected), view)
        for view in self.views():
            with self.subTest(view=view):
                self.show(view)
                self.assertEqual(self.browser.texts(selector="[role=alert]"), [])
                self.check_looks(view)
        self.assertEqual(self.browser.requests(), [self.url])
        self.assertEqual(self.browser.errors(), [])


@needed
class Hostile(Pages):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program = f"{cls.shared}/{PROGRAM}"
        subprocess.run(["gcc", "-O1", "-o", program, "-x", "c", "-"], text=True, check=True,
                       input=HOSTILE.replace("NAME", f'"\\"{EVIL}\\""'))
        cls.recording = s.record(program, cls.shared + "/rec.memprof")
        subprocess.run([t.MEMPROF, "report", cls.recording, "--html", cls.shared + "/page.html"], check=True,
                       capture_output=True)
        cls.server = s.Server(cls.recording)
        cls.addClassCleanup(cls.server.end)

    def test_names(self):
        """names of functions and programs that are HTML are shown as text: served, and in a file"""
        for url in (self.server.url + "/", f"file://{self.shared}/page.html"):
            self.open(url)
            for view in self.views():
                self.show(view)
                self.assertEqual(self.browser.evaluate(expression="document.querySelectorAll('main img, main script').length"), 0)
                self.clean(url)
            self.show("groups")
            self.assertIn(EVIL, str(self.browser.texts(selector="table code")))
            self.show("overview")
            self.assertIn(PROGRAM, self.browser.texts(selector="main h2")[0])


if __name__ == "__main__":
    t.main()
