/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/signal_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "attach/signal_stack.h"
#include "attach/threads.h"
#include "lib/priority.h"
#include "snapshot/hand.h"

#define ALL_MS	 5000
#define PASSES	 5 /* over the threads that were on another stack, or could not be stopped */
#define PAUSE_US 2000

struct inquiry {
	struct target *t;
	struct maps maps;
	struct deadline deadline;
	bool stopped; /* all threads, by the caller */
};

static int ask_stopped(struct inquiry *q, pid_t tid, uint64_t *start)
{
	struct thread *th = thread_find(q->t, tid);

	return th ? signal_stack_read(q->t, th, &q->maps, start) : -ESRCH;
}

static int ask_alone(struct inquiry *q, pid_t tid, uint64_t *start)
{
	struct mp_err left_alone = {0};
	int ret = target_seize_thread(q->t, tid, &left_alone);

	if (!ret)
		ret = target_stop(q->t, &q->deadline, &left_alone);
	if (ret)
		return ret;
	ret = signal_stack_read(q->t, q->t->threads.at[0], &q->maps, start);
	target_release(q->t);
	return ret;
}

/* Asks the threads in @tid, and keeps there those to be asked again.  Return: 0 or -ENOMEM. */
static int ask_each(struct inquiry *q, struct signal_stacks *found, pid_t *tid, size_t *n)
{
	size_t left = 0;
	int ret = 0;

	for (size_t i = 0; i < *n; i++) {
		struct signal_stack s = {.tid = tid[i]};
		bool over = ret || deadline_passed(&q->deadline) || hand_wanted();

		if (over ||
		    (q->stopped ? ask_stopped(q, s.tid, &s.start) : ask_alone(q, s.tid, &s.start)))
			tid[left++] = s.tid;
		else if (s.start && vec_push(&found->list, s))
			ret = -ENOMEM;
	}
	*n = left;
	return ret;
}

int signal_stacks_ask(struct signal_stacks *found, struct target *t, const struct image *img)
{
	struct inquiry q = {
	    .t = t, .deadline = deadline_in_ms(ALL_MS), .stopped = t->threads.n != 0};
	size_t n = img->threads.n, left = n;
	pid_t *tid = calloc(n + 1, sizeof(*tid));
	struct priority old;
	int ret = tid ? 0 : -ENOMEM;

	*found = (struct signal_stacks){.unknown = (uint32_t)n};
	for (size_t i = 0; i < n && tid; i++)
		tid[i] = img->threads.at[i].tid;
	if (ret || maps_read(t->pid, &q.maps)) {
		free(tid);
		return ret;
	}
	priority_raise(&old);
	for (int pass = 0; pass < (q.stopped ? 1 : PASSES) && left && !ret; pass++) {
		if (pass)
			usleep(PAUSE_US);
		ret = ask_each(&q, found, tid, &left);
	}
	priority_restore(&old);
	found->unknown = (uint32_t)left;
	maps_free(&q.maps);
	free(tid);
	return ret;
}

void signal_stacks_free(struct signal_stacks *found)
{
	vec_free(&found->list);
}
