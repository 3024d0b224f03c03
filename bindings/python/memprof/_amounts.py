# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sizes as memprof's options and reports have them."""
import re

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(text):
    """Parses 1000, "1000", "10 MB", "10MiB", "1.5g": units are powers of 1024.  Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?", str(text).strip(), re.I)
    if isinstance(text, bool) or not found:
        raise ValueError(f"{text!r} is no size such as 1000, \"64 KB\" or \"1.5 MiB\"")
    return int(float(found[1]) * 1024 ** (1 + "kmgt".index(found[2].lower()) if found[2] else 0))


def human(n):
    """A number of bytes, as in memprof's reports."""
    unit = 0
    while n >= 1024 and unit + 1 < len(_UNITS):
        n /= 1024
        unit += 1
    return f"{n:.1f} {_UNITS[unit]}" if unit else f"{n} B"


def counted(n, noun):
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
