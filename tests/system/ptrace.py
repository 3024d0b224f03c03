# SPDX-License-Identifier: MIT OR Apache-2.0
"""ptrace for tests: single-steps one thread, and detaches from it without letting it run on."""
import ctypes
import os
import signal
import struct
import time

CONT, SINGLESTEP, GETFPREGS, SETFPREGS, DETACH = 7, 9, 14, 15, 17
GETREGSET, SEIZE, INTERRUPT = 0x4204, 0x4206, 0x4207
WALL = 0x40000000
NT_PRSTATUS = 1
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
         "fs_base gs_base ds es fs gs").split()
EVENT_STOP = 128

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, tid, addr=0, data=0):
    if libc.ptrace(request, tid, addr, data) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


class Stepper:
    """One thread, seized and stopped by the test."""

    def __init__(self, pid, tid):
        self.pid, self.tid = pid, tid
        self.grab()

    def wait(self):
        _, status = os.waitpid(self.tid, WALL)
        if not os.WIFSTOPPED(status):
            raise ChildProcessError(f"thread {self.tid} ended: {status:#x}")
        return status

    def grab(self):
        """Seizes the thread and brings it to a stop, also out of a job-control stop."""
        ptrace(SEIZE, self.tid)
        ptrace(INTERRUPT, self.tid)
        status = self.wait()
        while status >> 16 != EVENT_STOP:
            ptrace(INTERRUPT, self.tid)
            ptrace(CONT, self.tid, 0, 0)
            status = self.wait()
        if os.WSTOPSIG(status) == signal.SIGSTOP:
            os.kill(self.pid, signal.SIGCONT)  # ends the job-control stop; the ptrace stop remains

    def registers(self):
        buf = ctypes.create_string_buffer(27 * 8)
        iov = struct.pack("QQ", ctypes.addressof(buf), len(buf))
        where = ctypes.create_string_buffer(iov, len(iov))
        ptrace(GETREGSET, self.tid, NT_PRSTATUS, ctypes.addressof(where))
        return dict(zip(NAMES, struct.unpack("27Q", buf.raw)))

    def step(self):
        """Executes one instruction and returns the new pc.  A signal that arrives meanwhile is dropped."""
        while True:
            ptrace(SINGLESTEP, self.tid, 0, 0)
            status = self.wait()
            if os.WSTOPSIG(status) == signal.SIGTRAP and status >> 16 != EVENT_STOP:
                return self.registers()["rip"]

    def leave_stopped(self):
        """Detaches and leaves the process in a job-control stop at the same instruction."""
        os.kill(self.pid, signal.SIGSTOP)  # not with DETACH, which drops it after a stop that is no signal's
        ptrace(DETACH, self.tid, 0, 0)
        while state(self.pid, self.tid) != "T":
            time.sleep(0.001)

    def let_go(self):
        ptrace(DETACH, self.tid, 0, 0)


def state(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]
