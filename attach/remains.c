/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/remains.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Fields of /proc/PID/stat, proc(5). */
#define FIELD_STATE	  3
#define FIELD_MINFLT	  10
#define FIELD_MAJFLT	  12
#define FIELD_EXIT_SIGNAL 38
#define FIELD_EXIT_CODE	  52
#define FIELDS		  53

#define BIT(signal) (1ull << ((signal)-1))

/* Return: false if some are missing. */
static bool parse_stat(const char *stat, uint64_t field[FIELDS])
{
	/* The name may hold anything. */
	const char *p = strrchr(stat, ')');
	char *end;

	for (int i = FIELD_STATE + 1; p && i < FIELDS; i++) {
		p = strchr(i == FIELD_STATE + 1 ? p + 2 : p, ' ');
		if (!p)
			break;
		field[i] = strtoull(p, &end, 10);
		p = end;
	}
	return p != NULL;
}

/* Return: 0 not one of a copy, 1 one that is not dead yet, 2 a zombie. */
static int judge_by(const char *stat, const struct proc_status *st)
{
	const uint64_t never = BIT(SIGKILL) | BIT(SIGSTOP); /* cannot be blocked */
	uint64_t f[FIELDS], signal;

	if (!parse_stat(stat, f) || f[FIELD_EXIT_SIGNAL] || st->tracer)
		return 0;
	if (st->state != 'Z')
		return (st->sig_blocked | never | BIT(SIGSEGV)) == UINT64_MAX;
	signal = f[FIELD_EXIT_CODE] & 0x7f;
	if (signal == SIGKILL)
		return (st->sig_blocked | never) == UINT64_MAX && !f[FIELD_MINFLT] &&
			       !f[FIELD_MAJFLT]
			   ? 2
			   : 0;
	return signal == SIGSEGV && (st->sig_blocked | never) == ~BIT(SIGSEGV) ? 2 : 0;
}

static int judge(pid_t pid, struct proc_status *st)
{
	char path[64], stat[1024];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(stat, 1, sizeof(stat) - 1, f);
		fclose(f);
	}
	stat[n] = 0;
	return n && !proc_status_read(pid, 0, st) ? judge_by(stat, st) : 0;
}

int remains_find(pid_t pid, struct remains *r)
{
	struct tids children;
	int ret = proc_children(pid, &children);

	memset(r, 0, sizeof(*r));
	if (ret)
		return ret;
	vec_for_each (&children.list, child) {
		struct proc_status st;
		int what = judge(*child, &st);

		r->dying |= what == 1;
		if (what == 2 && !ret)
			ret = vec_push(&r->dead.list, st.ns_pid);
	}
	vec_free(&children.list);
	if (ret)
		remains_free(r);
	return ret;
}

void remains_free(struct remains *r)
{
	vec_free(&r->dead.list);
}
