/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "control/delivery.h"
#include "control/modules.h"
#include "control/news.h"
#include "control/notices.h"
#include "control/orders.h"
#include "control/pieces.h"
#include "inject/find.h"
#include "lib/printable.h"
#include "record/clock.h"

#define TICK_MS	     100
#define LOOK_MS	     10 /* least time between two looks at the side band ... */
#define LOOKING_S    10 /* ... for so long after code was replaced */
#define EXEC_TICK_MS 5	/* what a program does before the next recorder attaches is not recorded */

static int refresh(struct recording *rec)
{
	uint64_t now = mono_ns();
	int ret, noted;

	recording_prepare_tables(rec);
	ret = session_refresh(&rec->s);
	noted = ret < 0 ? 0 : recording_note_code(rec, now);
	return noted ? noted : ret;
}

bool recording_refresh(struct recording *rec)
{
	int ret;

	pthread_mutex_lock(&rec->lock);
	ret = rec->closed ? -ESRCH : refresh(rec);
	if (ret > 0)
		rec->install_wanted = true;
	pthread_mutex_unlock(&rec->lock);
	return ret >= 0;
}

bool recording_target_alive(const struct recording *rec)
{
	struct pollfd p = {.fd = rec->t->pidfd, .events = POLLIN};

	if (rec->t->pidfd < 0)
		return !kill(rec->t->pid, 0) || errno != ESRCH;
	return poll(&p, 1, 0) == 0;
}

/* Does the process still have the address space with the session?  After an exec it does not. */
static bool still_ours(const struct recording *rec)
{
	uint64_t length;
	struct maps maps;
	bool ours;

	if (rec->s.observes)
		return true; /* an exec is in the side band and among the samples */
	if (maps_read(rec->t->pid, &maps))
		return false;
	ours = session_find(&maps, &length) == rec->s.journal->session_addr;
	maps_free(&maps);
	return ours;
}

/* Does the process have an address space, one without the session?  A process that exits loses its
 * address space before it is gone; after an exec it has a new one. */
static bool has_other_space(const struct recording *rec)
{
	struct maps maps;
	bool any;

	if (!recording_target_alive(rec) || maps_read(rec->t->pid, &maps))
		return false;
	any = maps.list.n > 0;
	maps_free(&maps);
	return any && recording_target_alive(rec);
}

/* Hooks what recording_refresh() has found. */
static void install(struct recording *rec)
{
	struct mp_err err = {0};
	bool wanted;
	int ret = 0;

	pthread_mutex_lock(&rec->lock);
	wanted = rec->install_wanted;
	rec->install_wanted = false;
	if (!wanted) {
		pthread_mutex_unlock(&rec->lock);
		return;
	}
	rec->s.plan.refused[0] = 0;
	if (rec->s.observes)
		ret = session_observe_hooks(&rec->s) ? -ENOSPC : observer_add(rec->observer, &err);
	else
		ret = session_install(&rec->s, &err);
	if (!ret && rec->s.plan.refused[0])
		notice(rec->o->notices, "not hooked: %s", printable(rec->s.plan.refused));
	pthread_mutex_unlock(&rec->lock);
	if (ret && err.exit != MP_EXIT_NO_PROCESS && recording_target_alive(rec))
		notice(rec->o->notices, "a newly loaded library cannot be recorded: %s",
		       printable(err.what));
}

/* Return: true for the order to end the recording. */
static bool takes_order(struct recording *rec, int fd)
{
	const struct recording_orders *orders = rec->o->orders;
	enum recording_order order = orders->take(orders->ctx, fd);

	if (order != ORDER_PAUSE_OR_RESUME)
		return order == ORDER_END;
	recorder_pause(rec->r, !recorder_is_paused(rec->r));
	notice(rec->o->notices, "recording %s", recorder_is_paused(rec->r) ? "paused" : "resumed");
	return false;
}

static void tell_stall(const struct recording *rec, bool *told)
{
	bool stalled = recorder_progress(rec->r).stalled;

	if (stalled && !*told)
		notice(rec->o->notices,
		       "no data could be written to the recording for 2 s (is the %s?); the "
		       "process does not wait, events that are lost are counted",
		       rec->sender ? "receiver away" : "disk stalled");
	else if (!stalled && *told)
		notice(rec->o->notices, "the recording can be written again");
	*told = stalled;
}

static void report_progress(const struct recording *rec)
{
	const struct notices *n = rec->o->notices;
	struct recorder_progress p = recorder_progress(rec->r);

	n->progress(n->ctx, &p, rec->s.no_hooks);
}

/* Waits until an order came, the process has ended or a tick has passed.  Meanwhile keeps the unwind tables of a process right that
 * replaces code.  Return: whether an order came. */
static bool wait_for_tick(struct recording *rec, int orders, int tick_ms)
{
	uint64_t now = mono_ns(), end = now + (uint64_t)tick_ms * 1000000,
		 replaced = recording_code_replaced(rec);
	/* All processes of the machine make the side band ready. */
	bool looks = replaced && now < replaced + LOOKING_S * 1000000000ull, pauses = false;

	for (; now < end; now = mono_ns()) {
		struct pollfd p[3] = {
		    {.fd = orders, .events = POLLIN},
		    {.fd = rec->t->pidfd, .events = POLLIN},
		    {.fd = looks && !pauses ? sideband_fd(rec->sideband) : -1, .events = POLLIN}};
		int left = (int)((end - now) / 1000000) + 1;

		poll(p, 3, pauses && left > LOOK_MS ? LOOK_MS : left);
		if (p[0].revents || p[1].revents)
			return p[0].revents;
		pauses = p[2].revents;
		if (pauses && recording_code_is_stale(rec))
			recording_refresh(rec);
	}
	return false;
}

static enum mp_end_reason watch(struct recording *rec, const struct recording_options *o,
				int orders)
{
	uint64_t start = mono_ns(), last_line = start, last_maps = start;
	int tick = o->follow_exec || o->replace_at_exec ? EXEC_TICK_MS : TICK_MS;
	bool stall_told = false;

	for (;;) {
		bool ordered = wait_for_tick(rec, orders, tick);
		struct sideband_news news;
		uint32_t wanted;
		uint64_t now;

		target_release_late(rec->t);
		now = mono_ns();
		wanted = __atomic_load_n(&rec->s.block->detach_requested, __ATOMIC_ACQUIRE);
		if ((ordered && takes_order(rec, orders)) || wanted)
			return wanted == SS_DETACH_KEEP && !rec->s.observes ? MP_END_KEPT
									    : MP_END_DETACHED;
		news = recording_news(rec);
		if (!recording_target_alive(rec))
			return news.execed ? MP_END_EXECED : MP_END_EXITED;
		if (recording_is_deserted(rec)) {
			if (!o->quiet)
				notice(o->notices, "the memprof process that follows forks and "
						   "execs is gone: the recording ends");
			return MP_END_DETACHED;
		}
		if (news.execed)
			return !rec->s.observes && still_ours(rec) ? MP_END_ERROR : MP_END_EXECED;
		if (now - last_maps >= 1000000000 && !still_ours(rec))
			return has_other_space(rec) ? MP_END_EXECED : MP_END_EXITED;
		if (news.mapped || now - last_maps >= 1000000000) {
			last_maps = now;
			recording_refresh(rec);
		}
		install(rec);
		session_watch_filters(&rec->s);
		if (o->for_ms && now - start >= o->for_ms * 1000000)
			return MP_END_TIME;
		if (recorder_progress(rec->r).error)
			return MP_END_ERROR;
		recording_tell_piece_error(rec);
		tell_stall(rec, &stall_told);
		delivery_tell(rec);
		if (!o->quiet && now - last_line >= 1000000000) {
			last_line = now;
			report_progress(rec);
		}
	}
}

enum mp_end_reason recording_watch(struct recording *rec, const struct recording_options *o,
				   int orders)
{
	enum mp_end_reason reason = watch(rec, o, orders);

	if (!o->quiet)
		o->notices->progress_over(o->notices->ctx);
	return reason;
}
