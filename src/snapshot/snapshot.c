/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include "attach/emergency.h"
#include "attach/reaper.h"
#include "lib/fault.h"
#include "lib/priority.h"
#include "snapshot/hand.h"
#include "snapshot/reap.h"

#define EACH_MS 5000 /* for all threads, one after the other */

/* Stops the thread alone, for as long as it takes to read its registers. */
static void take_registers(struct target *t, struct image_thread *th,
			   const struct deadline *deadline)
{
	struct mp_err left_alone = {0};

	if (target_seize_thread(t, th->tid, &left_alone) || target_stop(t, deadline, &left_alone))
		return;
	th->had_regs = !thread_get_regs(t, t->threads.at[0]);
	th->regs = t->threads.at[0]->regs;
	target_release(t);
}

/*
 * Adds all threads with their registers: a waiting thread can have the only reference to a block
 * there.  They continue to run until the copy is made, so the extents of their stacks are not
 * known.
 */
static int take_each(struct snapshot *s)
{
	struct deadline deadline = deadline_in_ms(EACH_MS);
	struct tids tids;
	int ret = proc_tasks(s->t->pid, &tids);

	if (ret)
		return ret;
	vec_for_each (&tids.list, tid) {
		struct image_thread th = {.tid = *tid};

		if (!deadline_passed(&deadline) && !hand_wanted())
			take_registers(s->t, &th, &deadline);
		ret = vec_push(&s->image.threads, th);
		if (ret)
			break;
	}
	vec_free(&tids.list);
	s->image.torn = true;
	return ret;
}

/* Adds threads created since, so that they are known to be alive. */
static int add_newborn(struct image *img, pid_t pid)
{
	size_t known = img->threads.n, next = 0;
	struct tids tids;
	int ret = proc_tasks(pid, &tids);

	if (ret)
		return ret;
	vec_for_each (&tids.list, tid) {
		struct image_thread th = {.tid = *tid};

		if (!image_thread(img, known, *tid, &next) && (ret = vec_push(&img->threads, th)))
			break;
	}
	vec_free(&tids.list);
	return ret;
}

static int stop_in_time(struct snapshot *s, const struct deadline *deadline, struct mp_err *err)
{
	int ret;

	runqueue_begin(&s->delays, s->t->pid);
	ret = copy_stop(s->t, s->plan.mode == SNAPSHOT_GENTLE, deadline, err);

	s->taken_ns = mono_ns();
	return ret;
}

static uint64_t let_go(struct snapshot *s)
{
	target_release(s->t);
	s->wait_ns = runqueue_longest(&s->delays);
	if (s->wait_ns > s->t->last_stop_ns)
		s->wait_ns = s->t->last_stop_ns;
	return s->t->last_stop_ns;
}

static uint64_t stopped_ns(const struct snapshot *s)
{
	return mono_ns() - s->t->stopped_at_ns;
}

/* @ns: the total time that it would be stopped. */
static int too_long(const struct snapshot *s, uint64_t ns, const char *why, struct mp_err *err)
{
	char advice[160];

	snapshot_advice(&s->plan, s->t, ns, advice, sizeof(advice));
	return mp_fail(
	    err, MP_EXIT_FAILURE, -ETIME,
	    "process %d was released after %.1f ms: %s, and --max-pause is %" PRIu64 " ms; %s",
	    s->t->pid, (double)stopped_ns(s) / 1e6, why, s->plan.max_pause_ns / 1000000, advice);
}

/* Checks before the copy is begun: the kernel cannot be interrupted while it makes one. */
static int check_pause(const struct snapshot *s, struct mp_err *err)
{
	uint64_t all = stopped_ns(s) + s->plan.copy_pause_ns;
	char why[64];

	if (!s->plan.max_pause_ns || all <= s->plan.max_pause_ns)
		return 0;
	snprintf(why, sizeof(why), "copying it would take %.1f ms more",
		 (double)s->plan.copy_pause_ns / 1e6);
	return too_long(s, all, why, err);
}

/* Requests SIGALRM in @ns, the end of the allowed pause; 0: cancels it. */
static void alarm_in(uint64_t ns)
{
	struct itimerval in = {.it_value = {.tv_sec = (time_t)(ns / 1000000000),
					    .tv_usec = (suseconds_t)(ns / 1000 % 1000000)}};

	setitimer(ITIMER_REAL, &in, NULL);
}

static int bound_pause(const struct snapshot *s, struct mp_err *err)
{
	uint64_t used = stopped_ns(s), max = s->plan.max_pause_ns;

	if (max && used + 1000 >= max)
		return too_long(s, used + s->plan.pause_ns, "nothing was read yet", err);
	if (max)
		alarm_in(max - used);
	return 0;
}

static int stop_and_copy(struct snapshot *s, bool orphan, const struct deadline *deadline,
			 struct mp_err *err)
{
	bool in_place = s->plan.mode == SNAPSHOT_IN_PLACE;
	int ret = stop_in_time(s, deadline, err);

	if (!ret)
		ret = image_take_threads(&s->image, s->t);
	fault_point("snapshot-stopped");
	if (!ret)
		ret = in_place ? bound_pause(s, err) : check_pause(s, err);
	if (!ret && !in_place)
		ret = copy_make(&s->copy, s->t, orphan, err);
	if (ret || !in_place)
		s->pause_ns = let_go(s);
	return ret;
}

static int end_snapshot(struct snapshot *s, struct mp_err *err);

static int take_copy(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	bool in_place = s->plan.mode == SNAPSHOT_IN_PLACE;
	bool orphan = !in_place && reaper_waits(s->t);
	struct mp_err second = {0};
	struct deadline deadline;
	struct priority old;
	int ret;

	if (maps_read(s->t->pid, &s->before))
		return target_refused(s->t, -ESRCH, err);
	ignore_result(emergency_find(s->t)); /* its result is cached, which shortens the stop */
	if (!in_place)
		guardian_start(&s->guardian, s->t->pid);
	priority_raise(&old);
	ret = s->plan.mode == SNAPSHOT_GENTLE ? take_each(s) : 0;
	deadline = deadline_in_ms(max_ms);
	ret = ret ? target_refused(s->t, ret, err) : stop_and_copy(s, orphan, &deadline, err);
	priority_restore(&old);
	if (ret)
		return ret;
	if (s->copy.orphan)
		guardian_end(&s->guardian);
	s->image.held = in_place;
	ret = image_open_process(&s->image, in_place ? s->t->pid : s->copy.pid, err);
	if (!ret && s->image.torn)
		ret = add_newborn(&s->image, s->t->pid);
	if (!ret && !in_place)
		ret = image_add_live(&s->image, &s->before);
	if (ret)
		end_snapshot(s, &second);
	return ret;
}

static int begin_pre_copy(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	struct deadline deadline;
	struct priority old;
	int ret;

	ignore_result(emergency_find(s->t)); /* as in take_copy() */
	deadline = deadline_in_ms(max_ms);
	priority_raise(&old);
	ret = stop_in_time(s, &deadline, err);
	if (!ret)
		ret = precopy_begin(&s->pre, s->t, err);
	s->other_pause_ns = let_go(s);
	priority_restore(&old);
	return ret;
}

static int stop_and_take(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(max_ms);
	struct priority old;
	int ret;

	priority_raise(&old);
	ret = stop_in_time(s, &deadline, err);
	if (!ret)
		ret = image_take_threads(&s->image, s->t);
	if (!ret)
		ret = image_open_process(&s->image, s->t->pid, err);
	if (!ret)
		ret = precopy_take(&s->pre, &s->image, &deadline, err);
	s->pause_ns = let_go(s);
	priority_restore(&old);
	return ret;
}

/* Does the process write so much that the stop would be longer than a copy's, or than allowed? */
static bool too_much(const struct snapshot *s, uint64_t max_ms)
{
	uint64_t ns = s->other_pause_ns + precopy_expect(&s->pre);

	return ns > max_ms * 1000000 || (s->plan.automatic && ns > s->plan.copy_pause_ns);
}

static int read_pre_copy(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	int ret = precopy_gather(&s->pre, err);

	if (!ret && too_much(s, max_ms))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ETIME,
			      "process %d writes memory so fast that %" PRIu64
			      " MiB would have to be read while it is stopped, about %.1f ms; it "
			      "was left alone",
			      s->t->pid, s->pre.left >> 20, (double)precopy_expect(&s->pre) / 1e6);
	return ret ? ret : stop_and_take(s, max_ms, err);
}

/* Might a copy succeed where the pre-copy failed? */
static bool should_copy(const struct snapshot *s, int ret, uint64_t max_ms)
{
	return s->plan.automatic && (ret == -ETIME || ret == -ENOMEM || ret == -EPERM) &&
	       s->plan.copy_pause_ns <= max_ms * 1000000;
}

static int take_pre_copy(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	int ret = begin_pre_copy(s, max_ms, err);

	if (ret)
		return ret;
	ret = read_pre_copy(s, max_ms, err);
	if (ret)
		precopy_free(&s->pre);
	return ret;
}

static int take_snapshot(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	int ret;

	image_init(&s->image, s->t->arch, s->t->pid);
	ret = s->plan.mode == SNAPSHOT_PRE_COPY ? take_pre_copy(s, max_ms, err)
						: take_copy(s, max_ms, err);
	if (ret && s->plan.mode == SNAPSHOT_PRE_COPY && should_copy(s, ret, max_ms)) {
		s->plan.mode = SNAPSHOT_COPY;
		image_close(&s->image);
		return take_snapshot(s, max_ms, err);
	}
	if (ret) {
		if (s->plan.mode == SNAPSHOT_COPY || s->plan.mode == SNAPSHOT_GENTLE)
			reap_remains(s->t);
		guardian_end(&s->guardian);
		image_close(&s->image);
		maps_free(&s->before);
	}
	return ret;
}

static int end_copy(struct snapshot *s, struct mp_err *err)
{
	struct pollfd gone = {.fd = s->t->pidfd, .events = POLLIN};
	uint32_t others;
	int ret;

	copy_kill(&s->copy);
	if (s->copy.orphan) {
		memset(&s->copy, 0, sizeof(s->copy));
		return poll(&gone, 1, 0) ? -ESRCH : reap_killed(s->t, false, &others, err);
	}
	ret = reap_copy(s->t, &s->copy, s->plan.mode == SNAPSHOT_GENTLE, err);
	s->other_pause_ns = s->t->last_stop_ns;
	return ret && ret != -ESRCH && reap_remains(s->t) ? 0 : ret;
}

static int end_snapshot(struct snapshot *s, struct mp_err *err)
{
	int ret = 0;

	if (s->plan.mode == SNAPSHOT_PRE_COPY) {
		if (!precopy_holds(&s->pre))
			ret = mp_fail(err, MP_EXIT_NO_PROCESS, -ENODATA,
				      "process %d ended, or executed another program, before all "
				      "its memory was read",
				      s->t->pid);
		precopy_free(&s->pre);
	} else if (s->copy.pid) {
		ret = end_copy(s, err);
	} else if (s->t->threads.n) {
		s->pause_ns = let_go(s);
		alarm_in(0);
	}
	guardian_end(&s->guardian);
	image_close(&s->image);
	maps_free(&s->before);
	return ret;
}

/* Undoes the snapshot if memprof ends now.  A stopped target is let go by memprof's end alone. */
static void give_up(void *arg)
{
	struct snapshot *s = arg;

	if (s->plan.mode == SNAPSHOT_PRE_COPY)
		precopy_settle(&s->pre);
	else if (s->copy.pid)
		end_copy(s, NULL);
	guardian_end(&s->guardian);
}

static int take_again(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	int ret;

	if (s->plan.mode != SNAPSHOT_PRE_COPY) {
		ret = end_snapshot(s, err);
		return ret ? ret : take_snapshot(s, max_ms, err);
	}
	image_close(&s->image);
	image_init(&s->image, s->t->arch, s->t->pid);
	ret = read_pre_copy(s, max_ms, err);
	if (ret) {
		precopy_free(&s->pre);
		image_close(&s->image);
	}
	return ret;
}

int snapshot_take(struct snapshot *s, struct target *t, const struct snapshot_plan *plan,
		  uint64_t max_ms, struct mp_err *err)
{
	int ret;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->plan = *plan;
	hand_take();
	ret = take_snapshot(s, max_ms, err);
	hand_leave(ret ? NULL : give_up, s);
	fault_point("snapshot-taken");
	return ret;
}

int snapshot_again(struct snapshot *s, uint64_t max_ms, struct mp_err *err)
{
	int ret;

	hand_take();
	ret = take_again(s, max_ms, err);
	hand_leave(ret ? NULL : give_up, s);
	return ret;
}

void snapshot_settle(struct snapshot *s)
{
	hand_take();
	if (s->plan.mode == SNAPSHOT_PRE_COPY)
		precopy_settle(&s->pre);
	hand_leave(give_up, s);
}

int snapshot_ask(struct snapshot *s, struct signal_stacks *found)
{
	int ret;

	hand_take();
	ret = signal_stacks_ask(found, s->t, &s->image);
	hand_leave(give_up, s);
	return ret;
}

int snapshot_end(struct snapshot *s, struct mp_err *err)
{
	int ret;

	hand_take();
	ret = end_snapshot(s, err);
	hand_leave(NULL, NULL);
	return ret;
}
