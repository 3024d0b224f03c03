"""A command for gdb that prints the session block of the process it is attached to:

    gdb -p PID -x scripts/session.py -ex memprof-session
    gdb -p PID -x scripts/session.py -ex 'memprof-session hooks'

It takes the layout from the debug information of build/memprof, which must be the
version that made the session.
"""
import gdb
import os
import re

MEMPROF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/memprof")


def block():
    """Address of the session block in the process, from its mappings."""
    pid = gdb.selected_inferior().pid
    if not pid:
        raise gdb.GdbError("no process")
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            m = re.match(r"(\w+)-\w+ \S+ 0+ .*/memfd:memprof", line)
            if m:
                return int(m[1], 16)
    raise gdb.GdbError(f"process {pid} has no memprof session")


def at(address, name):
    return gdb.Value(address).cast(gdb.lookup_type(name).pointer()).dereference()


def text(array):
    return array.string("utf-8", "replace").split("\0")[0]


def show(value, leave_out=()):
    for field in value.type.fields():
        if field.name and field.name not in leave_out:
            print(f"  {field.name:<20} {value[field.name]}")


class Session(gdb.Command):
    """memprof-session [hooks|threads]: prints control page and journal, all hooks, or all threads' slots"""

    def __init__(self):
        super().__init__("memprof-session", gdb.COMMAND_DATA)

    def invoke(self, what, _):
        base = block()
        control = at(base, "struct ss_control")
        journal = at(base + int(control["journal"]), "struct ss_journal")
        {"": self.head, "hooks": self.hooks, "threads": self.threads}[what](base, control, journal)

    def head(self, base, control, journal):
        print(f"control page at {base:#x}")
        show(control)
        print("journal")
        show(journal, ("hook", "name", "island", "recording", "control"))
        print(f"  recording            {text(journal['recording'])}")
        for i in range(int(journal["nislands"])):
            print(f"  island {i:<13} {int(journal['island'][i]['addr']):#x}")

    def hooks(self, base, control, journal):
        for i in range(int(journal["nhooks"])):
            h = journal["hook"][i]
            name = journal["name"][int(h["name"])]
            print(f"{i:4} {'patched' if h['patched'] else 'free   '} {int(h['addr']):#x} slot {int(h['slot_addr']):#x} "
                  f"{text(name['name'])} in {text(name['module'])}")

    def threads(self, base, control, journal):
        for i in range(int(control["nslots"])):
            t = at(base + int(control["slots"]) + i * int(control["slot_stride"]), "struct ss_thread")
            if t["tp"]:
                print(f"slot {i}: thread {int(t['tid'])}, tp {int(t['tp']):#x}, lost {t['lost']}, written {t['written']}")


gdb.execute(f"symbol-file {MEMPROF}", to_string=True)
Session()
