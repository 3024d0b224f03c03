#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the web page is built (scripts/build-page), and what memprof does that was built without it."""
import base64
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest
import urllib.request

import memprof_test as t

PAGE = t.ROOT + "/build/web/index.html"
BUILD = t.ROOT + "/build"


def build(page, **env):
    return subprocess.run([t.ROOT + "/scripts/build-page", page], text=True, capture_output=True, timeout=600,
                          env={**os.environ, **env})


@unittest.skipUnless(os.path.getsize(PAGE) or os.environ.get("CI"), "npm could not fetch what the page needs")
class Build(t.Case):
    def test_same_bytes(self):
        """another build of the page gives the bytes that are in memprof"""
        r = build(self.path("index.html"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertTrue(t.read(self.path("index.html")) == t.read(PAGE), "the bytes differ")
        self.assertTrue(t.read(PAGE) in t.read(t.MEMPROF), "memprof contains another page")

    def test_alone(self):
        """the page contains all that it needs, and may run only its own script"""
        page = t.read(PAGE).decode()
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.S)
        self.assertEqual(len(scripts), 1)
        self.assertNotIn("src=", scripts[0][0])
        digest = base64.b64encode(hashlib.sha256(scripts[0][1].encode()).digest()).decode()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
        self.assertIn(f"script-src 'sha256-{digest}';", policy)
        self.assertIn("default-src 'none';", policy)
        self.assertNotRegex(page, r'<link[^>]*href="(?!data:)')
        self.assertEqual(page.count("<!--memprof-data-->"), 1)

    def test_licences(self):
        """the page names the packages that it consists of, with their licences, as the list for the SBOM does"""
        page = t.read(PAGE).decode()
        listed = json.loads(t.read(os.path.dirname(PAGE) + "/packages.json"))
        self.assertLessEqual({"preact", "@preact/signals", "uplot", "d3-flame-graph"}, {p["name"] for p in listed})
        for p in listed:
            self.assertTrue(f"\n{p['name']} {p['version']} ({p['license']})\n" in page, p)
        self.assertRegex(page[page.index("This page contains:"):][:20000], "Permission is hereby granted, free of charge")


class NoNpm(t.Case):
    def test_without_npm(self):
        """without npm the page is an empty file, which stays as it is, and build-page says so"""
        tools = self.path("bin")
        os.mkdir(tools)
        for name in ("sh", "realpath", "dirname", "mkdir"):
            os.symlink(shutil.which(name), f"{tools}/{name}")
        page = self.path("index.html")
        for _ in range(2):
            r = build(page, PATH=tools)
            self.assertEqual((r.returncode, r.stderr),
                             (0, "build-page: npm is not installed: memprof is built without its web page\n"))
            self.assertEqual(t.read(page), b"")
            self.assertEqual(t.read(self.path("packages.json")), b"[]\n")
            os.utime(page, (1, 1), follow_symlinks=False)
        self.assertEqual(os.stat(page).st_mtime, 1)


class Without(t.Case):
    """memprof, linked without the page."""

    def setUp(self):
        super().setUp()
        open(self.path("index.html"), "w").close()
        subprocess.run(["cc", f"-Wa,-I{self.dir}", "-c", "-o", self.path("page_file.o"), "src/export/page_file.S"], check=True,
                       cwd=t.ROOT)
        shutil.copy(BUILD + "/export.a", self.path("export.a"))
        subprocess.run(["ar", "r", self.path("export.a"), self.path("page_file.o")], check=True, capture_output=True)
        steps = subprocess.run(["make", "-n", "-W", "build/agent_blob.o", "build/memprof"], check=True, text=True,
                               capture_output=True, cwd=t.ROOT, env=t.environment_without_make()).stdout
        link, = (line for line in steps.splitlines() if " -o build/memprof " in line)
        words = shlex.split(link.partition(" >")[0])
        changed = {"build/memprof": self.path("memprof"), "build/export.a": self.path("export.a")}
        subprocess.run([changed.get(w, w) for w in words], check=True, capture_output=True, cwd=t.ROOT)

    def test_refusal(self):
        """report --html says why there is no page, and leaves the output file alone; the server's / is text"""
        recording, out = self.record(self.victim("leaky").pid), self.path("a.html")
        with open(out, "w") as f:
            f.write("before")
        r = subprocess.run([self.path("memprof"), "report", recording, "--html", out], text=True, capture_output=True)
        self.assertEqual(r.returncode, 2)
        self.assertIn("was built without npm", r.stderr)
        self.assertEqual(t.read(out), b"before")
        server = self.start(self.path("memprof"), "server", "--port", "0", recording)
        url = re.search("http://.*/", server.stdout.readline())[0]
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"}), timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")


if __name__ == "__main__":
    t.main()
