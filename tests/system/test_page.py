#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The numbers of the web page: each view's are those of memprof report for the same recording and filter."""
import collections
import json
import operator
import re

import memprof_test as t
from page_test import Served, needed, number, options_of

COSTS = {"live": "leaked_bytes", "allocated": "size", "peak": "peak_bytes", "count": "allocated_count",
         "temporary": "temporary_count", "mapped": "map_bytes"}
FILTERS = ({}, {"function_regex": "open_session|Command|handle_request"}, {"from": "30%", "to": "70%"}, {"size_min": "64"})
# What the flame graph draws: names and values along the path from the root to each frame.
FRAMES = """[...document.querySelectorAll(".flame g.frame")].map(({ __data__: d }) => {
  const path = [];
  for (let n = d; n.parent; n = n.parent) path.unshift(n.data.name);
  return [path, d.data.value];
})"""

# Level, value, own value and name of each row of the call tree.
BRANCHES = """[...document.querySelectorAll("tr[aria-level]")].map(row => {
  const [value, own] = row.querySelectorAll("[data-value]");
  return [Number(row.ariaLevel), Number(value.dataset.value), Number(own.dataset.value), row.querySelector("code").textContent];
})"""
# The row that has the focus.
CURRENT = """(() => {
  const row = document.activeElement;
  return { index: row.rowIndex, expanded: row.getAttribute("aria-expanded") };
})()"""


def of(title, key):
    """A column that shows a member of the answer."""
    return {title: lambda row: row[key]}


# The columns of libraries, threads and sizes.
SUMS = {**of("Live at the end", "leaked_size"), **of("Live blocks", "leaked_count"), **of("Allocated", "size"),
        **of("Allocations", "allocated_count"), **of("Temporary", "temporary_count")}
# The columns of stacks.
STACK_SUMS = {"Allocated": "size", "Allocations": "allocated_count", "Live": "leaked_bytes", "Live blocks": "leaked_count",
              "At the peak": "peak_bytes", "Blocks at the peak": "peak_count", "Temporary": "temporary_count",
              "Freed": "freed_count", "Usable": "usable_size", "Uncertain": "uncertain_count", "Mappings": "maps",
              "Mapped": "map_bytes"}


def tree(groups, cost, fold=True, invert=False):
    """The sum of each path of functions from the root."""
    sums = collections.Counter()
    for g in groups:
        frames = [f for f in g["backtrace"] if not (fold and f.get("folded"))]
        names = [f.get("function") or f"{f['library']} {f['address_s']}" if f.get("library") else f["address_s"]
                 for f in (reversed(frames) if invert else frames)]
        for depth in range(len(names) + 1):
            sums[tuple(names[:depth])] += g[COSTS[cost]]
    return {path: value for path, value in sums.items() if value}


@needed
class Numbers(Served):
    def setUp(self):
        super().setUp()
        self.open(self.url)

    def tearDown(self):
        self.clean(self.url)
        super().tearDown()

    def each(self, filters=FILTERS):
        """Every recording with every filter."""
        return ((name, f) for name in self.files for f in filters)

    def values(self, selector):
        return [int(v) for v in self.browser.attributes(selector=selector, name="data-value")]

    def check_overview(self, report, growth):
        totals = report["totals"]
        self.assertEqual(self.values(".fact strong"),
                         [totals[k] for k in ("leaked_bytes", "peak_bytes", "allocated_bytes", "temporary")], self.browser.url())
        live = sorted((x["leaked_bytes"] for x in report["sites"] if x["leaked_bytes"]), reverse=True)
        growing = [x["growth_bytes"] for x in growth["sites"] if x["growth_bytes"] > 0]
        self.assertEqual(self.values(".sites strong"), growing[:5] + live[:5])

    def test_overview(self):
        """overview: the sums of the report, the sites that grew most, those with most live bytes"""
        for name, filters in self.each():
            self.show("overview", filters, name)
            self.check_overview(self.filtered(filters, name), self.ask("growth", filters, name))

    def test_brush(self):
        """dragging over memory over time: the filters from and to, and the numbers of that time"""
        self.show("overview")
        whole = self.values(".fact strong")
        self.act("drag", selector=".plot .u-over", **{"from": 0.3, "to": 0.6})
        chosen = self.choices()
        self.assertEqual(set(chosen), {"recording", "from", "to"})
        filters = {k: chosen[k] for k in ("from", "to")}
        self.assertLess(*(int(re.fullmatch(r"(\d+)ms", v)[1]) for v in (filters["from"], filters["to"])))
        self.check_overview(self.filtered(filters), self.ask("growth", filters))
        self.assertNotEqual(self.values(".fact strong"), whole)
        self.act("back")
        self.assertEqual(self.values(".fact strong"), whole)

    def test_form(self):
        """filters of the form: chips, the numbers with all of them, one that can be given again, and without any"""
        self.show("overview")
        whole = self.values(".fact strong")
        for name, value in (("function_regex", "cache|brief"), ("size_min", "60"), ("thread", "program")):
            self.act("click", selector=".filters > button")
            self.browser.select(selector=".adding select", value=name)
            self.browser.fill(selector=".adding input", value=value)
            self.act("press", key="Enter")
        filters = {"function_regex": "cache|brief", "size_min": "60", "thread": "program"}
        self.assertEqual(self.choices(), {"recording": self.ids["program"], **filters})
        self.check_overview(self.filtered(filters), self.ask("growth", filters))
        self.act("click", selector="button[aria-label='Remove the filter size min 60']")
        del filters["size_min"]
        self.check_overview(self.filtered(filters), self.ask("growth", filters))
        self.act("click", selector=".filters > button:last-of-type")
        self.assertEqual(self.choices(), {"recording": self.ids["program"]})
        self.assertEqual(self.values(".fact strong"), whole)

    def test_refused(self):
        """a filter that the server refuses: its reason"""
        self.show("overview", {"function_regex": "("})
        (text,) = self.browser.texts(selector="[role=alert]")
        self.assertIn("function_regex", text)
        self.assertIn("400", *self.browser.errors())
        self.open(self.url)

    def check_frames(self, expected):
        """The frames that are drawn have the sums of the report; those that are wide enough are drawn."""
        drawn = {tuple(path): value for path, value in self.browser.evaluate(expression=FRAMES)}
        self.assertEqual(drawn, {path: expected.get(path) for path in drawn})
        wide = {path for path, value in expected.items() if value > expected[()] / 400}
        self.assertEqual(wide - set(drawn), set(), self.browser.url())

    def test_flame(self):
        """flame graph: each frame's sum, for each cost, inverted, and with all frames"""
        for name, filters in self.each(FILTERS[:2]):
            groups = self.filtered(filters, name)["allocation_groups"]
            for cost in COSTS if not filters else ("live",):
                self.show("flame", filters, name, cost=cost)
                expected = tree(groups, cost)
                if not expected:
                    self.assertEqual(len(self.browser.texts(selector=".empty")), 1)
                    continue
                self.check_frames(expected)
                folded = self.memprof("report", self.files[name], "--collapsed", "--cost", cost,
                                      *options_of(filters)).stdout.splitlines()
                self.assertEqual(expected[()], sum(int(line.rpartition(" ")[2]) for line in folded))
            self.show("flame", filters, name, invert="yes")
            self.check_frames(tree(groups, "live", invert=True))
            self.show("flame", filters, name, fold="no", form="flame")
            self.check_frames(tree(groups, "live", fold=False))

    def check_rows(self, columns, expected, caption=None):
        """The table has a row for each of @expected; without any there is no table, but a text that says so.
        @columns: by title, what it shows of a row."""
        if not expected:
            self.assertEqual((self.browser.tables(), len(self.browser.texts(selector=".empty"))), ([], 1), self.browser.url())
            return
        found = [tuple(row[title] for title in columns) for row in self.rows(caption)]
        self.assertEqual(sorted(found), sorted(tuple(of(e) for of in columns.values()) for e in expected),
                         self.browser.url())

    def test_leaks(self):
        """leaks: what growth says, by line, function, library, class and stack, and only what has a shape"""
        columns = {"Site": lambda g: g.get("class") or g.get("function") or g.get("library") or "unknown",
                   "Growth/min": lambda g: g["growth_bytes"] if g["growth_per_minute"] is None else g["growth_per_minute"],
                   **of("Live bytes", "leaked_bytes"), **of("Blocks", "leaked_count"), **of("Allocated", "size")}
        for name, filters in self.each():
            self.show("leaks", filters, name)
            self.check_rows(columns, self.ask("growth", filters, name)["sites"])
        for by in ("function", "library", "class", "stack"):
            self.show("leaks", growth_by=by)
            self.check_rows(columns, self.ask("growth", group_by=by)["sites"])
        # Which shapes the sites have depends on how long the machine took for the work.
        sites = self.ask("growth")["sites"]
        for shape in ("growing", "plateau", "burst", "sawtooth"):
            self.show("leaks", growth_shape=shape)
            expected = [g for g in sites if g["shape"] == shape]
            if expected:
                self.check_rows(columns, expected)
            else:
                self.assertEqual(self.browser.tables(), [])
                self.assertEqual(self.browser.texts(selector=".empty"), ["No site matches."])

    def test_libraries(self):
        """libraries: what --view libraries says, of their own code and of all that has them in its stack"""
        for name, filters in self.each():
            expected = self.listed("libraries", filters, name)["libraries"]
            for part in ("direct", "anywhere"):
                self.show("libraries", filters, name, library_part=part)
                self.check_rows({"Library": lambda x: x["library"] or "", **SUMS, **of("At the peak", "peak_size")},
                                [{"library": x["library"], **x[part]} for x in expected])

    def test_threads(self):
        """threads: what --view threads says"""
        for name, filters in self.each():
            self.show("threads", filters, name)
            self.check_rows({"Thread": lambda x: x["name"] or "", **SUMS, **of("Id", "thread"), **of("Frees", "frees")},
                            self.listed("threads", filters, name)["threads"])

    def test_sizes(self):
        """sizes: what --view sizes says"""
        for name, filters in self.each():
            self.show("sizes", filters, name)
            self.check_rows({**SUMS, **of("Size", "size_min")}, self.listed("sizes", filters, name)["sizes"])

    def test_nothing(self):
        """no allocation passes the filter: lists without a row have a text instead"""
        for view in ("leaks", "sizes", "groups"):
            self.show(view, {"size_min": "1000000000000"})
            self.check_rows({}, [])

    def check_tree(self, expected, parents):
        """The rows of the call tree have the sums of the report; those of @parents have all their children."""
        path, shown = [], {}
        for level, value, own, name in self.browser.evaluate(expression=BRANCHES):
            path[level - 1:] = [name]
            shown[tuple(path[1:])] = value
            below = sum(v for p, v in expected.items() if len(p) == level and p[:-1] == tuple(path[1:]))
            self.assertEqual((value, own), (expected[tuple(path[1:])], value - below), path)
        for parent in parents:
            children = {p for p in expected if p and p[:-1] == parent}
            self.assertEqual(children - set(shown), set())
        return shown

    def test_tree(self):
        """call tree: sums of each branch, its children and what it allocates itself; keys open all branches"""
        for name, filters in self.each(FILTERS[:2]):
            groups = self.filtered(filters, name)["allocation_groups"]
            for choices in ({"cost": "allocated"}, {"cost": "count", "invert": "yes"}, {"cost": "allocated", "fold": "no"}):
                self.show("tree", filters, name, **choices)
                expected = tree(groups, choices["cost"], choices.get("fold") != "no", "invert" in choices)
                self.check_tree(expected, [()])
        filters = {"function_regex": "open_session"}
        self.show("tree", filters)
        self.browser.focus(selector="tr[aria-level='1']")
        expected = tree(self.filtered(filters)["allocation_groups"], "live")
        self.act("press", key="Home")
        while True:
            before = self.browser.evaluate(expression=CURRENT)
            self.act("press", key="ArrowRight" if before["expanded"] == "false" else "ArrowDown")
            if before["expanded"] != "false" and self.browser.evaluate(expression=CURRENT) == before:
                break
        self.assertEqual(self.check_tree(expected, expected), expected)
        self.act("press", key="Home")
        self.act("press", key="ArrowLeft")
        self.assertEqual(self.check_tree(expected, []), {(): expected[()]})

    def test_stacks(self):
        """Stacks: each stack of the report with every sum; the rows of a line have the sums of its site"""
        for name, filters in self.each():
            report = self.filtered(filters, name)
            self.show("groups", filters, name, columns=",".join(STACK_SUMS.values()))
            self.check_rows({title: operator.itemgetter(key) for title, key in STACK_SUMS.items()},
                            report["allocation_groups"])
            self.show("groups", filters, name, by="line", columns="size,leaked_bytes")
            self.check_rows({**of("Allocated", "size"), **of("Live", "leaked_bytes")}, report["sites"])

    def test_allocations(self):
        """allocations: all of --view allocations, page by page, in each order"""
        for name, filters in self.each(({}, {"size_min": "64"})):
            for choices, order in (({}, ()), ({"sort": "size"}, ("--sort-by", "size", "--order", "dsc"))):
                expected = self.listed("allocations", filters, name, "--count", "all", *order)["allocations"]
                last = -(-len(expected) // 100)
                for page in sorted({1, min(2, last), last}):
                    self.show("allocations", filters, name, **choices, page=page)
                    part = expected[100 * (page - 1):100 * page]
                    rows = self.rows()
                    self.assertEqual([(r["Size"], r["Address"], r["Thread"], r["Unused"]) for r in rows],
                                     [(a["size"], number(a["address_s"]), a["thread"], a["extra_space"]) for a in part],
                                     self.browser.url())

    def test_diff(self):
        """compare: what memprof diff says of two moments, and of two recordings"""
        for choices, argv in (({"at": "30%", "with_at": "80%"}, [self.files["program"], "--at", "30%", "--at", "80%"]),
                              ({"with": self.ids["redis"]}, [self.files["program"], self.files["redis"]])):
            self.show("diff", **choices)
            expected = json.loads(self.memprof("diff", *argv, "--json").stdout)
            self.check_rows({**of("Change", "change"), **of("Before", "before"), **of("After", "after")}, expected["groups"],
                            "Stacks by their change")
            (sums,) = [x["rows"] for x in self.browser.tables() if x["caption"] == "Sums before and after"]
            before, after = expected["before"]["cost"], expected["after"]["cost"]
            self.assertEqual([int(row[1]) for row in sums], [before, after, after - before])


if __name__ == "__main__":
    t.main()
