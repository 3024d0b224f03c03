/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/doctor/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include "attach/target.h"
#include "control/doctor/findings.h"

static void examine_process(struct notes *n)
{
	struct mp_err err = {0};
	struct target t;

	n->of_process = true;
	if (target_look(&t, n->d->pid, &err)) {
		note_check(n, "attach", &err, "", "");
		return;
	}
	note(n, VERDICT_OK, MP_EXIT_OK, "attach", "",
	     "memprof may attach to process %d (%s), and no other program traces it", t.pid,
	     t.status.name);
	doctor_process(n, &t);
	target_close(&t);
}

int doctor_examine(struct doctor *d, pid_t pid, const char *output, struct mp_err *err)
{
	struct notes n = {.d = d};

	*d = (struct doctor){.pid = pid, .output = output};
	doctor_machine(&n);
	if (pid)
		examine_process(&n);
	n.of_process = false;
	doctor_output(&n);
	n.of_process = true;
	doctor_hooks(&n);
	if (!n.failed)
		return 0;
	doctor_free(d);
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

void doctor_free(struct doctor *d)
{
	vec_for_each (&d->modules, m)
		free(m->path);
	vec_free(&d->modules);
	vec_free(&d->findings);
	if (d->examined)
		examination_free(&d->examination);
	d->examined = false;
}
