# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starts a helper that records this process, and talks to it (_helper.py)."""
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile

PR_SET_PTRACER = 0x59616d61
PATIENCE = 30  # seconds for a helper to end by itself


class Failed(Exception):
    """The helper could not do it; says why."""


class Client:
    def __init__(self):
        self.owner, self._number = os.getpid(), 0
        self._socket, theirs = socket.socketpair()
        self._file = self._socket.makefile("rw", encoding="ascii")
        self._errors = tempfile.TemporaryFile()
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_helper.py")
        with theirs:
            # In a session of its own, Ctrl-C does not end it before it has restored this process.
            self._process = subprocess.Popen([sys.executable, "-I", program, str(self.owner)], stdin=theirs, stdout=theirs,
                                             stderr=self._errors, start_new_session=True)
        # Where Yama permits only parents to attach, this permits the helper; elsewhere the kernel does not know it.
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(self._process.pid), 0, 0, 0)

    def _exchange(self, line):
        """Returns the answer to a request; None: the helper has ended."""
        number = None
        try:
            self._file.write(line)
            self._file.flush()
            while number != self._number:  # a signal's exception can have interrupted the wait for an earlier answer
                line = self._file.readline()
                if not line:
                    return None
                number, answer = json.loads(line)
            return answer
        except OSError:
            return None

    def ask(self, do, **arguments):
        """Returns the answer to a request; raises Failed."""
        self._number += 1
        answer = self._exchange(json.dumps((self._number, do, arguments)) + "\n")
        if answer is None:
            self._errors.seek(0)
            raise Failed("its helper has ended: " + (self._errors.read().decode(errors="replace").strip() or "no reason is known"))
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def close(self):
        """Ends the helper and reaps it."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()
        self._errors.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
