# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares a recording of tests/victims/stacks with the stacks that the program itself wrote down."""

# Functions that can be at the outer end of a stack: the victim's own, those that start programs and
# threads, qsort(), which the signal interrupts, frames in libc that have no name, and the PLT.
KNOWN_OUTER = r"^stacks(-a32)?\+|spin|setitimer|sort_some|round_of|thread|^main$|qsort|msort|_start$|^__libc_start|clone|^libc\.so\.6\+"
# The function that allocates the blocks of each of these sizes.
CALLERS = {701: "compare", 702: "catches", 703: "on_alarm"}


def as_far_as_libgcc(case, names, have, want):
    """Accepts a stack that is longer than libgcc's.  On ARM and MIPS64, libgcc's unwinder stops at code
    without unwind tables: signal frames, parts of libc, the code that starts programs and threads.  The
    frames that memprof has beyond that point must be known outer functions."""
    case.assertGreaterEqual(len(have) + 1, len(want))
    case.assertRegex(" ".join(names[-6:]), r"\b(main|thread)\b")
    for name in names[len(want):]:
        case.assertRegex(name, KNOWN_OUTER, names)
    # libgcc reports a frame that it cannot unwind either as its last one or not at all.
    return have[:len(want)] if len(have) >= len(want) else have + want[len(have):]


def compare_stack(case, arch, group, size, want):
    """Return: whether the stack goes through a signal handler."""
    case.assertTrue(group["complete"])
    # Innermost first.  Exactly one frame of each return address is not inlined.
    frames = [x for x in reversed(group["backtrace"]) if not x["is_inline"]]
    case.assertEqual(frames[0]["function"], "malloc")
    case.assertRegex(frames[1]["function"], r"\brecord\b")
    frames = frames[2:]  # leave out malloc and record(), which calls malloc and libgcc's unwinder
    have, names = [x["address"] for x in frames], [x["function"] for x in frames]
    case.assertIn(CALLERS.get(size, ""), names[0])
    if arch not in ("x86_64", "aarch64"):
        have = as_far_as_libgcc(case, names, have, want)
    case.assertEqual(len(have), len(want), (have, want))
    for h, w in zip(have, want):
        # memprof subtracts 1 from a return address to look it up, but not from the address of an
        # interrupted instruction.  On MIPS, libgcc adds 2 to the latter.
        case.assertIn(h, (w - 2, w - 1, w) if arch == "mips64" else (w - 1, w))
    return any("on_alarm" in x for x in names) and "main" in names


def compare(case, report, lines):
    """@report: the output of memprof report --json --leaks; @lines: the stacks that the program wrote."""
    blocks = {b["address"]: b for b in report["leaks"]}
    groups = {g["backtrace_id"]: g for g in report["allocation_groups"]}
    signals = {}  # by pair of stacks: emulated machines take minutes to compare equal pairs again
    compared, through_signal = 0, 0
    for line in lines:
        address, *want = (int(x, 16) for x in line.split())
        if want[-1] == 0:
            want.pop()  # libgcc marks "no caller" with 0
        case.assertIn(address, blocks, "an allocation is missing")
        block = blocks[address]
        pair = (block["backtrace_id"], CALLERS.get(block["size"]), *want)
        if pair not in signals:
            signals[pair] = compare_stack(case, report["architecture"], groups[pair[0]], block["size"], want)
        through_signal += signals[pair]
        compared += 1
    case.assertGreaterEqual(compared, 1000)
    case.assertGreaterEqual(through_signal, 100)
    losses = report["losses"]
    case.assertGreaterEqual(losses["stacks_complete"] / losses["stacks_total"], 0.999)
