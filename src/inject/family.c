/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/family.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inject/find.h"
#include "inject/session.h"

#define PASSES	 20
#define PAUSE_US 2000

/* Adopts the session of @pid.  Return: 0, to be followed by let_go(), or a negative errno. */
static int adopt_session(pid_t pid, struct target *t, struct session *s)
{
	int ret = target_look(t, pid, NULL);

	if (ret)
		return ret;
	ret = session_adopt(s, t, NULL);
	if (ret)
		target_close(t);
	return ret;
}

static void let_go(struct target *t, struct session *s)
{
	session_free(s);
	target_close(t);
}

int family_leave(struct target *t, struct mp_err *err)
{
	struct session s;
	int ret = 0;

	if (session_adopt(&s, t, NULL))
		return 0;
	if (s.block && (session_is_child(&s) || s.journal->state == SS_DORMANT))
		ret = session_close(&s, err);
	session_free(&s);
	return ret == -ESRCH ? 0 : ret;
}

/* Return: 1 restored, 0 not a child (any more), -1 it still has the session. */
static int restore(pid_t pid)
{
	struct session s;
	struct target t;
	int ret;

	if (adopt_session(pid, &t, &s))
		return kill(pid, 0) || session_is_recorder(pid) ? 0 : -1;
	ret = !session_is_child(&s) ? 0 : session_close(&s, NULL) ? -1 : 1;
	let_go(&t, &s);
	return ret;
}

static bool among(const struct session_id *id, size_t n, const struct session_id *its)
{
	for (size_t i = 0; i < n; i++) {
		if (session_id_equal(&id[i], its))
			return true;
	}
	return false;
}

static void pass(const struct session_id *id, size_t n, pid_t except, uint32_t *restored,
		 uint32_t *left)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		struct session_id its;
		int ret;

		if (pid <= 0 || pid == except || pid == getpid() || !session_id_of(pid, &its) ||
		    !among(id, n, &its))
			continue;
		ret = restore(pid);
		*restored += ret > 0;
		*left += ret < 0;
	}
	if (d)
		closedir(d);
}

static bool was_seen(const struct family_watch *w, pid_t pid)
{
	vec_for_each (&w->seen, p) {
		if (*p == pid)
			return true;
	}
	return false;
}

bool family_grew(struct family_watch *w)
{
	struct session_id id, its;
	bool grew = false;
	struct dirent *e;
	DIR *d;

	if (!session_id_of(w->pid, &id))
		return true;
	d = opendir("/proc");
	while (d && !grew && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == w->pid || pid == getpid() || was_seen(w, pid))
			continue;
		grew = (session_id_of(pid, &its) && session_id_equal(&its, &id)) ||
		       vec_push(&w->seen, pid);
	}
	if (d)
		closedir(d);
	return grew || !d;
}

void family_forget(struct family_watch *w)
{
	vec_free(&w->seen);
}

uint32_t family_restore(const struct session_id *id, size_t n, pid_t except, uint32_t *left)
{
	uint32_t all = 0;

	*left = 0;
	for (int i = 0; n && i < PASSES; i++) {
		uint32_t restored = 0;

		*left = 0;
		pass(id, n, except, &restored, left);
		all += restored;
		if (!restored && !*left)
			break;
		if (!restored)
			usleep(PAUSE_US);
	}
	return all;
}
