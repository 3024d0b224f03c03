/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/heap/heap_growth.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/heap/leaks_cmd.h"
#include "cmd/options/parse.h"
#include "cmd/progress.h"
#include "heaps/consistent.h"
#include "leaks/growth/look_file.h"
#include "lib/create.h"
#include "lib/path.h"
#include "lib/printable.h"

#define STOP_MS	 5000
#define CHECK_MS 200 /* between the looks: how often the progress is shown */

bool growth_parse_budget(const char *text, struct growth_budget *b)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"s", 1},	  {"sec", 1},	  {"m", 60},	{"min", 60},
		     {"h", 3600}, {"hour", 3600}, {"d", 86400}, {"day", 86400}};
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char size[32];

	if (!n || n >= sizeof(size))
		return false;
	memcpy(size, text, n);
	/* "10MB", "10MiB", "10M" are the same. */
	if (n > 1 && size[n - 1] == 'B')
		n--;
	if (n > 1 && size[n - 1] == 'i')
		n--;
	size[n] = 0;
	b->seconds = 0;
	for (size_t i = 0; slash && i < sizeof(units) / sizeof(units[0]); i++)
		b->seconds = strcmp(slash + 1, units[i].unit) ? b->seconds : units[i].seconds;
	return (!slash || b->seconds > 0) && parse_bytes(size, &b->bytes);
}

int growth_complain(int error, const struct mp_err *err)
{
	complain(err);
	if (error == -ETIME || error == -ETIMEDOUT)
		return LEAKS_PAUSE;
	if (err->exit == MP_EXIT_NO_PROCESS)
		return LEAKS_GONE;
	return err->exit == MP_EXIT_USAGE ? LEAKS_USAGE : LEAKS_NOT_INSPECTABLE;
}

/* ------------------------------------------------------------- one look -- */

/* Takes a look at the image of the process, which then is let go.  @started: as read before; now it
 * can have ended. */
static int examine(struct consistent_census *m, struct target *t, uint64_t started,
		   struct look *look, struct mp_err *err)
{
	struct mp_err end_err = {0};
	char exe[PATH_MAX];
	int ret = proc_exe(t->pid, exe, sizeof(exe)), end;

	ret = look_take(look, &m->snapshot.image, &m->census, ret ? "" : exe, err);
	look->age_ns = look->started == started ? look->age_ns : 0;
	look->started = started;
	look->taken_ns = m->snapshot.taken_ns;
	look->pause_ns =
	    m->snapshot.pause_ns > m->longest_pause_ns ? m->snapshot.pause_ns : m->longest_pause_ns;
	end = snapshot_end(&m->snapshot, &end_err);
	/* In place the pause ends here. */
	if (m->snapshot.pause_ns > look->pause_ns)
		look->pause_ns = m->snapshot.pause_ns;
	if (end && end != -ESRCH && !ret) {
		ret = end;
		*err = end_err;
	}
	look->name = strdup(t->status.name);
	look->mode = strdup(snapshot_mode_name(m->snapshot.plan.mode));
	if (!ret && (!look->name || !look->mode))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory for a look");
	return ret;
}

/* @first: prints what the look is going to do to the process. */
static int take_look(struct target *t, enum snapshot_mode mode, bool first, struct look *look,
		     struct mp_err *err)
{
	struct mp_err end_err = {0};
	struct consistent_census m = {0};
	struct snapshot_plan plan;
	const uint64_t started = proc_start_time(t->pid);
	int ret, walked;

	memset(look, 0, sizeof(*look));
	interrupt_begin(LEAKS_NOT_INSPECTABLE, LEAKS_PAUSE);
	ret = target_check_program(t, err);
	/* The process can have grown, so each look has a plan of its own. */
	if (!ret)
		ret = snapshot_plan(&plan, t, mode, 0, err);
	if (!ret && first) {
		leaks_print_plan(t, &plan);
		fflush(stdout);
	}
	if (!ret)
		ret = consistent_take(&m, t, &plan, STOP_MS, &walked, err);
	if (!ret && walked) {
		ret = walked;
		snapshot_end(&m.snapshot, &end_err);
	} else if (!ret) {
		ret = examine(&m, t, started, look, err);
	}
	if (!ret && first)
		leaks_print_heaps(&m.census);
	census_free(&m.census);
	interrupt_end();
	return ret ? target_ask_again(t, ret, err) : 0;
}

static int save(const struct look *l, const char *path)
{
	FILE *f;
	int ret = create_stream(path, &f);

	if (!ret) {
		ret = look_write(l, f);
		if (fclose(f) && !ret)
			ret = -errno;
	}
	if (ret) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, create_error(ret));
		return LEAKS_NOT_INSPECTABLE;
	}
	printf("saved: %s; memprof heap diff compares it with another one\n", printable(path));
	return 0;
}

/* ------------------------------------------------------------- between the looks -- */

enum waited { WAITED_DUE, WAITED_ENDED, WAITED_INTERRUPTED };

/* Signals that end the waiting.  They are blocked from the first look to the last, so that none is
 * lost; during a look interrupt.h handles them. */
static sigset_t ending(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	return set;
}

/* Waits until @due_ns. */
static enum waited wait_until(const struct target *t, int signals, uint64_t due_ns,
			      struct progress *bar)
{
	const uint64_t start = mono_ns();
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd p[] = {{.fd = signals, .events = POLLIN},
				     {.fd = t->pidfd, .events = POLLIN}};
		const uint64_t now = mono_ns(), left = now < due_ns ? (due_ns - now) / 1000000 : 0;

		if (poll(p, 2, left < CHECK_MS ? (int)left : CHECK_MS) < 0 && errno != EINTR)
			return WAITED_INTERRUPTED;
		if (p[0].revents && read(signals, &info, sizeof(info)) > 0)
			return WAITED_INTERRUPTED;
		if (p[1].revents)
			return WAITED_ENDED;
		if (mono_ns() >= due_ns)
			return WAITED_DUE;
		progress_tell(bar, (double)(mono_ns() - start) / (double)(due_ns - start));
	}
}

struct looks {
	struct look at[GROWTH_MAX_LOOKS];
	size_t n;
	int error; /* why the last look failed, or 0 */
	struct mp_err err;
	bool interrupted;
};

static void take_looks(struct target *t, enum snapshot_mode mode, const struct growth_request *q,
		       int signals, struct looks *l)
{
	const size_t wanted = q->duration_ms ? (q->samples ? q->samples : 2) : 1;
	const uint64_t step_ns = wanted > 1 ? q->duration_ms * 1000000 / (wanted - 1) : 0;
	uint64_t first_ns = 0;

	while (l->n < wanted) {
		char what[64];
		struct progress bar;
		enum waited how = WAITED_DUE;

		snprintf(what, sizeof(what), "waiting for look %zu of %zu", l->n + 1, wanted);
		progress_begin(&bar, what);
		if (l->n)
			how = wait_until(t, signals, first_ns + step_ns * l->n, &bar);
		progress_end(&bar);
		if (how == WAITED_INTERRUPTED) {
			l->interrupted = true;
			return;
		}
		l->error = take_look(t, mode, !l->n, &l->at[l->n], &l->err);
		if (l->error) {
			look_free(&l->at[l->n]);
			return;
		}
		if (!l->n)
			first_ns = l->at[0].taken_ns;
		growth_print_look(&l->at[l->n], l->n + 1, wanted > 1 ? wanted : 0);
		l->n++;
	}
}

static int compare_looks(const struct looks *l, const struct growth_request *q)
{
	const struct look *look[GROWTH_MAX_LOOKS];
	struct mp_err err = {0};
	struct heap_growth g;
	char cut[sizeof(l->err.what)];
	int ret, status;

	for (size_t i = 0; i < l->n; i++)
		look[i] = &l->at[i];
	snprintf(cut, sizeof(cut), "%s", l->interrupted ? "interrupted" : printable(l->err.what));
	ret = growth_make(&g, look, l->n, &err);
	status = ret ? growth_complain(ret, &err)
		     : growth_report(&g, q, l->interrupted || l->error ? cut : NULL);
	growth_free(&g);
	return status;
}

static int finish_looks(const struct looks *l, const struct growth_request *q)
{
	int status = 0;

	if (q->save && l->n) {
		status = save(&l->at[l->n - 1], q->save);
		if (status)
			return status;
	}
	if (l->n >= 2)
		status = compare_looks(l, q);
	else if (l->interrupted)
		fputs("memprof: interrupted after the first look, so that there is nothing to "
		      "compare; the process is unchanged\n",
		      stderr);
	if (l->interrupted && l->n < 2)
		return LEAKS_NOT_INSPECTABLE;
	if (!l->error)
		return status;
	/* The report, if there is one, has the reason. */
	if (l->n < 2)
		return growth_complain(l->error, &l->err);
	if (status)
		return status;
	return l->err.exit == MP_EXIT_NO_PROCESS ? LEAKS_GONE : LEAKS_NOT_INSPECTABLE;
}

int heap_growth_run(struct target *t, enum snapshot_mode mode, const struct growth_request *q)
{
	struct looks *l = calloc(1, sizeof(*l));
	sigset_t set = ending(), before;
	int signals, status;

	if (!l)
		return growth_complain(
		    -ENOMEM, &(struct mp_err){.exit = MP_EXIT_FAILURE, .what = "out of memory"});
	sigprocmask(SIG_BLOCK, &set, &before);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		status =
		    growth_complain(-errno, &(struct mp_err){.exit = MP_EXIT_FAILURE,
							     .what = "cannot wait for signals"});
	} else {
		take_looks(t, mode, q, signals, l);
		close(signals);
		sigprocmask(SIG_SETMASK, &before, NULL);
		status = finish_looks(l, q);
	}
	for (size_t i = 0; i < l->n; i++)
		look_free(&l->at[i]);
	free(l);
	return status;
}

int heap_save_core(const char *core, const char *exe, const struct growth_request *q)
{
	struct mp_err err = {0};
	struct look look = {0};
	struct census census = {0};
	struct image img;
	int ret, status;

	image_init(&img, NULL, 0);
	ret = image_open_core(&img, core, exe, &err);
	if (!ret)
		ret = census_take(&census, &img, &err);
	if (!ret)
		ret = look_take(&look, &img, &census, exe, &err);
	look.name = strdup(path_base(exe));
	look.mode = strdup("core");
	if (!ret && (!look.name || !look.mode))
		ret = mp_fail(&err, MP_EXIT_FAILURE, -ENOMEM, "no memory for a look");
	if (ret) {
		status = growth_complain(ret, &err);
	} else {
		look.pid = img.threads.at[0].tid;
		leaks_print_core(&img, look.name);
		leaks_print_heaps(&census);
		growth_print_look(&look, 1, 0);
		status = save(&look, q->save);
	}
	look_free(&look);
	census_free(&census);
	image_close(&img);
	return status;
}
