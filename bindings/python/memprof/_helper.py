# SPDX-License-Identifier: MIT OR Apache-2.0
"""A program that records the process which started it, because no process can record itself.  It reads requests as lines
of JSON from stdin, answers each with a line on stdout, and ends with its starter.  _client.py is the other side."""
import ctypes
import json
import os
import signal
import sys
import tempfile

# Isolated from the starter's environment (-I), Python does not find the package by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import memprof  # noqa: E402

STACKS = 5  # in an answer
PR_SET_PDEATHSIG = 1


def frames(stack):
    return [str(f) for f in stack]


def together(leaks):
    """Leaks with the same stack, as one."""
    sums = {n: sum(getattr(x, n) for x in leaks) for n in ("count", "bytes", "indirect_count", "indirect_bytes")}
    return dict(sums, types=list(dict.fromkeys(x.type for x in leaks)), stack=frames(leaks[0].stack))


def leaked(pid, session):
    """The leaks of blocks that were allocated during the recording."""
    session.flush()
    with memprof.leaks(pid, recording=session.path) as leaks:
        about = leaks.about()
        if about.no_stacks:
            raise memprof.Error(about.no_stacks, memprof.FAILURE, 0)
        stacks = {}
        for x in leaks:
            if x.stack_id:
                stacks.setdefault(x.stack_id, []).append(x)
        groups = sorted(map(together, stacks.values()), key=lambda g: -g["bytes"])
        return {"count": sum(g["count"] for g in groups), "bytes": sum(g["bytes"] for g in groups), "exact": about.exact,
                "most": groups[:STACKS]}


def peak(path):
    """What was live at the peak of a recording, and its sums."""
    with memprof.open(path) as recording:
        about = recording.about()
        # The groups are sorted: the first have the most.
        most = [{"bytes": g.peak_bytes, "count": g.peak_blocks, "stack": frames(g.stack)}
                for g, _ in zip(recording.groups(memprof.PEAK_BYTES), range(STACKS))
                if g.peak_bytes * 100 >= about.sums.peak_bytes]
        return {"peak": about.sums.peak_bytes, "allocated": about.sums.allocated_bytes, "allocations": about.sums.allocations,
                "most": most}


class Helper:
    def __init__(self, pid, folder):
        self.pid, self.folder, self.session, self.kept = pid, folder, None, False

    def begin(self, output):
        """Begins a recording; @output: its path, or null: it is deleted when it has ended."""
        if self.session:
            self.session.close()  # a request was interrupted
        self.kept = output is not None
        path = output if self.kept else os.path.join(self.folder, "test.memprof")
        # A test that waits is better than a verdict on estimates.
        self.session = memprof.attach(self.pid, path.replace("%", "%%"), flags=memprof.HISTORY | memprof.LOSSLESS)
        return {}

    def end(self, leaks):
        """Ends the recording; returns its figures."""
        try:
            with self.session as session:
                found = leaked(self.pid, session) if leaks else None
                session.stop()
                last = session.look()
            return dict(peak(session.path), leaks=found, lost=last.lost, thinned=last.thinned)
        finally:
            if not self.kept:
                os.unlink(self.session.path)


def serve(helper):
    for line in sys.stdin:
        number, do, arguments = json.loads(line)
        try:
            answer = getattr(helper, do)(**arguments)
        except (memprof.Error, OSError, ImportError) as e:
            answer = {"error": str(e)}
        print(json.dumps((number, answer)), flush=True)


def main():
    pid = int(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    # A child of the starter can have the other end of stdin open.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != pid:
        sys.exit()
    with tempfile.TemporaryDirectory(prefix="memprof-pytest-") as folder:
        helper = Helper(pid, folder)
        try:
            serve(helper)
        finally:
            if helper.session:
                helper.session.close()


if __name__ == "__main__":
    main()
