/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Errors: every function that can fail returns 0 (or a count) or a negative errno, and, if the
 * reason is useful to a user, fills a struct mp_err.  Only cmd/ prints it and turns it into an exit
 * status; nothing below cmd/ prints, exits or aborts.
 */
#ifndef LIB_ERR_H
#define LIB_ERR_H

/*
 * Exit statuses of the memprof program.  Documented in doc/exit-status.md and the man page;
 * scripts depend on them, so values are never reused.
 */
enum mp_exit {
	MP_EXIT_OK = 0,
	MP_EXIT_FAILURE = 1,	   /* anything without a status of its own */
	MP_EXIT_USAGE = 2,	   /* unknown option, bad value, missing argument */
	MP_EXIT_NO_PROCESS = 3,	   /* no such process, or it has ended */
	MP_EXIT_PERMISSION = 4,	   /* ptrace, or reading a recording, is not permitted */
	MP_EXIT_NOT_USER = 5,	   /* kernel thread or zombie */
	MP_EXIT_TRACED = 6,	   /* another tracer is attached to the process */
	MP_EXIT_ATTACHED = 7,	   /* the process already has a memprof session */
	MP_EXIT_ARCH = 8,	   /* the target has another architecture */
	MP_EXIT_NO_ALLOCATOR = 9,  /* none of the known allocators was found */
	MP_EXIT_NO_ROOM = 10,	   /* no free address space near the text */
	MP_EXIT_SECCOMP = 11,	   /* a seccomp filter forbids a system call that is needed */
	MP_EXIT_UNPATCHABLE = 12,  /* a prologue cannot be relocated safely */
	MP_EXIT_RECORDING = 13,	   /* the recording is not readable */
	MP_EXIT_OUTPUT = 14,	   /* the output cannot be written */
	MP_EXIT_NOT_RESTORED = 15, /* detached, but pages had to stay; detach again */
	MP_EXIT_NO_SESSION = 16,   /* detach, status -p: the process has no session */
	MP_EXIT_KERNEL = 18,	   /* the kernel lacks what --via=kernel needs */
	MP_EXIT_GREW = 19,	   /* diff --fail-above: more than that grew */
	MP_EXIT_TIMEOUT = 17,	   /* the target did not stop in time and was not changed */
};

struct mp_err {
	enum mp_exit exit;
	int code; /* the negative errno */
	char what[400];
};

/**
 * mp_fail() - describe why an operation failed
 * @err: filled unless NULL
 * @exit: the exit status for cmd/
 * @code: a negative errno, returned unchanged
 * @fmt: printf format of one clear line, without a newline or a "memprof:" prefix
 *
 * Return: @code, so that a caller can write `return mp_fail(...)`.
 */
int mp_fail(struct mp_err *err, enum mp_exit exit, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
