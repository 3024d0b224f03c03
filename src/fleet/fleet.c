/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fleet/fleet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "control/requests.h"
#include "formats/file.h"
#include "lib/deadline.h"
#include "lib/thread.h"
#include "push/metrics.h"
#include "push/scrape.h"
#include "push/stores.h"

#define SCAN_NS		   1000000000u
#define TICK_MS		   1000
#define SCRAPE_TICK_MS	   20 /* while a client waits */
#define FRESH_NS	   1000000000u
#define SCRAPE_PATIENCE_NS 5000000000u
#define END_MS		   60000 /* how long a last window may need */

/* A process that is recorded, or will be. */
struct member {
	struct fleet *fleet;
	pid_t pid;
	uint64_t start; /* of struct process */
	char name[17];
	struct push *push;
	pthread_t thread; /* in push_run() */
	bool threaded;
	bool ending; /* push_end() was called */
	bool pushed; /* the thread ends; atomic.  Then: */
	struct mp_err push_err;
	bool by_other;	     /* another memprof records it */
	int over, last_view; /* of struct push_recording */
	bool ended;	     /* the recorders' process is done with it */
	struct recorders_message end;
};

struct fleet {
	const struct fleet_options *o;
	struct recorders *recorders;
	struct processes processes;
	VEC(struct member *) members;
	int done;   /* an eventfd: a thread ends */
	bool found; /* the first scan is over */
	bool ending;
	uint64_t next_scan_ns, asked_ns; /* asked_ns: for looks, for a client; 0: none waits */
	struct fleet_result *result;
};

static struct member *find_member(const struct fleet *f, pid_t pid)
{
	vec_for_each (&f->members, m) {
		if ((*m)->pid == pid)
			return *m;
	}
	return NULL;
}

/* ------------------------------------------------------------------------ members -- */

/* Without its profiles, a recording would only cost. */
static void end_recording(const struct member *m)
{
	struct ss_journal j;

	(void)request_end(m->pid, &j, NULL);
}

static void *push_member(void *arg)
{
	struct member *m = arg;
	const struct push_recording recording = {m->by_other ? -1 : m->over, m->last_view};
	const int ret = push_run(m->push, &recording, &m->push_err);

	/* The recorder says itself why it ended. */
	if (!ret || (ret == -ESHUTDOWN && !m->by_other))
		m->push_err.what[0] = 0;
	else if (!m->by_other)
		end_recording(m);
	__atomic_store_n(&m->pushed, true, __ATOMIC_RELEASE);
	eventfd_write(m->fleet->done, 1);
	return NULL;
}

static void start_pushing(struct member *m)
{
	const int ret = thread_start(&m->thread, push_member, m);

	m->threaded = !ret;
	if (!ret)
		return;
	mp_fail(&m->push_err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s", strerror(-ret));
	if (!m->by_other)
		end_recording(m);
}

static void free_member(struct member *m)
{
	push_close(m->push);
	if (m->over >= 0)
		close(m->over);
	if (m->last_view >= 0)
		close(m->last_view);
	free(m);
}

/* Return: the member, or NULL with @err. */
static struct member *new_member(struct fleet *f, const struct process *p, struct mp_err *err)
{
	struct member *m = calloc(1, sizeof(*m));
	int ret;

	if (!m) {
		mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
		return NULL;
	}
	*m = (struct member){
	    .fleet = f, .pid = p->pid, .start = p->start, .over = eventfd(0, EFD_CLOEXEC)};
	m->last_view = memfd_create("memprof-view", MFD_CLOEXEC);
	m->end = (struct recorders_message){.news = RECORDERS_ENDED, .pid = p->pid};
	snprintf(m->name, sizeof(m->name), "%s", p->name);
	ret = m->over < 0 || m->last_view < 0
		  ? mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make a file: %s", strerror(errno))
		  : push_open(f->o->push, p->pid, &m->push, err);
	if (!ret && vec_push(&f->members, m))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret)
		return m;
	free_member(m);
	return NULL;
}

static bool other_records(pid_t pid)
{
	struct ss_control c;
	struct ss_journal j;

	return session_peek(pid, &c, &j) && j.state == SS_LIVE && recorder_lives(&j);
}

/* Did another memprof begin to record the process at the same time?  Then the next scan finds its recording. */
static bool other_was_faster(pid_t pid, int status)
{
	return status == MP_EXIT_TRACED || (status == MP_EXIT_ATTACHED && other_records(pid));
}

/* A process is not recorded, or no longer.  @p: NULL: it has ended. */
static void tell_end(struct fleet *f, struct process *p, const char *name,
		     const struct recorders_message *m)
{
	const bool refused = !m->reason && m->status;
	const bool at_the_moment = m->status == MP_EXIT_TIMEOUT || m->status == MP_EXIT_TRACED ||
				   m->status == MP_EXIT_ATTACHED ||
				   m->status == MP_EXIT_NO_ALLOCATOR;
	bool again;

	if (p && refused && !f->o->filter.pid.n && other_was_faster(p->pid, m->status)) {
		p->use = PROCESS_UNUSED;
		return;
	}
	again = p && refused && !process_refuse(p, at_the_moment);
	if (p && !refused)
		p->use = m->reason == MP_END_EXECED ? PROCESS_UNUSED : PROCESS_LEFT;
	if (!f->result->status)
		f->result->status = m->status;
	if (!again)
		f->o->notices.ended(f->o->notices.ctx, name, m);
}

static void refuse_process(struct fleet *f, pid_t pid, struct process *p, const struct mp_err *err)
{
	struct recorders_message m = {.news = RECORDERS_ENDED, .pid = pid, .status = err->exit};

	snprintf(m.text, sizeof(m.text), "%s", err->what);
	tell_end(f, p, p ? p->name : "", &m);
}

static void begin_process(struct fleet *f, struct process *p)
{
	struct mp_err err = {0};
	struct member *m = new_member(f, p, &err);

	if (!m) {
		refuse_process(f, p->pid, p, &err);
		return;
	}
	p->use = PROCESS_USED;
	m->by_other = other_records(p->pid);
	if (m->by_other) {
		start_pushing(m);
		f->result->recorded++;
		f->o->notices.begun(f->o->notices.ctx, m->pid, m->name, true);
	} else if (recorders_attach(f->recorders, p->pid, m->last_view)) {
		m->ended = true; /* the loop sees that the recorder is gone */
	}
}

/* Removes members that have ended. */
static void reap(struct fleet *f)
{
	size_t kept = 0;

	vec_for_each (&f->members, at) {
		struct member *m = *at;
		struct process *p;
		struct metrics last;

		if (!(m->ended || m->by_other) ||
		    (m->threaded && !__atomic_load_n(&m->pushed, __ATOMIC_ACQUIRE))) {
			f->members.at[kept++] = m;
			continue;
		}
		if (m->threaded)
			pthread_join(m->thread, NULL);
		last = push_metrics(m->push);
		f->result->windows += last.windows;
		f->result->windows_lost += last.windows_lost;
		if (m->push_err.what[0] && !m->end.text[0]) {
			snprintf(m->end.text, sizeof(m->end.text), "%s", m->push_err.what);
			m->end.status = m->end.status ? m->end.status : (int)m->push_err.exit;
			m->end.reason = MP_END_ERROR;
		}
		p = processes_find(&f->processes, m->pid);
		tell_end(f, p && p->start == m->start ? p : NULL, m->name, &m->end);
		free_member(m);
	}
	f->members.n = kept;
}

static void take_message(struct fleet *f, const struct recorders_message *said)
{
	struct member *m = find_member(f, said->pid);

	if (!m)
		return;
	switch (said->news) {
	case RECORDERS_BEGUN:
		f->result->recorded++;
		f->o->notices.begun(f->o->notices.ctx, m->pid, m->name, false);
		start_pushing(m);
		break;
	case RECORDERS_MESSAGE:
		f->o->notices.message(f->o->notices.ctx, m->pid, m->name, said->text);
		break;
	default:
		m->ended = true;
		m->end = *said;
		eventfd_write(m->over, 1);
	}
}

/* ------------------------------------------------------------------------- scrapes -- */

/* Have all processes been looked at after @since? */
static bool all_looked(const struct fleet *f, uint64_t since)
{
	vec_for_each (&f->members, m) {
		if ((*m)->threaded && push_metrics((*m)->push).looked_ns < since)
			return false;
	}
	return true;
}

static void answer(struct fleet *f)
{
	const struct stores_config *c = stores_config(f->o->push->stores);
	struct metrics_of_all all = {.stores = c->n};
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int ret = out ? 0 : -ENOMEM;

	metrics_recorder(&all, f->recorders->pid);
	for (size_t i = 0; i < all.stores; i++)
		all.store[i] = (struct metrics_store){c->destination[i].url,
						      stores_counts(f->o->push->stores, i)};
	vec_for_each (&f->members, m) {
		if (!ret && (*m)->threaded)
			ret = vec_push(&all.process, push_metrics((*m)->push));
	}
	for (int why = LEFT_OUT_NOT + 1; why < LEFT_OUT_REASONS; why++) {
		const struct metrics_left_out l = {left_out_word(why),
						   processes_count(&f->processes, why)};

		if (!ret && f->o->filter.all && why != LEFT_OUT_OTHER)
			ret = vec_push(&all.left_out, l);
	}
	ret = ret ? ret : metrics_write(&all, out);
	if (out && fclose(out))
		ret = -ENOMEM;
	if (ret) {
		free(text);
		text = NULL;
	}
	scrape_answer(f->o->scrape, text, n);
	vec_free(&all.process);
	vec_free(&all.left_out);
	f->asked_ns = 0;
}

/* Values are at most a second old, unless a recorder does not answer: then their age tells it. */
static void serve(struct fleet *f)
{
	const uint64_t now = mono_ns();

	if (!f->o->scrape || !scrape_run(f->o->scrape))
		return;
	if (!f->asked_ns) {
		f->asked_ns = now;
		vec_for_each (&f->members, m)
			push_look((*m)->push);
	}
	if (all_looked(f, f->asked_ns > FRESH_NS ? f->asked_ns - FRESH_NS : 0) ||
	    now - f->asked_ns > SCRAPE_PATIENCE_NS)
		answer(f);
}

/* ---------------------------------------------------------------------------- loop -- */

/* The first scan is over. */
static void tell_found(struct fleet *f)
{
	f->found = true;
	f->o->notices.found(f->o->notices.ctx, &f->processes);
	vec_for_each (&f->o->filter.pid, pid) {
		struct mp_err err = {0};

		if (processes_find(&f->processes, *pid))
			continue;
		mp_fail(&err, MP_EXIT_NO_PROCESS, -ESRCH, "there is no process %d", *pid);
		refuse_process(f, *pid, NULL, &err);
	}
}

static int scan_processes(struct fleet *f, struct mp_err *err)
{
	int ret;

	if (f->ending || mono_ns() < f->next_scan_ns)
		return 0;
	f->next_scan_ns = mono_ns() + SCAN_NS;
	ret =
	    processes_scan(&f->processes, &f->o->filter, f->o->most, clock_read_ns(CLOCK_BOOTTIME));
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot read /proc: %s", strerror(-ret));
	if (!f->found)
		tell_found(f);
	vec_for_each (&f->processes.list, p) {
		if (p->why == LEFT_OUT_NOT && p->use == PROCESS_UNUSED && !find_member(f, p->pid))
			begin_process(f, p);
	}
	return 0;
}

static int recorder_killed(int ret, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
		       "the recorder was killed; memprof detach -p PID restores a process that it "
		       "recorded");
}

static int read_messages(struct fleet *f, struct mp_err *err)
{
	struct recorders_message m;
	int ret;

	while ((ret = recorders_read(f->recorders, &m)) > 0)
		take_message(f, &m);
	return ret ? recorder_killed(ret, err) : 0;
}

static int wait_for_news(struct fleet *f, bool *stop, struct mp_err *err)
{
	struct pollfd p[] = {{.fd = f->ending ? -1 : f->o->stop, .events = POLLIN},
			     {.fd = f->recorders->fd, .events = POLLIN},
			     {.fd = f->done, .events = POLLIN},
			     {.fd = f->o->scrape ? scrape_fd(f->o->scrape) : -1, .events = POLLIN}};
	eventfd_t n;

	if (poll(p, sizeof(p) / sizeof(*p), f->asked_ns ? SCRAPE_TICK_MS : TICK_MS) < 0 &&
	    errno != EINTR)
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot wait: %s", strerror(errno));
	*stop |= p[0].revents != 0;
	if (p[2].revents)
		eventfd_read(f->done, &n);
	return p[1].revents ? read_messages(f, err) : 0;
}

/* Is there nothing to wait for any more? */
static bool is_over(const struct fleet *f)
{
	return !f->o->filter.all && !f->o->filter.name.n && f->found && !f->members.n;
}

static int loop(struct fleet *f, struct mp_err *err)
{
	const uint64_t end = f->o->for_ms ? mono_ns() + f->o->for_ms * 1000000u : UINT64_MAX;
	bool stop = false;
	int ret = 0;

	while (!ret && !stop && mono_ns() < end) {
		ret = scan_processes(f, err);
		if (is_over(f))
			break;
		ret = ret ? ret : wait_for_news(f, &stop, err);
		reap(f);
		serve(f);
	}
	return ret;
}

/* Ends some recordings with their last windows.  The others continue until it is their turn: each stops its process for a moment,
 * and if all did at once, they would wait for the processors that the others use. */
static void end_some(struct fleet *f)
{
	uint32_t ending = 0;

	vec_for_each (&f->members, m) {
		if (ending == RECORDERS_ENDING)
			break;
		ending++;
		if (!(*m)->ending)
			push_end((*m)->push);
		(*m)->ending = true;
	}
}

/* Pushes the last windows, and waits for them.  The limit of the time is for each. */
static int finish_fleet(struct fleet *f, struct mp_err *err)
{
	struct deadline patience = deadline_in_ms(END_MS);
	size_t left = f->members.n;
	bool stop = false;
	int ret = 0;

	f->ending = true;
	while (!ret && f->members.n && !deadline_passed(&patience)) {
		end_some(f);
		ret = wait_for_news(f, &stop, err);
		reap(f);
		if (f->members.n < left)
			patience = deadline_in_ms(END_MS);
		left = f->members.n;
	}
	return ret;
}

int fleet_run(const struct fleet_options *o, struct recorders *r, struct fleet_result *result,
	      struct mp_err *err)
{
	struct fleet f = {
	    .o = o, .recorders = r, .done = eventfd(0, EFD_CLOEXEC), .result = result};
	int ret, gone;

	*result = (struct fleet_result){0};
	ret = f.done < 0 ? mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make an event: %s",
				   strerror(errno))
			 : 0;
	ret = ret ? ret : loop(&f, err);
	if (!ret)
		ret = finish_fleet(&f, err);
	gone = recorders_stop(r);
	vec_for_each (&f.members, m) {
		(*m)->ended = true;
		eventfd_write((*m)->over, 1);
		push_end((*m)->push);
	}
	while (f.members.n) {
		reap(&f);
		usleep(1000);
	}
	processes_free(&f.processes);
	vec_free(&f.members);
	if (f.done >= 0)
		close(f.done);
	return ret ? ret : gone ? recorder_killed(gone, err) : 0;
}
