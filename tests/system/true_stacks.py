# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recording of tests/victims/stacks against the stacks that the program wrote down itself."""

# The victim's own functions, those that start programs and threads, and the one that a signal comes in.
KNOWN_OUTER = r"spin|setitimer|sort_some|round_of|thread|^main$|qsort|msort|_start$|^__libc_start|clone|^libc\.so\.6\+"
# Who asks for blocks of these sizes.
CALLERS = {701: "compare", 702: "catches", 703: "on_alarm"}


def as_far_as_libgcc(case, names, have, want):
    """On ARM and MIPS64 libgcc ends where tables do: at signal frames, in parts of libc, before
    the code that starts programs and threads.  What memprof has beyond has to be the way out."""
    case.assertGreaterEqual(len(have) + 1, len(want))
    case.assertRegex(" ".join(names[-6:]), r"\b(main|thread)\b")
    for name in names[len(want):]:
        case.assertRegex(name, KNOWN_OUTER, names)
    # A frame that cannot be unwound is libgcc's last or not there at all.
    return have[:len(want)] if len(have) >= len(want) else have + want[len(have):]


def compare(case, report, lines):
    """@report: of memprof report --json --leaks; @lines: what the program wrote."""
    arch = report["architecture"]
    blocks = {b["address"]: b for b in report["leaks"]}
    groups = {g["backtrace_id"]: g for g in report["allocation_groups"]}
    compared, through_signal = 0, 0
    for line in lines:
        address, *want = (int(x, 16) for x in line.split())
        if want[-1] == 0:
            want.pop()  # libgcc's word for "no caller"
        case.assertIn(address, blocks, "an allocation is missing")
        g = groups[blocks[address]["backtrace_id"]]
        case.assertTrue(g["complete"])
        # Innermost first; every return address has one frame that is not inlined.
        frames = [x for x in reversed(g["backtrace"]) if not x["is_inline"]]
        case.assertEqual(frames[0]["function"], "malloc")
        case.assertRegex(frames[1]["function"], r"\brecord\b")
        frames = frames[2:]  # malloc, and record() which calls both
        have, names = [x["address"] for x in frames], [x["function"] for x in frames]
        case.assertIn(CALLERS.get(blocks[address]["size"], ""), names[0])
        through_signal += any("on_alarm" in x for x in names) and "main" in names
        if arch not in ("x86_64", "aarch64"):
            have = as_far_as_libgcc(case, names, have, want)
        case.assertEqual(len(have), len(want), line)
        for h, w in zip(have, want):
            # A return address is looked up one byte before; an interrupted one is exact, to
            # which libgcc adds 2 on MIPS.
            case.assertIn(h, (w - 2, w - 1, w) if arch == "mips64" else (w - 1, w))
        compared += 1
    case.assertGreaterEqual(compared, 1000)
    case.assertGreaterEqual(through_signal, 100)
    losses = report["losses"]
    case.assertGreaterEqual(losses["stacks_complete"] / losses["stacks_total"], 0.999)
