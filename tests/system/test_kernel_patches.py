#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""kernel-patches/verified was written by a complete check of the patches that are in the folder now."""
import subprocess
import unittest

import memprof_test as t

FOLDER = t.ROOT + "/kernel-patches"


class KernelPatches(unittest.TestCase):
    def test_verified(self):
        """kernel patches, configuration and tests are unchanged since the last complete check"""
        stamp = t.read(FOLDER + "/verified").decode()
        said = dict(line.split(" ", 1) for line in stamp.splitlines()[:3])
        now = subprocess.run([FOLDER + "/hash"], text=True, capture_output=True, check=True).stdout.strip()
        print(f"# kernel patches: verified on {said['date']} for {said['hash']}; "
              "it is made by make -C kernel-patches check", flush=True)
        self.assertEqual(said["hash"], now, "changed without a new make -C kernel-patches check")
        self.assertEqual(said["orders"], "el be")
        self.assertEqual(stamp.splitlines()[-1], "kernel-patches: all proven")
        self.assertNotIn("\nnot ok", stamp)


if __name__ == "__main__":
    t.main()
