# SPDX-License-Identifier: MIT OR Apache-2.0
"""The structures and functions of memprof.h for ctypes."""
import ctypes as c
import functools
import operator
import os

MESSAGE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
PROGRESS = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


def encode(text):
    """A string or path as the bytes of a C string; None stays None."""
    if text is None:
        return None
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


def whole(kind, value):
    """An integer, checked because ctypes would cut off what does not fit into the C type."""
    value = operator.index(value)
    if kind(value).value != value:
        raise OverflowError(f"{value} is out of range")
    return value


def _members(kind, names):
    return [(name, kind) for name in names.split()]


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("system", c.c_int), ("text", c.c_char * 400)]


class Sized(c.Structure):
    """A structure that begins with its size.  The members that are given are checked and converted."""
    def __init__(self, **values):
        kinds = dict(self._fields_)
        for name, value in values.items():
            if name == "size" or name not in kinds:
                raise TypeError(f"unknown option {name!r}")
            if kinds[name] is c.c_char_p:
                values[name] = encode(value)
            elif issubclass(kinds[name], c._SimpleCData):
                values[name] = whole(kinds[name], value)
        super().__init__(size=c.sizeof(self), **values)


SIZE = [("size", c.c_size_t)]


class AttachOptions(Sized):
    _fields_ = SIZE + [("output", c.c_char_p)] + _members(c.c_uint64, "flags for_ms sample_interval") + \
        _members(c.c_uint32, "overhead_ppm depth") + _members(c.c_uint64, "cull_ms ring_bytes queue_bytes rotate_bytes") + \
        _members(c.c_uint32, "keep jobs") + _members(c.c_char_p, "to token_file") + _members(c.c_uint64, "send_buffer_bytes deliver_ms") + \
        [("message", MESSAGE), ("progress", PROGRESS), ("ctx", c.c_void_p)]


class Progress(Sized):
    _fields_ = SIZE + [("state", c.c_int)] + \
        _members(c.c_uint64, "duration_ns file_bytes events allocations frees allocated_bytes live_blocks live_bytes "
                             "peak_live_bytes lost thinned") + _members(c.c_uint32, "cost_ppm stalled")


class Position(Sized):
    _fields_ = SIZE + _members(c.c_uint64, "time_ns events file_bytes")


class Sums(c.Structure):
    _fields_ = _members(c.c_uint64, "allocations allocated_bytes frees live_blocks live_bytes peak_blocks peak_bytes temporary "
                                    "min_size max_size first_ns last_ns") + \
        _members(c.c_double, "allocations_error allocated_bytes_error live_blocks_error live_bytes_error") + \
        [("uncertain_blocks", c.c_uint64)]


class About(Sized):
    _fields_ = SIZE + _members(c.c_char_p, "executable cmdline") + [("pid", c.c_int), ("stacks", c.c_uint32)] + \
        _members(c.c_uint64, "start_unix_ns duration_ns sample_interval peak_ns") + [("incomplete", c.c_char_p), ("sums", Sums)]


class Counter(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_uint64)]


class Group(Sized):
    _fields_ = SIZE + [("stack", c.c_uint32), ("sums", Sums)]


class Frame(Sized):
    _fields_ = SIZE + _members(c.c_char_p, "function source library") + [("address", c.c_uint64)] + \
        _members(c.c_uint32, "line inlined")


class LeaksOptions(Sized):
    _fields_ = SIZE + [("mode", c.c_int), ("confirm", c.c_uint32)] + _members(c.c_uint64, "interval_ms max_pause_ms") + \
        [("recording", c.c_char_p), ("no_content", c.c_uint32)]


class LeaksAbout(Sized):
    _fields_ = SIZE + _members(c.c_uint64, "live_blocks live_bytes leaked_blocks leaked_bytes pause_ns") + \
        [("exact", c.c_uint32), ("no_stacks", c.c_char_p)]


class Leak(Sized):
    _fields_ = SIZE + _members(c.c_char_p, "type preview") + \
        _members(c.c_uint64, "block_size count bytes indirect_count indirect_bytes example") + \
        _members(c.c_uint32, "stack thread") + [("age_ns", c.c_uint64)]


class HeapOptions(Sized):
    _fields_ = SIZE + [("mode", c.c_int), ("max_pause_ms", c.c_uint64)]


class HeapAbout(Sized):
    _fields_ = SIZE + _members(c.c_uint64, "live_blocks live_bytes pause_ns") + [("exact", c.c_uint32)] + \
        _members(c.c_uint64, "live cached metadata free stacks modules_data modules_text files shared anonymous total rss swap")


class HeapType(Sized):
    _fields_ = SIZE + _members(c.c_char_p, "type library") + _members(c.c_uint64, "block_size count bytes")


_P, _ERR, _OUT, _INT, _TEXT = c.c_void_p, c.POINTER(Error), c.POINTER(c.c_void_p), c.c_int, c.c_char_p
_REQUEST = (_INT, _P, c.POINTER(Position), _ERR)
# The result and the parameters of memprof_NAME().
_PROTOTYPES = {
    "version": (_TEXT,),
    "attach": (_INT, _INT, c.POINTER(AttachOptions), _OUT, _ERR),
    "look": (None, _P, c.POINTER(Progress)),
    "path": (_TEXT, _P),
    "flush": _REQUEST,
    "mark": (_INT, _P, _TEXT, c.POINTER(Position), _ERR),
    "pause": _REQUEST,
    "resume": _REQUEST,
    "fd": (_INT, _P),
    "wait": (_INT, _P, _INT, _ERR),
    "stop": (_INT, _P, _ERR),
    "free": (None, _P),
    "filter_new": (_P,),
    "filter_set": (_INT, _P, _TEXT, _TEXT, _ERR),
    "filter_free": (None, _P),
    "open": (_INT, _TEXT, _P, _OUT, _ERR),
    "close": (None, _P),
    "about": (None, _P, c.POINTER(About)),
    "loss": (Counter, _P, c.c_uint32),
    "groups_begin": (_INT, _P, _INT, _OUT, _ERR),
    "groups_next": (_INT, _P, c.POINTER(Group)),
    "groups_free": (None, _P),
    "frames_begin": (_INT, _P, c.c_uint32, _OUT, _ERR),
    "frames_next": (_INT, _P, c.POINTER(Frame)),
    "frames_free": (None, _P),
    "leaks_find": (_INT, _INT, c.POINTER(LeaksOptions), _OUT, _ERR),
    "leaks_free": (None, _P),
    "leaks_about": (None, _P, c.POINTER(LeaksAbout)),
    "leaks_next": (_INT, _P, c.POINTER(Leak)),
    "leaks_frames": (_INT, _P, c.c_uint32, _OUT, _ERR),
    "heap_take": (_INT, _INT, c.POINTER(HeapOptions), _OUT, _ERR),
    "heap_free": (None, _P),
    "heap_about": (None, _P, c.POINTER(HeapAbout)),
    "heap_next": (_INT, _P, c.POINTER(HeapType)),
}


@functools.lru_cache(maxsize=None)
def _library():
    try:
        return c.CDLL(os.environ.get("LIBMEMPROF") or "libmemprof.so.1")
    except OSError as e:
        raise ImportError(f"memprof's library cannot be loaded: {e}; install libmemprof, or set LIBMEMPROF to its path") from None


class _Functions:
    """The functions of the library, without "memprof_".  It is loaded when the first one is used, because pytest imports
    the package in all runs."""
    def __getattr__(self, name):
        if name not in _PROTOTYPES:
            raise AttributeError(name)
        f = getattr(_library(), "memprof_" + name)
        f.restype, *f.argtypes = _PROTOTYPES[name]
        setattr(self, name, f)
        return f


lib = _Functions()
