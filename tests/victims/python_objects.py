#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes known numbers of Python's objects.  Prints "name number" for each kind and then "ready"; each line that it
reads is a command, answered by "done"."""
import ctypes
import gc
import sys
import threading
from weakref import WeakSet


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y


class Session:
    def __init__(self, number):
        self.number = number
        self.text = "session %d" % number
        self.tags = [number, self.text]


class Parent:
    pass


class Big:
    """With more than 512 bytes, so that it is in a block of malloc()."""
    __slots__ = ["member%d" % i for i in range(100)] + ["__weakref__"]


class weakref:  # pylint: disable=invalid-name
    """Has the name of a built-in type, whose first member is no reference."""
    __slots__ = ("a", "b", "c", "d", "e", "f")

    def __init__(self):
        self.a = [1]


class Counted(list):
    pass


class Leaked(list):
    pass


def leak(number):
    """Increments reference counts without keeping a reference, as a faulty extension does.  Then makes two objects for
    each, in blocks that had its address: behind the one's end, and in the other's state."""
    for i in range(number):
        value = Leaked([i, "leaked %d" % i])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
        address = id(value).to_bytes(8, "little")
        old = bytes(24) + address[:7]
        del old
        rounded.append(bytes(16))
        old = address + bytes(23)
        del old
        rounded.append("%012d" % i)


def rings(number):
    """Objects that only the garbage collector can free."""
    for _ in range(number):
        one, other = Parent(), Parent()
        one.child, other.child = other, one
        one.children = [other] * 100


def clear_stack(depth=60):
    """Overwrites old values in frames."""
    return [depth, clear_stack(depth - 1)] if depth else None


def busy(stop):
    while not stop.is_set():
        {i: [Counted([i]), str(i), {i}, (i, float(i))] for i in range(50)}  # pylint: disable=expression-not-assigned
        rings(2)


gc.collect()
gc.disable()
points = [Point(i, float(i)) for i in range(20000)]
sessions = {"key %d" % i: Session(i) for i in range(5000)}
nested = {i: {"inner": (i, {i, -i - 1})} for i in range(3000)}
bigs = [Big() for _ in range(300)]
weak = WeakSet(bigs)
table = set(range(10000))
reserved = Counted()
rounded = []
others = [weakref() for _ in range(200)]
for n in range(1000):
    reserved.append(n)
stop = threading.Event()
threads = []
print("Point", len(points))
print("Session", len(sessions))
print("Big", len(bigs))
print("Counted", 1)
print("nested", len(nested))
print("ready", flush=True)
for line in sys.stdin:
    word = line.split()
    if word[0] == "leak":
        leak(int(word[1]))
        clear_stack()
    elif word[0] == "rings":
        rings(int(word[1]))
        clear_stack()
    elif word[0] == "collect":
        gc.collect()
    elif word[0] == "grow":
        points.extend([Point(i, None) for i in range(int(word[1]))])
    elif word[0] == "busy":
        gc.enable()
        threads = [threading.Thread(target=busy, args=(stop,)) for _ in range(3)]
        for thread in threads:
            thread.start()
    print("done", flush=True)
stop.set()
