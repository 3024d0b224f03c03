# SPDX-License-Identifier: MIT OR Apache-2.0
"""Helpers of the tests of recordings over the network: tokens, and memprof gather."""
import os
import re

import memprof_test as t
import stream_peer as peer

INDEX = ".memprof-gather"
TOKEN = b"a token of the tests, 40 bytes long ...."


LOSSES = ("lost_allocations", "lost_frees", "queue_dropped_events", "stale", "mismatches")


def write_token(path, token=TOKEN, mode=0o600):
    with open(path, "wb") as f:
        f.write(token)
    os.chmod(path, mode)
    return path


def default_token(case):
    """The path of the token file that senders and receivers share.  It is written once: a sender that starts may be
    reading it."""
    path = case.path("token")
    return path if os.path.exists(path) else write_token(path)


def info_id(recording):
    """The id in a recording's first chunk (src/formats/FORMAT.md)."""
    return next(t.payloads(recording))[:peer.ID]


class Counted(t.Case):
    def exact(self, truth, recording):
        """The recording is undamaged, says that nothing was lost, and has what the victim `exact` counted."""
        self.memprof("verify", recording)
        report = self.report(recording, "--leaks")
        c = t.calls(report)
        self.assertEqual({k: report["losses"][k] for k in LOSSES}, dict.fromkeys(LOSSES, 0))
        self.assertEqual(report["totals"]["foreign_frees"], 0)
        self.assertEqual(c["malloc"], truth["malloc"] + 2)
        self.assertEqual(c["posix_memalign"], truth["posix_memalign"])
        self.assertEqual(c["realloc"], truth["realloc"] + truth["realloc_failed"])
        self.assertEqual(report["totals"]["frees"], truth["free"] + truth["realloc"])
        self.assertEqual(len([b for b in report["leaks"] if b["size"] in (7000001, 7000002)]), 2)
        self.assertRegex(self.memprof("report", recording).stdout, r"\nlost +nothing\n")
        return report


class Gather:
    """A running `memprof gather`, whose output goes to files; the Case ends it if the test does not.
    @listen: None: it does not listen."""
    def __init__(self, case, folder, *options, listen="127.0.0.1:0", token=None, prefix=(), umask=-1):
        self.case, self.folder = case, folder
        self.logs = [case.path(f"gather-{len(case.started)}.{x}") for x in ("out", "err")]
        token = token or default_token(case)
        with open(self.logs[0], "w") as out, open(self.logs[1], "w") as err:
            self.process = case.start(*prefix, t.MEMPROF, "gather", *(("--listen", listen) if listen else ()), "--token", token,
                                      "-o", folder, *map(str, options), stdout=out, stderr=err, umask=umask)
        self.port = int(self.wait_said(r"listening at \S+:(\d+)$")[1]) if listen else None

    @property
    def out(self):
        return t.read(self.logs[0]).decode()

    @property
    def err(self):
        return t.read(self.logs[1]).decode()

    def wait_said(self, pattern):
        """Waits for a line on stdout that matches; returns the match."""
        def found():
            m = re.search("(?m)^" + pattern, self.out)
            self.case.assertTrue(m or self.process.poll() is None, f"gather has ended: {self.out}{self.err}")
            return m
        return t.wait_for(found)

    def sender(self, id=None, name="s.memprof", token=TOKEN):
        return peer.Sender("127.0.0.1", self.port, token, id, name)

    def files(self):
        """The recordings in the folder."""
        return sorted(set(os.listdir(self.folder)) - {INDEX})

    def read(self, name):
        return t.read(os.path.join(self.folder, name))

    def end(self):
        self.process.terminate()
        self.case.assertEqual(self.process.wait(120), 0, self.err)

    def kill(self):
        self.process.kill()
        self.process.wait()
