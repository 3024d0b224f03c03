#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The web page of a recording in progress: its numbers move, it controls the recorder, and finds leaks."""
import os

import memprof_test as t
import server_test as s
from page_test import needed
from test_page_use import Looks


@needed
class Live(Looks):
    def serve(self, *victim):
        self.p = self.victim(*victim)
        self.before = t.identity(self.p.pid)
        self.file = self.path("live.memprof")
        self.server = s.Server("-p", self.p.pid, "-o", self.file)
        self.addCleanup(self.server.end)
        self.open(self.server.url + "/#live")
        self.browser.wait(selector=".fact strong")

    def button(self, text):
        self.browser.click(selector=f"main button:text('{text}')")

    def live_bytes(self):
        return int(self.browser.attributes(selector=".fact strong", name="data-value")[0])

    def look(self):
        return self.server.get("/data/last/live").json()

    def test_moves(self):
        """the numbers are those of the recorder and move; not while the page is frozen, or the recording is paused"""
        self.serve("leaky")
        first = self.live_bytes()
        t.wait_for(lambda: self.live_bytes() > first)
        self.button("Freeze the page")
        frozen, now = self.live_bytes(), self.look()["live_bytes"]
        t.wait_for(lambda: self.look()["live_bytes"] > now)
        self.assertEqual(self.live_bytes(), frozen)
        self.button("Freeze the page")
        t.wait_for(lambda: self.live_bytes() > now)
        self.button("Pause the recording")
        t.wait_for(lambda: self.look()["paused"])
        self.browser.wait(selector="main h2:visible", text="Paused")
        t.wait_for(lambda: self.live_bytes() == self.look()["live_bytes"])
        self.button("Resume the recording")
        t.wait_for(lambda: not self.look()["paused"])
        self.browser.wait(selector="main h2:visible", text="Recording")
        self.check_looks("live")
        self.clean(self.server.url)

    def test_table(self):
        """what allocates: rows by function, and the frames of one"""
        self.serve("leaky")
        self.show("live", live_by="function")
        self.browser.wait(selector="main td code", text="open_session")
        rows = t.wait_for(lambda: self.rows("What allocates"))
        self.assertIn("remember_answer", [r["Site"] for r in rows])
        self.clean(self.server.url)

    def test_leaks(self):
        """a leak report from the page finds what the program leaks, with its stack"""
        with open(self.path("mapped"), "wb") as f:
            f.truncate(4096)
        self.serve("names", self.path("mapped"))
        t.wait_for(lambda: self.look()["live_blocks"] > 10)
        self.button("Find leaks now")
        self.browser.wait(selector="section:has-text('Nothing points to')")
        rows = [r for r in self.rows("Leaks") if r["Size"] == 200]
        self.assertIn("allo\033[31mcate", str([r["Allocated at"] for r in rows]).encode().decode("unicode_escape"))
        self.clean(self.server.url)

    def test_mark_and_end(self):
        """a mark with any name, Flush, and the end of the recording: the process continues and is as it was"""
        self.serve("leaky")
        name = 'after <b>"lunch"</b> & more'
        self.browser.fill(selector=".marking input", value=name)
        self.browser.press(key="Enter")
        self.browser.wait(selector="[role=status]", text="is set")
        self.button("Flush")
        self.browser.wait(selector="[role=status]", text="until now")
        self.show("overview")
        self.assertGreater(int(self.browser.attributes(selector=".fact strong", name="data-value")[0]), 0)
        self.show("live")
        self.button("End the recording")
        self.browser.wait(selector="dialog[open]")
        self.button("End it")
        self.browser.wait(selector="main h2", text="The recording has ended")
        t.wait_for(lambda: not s.recorded(self.p.pid))
        t.wait_for(lambda: t.identity(self.p.pid) == self.before)
        self.assertEqual([m["name"] for m in self.report(self.file)["markers"]], [name])
        self.finish(self.p)


@needed
class Empty(Looks):
    def test_first_arrives(self):
        """the page of a folder without recordings says so, and shows the first one that is put there"""
        folder = self.path("folder")
        os.mkdir(folder)
        server = s.Server(folder)
        self.addCleanup(server.end)
        self.open(server.url + "/#overview")
        self.browser.wait(selector="main p", text="There is no recording yet")
        self.memprof("run", "-q", "-o", self.path("r.memprof"), "--", "true")
        os.rename(self.path("r.memprof"), folder + "/r.memprof")
        self.browser.wait(selector="main h2", text="true")


if __name__ == "__main__":
    t.main()
