/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Can this machine, and this process, be profiled?  Uses the checks that a recording makes, without
 * stopping, tracing or changing the process.
 */
#ifndef CONTROL_DOCTOR_DOCTOR_H
#define CONTROL_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "inject/examine.h"
#include "lib/check.h"
#include "lib/err.h"
#include "lib/vec.h"
#include "unwind/elf_facts.h"

enum verdict {
	VERDICT_OK,
	VERDICT_WARNING, /* memprof works, but less well or not in every way */
	VERDICT_MISSING, /* memprof attach would fail */
};

struct finding {
	enum verdict verdict;
	bool of_process; /* else of the machine and of memprof itself */
	const char *topic;
	char what[400];
	char advice[200]; /* "": none */
};

/* A file whose code is mapped in the process. */
struct doctor_module {
	char *path;
	char name[64];	 /* library_name() */
	bool readable;	 /* the file could be read; else @facts is empty */
	bool debug_file; /* a separate debug file of the same build-id was found */
	struct elf_facts facts;
};

struct doctor {
	pid_t pid;	     /* 0: only the machine is examined */
	const char *output;  /* path of a recording */
	enum mp_exit status; /* that memprof attach would give; 0: the process can be recorded */
	VEC(struct finding) findings;
	VEC(struct doctor_module) modules;
	bool examined; /* @examination is valid */
	struct examination examination;
};

/**
 * doctor_examine() - make all checks
 * @pid: 0: only the machine
 * @output: where the recording would be written
 *
 * Return: 0 with @d filled, to be freed by doctor_free(); -ENOMEM with @err.
 */
__must_check int doctor_examine(struct doctor *d, pid_t pid, const char *output,
				struct mp_err *err);
void doctor_free(struct doctor *d);

#endif
