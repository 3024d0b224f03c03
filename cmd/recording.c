/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One recording from the hooks' going in to the closing summary; attach and run share it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>
#include "cmd/carry.h"
#include "cmd/cmd.h"
#include "cmd/follow.h"
#include "cmd/serve.h"
#include "cmd/summary.h"
#include "record/observe.h"
#include "record/probes.h"
#include "lib/privileges.h"
#include "record/clock.h"
#include "record/recorder.h"
#include "record/sideband.h"
#include "unwind/symbols.h"

#define FILES	24 /* that are open at once, generously */
#define TICK_MS 100

struct recording {
	struct target *t;
	struct session s;
	struct session_id id;
	struct recorder *r;
	struct sideband *sideband;
	struct control *control;
	struct carry carry;
	struct observer *observer; /* NULL: hooks in the target */
	uint64_t observed_until;
	pthread_mutex_t lock; /* session's tables: main thread and aggregator */
	bool install_wanted, resumed;
	size_t next_module;
	struct symbols *symbols;
	uint64_t end_ns;
};

/* ---------------------------------------------------------------- callbacks of the recorder -- */

static bool refresh(struct recording *rec)
{
	int ret;

	pthread_mutex_lock(&rec->lock);
	ret = session_refresh(&rec->s);
	if (ret > 0)
		rec->install_wanted = true;
	pthread_mutex_unlock(&rec->lock);
	return ret >= 0;
}

static bool code_changed(void *ctx)
{
	return refresh(ctx);
}

static bool next_module(void *ctx, struct mp_module *m)
{
	struct recording *rec = ctx;
	bool found = false;

	pthread_mutex_lock(&rec->lock);
	vec_for_each (&rec->s.tables.code, c) {
		if (c->recorded)
			continue;
		c->recorded = true;
		*m = c->m;
		found = true;
		break;
	}
	pthread_mutex_unlock(&rec->lock);
	return found;
}

static void open_symbols(struct recording *rec)
{
	char path[4096];

	rec->symbols = symbols_new(NULL);
	if (!rec->symbols)
		return;
	vec_for_each (&rec->s.tables.code, c) {
		/* The very file that is mapped, also when it was deleted or replaced; where that
		 * may not be opened, what the target sees under its name. */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", proc_of(rec->t->pid),
			 (unsigned long long)c->m.start, (unsigned long long)c->m.end);
		if (access(path, R_OK))
			snprintf(path, sizeof(path), "/proc/%d/root%s", proc_of(rec->t->pid),
				 c->m.path);
		if (symbols_add_module(rec->symbols, &c->m, access(path, R_OK) ? NULL : path))
			continue;
	}
}

static void symbolize(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;
	struct mp_symbol sym[64];

	for (uint64_t i = 0; i < n && rec->symbols; i++) {
		uint32_t found = symbols_find(rec->symbols, pc[i], sym, 64);
		const char *name = summary_hooked_as(&rec->s, pc[i]);

		if (name && found)
			sym[found - 1].function = sym[found - 1].raw_function = name;
		if (found && mpf_put_symbols(w, pc[i], sym, found))
			return;
	}
}

static void put_modules(void *ctx, struct mpf_writer *w)
{
	const struct recording *rec = ctx;

	vec_for_each (&rec->s.tables.code, c)
		mpf_put_module(w, &c->m);
}

/* ---------------------------------------------------------------- while it runs -- */

static void progress_line(const struct recording *rec, bool tty)
{
	struct recorder_progress p = recorder_progress(rec->r);

	if (rec->s.no_hooks)
		fprintf(stderr, "%s%5.1fs  %s page faults of %s, lost %s, file %s%s",
			tty ? "\r\033[K" : "", (double)p.duration_ns / 1e9, thousands(p.allocs),
			human(p.allocated_bytes), p.lost ? thousands(p.lost) : "nothing",
			human(p.file_bytes), tty ? "" : "\n");
	else
		fprintf(stderr,
			"%s%5.1fs  %s events, %s live in %s blocks, peak %s, lost %s, file %s%s",
			tty ? "\r\033[K" : "", (double)p.duration_ns / 1e9, thousands(p.events),
			human(p.live_bytes), thousands(p.live_blocks), human(p.peak_live_bytes),
			p.lost ? thousands(p.lost) : "nothing", human(p.file_bytes),
			tty ? "" : "\n");
	fflush(stderr);
}

static bool target_alive(const struct recording *rec)
{
	struct pollfd p = {.fd = rec->t->pidfd, .events = POLLIN};

	if (rec->t->pidfd < 0)
		return !kill(rec->t->pid, 0) || errno != ESRCH;
	return poll(&p, 1, 0) == 0;
}

/* Its address space is another one when the session is not mapped any more. */
static bool still_ours(const struct recording *rec)
{
	uint64_t length;
	struct maps maps;
	bool ours;

	if (rec->s.observes)
		return true; /* an exec is in the side-band, and among the samples */
	if (maps_read(rec->t->pid, &maps))
		return false;
	ours = session_find(&maps, &length) == rec->s.journal->session_addr;
	maps_free(&maps);
	return ours;
}

/* One that ends loses its address space before it is gone; after an exec it has another. */
static bool has_other_space(const struct recording *rec)
{
	struct maps maps;
	bool any;

	if (!target_alive(rec) || maps_read(rec->t->pid, &maps))
		return false;
	any = maps.list.n > 0;
	maps_free(&maps);
	return any && target_alive(rec);
}

static void install(struct recording *rec)
{
	struct mp_err err = {0};
	int ret;

	pthread_mutex_lock(&rec->lock);
	rec->install_wanted = false;
	rec->s.plan.refused[0] = 0;
	if (rec->s.observes)
		ret = session_observe_hooks(&rec->s) ? -ENOSPC : observer_add(rec->observer, &err);
	else
		ret = session_install(&rec->s, &err);
	if (!ret && rec->s.plan.refused[0])
		fprintf(stderr, "memprof: not hooked: %s\n", rec->s.plan.refused);
	pthread_mutex_unlock(&rec->lock);
	if (ret && target_alive(rec))
		fprintf(stderr,
			"memprof: a library that was loaded meanwhile is not recorded: %s\n",
			err.what);
}

/* SIGUSR1 pauses the recording and lets it go on.  Return: true for a signal that ends it. */
static bool ended_by_signal(struct recording *rec, int signals)
{
	struct signalfd_siginfo si;

	if (read(signals, &si, sizeof(si)) != (ssize_t)sizeof(si) || si.ssi_signo != SIGUSR1)
		return true;
	recorder_pause(rec->r, !recorder_is_paused(rec->r));
	fprintf(stderr, "memprof: recording %s\n",
		recorder_is_paused(rec->r) ? "paused" : "goes on");
	return false;
}

static enum mp_end_reason watch(struct recording *rec, const struct recording_options *o,
				int signals)
{
	uint64_t start = mono_ns(), last_line = start, last_maps = start;
	bool tty = isatty(STDERR_FILENO);

	for (;;) {
		struct pollfd p[2] = {{.fd = signals, .events = POLLIN},
				      {.fd = rec->t->pidfd, .events = POLLIN}};
		struct sideband_news news = {0};
		uint32_t wanted;
		uint64_t now;

		poll(p, rec->t->pidfd >= 0 ? 2 : 1, TICK_MS);
		now = mono_ns();
		wanted = __atomic_load_n(&rec->s.block->detach_requested, __ATOMIC_ACQUIRE);
		if ((p[0].revents && ended_by_signal(rec, signals)) || wanted)
			return wanted == SS_DETACH_KEEP && !rec->s.observes ? MP_END_KEPT
									    : MP_END_DETACHED;
		if (!target_alive(rec))
			return MP_END_EXITED;
		if (rec->sideband)
			news = sideband_poll(rec->sideband);
		if (news.execed && rec->s.observes)
			return has_other_space(rec) ? MP_END_EXECED : MP_END_EXITED;
		if (news.execed || (now - last_maps >= 1000000000 && !still_ours(rec)))
			return still_ours(rec)	      ? MP_END_ERROR
			       : has_other_space(rec) ? MP_END_EXECED
						      : MP_END_EXITED;
		if (news.mapped || now - last_maps >= 1000000000) {
			last_maps = now;
			refresh(rec);
		}
		if (rec->install_wanted)
			install(rec);
		if (o->for_ms && now - start >= o->for_ms * 1000000)
			return MP_END_TIME;
		if (recorder_progress(rec->r).error)
			return MP_END_ERROR;
		if (!o->quiet && now - last_line >= 1000000000) {
			last_line = now;
			progress_line(rec, tty);
		}
	}
}

/* ---------------------------------------------------------------- the end -- */

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* RLIMIT_FSIZE is an error like a full disk */
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void fill_info(struct target *t, struct mp_info *info, char *exe, size_t exe_size,
		      char *cmdline, size_t cmdline_size)
{
	memset(info, 0, sizeof(*info));
	if (getrandom(info->id, sizeof(info->id), 0) != (ssize_t)sizeof(info->id))
		memset(info->id, 0, sizeof(info->id));
	if (proc_exe(t->pid, exe, exe_size))
		snprintf(exe, exe_size, "?");
	if (proc_cmdline(t->pid, cmdline, cmdline_size))
		snprintf(cmdline, cmdline_size, "?");
	info->pid = (uint32_t)t->pid;
	info->machine = t->arch->elf_machine;
	info->executable = exe;
	info->cmdline = cmdline;
	info->memprof_version = MEMPROF_VERSION;
}

/* For those who read the journal from another directory. */
static void absolute(const char *path, char *out, size_t size)
{
	char here[4096];

	if (*path == '/' || !getcwd(here, sizeof(here)))
		snprintf(out, size, "%s", path);
	else
		snprintf(out, size, "%s/%s", here, path);
}

static int start_observer(struct recording *rec, const struct recording_options *o, bool launched,
			  bool user_only, struct mp_err *err)
{
	struct observer_config config = {.session = &rec->s,
					 .faults = o->page_faults,
					 .user_only = user_only,
					 .stack_bytes = (uint32_t)o->stack_size,
					 .ring_bytes = o->ring_size,
					 .complete_until = &rec->observed_until,
					 .code_changed = code_changed,
					 .ctx = rec};
	int ret = observer_start(&config, &rec->observer, err);

	if (!ret && !o->quiet && observer_left_out(rec->observer)[0])
		fprintf(stderr, "memprof: not seen this way: %s\n",
			observer_left_out(rec->observer));
	if (launched)
		target_release(rec->t);
	return ret;
}

static void about_faults(const struct recording *rec, struct mp_info *info)
{
	info->what = MP_PAGE_FAULTS;
	info->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	info->user_only = probes_user_only(rec->t->pid);
	if (info->user_only)
		fprintf(stderr,
			"memprof: without CAP_PERFMON the kernel does not tell of page faults "
			"that system calls make (kernel.perf_event_paranoid)\n");
}

static int start(struct recording *rec, const struct recording_options *o, const char *path,
		 bool launched, struct mp_err *err)
{
	char control[CONTROL_NAME] = "", full[8192];
	char cache[4096];
	struct session_options so = {.recording = full,
				     .cache = cache_path(cache, sizeof(cache)),
				     .control = control,
				     .ring_size = o->ring_size,
				     .lossless = o->lossless,
				     .zero = o->zero,
				     .free_stacks = o->free_stacks,
				     .sample_interval = o->sample_interval,
				     .no_hooks = o->page_faults};
	struct recorder_config config = {.pid = rec->t->pid,
					 .path = path,
					 .queue_ceiling = o->queue_size,
					 .cull_ns = o->cull_ms * 1000000,
					 .max_depth = o->depth,
					 .select = o->select,
					 .code_changed = code_changed,
					 .next_module = next_module,
					 .ctx = rec};
	char exe[4096], cmdline[8192];
	int ret = want_descriptors(FILES, err);

	if (ret)
		return ret;
	if (!clock_readable())
		return mp_fail(err, MP_EXIT_ARCH, -ENOSYS,
			       "programs may not read this processor's counter; memprof records "
			       "with the time that it gives");
	absolute(path, full, sizeof(full));
	/* Without it only what asks a recorder at work is missing. */
	if (control_open(control, serve_request, &rec->r, &rec->control))
		control[0] = 0;
	if (o->via_kernel)
		ret = session_observe(&rec->s, rec->t, &so, err);
	else if (rec->resumed)
		ret = carry_on(&rec->s, rec->t, &so, o->carry_budget, &rec->carry, err);
	else
		ret = session_open(&rec->s, rec->t, &so, err);
	if (ret)
		return ret;
	if (rec->resumed)
		config.carry = &rec->carry;
	if (o->via_kernel)
		config.complete_until = &rec->observed_until;
	fill_info(rec->t, &config.info, exe, sizeof(exe), cmdline, sizeof(cmdline));
	config.info.mode = launched;
	config.info.sample_interval =
	    rec->resumed ? rec->s.layout.sample_interval : o->sample_interval;
	if (o->page_faults)
		about_faults(rec, &config.info);
	config.block = rec->s.block;
	config.layout = &rec->s.layout;
	config.journal = rec->s.journal;
	config.block_length = rec->s.length;
	session_id_of(rec->t->pid, &rec->id);
	ret = recorder_start(&config, &rec->r, err);
	if (!ret) {
		if (sideband_open(rec->t->pid, &rec->sideband) && !o->quiet)
			fprintf(stderr,
				"memprof: the kernel does not allow perf events; new libraries are "
				"found by reading /proc/%d/maps\n",
				rec->t->pid);
		if (o->via_kernel)
			ret = start_observer(rec, o, launched, config.info.user_only, err);
		else if (!rec->resumed)
			ret = session_install(&rec->s, err);
	}
	if (!ret && !o->via_kernel)
		privileges_keep(PRIVILEGES_TARGET);
	return ret;
}

/* To who follows.  @reason: 0 at the beginning. */
static void tell(const struct recording *rec, const struct recording_options *o, uint8_t reason)
{
	struct recording_news news = {reason != 0, reason, rec->t->pid, rec->id};

	if (o->news_fd && write(o->news_fd, &news, sizeof(news)) != (ssize_t)sizeof(news))
		return; /* it is gone: nobody follows */
}

/* Forked children are restored too, unless somebody follows them. */
static void leave_family(const struct recording *rec, const struct recording_options *o,
			 uint8_t reason)
{
	uint32_t left = 0, restored = 0;

	if (!o->news_fd && reason != MP_END_KEPT)
		restored = family_restore(&rec->id, 0, &left);
	if (restored)
		printf("restored %u processes that were forked from it\n", restored);
	if (left)
		fprintf(stderr,
			"memprof: %u processes that were forked from it still carry patched "
			"text; see: memprof status\n",
			left);
	tell(rec, o, reason);
}

static void say_what(const struct recording *rec, const char *path)
{
	if (rec->s.no_hooks)
		fprintf(stderr,
			"memprof: recording page faults of process %d to %s; Ctrl-C ends it\n",
			rec->t->pid, path);
	else
		fprintf(stderr,
			"memprof: recording process %d (%s; %zu functions hooked) to %s; "
			"Ctrl-C ends it\n",
			rec->t->pid, rec->s.plan.allocators, rec->s.plan.hooks.n, path);
}

int recording_run(struct target *t, const struct recording_options *o, bool launched)
{
	struct recording rec = {.t = t};
	const char *pattern = o->path;
	struct mp_finish finish = {0};
	struct mp_losses losses = {0};
	struct mp_err err = {0}, late = {0};
	int ret, status = 0, signals = block_signals();
	char path[4096];

	rec.resumed = !launched && !o->via_kernel && session_is_orphan(t->pid);
	if (!pattern)
		pattern = rec.resumed ? "memprof-%p-%t.memprof" : "memprof-%p.memprof";
	output_name(pattern, t->pid, o->count, o->again, path, sizeof(path));
	pthread_mutex_init(&rec.lock, NULL);
	ret = start(&rec, o, path, launched, &err);
	if (!ret) {
		if (!o->quiet)
			say_what(&rec, path);
		if (o->background) /* whoever started it may wait for the end of its output */
			dup2(STDOUT_FILENO, STDERR_FILENO);
		if (!o->quiet && rec.s.plan.refused[0])
			fprintf(stderr, "memprof: not hooked: %s\n", rec.s.plan.refused);
		tell(&rec, o, 0);
		finish.reason = (uint8_t)watch(&rec, o, signals);
		if (!o->quiet && isatty(STDERR_FILENO))
			fprintf(stderr, "\r\033[K");
	} else {
		finish.reason = MP_END_ERROR;
	}
	if (rec.r && finish.reason == MP_END_KEPT) {
		open_symbols(&rec);
		recorder_keep(rec.r);
	} else if (rec.s.block && !(rec.resumed && ret) && finish.reason != MP_END_EXITED &&
		   finish.reason != MP_END_EXECED) {
		status = rec.s.observes ? 0 : session_close(&rec.s, &late);
		finish.restored = status == 0;
		if (status == -ESRCH)
			finish.reason = MP_END_EXITED;
	}
	/* Not before: with many modules they take all the descriptors there are. */
	if (rec.s.block && !rec.symbols)
		open_symbols(&rec);
	observer_stop(rec.observer);
	if (rec.r) {
		const struct recorder_ending ending = {put_modules, symbolize};

		finish.attach_stop_ns = rec.s.open_stop_ns + rec.s.patch_stop_ns;
		finish.detach_stop_ns = rec.s.close_stop_ns;
		finish.sideband = rec.sideband != NULL;
		status = recorder_stop(rec.r, &finish, &losses, &ending);
		if (!ret)
			summary_print(&(struct summary){&rec.s, rec.r, rec.symbols, &losses,
							&finish, path, o->page_faults});
		if (status)
			fprintf(stderr,
				"memprof: the recording could not be written to its end: %s\n",
				strerror(-status));
		status = status ? MP_EXIT_OUTPUT : MP_EXIT_OK;
		if (ret)
			unlink(path);
	}
	if (finish.reason == MP_END_KEPT)
		session_leave(&rec.s);
	if (!ret)
		leave_family(&rec, o, finish.reason);
	control_close(rec.control);
	recorder_free(rec.r);
	if (late.what[0] && finish.reason != MP_END_EXITED)
		status = complain(&late);
	if (ret)
		status = complain(&err);
	symbols_free(rec.symbols);
	sideband_close(rec.sideband);
	session_free(&rec.s);
	carry_free(&rec.carry);
	pthread_mutex_destroy(&rec.lock);
	close(signals);
	return status;
}
