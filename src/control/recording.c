/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include "control/cache_dir.h"
#include "control/delivery.h"
#include "control/descriptors.h"
#include "control/embed.h"
#include "control/ending.h"
#include "control/jit.h"
#include "control/news.h"
#include "control/notices.h"
#include "control/orders.h"
#include "control/modules.h"
#include "control/output_name.h"
#include "control/pieces.h"
#include "control/serve.h"
#include "control/state.h"
#include "control/takeover.h"
#include "control/watch.h"
#include "inject/find.h"
#include "lib/cpu_account.h"
#include "lib/parallel.h"
#include "lib/printable.h"
#include "lib/privileges.h"
#include "record/clock.h"
#include "record/kernel/probes.h"

#define FILES 24 /* open at once, a generous estimate */

static bool code_changed(void *ctx)
{
	return recording_refresh(ctx);
}

static bool follows_call(void *ctx, uint64_t pc)
{
	const struct recording *rec = ctx;
	const struct arch *arch = rec->t->arch;
	uint8_t code[ARCH_MAX_CALL];

	return arch->unwind.ends_in_call &&
	       !mem_read(&rec->t->mem, pc - sizeof(code), code, sizeof(code)) &&
	       arch->unwind.ends_in_call(code, sizeof(code));
}

static void fill_info(struct target *t, struct mp_info *info, char *exe, size_t exe_size,
		      char *cmdline, size_t cmdline_size)
{
	memset(info, 0, sizeof(*info));
	if (proc_exe(t->pid, exe, exe_size))
		snprintf(exe, exe_size, "?");
	if (proc_cmdline(t->pid, cmdline, cmdline_size))
		snprintf(cmdline, cmdline_size, "?");
	if (!proc_called(t->pid, exe, info->called, sizeof(info->called)))
		info->called[0] = 0;
	info->pid = (uint32_t)t->pid;
	info->machine = t->arch->elf_machine;
	info->executable = exe;
	info->cmdline = cmdline;
	info->memprof_version = MEMPROF_VERSION;
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
		notice(o->notices, "not recorded with --via=kernel: %s",
		       printable(observer_left_out(rec->observer)));
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
		notice(rec->o->notices,
		       "without CAP_PERFMON the kernel does not report page faults inside system "
		       "calls (kernel.perf_event_paranoid)");
}

static int open_the_session(struct recording *rec, const struct recording_options *o,
			    const char *path, struct mp_err *err)
{
	char control[CONTROL_NAME] = "", full[8192];
	char cache[4096];
	const struct session_options so = {.recording = full,
					   .cache = cache_dir_path(cache, sizeof(cache)),
					   .control = control,
					   .ring_size = o->ring_size,
					   .lossless = o->lossless,
					   .no_thinning = o->no_thinning,
					   .zero = o->zero,
					   .free_stacks = o->free_stacks,
					   .sample_interval = o->sample_interval,
					   .overhead_ppm = o->overhead_ppm,
					   .no_hooks = o->page_faults};

	if (rec->sender)
		snprintf(full, sizeof(full), "%s", path);
	else
		output_absolute(path, full, sizeof(full));
	/* Without the socket only requests to the recorder do not work. */
	if (control_open(control, serve_request, &rec->r, &rec->control))
		control[0] = 0;
	if (o->via_kernel)
		return session_observe(&rec->s, rec->t, &so, err);
	if (rec->resumed)
		return take_over_orphan(&rec->s, rec->t, &so, o->carry_budget, o->notices,
					&rec->carry, err);
	return session_open(&rec->s, rec->t, &so, err);
}

/* Notes the code that the process has mapped when the recording begins. */
static int note_first_code(struct recording *rec, struct mp_err *err)
{
	int ret = rec->resumed ? code_history_continue(&rec->code, &rec->carry) : 0;

	if (!ret)
		ret = recording_note_code(rec, mono_ns());
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "%s", strerror(-ret)) : 0;
}

/* Return: the threads that the recorder can have while the target has as many processors. */
static unsigned int default_jobs(void)
{
	unsigned int spare = parallel_processors() / 2;

	return spare < 1 ? 1 : spare > RECORDER_JOBS ? RECORDER_JOBS : spare;
}

static int start_recorder(struct recording *rec, const struct recording_options *o,
			  const char *path, struct mp_info *info, struct mp_err *err)
{
	const struct recorder_config config = {
	    .pid = rec->t->pid,
	    .path = path,
	    .file = rec->sender ? rec->sender_fd : 0,
	    .delivered = rec->sender ? delivery_wait : NULL,
	    .queue_ceiling = o->queue_size,
	    .jobs = o->jobs ? o->jobs : default_jobs(),
	    .max_depth = o->depth,
	    .select = o->select,
	    .code_changed = code_changed,
	    .follows_call = follows_call,
	    .next_module = recording_next_module,
	    .next_change = recording_next_change,
	    .ctx = rec,
	    .rotation = recording_rotation(o->rotate),
	    .live_only = o->live_only,
	    .last_view = o->last_view ? fcntl(o->last_view, F_DUPFD_CLOEXEC, 3) : 0,
	    .info = *info,
	    .carry = rec->resumed ? &rec->carry : NULL,
	    .complete_until = o->via_kernel ? &rec->observed_until : NULL,
	    .block = rec->s.block,
	    .layout = &rec->s.layout,
	    .journal = rec->s.journal,
	    .block_length = rec->s.length,
	};
	int ret;

	session_id_of(rec->t->pid, &rec->id);
	ret = recorder_start(&config, &rec->r, err);
	delivery_begun(rec);
	return ret;
}

static int start_recording(struct recording *rec, const struct recording_options *o,
			   const char *path, bool launched, struct mp_err *err)
{
	char exe[4096], cmdline[8192];
	struct mp_info info;
	int heard, ret = want_descriptors(FILES, err);

	if (ret)
		return ret;
	if (!clock_readable())
		return mp_fail(err, MP_EXIT_ARCH, -ENOSYS,
			       "programs cannot read this processor's time counter, which memprof "
			       "needs for its time stamps");
	/* Before the tables are built: changes of the code since then are known. */
	heard = sideband_open(rec->t->pid, &rec->sideband);
	ret = open_the_session(rec, o, path, err);
	if (!ret)
		ret = note_first_code(rec, err);
	if (ret)
		return ret;
	recording_note_jit(rec);
	fill_info(rec->t, &info, exe, sizeof(exe), cmdline, sizeof(cmdline));
	memcpy(info.id, rec->file_id, sizeof(info.id));
	snprintf(rec->executable, sizeof(rec->executable), "%s", exe);
	snprintf(rec->called, sizeof(rec->called), "%s", info.called);
	info.mode = launched;
	info.sample_interval = rec->resumed ? rec->s.layout.sample_interval : o->sample_interval;
	info.overhead_ppm = rec->resumed ? rec->s.layout.overhead_ppm : o->overhead_ppm;
	info.cull_ns = info.sample_interval ? 0 : o->cull_ms * 1000000;
	info.keep = o->keep;
	if (o->page_faults)
		about_faults(rec, &info);
	ret = start_recorder(rec, o, path, &info, err);
	if (ret)
		return ret;
	if (heard && !o->quiet)
		notice(o->notices,
		       "the kernel does not allow perf events; new libraries are found by reading "
		       "/proc/%d/maps",
		       rec->t->pid);
	if (o->via_kernel)
		return start_observer(rec, o, launched, info.user_only, err);
	if (!rec->resumed) {
		pthread_mutex_lock(&rec->lock);
		ret = session_install(&rec->s, err);
		pthread_mutex_unlock(&rec->lock);
	}
	if (!ret)
		privileges_keep(PRIVILEGES_TARGET);
	return ret;
}

static void report_begin(struct recording *rec, const struct recording_options *o, const char *path)
{
	char allocators[sizeof(rec->s.plan.allocators)], refused[sizeof(rec->s.plan.refused)];
	const struct notices *n = o->notices;
	size_t hooks;

	pthread_mutex_lock(&rec->lock);
	memcpy(allocators, rec->s.plan.allocators, sizeof(allocators));
	memcpy(refused, rec->s.plan.refused, sizeof(refused));
	hooks = rec->s.plan.hooks.n;
	pthread_mutex_unlock(&rec->lock);
	if (!o->quiet)
		n->begun(n->ctx, &(struct recording_begun){rec->t->pid, rec->s.no_hooks, allocators,
							   hooks, path});
	n->started(n->ctx);
	if (!o->quiet && refused[0])
		notice(n, "not hooked: %s", printable(refused));
}

static int record(struct recording *rec, const struct recording_options *o, const char *path,
		  bool launched)
{
	enum mp_end_reason reason = MP_END_ERROR;
	const struct recording_orders *orders = o->orders;
	int status, failed, fd = orders->begin(orders->ctx);
	struct mp_err err = {0};

	if (fd < 0)
		failed =
		    mp_fail(&err, MP_EXIT_FAILURE, fd, "cannot take orders: %s", strerror(-fd));
	else
		failed = start_recording(rec, o, path, launched, &err);
	if (!failed) {
		if (orders->serves)
			orders->serves(orders->ctx, rec->r);
		report_begin(rec, o, path);
		recording_tell(rec, o, 0);
		reason = recording_watch(rec, o, fd);
	}
	status = recording_end(rec, o, reason, path, failed != 0);
	if (!failed && orders->serves)
		orders->serves(orders->ctx, NULL);
	if (fd >= 0)
		orders->end(orders->ctx, fd);
	if (failed)
		target_ask_again(rec->t, failed, &err);
	return failed ? recording_failed(o, &err) : status;
}

int recording_run(struct target *t, const struct recording_options *o, bool launched)
{
	struct recording rec = {
	    .t = t, .o = o, .pattern = o->path, .jit.root = -1, .sender_fd = -1};
	struct cpu_account account;
	struct mp_err err = {0};
	int status;

	rec.resumed = !launched && !o->via_kernel && session_is_orphan(t->pid);
	if (!rec.pattern)
		rec.pattern = rec.resumed ? "memprof-%p-%t.memprof" : "memprof-%p.memprof";
	output_name(rec.pattern, t->pid, o->count, o->again, rec.path, sizeof(rec.path));
	if (getrandom(rec.file_id, sizeof(rec.file_id), 0) != (ssize_t)sizeof(rec.file_id))
		memset(rec.file_id, 0, sizeof(rec.file_id));
	/* While signals still end memprof. */
	if (delivery_wanted(o) && delivery_open(&rec, o, &err))
		return recording_failed(o, &err);
	pthread_mutex_init(&rec.lock, NULL);
	pthread_mutex_init(&rec.code_lock, NULL);
	/* Other recordings, or a program that uses the library, can be in the same process. */
	cpu_account_begin(&account);
	status = record(&rec, o, rec.path, launched);
	control_close(rec.control);
	delivery_free(&rec);
	recorder_free(rec.r);
	symbols_free(rec.symbols);
	jit_files_close(&rec.jit);
	sideband_close(rec.sideband);
	session_free(&rec.s);
	carry_free(&rec.carry);
	code_history_free(&rec.code);
	pthread_mutex_destroy(&rec.code_lock);
	pthread_mutex_destroy(&rec.lock);
	cpu_account_end(&account);
	return status;
}

int recording_launch(char *const argv[], const struct recording_options *o)
{
	struct mp_err err = {0};
	struct target t;
	int status, child = 0;

	if (target_launch(&t, argv, &err))
		return notice_error(o->notices, &err);
	t.steps = o->steps ? o->steps() : NULL;
	status = recording_run(&t, o, true);
	target_close(&t);
	/* After Ctrl-C or --for the program continues, and as its parent memprof waits for it. */
	if (waitpid(t.pid, &child, __WALL) == t.pid && !status) {
		if (WIFEXITED(child))
			return WEXITSTATUS(child);
		if (WIFSIGNALED(child))
			return 128 + WTERMSIG(child);
	}
	return status;
}
