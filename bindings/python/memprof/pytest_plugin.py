# SPDX-License-Identifier: MIT OR Apache-2.0
"""The pytest plug-in: memory limits and leaks of single tests (doc/python.md)."""
import gc
import os
import re
import zlib

import pytest

from ._amounts import counted, human, size

MARK = "limit_memory"
FRAMES = 8  # of a stack that is shown


class MemprofWarning(pytest.PytestWarning):
    """A test kept its limits, but some of its events are not known exactly."""


class Limits:
    """What a test must keep: bytes at its peak, and leaked blocks; None: any."""
    def __init__(self, limit=None, *, leaks=None):
        self.peak, self.leaks = None if limit is None else size(limit), leaks
        if leaks is not None and (isinstance(leaks, bool) or not isinstance(leaks, int) or leaks < 0):
            raise ValueError(f"leaks={leaks!r} is no number of blocks")
        if limit is None and leaks is None:
            raise ValueError("neither a size nor leaks=N is given")

    def exceeded(self, figures):
        """What the test did wrong, as paragraphs."""
        found, leaks = [], figures["leaks"]
        if self.peak is not None and figures["peak"] > self.peak:
            peak, limit = human(figures["peak"]), human(self.peak)
            if peak == limit:
                peak, limit = f"{figures['peak']:,} B", f"{self.peak:,} B"
            found.append(f"The test had {peak} allocated at its peak, more than its limit of {limit}.  Most bytes at the peak:" +
                         "".join(_shown(g, "") for g in figures["most"]))
        if leaks and leaks["count"] > self.leaks:
            found.append(f"The test leaked {counted(leaks['count'], 'block')} of {human(leaks['bytes'])}, "
                         f"{self.leaks:,} permitted:" + "".join(_shown(x, f" ({', '.join(x['types'])})") for x in leaks["most"]))
        return found


def _shown(group, what):
    held = group.get("indirect_count")
    held = f", which hold {counted(held, 'more block')} of {human(group['indirect_bytes'])}" if held else ""
    more = len(group["stack"]) - FRAMES
    lines = group["stack"][:FRAMES] + ([f"... {counted(more, 'more frame')}"] if more > 0 else [])
    return f"\n  {human(group['bytes'])} in {counted(group['count'], 'block')}{what}{held}" + "".join(f"\n      {x}" for x in lines)


def _doubts(figures):
    """Why the figures are not exact; empty: they are."""
    leaks, doubts = figures["leaks"], []
    if figures["lost"]:
        doubts.append(f"{counted(figures['lost'], 'event')} lost")
    if figures["thinned"]:
        doubts.append(f"{counted(figures['thinned'], 'allocation')} estimated from others")
    if leaks and not leaks["exact"]:
        doubts.append("a heap that could not be searched exactly")
    return ", ".join(doubts)


def _fail(outcome, e):
    """Makes a test fail that passed."""
    if hasattr(outcome, "force_exception"):  # pluggy 1.1
        outcome.force_exception(e)
    else:
        outcome._excinfo = (type(e), e, e.__traceback__)


class Plugin:
    def __init__(self, config):
        self._all, self._most, self._folder = config.option.memprof, config.option.memprof_most, config.option.memprof_dir
        if self._folder:
            self._folder = os.path.abspath(self._folder)  # a test can change its folder
            os.makedirs(self._folder, exist_ok=True)
        self._client, self._limits, self._figures = None, pytest.StashKey(), pytest.StashKey()
        self._rows = []
        self._names = {}  # of recordings, with the test that has the name

    # ------------------------------------------------------------- recording --

    def _helper(self):
        """The helper of this process, which can be a forked child of the one that has one."""
        from . import _client
        if not self._client or self._client.owner != os.getpid():
            self._client = _client.Client()
        return self._client

    def _ask(self, do, **arguments):
        from . import _client
        try:
            return self._helper().ask(do, **arguments)
        except _client.Failed as e:
            raise pytest.fail.Exception(f"memprof cannot measure this test: {e}", pytrace=False) from None

    def _output(self, item):
        """The path of the recording that is kept; None: none is."""
        if not self._folder:
            return None
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid)[:200].strip("-.")
        if self._names.setdefault(name, item.nodeid) != item.nodeid:
            name += f"-{zlib.crc32(item.nodeid.encode('utf-8', 'surrogateescape')):08x}"
        return os.path.join(self._folder, name + ".memprof")

    @pytest.hookimpl
    def pytest_runtest_setup(self, item):
        mark = item.get_closest_marker(MARK)
        if not mark:
            return
        try:
            item.stash[self._limits] = Limits(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as e:
            raise pytest.fail.Exception(f"{MARK}: {e}", pytrace=False) from None

    @pytest.hookimpl(hookwrapper=True, trylast=True)  # as close to the test as possible
    def pytest_runtest_call(self, item):
        limits = item.stash.get(self._limits, None)
        if not limits and not self._all:
            yield
            return
        output = self._output(item)
        self._ask("begin", output=output)
        outcome = yield
        try:
            self._judge(item, limits, output, passed=outcome.excinfo is None)
        except (Exception, pytest.fail.Exception) as e:
            if outcome.excinfo is None:
                _fail(outcome, e)

    def _judge(self, item, limits, output, passed):
        wants_leaks = bool(passed and limits and limits.leaks is not None)
        if wants_leaks:
            gc.collect()
        figures = item.stash[self._figures] = self._ask("end", leaks=wants_leaks)
        if not limits or not passed:
            return
        found, doubts = limits.exceeded(figures), _doubts(figures)
        if not found and doubts:
            item.warn(MemprofWarning(f"{item.name} kept its memory limit, but not for certain: {doubts}"))
        elif found:
            found += [f"The figures are not exact: {doubts}."] if doubts else []
            found.append(f"memprof report {output}  shows more." if output else
                         "--memprof-dir DIR keeps the recording for memprof report.")
            pytest.fail("\n\n".join(found), pytrace=False)

    def pytest_unconfigure(self):
        if self._client and self._client.owner == os.getpid():
            self._client.close()

    # ------------------------------------------------------------- the table of --memprof --

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        figures = item.stash.get(self._figures, None)
        if self._all and figures and call.when == "call":
            # Reports have attributes of plug-ins also when they come from a worker of xdist.
            outcome.get_result().memprof = {**{n: figures[n] for n in ("peak", "allocated", "allocations")},
                                            "doubts": _doubts(figures)}

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "memprof"):
            self._rows.append((report.nodeid, report.memprof))

    def pytest_terminal_summary(self, terminalreporter):
        if not self._rows:
            return
        self._rows.sort(key=lambda row: -row[1]["peak"])
        shown = self._rows[:self._most]
        terminalreporter.section(f"memprof: {len(shown)} of {counted(len(self._rows), 'test')}, highest peaks first")
        terminalreporter.write_line(f"{'peak':>10} {'allocated':>10} {'allocations':>12}  test")
        for nodeid, r in shown:
            terminalreporter.write_line(f"{human(r['peak']):>10} {human(r['allocated']):>10} {r['allocations']:>12,}  {nodeid}" +
                                        (f" ({r['doubts']})" if r["doubts"] else ""))


def pytest_addoption(parser):
    group = parser.getgroup("memprof", "memory of tests (memprof)")
    group.addoption("--memprof", action="store_true", help="record all tests and list those with the highest peaks")
    group.addoption("--memprof-most", metavar="N", type=int, default=10, help="length of the list (default: 10)")
    group.addoption("--memprof-dir", metavar="DIR", help="keep the recordings in this folder")


def pytest_configure(config):
    config.addinivalue_line("markers", f"{MARK}(size=None, *, leaks=None): fail the test if the bytes that it has allocated at once "
                            "exceed the size (\"10 MB\"), or if it leaks more than so many blocks")
    config.pluginmanager.register(Plugin(config), "memprof-run")
