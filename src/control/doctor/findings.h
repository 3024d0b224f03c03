/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The findings of memprof doctor, and the files that make them: machine.c, process.c and modules.c. */
#ifndef CONTROL_DOCTOR_FINDINGS_H
#define CONTROL_DOCTOR_FINDINGS_H

#include "control/doctor/doctor.h"

struct notes {
	struct doctor *d;
	bool of_process, failed; /* failed: out of memory */
};

/* Adds a finding; @advice: "" if there is nothing to do.  @exit: the status with which memprof
 * attach would fail (the first one decides), for VERDICT_MISSING. */
void note(struct notes *n, enum verdict v, enum mp_exit exit, const char *topic, const char *advice,
	  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Adds what a check found: VERDICT_MISSING with the error, or, if it found none, VERDICT_OK with
 * @good. */
void note_check(struct notes *n, const char *topic, const struct mp_err *err, const char *advice,
		const char *good);

/* In the order in which a recording makes these checks. */
void doctor_machine(struct notes *n);
void doctor_process(struct notes *n, struct target *t); /* @t: after target_look() */
void doctor_output(struct notes *n);
void doctor_hooks(struct notes *n);

/* Called by doctor_process(). */
void doctor_modules(struct notes *n, const struct target *t);

#endif
