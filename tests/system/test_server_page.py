#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof server: the page for browsers, the same page as a file with the data of a recording, and what it shows at once."""
import base64
import gzip
import json
import os
import re
import shutil
import subprocess

import memprof_test as t
import server_test as s

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PLACE = "<!--memprof-data-->"
DATA = re.compile(r'<script id="memprof-data" type="text/plain">([A-Za-z0-9+/]*=*)</script>')
FILTERS = ((), (("size_min", 100), ("lifetime", "only_leaked")))
ANSWERS = ("report", "growth", "libraries", "threads", "sizes")


class Page(s.Case):
    def setUp(self):
        super().setUp()
        self.has_page = s.has_page(self.server)

    def test_page(self):
        """/ is the page for browsers, and text for everything else; HEAD is the same without a body"""
        for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
            a = self.get("/", headers=headers)
            self.assertEqual(a.headers["Content-Type"], "text/plain; charset=utf-8")
            self.assertIn("serves these recordings", a.text)
        a = self.get("/", headers=BROWSER)
        if not self.has_page:
            self.assertIn("serves these recordings", a.text)
            return
        self.assertEqual(a.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(a.text.count(PLACE), 1)
        head = self.get("/", headers=BROWSER, method="HEAD")
        self.assertEqual((head.body, head.headers["Content-Length"]), (b"", str(len(a.body))))
        for x in (a, head):
            self.assertEqual(x.headers["Content-Security-Policy"], "frame-ancestors 'none'")
            self.assertEqual((x.headers["Cache-Control"], x.headers["X-Content-Type-Options"]), ("no-store", "nosniff"))

    def test_rules(self):
        """the page needs the token, the right name and method like every other answer; other endpoints do not turn into it"""
        self.assertIn("GET", self.get("/", headers=BROWSER, method="POST", status=405).headers["Allow"])
        self.get("/", headers={**BROWSER, "Host": "evil.example"}, status=421)
        self.get("/", headers={**BROWSER, "Origin": "http://evil.example"}, status=403)
        self.get("/", (("frobnicate", 1),), headers=BROWSER, status=400)
        self.get("/nothing", headers=BROWSER, status=404)
        self.assertEqual(self.get("/list", headers=BROWSER).headers["Content-Type"], "application/json")
        server = s.Server(*self.recordings, "--token")
        try:
            for path in ("/", "/?token=" + "0" * 32):
                a = server.get(path, headers=BROWSER)
                self.assertEqual((a.status, a.headers["WWW-Authenticate"]), (401, "Bearer"))
            cookie = server.get(f"/?token={server.token}", headers=BROWSER).headers["Set-Cookie"].split(";")[0]
            a = server.get("/", headers={**BROWSER, "Cookie": cookie})
            self.assertEqual((a.status, server.token in a.text), (200, False))
            self.assertEqual(a.body, self.get("/", headers=BROWSER).body)
        finally:
            server.end()

    def test_file(self):
        """export/html is the page with what report, growth, libraries, threads and sizes answer, also with filters"""
        if not self.has_page:
            self.assertIn("without npm", self.data("export/html", status=501).text)
            return
        page = self.get("/", headers=BROWSER).text
        for filters in FILTERS:
            a = self.data("export/html/shop.html", filters)
            self.assertEqual(a.headers["Content-Type"], "text/html; charset=utf-8")
            # If a browser shows it nevertheless, its script can do nothing as a part of the server's site.
            self.assertEqual(a.headers["Content-Disposition"], "attachment")
            self.assertIn("sandbox allow-scripts;", a.headers["Content-Security-Policy"])
            self.assertNotIn("allow-same-origin", a.headers["Content-Security-Policy"])
            (data,) = DATA.findall(a.text)
            self.assertEqual(DATA.sub(PLACE, a.text), page)
            text = gzip.decompress(base64.b64decode(data, validate=True)).decode()
            got = json.loads(text)
            self.assertEqual((got["version"], tuple(got["answers"])), (1, ANSWERS))
            for name in ANSWERS:
                answer = self.data(name, filters)
                self.assertEqual(got["answers"][name], answer.json(), name)
                self.assertIn(answer.text.strip(), text)
            self.assertEqual(got["answers"]["report"]["all"] is not None, bool(filters))

    def test_command(self):
        """report --html writes the same file, compressed if its name says so"""
        out = self.path("shop.html")
        if not self.has_page:
            with open(out, "w") as f:
                f.write("before")
            self.assertIn("without npm", self.memprof("report", self.recording, "--html", out, status=2).stderr)
            self.assertEqual(t.read(out), b"before")
            return
        for filters, options in zip(FILTERS, ((), ("--size-min", "100", "--lifetime", "only_leaked"))):
            r = self.memprof("report", self.recording, "--html", out, *options)
            self.assertEqual(t.read(out), self.data("export/html", filters).body)
            self.assertEqual(r.stderr, "")
        self.assertEqual(os.stat(out).st_mode & 0o777, 0o600)
        self.memprof("report", self.recording, "--html", out + ".gz", *options)
        self.assertEqual(gzip.decompress(t.read(out + ".gz")), t.read(out))
        self.assertIn("cannot write", self.memprof("report", self.recording, "--html", "/dev/full", status=14).stderr)
        self.assertIn("--html", self.memprof("report", self.recording, "--html", status=2).stderr)

    def test_quick(self):
        """quick says the same as report of what is live, from the index; null without an index"""
        quick, report = self.data("quick").json(), self.data("report").json()
        for key in ("id", "pid", "runtime", "end_reason", "losses", "thinning", "group_by"):
            self.assertEqual(quick[key], report[key], key)
        for key, value in quick["totals"].items():
            if key != "peak_has_culled":
                self.assertEqual(value, report["totals"][key], key)
        keys = ("function", "library", "source", "line", "leaked_count", "leaked_bytes")
        want = {tuple(x[k] for k in keys) for x in report["sites"] if x["leaked_bytes"]}
        self.assertEqual({tuple(x[k] for k in keys) for x in quick["sites"]}, want)
        self.assertEqual(len(quick["sites"]), len(want))
        live = [x["leaked_bytes"] for x in quick["sites"]]
        self.assertEqual(live, sorted(live, reverse=True))
        self.assertIn("open_session", {x["function"].split("(")[0] for x in quick["sites"]})
        cut = self.path("cut.memprof")
        shutil.copy(self.recording, cut)
        os.truncate(cut, t.read(cut).index(b"MPCK\4\0\0\0"))  # the index (src/formats/FORMAT.md)
        server = s.Server(cut)
        try:
            self.assertIsNone(server.get("/data/last/quick").json())
            os.unlink(cut)
            self.assertGreaterEqual(server.get("/data/last/quick").status, 400)
        finally:
            server.end()

    def test_list(self):
        """a recording that has ended is not in progress"""
        self.assertEqual([r["in_progress"] for r in self.get("/list").json()], [False])


class Faults(s.Case):
    @classmethod
    def record_all(cls):
        cls.recording = cls.shared + "/faults.memprof"
        subprocess.run([t.MEMPROF, "run", "-q", "--event=page-faults", "-o", cls.recording, "--", s.build(cls.shared)],
                       check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return [cls.recording]

    def test_refused(self):
        """a recording of page faults has no such file, and nothing quick"""
        self.assertIsNone(self.data("quick").json())
        self.assertIn("page faults", self.data("export/html", status=400).text)
        out = self.path("out.html")
        r = self.memprof("report", self.recording, "--html", out, status=2)
        self.assertIn("page faults" if s.has_page(self.server) else "without npm", r.stderr)
        self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    t.main()
