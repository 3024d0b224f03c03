#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/setup is the version with which everything was built and tested on an empty Debian."""
import hashlib
import os
import subprocess
import tempfile
import unittest

import memprof_test as t

SCRIPTS = t.ROOT + "/scripts"


class Setup(unittest.TestCase):
    @unittest.skipIf("MEMPROF_CHECK_FRESH" in os.environ, "this is the check that it asks for")
    def test_verified(self):
        """scripts/setup is unchanged since it was tried on a Debian that had nothing installed"""
        stamp = t.read(SCRIPTS + "/setup.verified").decode()
        said = dict(line.split(" ", 1) for line in stamp.splitlines()[:3])
        now = hashlib.sha256(t.read(SCRIPTS + "/setup")).hexdigest()
        print(f"# scripts/setup: tried on {said['date']} by make check {said['check']}; "
              "it is made by make check-fresh", flush=True)
        self.assertEqual(said["hash"], now, "scripts/setup changed without a new make check-fresh")
        self.assertEqual(stamp.splitlines()[-1], "check-fresh: all passed")

    def test_other_packages(self):
        """make reads no file of the packages that another make unpacks in the same folder"""
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(f"{build}/sysroot/mips64/etc/ld-musl-mips64el.d")
            r = subprocess.run(["make", "-C", t.ROOT, f"O={build}", "help"], text=True, capture_output=True,
                               env=t.environment_without_make())
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("make check", r.stdout)


if __name__ == "__main__":
    t.main()
