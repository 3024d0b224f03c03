# SPDX-License-Identifier: MIT OR Apache-2.0
"""libmemprof for Python: record the heap of a running process, find its leaks, read recordings.

    with memprof.attach(pid, output="x.memprof") as session:
        ...
        session.flush()
    with memprof.open("x.memprof", lifetime="only_leaked") as recording:
        for group in recording.groups():
            print(group.live_bytes, group.stack[0].function)

The functions, options and constants are those of memprof.h, which says what they do, without "memprof_".  Errors of the
library are memprof.Error.  An object that was closed raises ValueError.  The first call loads the library; it raises
ImportError if the library is not there."""
import contextlib
import ctypes as _ctypes
import os
import select
import threading
import weakref

from . import _c
from ._c import lib as _lib

# Codes of errors.
FAILURE, USAGE, NO_PROCESS, PERMISSION, NOT_USER, TRACED, ATTACHED, ARCH, NO_ALLOCATOR, NO_ROOM, SECCOMP, UNPATCHABLE, \
    RECORDING, OUTPUT, NOT_RESTORED, NO_SESSION, TIMEOUT, KERNEL = range(1, 19)
OK, ENDED = 0, 32
# Flags of attach().
HISTORY, LOSSLESS, NO_THINNING, LIVE_ONLY, FREE_STACKS, EMBED, PAUSED, VIA_KERNEL, PAGE_FAULTS = (1 << i for i in range(9))
# States of a session.
IS_RECORDING, IS_PAUSED, IS_COMPLETE, HAS_FAILED = range(1, 5)
# What groups are sorted by.
LIVE_BYTES, ALLOCATED_BYTES, ALLOCATIONS, PEAK_BYTES, TEMPORARY = range(5)
# How leaks() and heap() read memory.
MODE_BEST, MODE_COPY, MODE_PRE_COPY, MODE_IN_PLACE = range(4)


class Error(Exception):
    """What the library could not do: a text, its code, and the errno value behind it (0: none)."""
    def __init__(self, text, code, errno):
        super().__init__(text, code, errno)
        self.code, self.errno = code, errno

    def __str__(self):
        return self.args[0]


def _call(f, *arguments):
    """Calls a function whose last parameter is the error."""
    e = _c.Error()
    if f(*arguments, _ctypes.byref(e)):
        raise Error(os.fsdecode(e.text), e.code, e.system)


def _made(f, *arguments):
    """Calls a function whose last two parameters are a new object and the error; returns the object."""
    out = _ctypes.c_void_p()
    _call(f, *arguments, _ctypes.byref(out))
    return out


class Values:
    """The members of a structure of the library as values of Python.  What is not known is None, or 0."""
    _left_out = ("size",)

    def __init__(self, structure):
        for name in (n for n, _ in structure._fields_ if n not in self._left_out):
            value = getattr(structure, name)
            if isinstance(value, bytes):
                value = os.fsdecode(value)
            elif isinstance(value, _c.Sums):
                value = Values(value)
            elif name in ("exact", "inlined", "stalled"):
                value = bool(value)
            setattr(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in vars(self).items() if n[0] != '_')})"


def _filled(structure, f, *arguments):
    """Calls a function whose last parameter is a structure that it fills."""
    s = structure()
    f(*arguments, _ctypes.byref(s))
    return Values(s)


class Frame(Values):
    """A frame of a stack: function, source, line, library, address, inlined (into the next frame)."""
    def __str__(self):
        where = f"{self.source}:{self.line}" if self.source else self.library
        return f"{self.function} ({where})" if where else self.function


def _frames(begin, owner, stack):
    """The frames of a stack.  The caller has the owner locked."""
    frames, f, found = _made(begin, owner, _c.whole(_ctypes.c_uint32, stack)), _c.Frame(), []
    try:
        while _lib.frames_next(frames, _ctypes.byref(f)):
            found.append(Frame(f))
    finally:
        _lib.frames_free(frames)
    return found


def _release(owner, free, *arguments):
    """Frees an object of the library; not in a forked child, which does not have the threads of the library."""
    if os.getpid() == owner:
        free(*arguments)


class _Object:
    """Owns an object of the library, which one thread can use at a time.  Garbage that was not closed is closed, and so is
    everything when Python ends."""
    def __init__(self, handle, free, *more):
        self._handle, self._lock = handle, threading.RLock()
        self._free = weakref.finalize(self, _release, os.getpid(), free, handle, *more)

    @contextlib.contextmanager
    def _use(self):
        with self._lock:
            if not self._free.alive:
                raise ValueError(f"the {type(self).__name__.lower()} is closed")
            yield self._handle

    @property
    def closed(self):
        return not self._free.alive

    def close(self):
        """Frees the object; a second time does nothing."""
        with self._lock:
            self._free()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ------------------------------------------------------------- recording a process --

def _free_session(handle, _callbacks):
    _lib.free(handle)


class Session(_Object):
    """A recording that is being made; see attach().  Any thread can use it, several at once."""
    def __init__(self, handle, callbacks):
        super().__init__(handle, _free_session, callbacks)
        self._owner, self._users, self._closing, self._changed = os.getpid(), 0, False, threading.Condition(self._lock)
        self.path = os.fsdecode(_lib.path(handle))

    @contextlib.contextmanager
    def _use(self):
        with self._changed:
            if self.closed:
                raise ValueError("the session is closed")
            self._users += 1
        try:
            yield self._handle
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @property
    def closed(self):
        # A forked child has the descriptors of the session, with which it would end its parent's recording.
        return self._closing or os.getpid() != self._owner

    def look(self):
        """Sums since the beginning: the members of struct memprof_progress."""
        with self._use() as s:
            return _filled(_c.Progress, _lib.look, s)

    def _request(self, f, *arguments):
        with self._use() as s:
            p = _c.Position()
            _call(f, s, *arguments, _ctypes.byref(p))
            return Values(p)

    def flush(self):
        """Returns when all that the process did before is in the file: the position (time_ns, events, file_bytes)."""
        return self._request(_lib.flush)

    def mark(self, name):
        """Puts a mark into the recording; returns its position."""
        return self._request(_lib.mark, _c.encode(name))

    def pause(self):
        """New blocks are not recorded until resume(); returns the position."""
        return self._request(_lib.pause)

    def resume(self):
        return self._request(_lib.resume)

    def fileno(self):
        """A descriptor, for select and asyncio: readable when the recording has ended."""
        with self._use() as s:
            return _lib.fd(s)

    def wait(self, seconds=None):
        """Waits until the recording has ended; None: any time.  Returns True if it is complete, False if it has not ended."""
        with self._use() as s:
            ended = select.poll()  # in C, a signal such as Ctrl-C would have to wait
            ended.register(_lib.fd(s), select.POLLIN)
            if not ended.poll(None if seconds is None else max(0, seconds) * 1000):
                return False
            _call(_lib.wait, s, 0)
            return True

    def stop(self):
        """Ends the recording and restores the process."""
        with self._use() as s:
            _call(_lib.stop, s)

    def close(self):
        """Ends the recording if it has not ended, and frees it.  Errors of its end are only known from stop()."""
        with self._changed:
            if self.closed:
                return
            self._closing = True
        _lib.stop(self._handle, None)  # requests of other threads return
        with self._changed:
            self._changed.wait_for(lambda: not self._users)
        self._free()

    def __exit__(self, kind, *_):
        try:
            if kind is None and not self.closed:
                self.stop()
        finally:
            self.close()


def attach(pid, output=None, *, message=None, progress=None, **options):
    """Records a process until the with block of the returned Session ends.

    @output: a pattern as of --output; None: memprof-PID.memprof
    @message: called with each line that memprof attach would print
    @progress: called with what Session.look() returns, once a second, and when the recording has ended
    @options: members of struct memprof_attach_options, such as flags=memprof.HISTORY

    A thread of the library makes the calls."""
    on_message = _c.MESSAGE((lambda _, line: message(os.fsdecode(line))) if message else 0)
    on_progress = _c.PROGRESS((lambda _, s: progress(_filled(_c.Progress, _lib.look, s))) if progress else 0)
    o = _c.AttachOptions(output=output, **options)
    o.message, o.progress = on_message, on_progress
    # The session refers to the callbacks, because Python would free them otherwise.
    return Session(_made(_lib.attach, _c.whole(_ctypes.c_int, pid), _ctypes.byref(o)), (on_message, on_progress))


# ------------------------------------------------------------- reading a recording --

class Group(Values):
    """All allocations with one stack: stack_id, and the members of struct memprof_sums."""
    def __init__(self, recording, g):
        super().__init__(g.sums)
        self._recording, self.stack_id = recording, g.stack

    @property
    def stack(self):
        """The frames, the innermost first."""
        return self._recording.frames(self.stack_id)


def _close_recording(handle, filters, iterators):
    for groups in iterators:
        _lib.groups_free(groups)
    _lib.close(handle)
    _lib.filter_free(filters)


class Recording(_Object):
    """A recording that was read; see open()."""
    def __init__(self, handle, filters):
        self._iterators = set()  # must be freed before the recording
        super().__init__(handle, _close_recording, filters, self._iterators)

    def about(self):
        """The members of struct memprof_about; those of sums are of all allocations."""
        with self._use() as r:
            return _filled(_c.About, _lib.about, r)

    def losses(self):
        """What can be missing: the counters of doc/json.md, "losses", as a dict."""
        found, i = {}, 0
        with self._use() as r:
            while True:
                counter = _lib.loss(r, i)
                if not counter.name:
                    return found
                found[counter.name.decode()] = counter.value
                i += 1

    def groups(self, by=LIVE_BYTES):
        """Generates the groups whose cost is not 0, the most costly first."""
        with self._use() as r:
            groups = _made(_lib.groups_begin, r, _c.whole(_ctypes.c_int, by)).value
            self._iterators.add(groups)
        return self._each(groups)

    def _each(self, groups):
        g = _c.Group()
        try:
            while True:
                with self._use():
                    if not _lib.groups_next(groups, _ctypes.byref(g)):
                        return
                yield Group(self, g)
        finally:
            with self._lock:
                if not self.closed:
                    self._iterators.remove(groups)
                    _lib.groups_free(groups)

    def frames(self, stack_id):
        """The frames of a stack, the innermost first; of an unknown stack none."""
        with self._use() as r:
            return _frames(_lib.frames_begin, r, stack_id)


def open(path, **filters):
    """Reads a recording, which can still grow.

    @filters: names and values of doc/filters.md; from_ is "from", True is "yes", and a list is several conditions"""
    path, f = _c.encode(path), _lib.filter_new()
    if not f:
        raise MemoryError
    try:
        for name, values in filters.items():
            for value in values if isinstance(values, (list, tuple)) else (values,):
                value = ("no", "yes")[value] if isinstance(value, bool) else value if isinstance(value, os.PathLike) else str(value)
                _call(_lib.filter_set, f, _c.encode(name.rstrip("_")), _c.encode(value))
        return Recording(_made(_lib.open, path, f), f)
    except BaseException:
        _lib.filter_free(f)
        raise


# ------------------------------------------------------------- leaks and heap of a process --

def _listed(f, handle, structure):
    """All structures that a function which returns the next one gives; then it begins again."""
    while True:
        s = structure()
        if not f(handle, _ctypes.byref(s)):
            return
        yield s


class Leak(Values):
    """Leaks of the same type, size and, if known, stack: the members of struct memprof_leak; stack_id 0: not known."""
    _left_out = ("size", "stack")

    def __init__(self, leaks, structure):
        super().__init__(structure)
        self._leaks, self.stack_id = leaks, structure.stack

    @property
    def stack(self):
        """The frames, the innermost first; none if the stack is not known."""
        return self._leaks.frames(self.stack_id)


class Leaks(_Object):
    """The leaks of a process; see leaks().  Iterating gives Leak objects, those with the most bytes first."""
    def __init__(self, handle):
        super().__init__(handle, _lib.leaks_free)

    def about(self):
        """The members of struct memprof_leaks_about."""
        with self._use() as l:
            return _filled(_c.LeaksAbout, _lib.leaks_about, l)

    def __iter__(self):
        with self._use() as l:
            return iter([Leak(self, s) for s in _listed(_lib.leaks_next, l, _c.Leak)])

    def frames(self, stack_id):
        with self._use() as l:
            return _frames(_lib.leaks_frames, l, stack_id)


def leaks(pid, recording=None, **options):
    """Finds the blocks that no pointer of a process reaches.

    @recording: of the process, for stacks; None: the one that is being made, if any
    @options: members of struct memprof_leaks_options"""
    o = _c.LeaksOptions(recording=recording, **options)
    return Leaks(_made(_lib.leaks_find, _c.whole(_ctypes.c_int, pid), _ctypes.byref(o)))


class Heap(_Object):
    """The live heap of a process; see heap().  Iterating gives the members of struct memprof_heap_type, for each type."""
    def __init__(self, handle):
        super().__init__(handle, _lib.heap_free)

    def about(self):
        """The members of struct memprof_heap_about."""
        with self._use() as h:
            return _filled(_c.HeapAbout, _lib.heap_about, h)

    def __iter__(self):
        with self._use() as h:
            return iter([Values(s) for s in _listed(_lib.heap_next, h, _c.HeapType)])


def heap(pid, **options):
    """Examines the heap of a process: what is live by type, and of what its resident memory consists.

    @options: members of struct memprof_heap_options"""
    o = _c.HeapOptions(**options)
    return Heap(_made(_lib.heap_take, _c.whole(_ctypes.c_int, pid), _ctypes.byref(o)))


def version():
    """The version of the library, such as "0.2"."""
    return _lib.version().decode()
