#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Graphs in a browser: on a phone, in dark mode, their search, their order, their address."""
import json
import os
import re
import subprocess
import unittest
import urllib.parse
import xml.etree.ElementTree as xml

import memprof_test as t

SVG, XHTML = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xhtml}"

# Frames in bytes and in numbers have different orders: few large blocks, many small ones.
PROGRAM = """
#include <stdlib.h>
#define KEPT __attribute__((noipa))
KEPT void *large(void) { return malloc(70000); }
KEPT void *some(void) { return malloc(500); }
KEPT void *many(void) { return malloc(20); }
KEPT void middle(int i) { i % 2 ? some() : many(); }
int main(void)
{
	for (int i = 0; i < 4; i++) large();
	for (int i = 0; i < 300; i++) middle(i);
	for (int i = 0; i < 1000; i++) many();
}
"""

# Writes what the styles make of the elements into an attribute of the document.
COLOURS = """
const of = (e, what) => getComputedStyle(e)[what];
const shown = [...document.querySelectorAll(".f")].filter(f => f.style.display !== "none");
document.documentElement.setAttribute("data-found", JSON.stringify({
  frames: shown.map(f => [of(f.children[2], "fill"), of(f.children[1], "fill")]),
  page: ["h1", "p", "button", "#info"].map(e => [of(document.querySelector(e), "color"), of(document.querySelector("#page"), "fill")]),
  brightness: parseFloat(of(document.querySelector("#frames"), "filter").replace("brightness(", "")) || 1,
  size: shown.map(f => parseFloat(of(f.children[2], "fontSize")) * f.children[2].getScreenCTM().a),
}));
"""

# Chromium's windows are not narrower than 500 pixels.
RESIZE = """
document.documentElement.setAttribute("width", WIDTH);
dispatchEvent(new Event("resize"));
"""

# Types into the graph, then tells what the search field has and where the focus is.
KEYS = """
const press = key => (document.activeElement ?? document.documentElement).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const field = document.querySelector("input"), found = [];
const tell = () => found.push([document.activeElement === field, field.value, document.querySelector("#matched").textContent]);
const type = text => { field.value = text; field.dispatchEvent(new Event("input")); };
const steps = [() => press("/"), tell, () => type("many"), tell, () => press("Enter"), tell, () => press("/"),
  () => type("("), tell, () => press("Escape"), tell];
const step = () => { const s = steps.shift(); if (!s) { document.documentElement.setAttribute("data-found", JSON.stringify(found)); return; }
  s(); setTimeout(step, 50); };
step();
"""


# Where the texts of a plot are, and their colours.
PLACES = """
document.documentElement.setAttribute("data-found", JSON.stringify([...document.querySelectorAll("text")].map(e => {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  return [e.textContent, box.left, box.right, parseFloat(style.fontSize), style.fill, getComputedStyle(document.querySelector("#page")).fill];
})));
"""


def contrast(a, b, brightness=1):
    """as WCAG 2.1 defines it, of two colours as rgb(...)"""
    def light(colour):
        parts = [int(x) * brightness / 255 for x in re.findall(r"\d+", colour)[:3]]
        r, g, b = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    dark, bright = sorted((light(a), light(b)))
    return (bright + 0.05) / (dark + 0.05)


class Frame:
    def __init__(self, g):
        title, rect, text = list(g)
        self.title, self.label = title.text, text.text or ""
        self.name = title.text.split(" ")[0]
        self.x, self.y, self.width, self.height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        self.hit, self.above = ("hit" in g.get("class").split(), "above" in g.get("class").split())


@unittest.skipUnless(os.path.exists("/usr/bin/chromium") or os.environ.get("CI"),
                     "package chromium is not installed (scripts/setup check)")
class Graph(t.Case):
    def setUp(self):
        super().setUp()
        source, program = self.path("p.c"), self.path("p")
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
        self.recording = self.path("r.memprof")
        self.memprof("run", "-q", "-o", self.recording, "--", program)
        self.svg = self.path("f.svg")
        self.memprof("report", self.recording, "--flamegraph", self.svg)

    def browse(self, svg, script="", dark=False, **state):
        """Opens a graph in chromium.  Return: the document after its script, and the script here, ran."""
        shown = self.path("shown.svg")
        text = t.read(svg).decode()
        with open(shown, "w") as f:
            f.write(text.replace("</svg>\n", f"<script><![CDATA[\n{script}]]></script></svg>\n") if script else text)
        r = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
                            f"--user-data-dir={self.dir}/chromium", "--window-size=1200,800", "--virtual-time-budget=3000",
                            f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom",
                            f"file://{shown}#{urllib.parse.urlencode(state)}"], text=True, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        return xml.fromstring(r.stdout)

    def found(self, *args, **options):
        return json.loads(self.browse(*args, **options).get("data-found"))

    def frames(self, document):
        return [Frame(g) for g in document.iter(SVG + "g")
                if g.get("class", "").split()[:1] == ["f"] and "none" not in g.get("style", "")]

    def element(self, document, name):
        return next(e for e in document.iter() if e.get("id") == name)

    def test_narrow(self):
        """at the width of a phone the frames fill the window, text is not scaled, and rows can be touched"""
        for width in (390, 2560):
            resize = RESIZE.replace("WIDTH", str(width))
            document = self.browse(self.svg, resize)
            self.assertIsNone(document.get("viewBox"))
            frames = self.frames(document)
            self.assertEqual(frames[0].name, "all")
            self.assertAlmostEqual(frames[0].width, width, delta=1)
            for f in frames:
                self.assertGreaterEqual(f.x, 0)
                self.assertLessEqual(f.x + f.width, width)
                self.assertGreaterEqual(f.height, 17)
                self.assertLessEqual(6 * len(f.label), f.width, f.title)
            self.assertIn("memprof: allocated bytes", self.element(document, "frames").get("aria-label"))
            self.assertGreaterEqual(min(self.found(self.svg, resize + COLOURS)["size"]), 11)

    def test_contrast(self):
        """text can be read on frames and beside them, in light and in dark mode, zoomed, found, and in a diff"""
        diff = self.path("d.svg")
        self.memprof("diff", self.recording, self.recording, "--flamegraph", diff)
        pages = set()
        for svg in (self.svg, diff):
            for dark in (False, True):
                for state in ({}, {"zoom": 3, "search": "many|large"}):
                    colours = self.found(svg, COLOURS, dark, **state)
                    self.assertGreater(len(colours["frames"]), 4)
                    for text, behind in colours["frames"]:
                        self.assertGreater(contrast(text, behind, colours["brightness"]), 4.5, (text, behind, dark))
                    for text, behind in colours["page"]:
                        self.assertGreater(contrast(text, behind), 4.5, (text, behind, dark))
                    pages.add((dark, colours["page"][0][1]))
        self.assertEqual(len(pages), 2, pages)

    def test_order(self):
        """frames of one caller are ordered by width, heaviest left, or by name; a link can name both"""
        orders = set()
        for widths in ("bytes", "numbers"):
            for order in ("heaviest", "name"):
                document = self.browse(self.svg, widths=widths, order=order)
                self.assertEqual(self.element(document, "widths").text, f"widths: {widths}")
                below = next(f for f in self.frames(document) if f.name == "main")
                row = sorted((f for f in self.frames(document) if f.y == below.y - 18), key=lambda f: f.x)
                self.assertEqual(len(row), 3)
                self.assertEqual(row[0].x, below.x)
                if order == "heaviest":
                    self.assertEqual([f.width for f in row], sorted((f.width for f in row), reverse=True))
                else:
                    self.assertEqual([f.name for f in row], ["large", "many", "middle"])
                orders.add(tuple(f.name for f in row))
        self.assertEqual(len(orders), 3)
        usual = self.frames(self.browse(self.svg))
        self.assertEqual([(f.name, f.x) for f in usual],
                         [(f.name, f.x) for f in self.frames(self.browse(self.svg, order="heaviest"))])

    def test_search(self):
        """the share of the matching frames is the true one, by bytes and by numbers; none is counted twice"""
        with open(self.path("j"), "w") as out:
            subprocess.run([t.MEMPROF, "report", self.recording, "--json"], stdout=out, check=True)
        with open(self.path("j")) as f:
            groups = json.load(f)["allocation_groups"]
        for pattern in ("many", "middle|some|malloc", "^large", "nothing"):
            for widths, key in (("bytes", "size"), ("numbers", "allocated_count")):
                true = sum(g[key] for g in groups if any(re.search(pattern, x["function"]) for x in g["backtrace"]))
                true = 100 * true / sum(g[key] for g in groups)
                document = self.browse(self.svg, search=pattern, widths=widths)
                self.assertEqual(self.element(document, "matched").text, f"matched: {true:.1f}%", (pattern, widths))
                self.assertEqual({f.title for f in self.frames(document) if f.hit},
                                 {f.title for f in self.frames(document) if re.search(pattern, f.title)})

    def test_nothing(self):
        """a graph of nothing shows its title and its root"""
        self.memprof("report", self.recording, "--thread", "nosuch", "--flamegraph", self.svg)
        document = self.browse(self.svg, search="main")
        self.assertEqual([f.label for f in self.frames(document)], ["all"])
        self.assertEqual(next(document.iter(XHTML + "h1")).text, "memprof: allocated bytes, 0 B in 0 allocations")
        self.assertEqual(self.element(document, "matched").text, "matched: 0.0%")

    def test_keys(self):
        """/ focuses the search field, Enter keeps its text, Escape clears it; an invalid expression is reported beside it"""
        self.assertNotRegex(t.read(self.svg).decode(), r"\b(prompt|alert|confirm)\(")
        found = self.found(self.svg, KEYS)
        self.assertEqual([x[:2] for x in found], [[True, ""], [True, "many"], [False, "many"], [True, "("], [False, ""]])
        self.assertRegex(found[1][2], r"^matched: \d")
        self.assertEqual(found[2][2], found[1][2])
        self.assertIn("Unterminated group", found[3][2])
        self.assertEqual(found[4][2], "")

    def test_zoom(self):
        """a link can name the frame that fills the window: its callers are marked, other frames are not there"""
        frames = self.frames(self.browse(self.svg))
        names = [Frame(g).name for g in xml.parse(self.svg).getroot().iter(SVG + "g") if g.get("class") == "f"]
        document = self.browse(self.svg, zoom=names.index("middle"))
        zoomed = {f.name: f for f in self.frames(document)}
        self.assertAlmostEqual(zoomed["middle"].width, frames[0].width, 3)
        self.assertTrue(zoomed["main"].above and zoomed["all"].above)
        self.assertFalse(zoomed["some"].above)
        self.assertNotIn("large", zoomed)
        self.assertIn("middle ", self.element(document, "info").text)

    def test_plot(self):
        """a plot fits the width of a phone, in light and in dark mode, with text of the usual size"""
        plot, name = self.path("plot.svg"), self.path("p" * 60)
        os.rename(self.path("p"), name)
        self.memprof("run", "-q", "-o", self.recording, "--", name)
        self.memprof("report", self.recording, "--plot", plot)
        seen = set()
        for width, dark in ((390, False), (390, True), (2560, False)):
            found = self.found(plot, RESIZE.replace("WIDTH", str(width)) + PLACES, dark)
            self.assertEqual({size for _, _, _, size, _, _ in found}, {12, 15})
            for text, left, right, _, colour, page in found:
                self.assertTrue(0 <= left < right <= width, (text, left, right))
                self.assertGreater(contrast(colour, page), 4.5)
            self.assertEqual(found[0][0].endswith(".."), width == 390)
            seen.add(found[0][5])
        self.assertEqual(len(seen), 2)

    def test_marks(self):
        """the name of a mark is within the page wherever its time is, and cut if it is longer than the page is wide"""
        plot, program = self.path("plot.svg"), self.path("marks")
        with open(program, "w") as f:
            f.write(f"#!/bin/sh\nfor at in 1 2 3 4; do sleep 0.3; {t.MEMPROF} mark -p $$ \"$at {'m' * 26}\"; done\n"
                    f"{t.MEMPROF} mark -p $$ \"5 {'m' * 60}\"\nsleep 0.3\n")
        os.chmod(program, 0o755)
        self.memprof("run", "-q", "-o", self.recording, "--", program)
        self.memprof("report", self.recording, "--plot", plot)
        found = self.found(plot, RESIZE.replace("WIDTH", "390") + PLACES)
        marks = [f for f in found if re.match(r"\d m", f[0])]
        self.assertEqual([f[0].endswith("..") for f in marks], [False] * 4 + [True])
        for text, left, right, *_ in marks:
            self.assertTrue(0 <= left < right <= 390, (text, left, right))


if __name__ == "__main__":
    t.main()
