/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends a recording: removes the hooks, writes the symbols, prints the summary. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/summary.h"
#include "control/follow.h"
#include "control/recording.h"
#include "inject/family.h"

/* Copies the list of modules, which changes while the recording runs.  The paths are not copied:
 * they stay valid. */
static struct mp_module *copy_modules(struct recording *rec, size_t *n)
{
	struct mp_module *copy;

	pthread_mutex_lock(&rec->lock);
	*n = 0;
	copy = calloc(rec->s.tables.code.n + 1, sizeof(*copy));
	for (; copy && *n < rec->s.tables.code.n; (*n)++)
		copy[*n] = rec->s.tables.code.at[*n].m;
	pthread_mutex_unlock(&rec->lock);
	return copy;
}

struct symbols *recording_symbols(struct recording *rec)
{
	struct symbols *symbols = symbols_new(NULL);
	struct mp_module *module;
	char path[4096];
	size_t n;

	if (!symbols)
		return NULL;
	module = copy_modules(rec, &n);
	for (size_t i = 0; i < n; i++) {
		const struct mp_module *m = &module[i];

		/* Prefers the mapped file itself, even if it was deleted or replaced.  If that
		 * cannot be opened, uses the file that has its name in the target's root. */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", proc_of(rec->t->pid),
			 (unsigned long long)m->start, (unsigned long long)m->end);
		if (access(path, R_OK))
			snprintf(path, sizeof(path), "/proc/%d/root%s", proc_of(rec->t->pid),
				 m->path);
		if (symbols_add_module(symbols, m, access(path, R_OK) ? NULL : path))
			continue;
	}
	free(module);
	return symbols;
}

void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n)
{
	struct mp_symbol sym[64];

	for (uint64_t i = 0; i < n && symbols; i++) {
		uint32_t found = symbols_find(symbols, pc[i], sym, 64);
		const char *name;

		pthread_mutex_lock(&rec->lock);
		name = summary_hooked_as(&rec->s, pc[i]);
		pthread_mutex_unlock(&rec->lock);
		if (name && found)
			sym[found - 1].function = sym[found - 1].raw_function = name;
		if (found && mpf_put_symbols(w, pc[i], sym, found))
			return;
	}
}

static void symbolize(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;

	recording_put_symbols(rec, rec->symbols, w, pc, n);
}

static void embed(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;

	embedding_put(&rec->embedding, recording_target_alive(rec) ? rec->t->pid : 0, w, pc, n);
}

void recording_put_modules(void *ctx, struct mpf_writer *w)
{
	struct mp_module *module;
	size_t n;

	module = copy_modules(ctx, &n);
	for (size_t i = 0; i < n; i++)
		mpf_put_module(w, &module[i]);
	free(module);
}

static void send_news(const struct recording_options *o, const struct recording_news *news)
{
	if (o->news_fd && write(o->news_fd, news, sizeof(*news)) != (ssize_t)sizeof(*news))
		return; /* the follower is gone */
}

void recording_tell(const struct recording *rec, const struct recording_options *o, uint8_t reason)
{
	struct recording_news news = {.kind = reason ? NEWS_ENDED : NEWS_BEGUN,
				      .reason = reason,
				      .id = rec->id,
				      .recording.pid = rec->t->pid};

	if (reason && rec->r) {
		struct recorder_progress p = recorder_progress(rec->r);

		news.recording.allocations = p.allocs;
		news.recording.mapped_bytes = summary_own_heap(&rec->s, &p) ? p.mapped_bytes : 0;
	}
	snprintf(news.recording.path, sizeof(news.recording.path), "%.*s", CHILD_PATH - 1,
		 rec->path);
	send_news(o, &news);
}

int recording_failed(const struct recording_options *o, const struct mp_err *err)
{
	const struct recording_news news = {.kind = NEWS_FAILED, .why = *err};

	if (!o->child)
		return complain(err);
	send_news(o, &news);
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
}

/* Restores forked children too, unless a follower does that. */
static void leave_family(const struct recording *rec, const struct recording_options *o,
			 uint8_t reason)
{
	uint32_t left = 0, restored = 0;

	if ((!o->news_fd || recording_is_deserted(rec)) && reason != MP_END_KEPT)
		restored = family_restore(&rec->id, 1, rec->t->pid, &left);
	tell_restored(restored);
	if (left)
		fprintf(stderr,
			"memprof: %u process%s forked from it still ha%s memprof's pages; see: "
			"memprof status\n",
			left, left == 1 ? "" : "es", left == 1 ? "s" : "ve");
	recording_tell(rec, o, reason);
}

/* Return: 0, or the error of session_close() with @err. */
static int take_out(struct recording *rec, struct mp_finish *finish, struct mp_err *err)
{
	int ret;

	if (!rec->s.block || finish->reason == MP_END_EXITED || finish->reason == MP_END_EXECED)
		return 0;
	/* session_close() runs without the lock: threads can take long to leave the agent. */
	pthread_mutex_lock(&rec->lock);
	rec->closed = !rec->s.observes;
	pthread_mutex_unlock(&rec->lock);
	ret = rec->s.observes ? 0 : session_close(&rec->s, err);
	finish->restored = ret == 0;
	if (ret == -ESRCH)
		finish->reason = MP_END_EXITED;
	return ret;
}

static int complete(struct recording *rec, const struct recording_options *o,
		    struct mp_finish *finish, const char *path, bool failed)
{
	bool embeds = o->embed && !failed && finish->reason != MP_END_KEPT;
	const struct recorder_ending ending = {recording_put_modules, symbolize,
					       embeds ? embed : NULL};
	struct mp_losses losses = {0};
	int ret;

	finish->attach_stop_ns = rec->s.open_stop_ns + rec->s.patch_stop_ns;
	finish->detach_stop_ns = rec->s.close_stop_ns;
	finish->sideband = rec->sideband != NULL;
	if (recorder_progress(rec->r).stalled)
		fprintf(stderr,
			"memprof: process %d is released; the recording is completed when its disk "
			"accepts data again\n",
			rec->t->pid);
	ret = recorder_stop(rec->r, finish, &losses, &ending);
	recording_tell_piece_error(rec); /* an error of the last moment */
	if (!failed)
		summary_print(&(struct summary){&rec->s, rec->r, rec->symbols, &losses, finish,
						path, o->page_faults});
	if (embeds && !ret)
		embedding_tell(&rec->embedding);
	if (o->embed && finish->reason == MP_END_KEPT)
		fprintf(stderr,
			"memprof: no binaries are embedded, because the session continues\n");
	if (ret)
		fprintf(stderr, "memprof: the recording could not be written completely: %s\n",
			strerror(-ret));
	if (failed)
		unlink(path);
	return ret ? MP_EXIT_OUTPUT : MP_EXIT_OK;
}

int recording_end(struct recording *rec, const struct recording_options *o,
		  enum mp_end_reason reason, const char *path, bool failed)
{
	struct mp_finish finish = {.reason = (uint8_t)reason};
	struct mp_err late = {0};
	int status = 0;

	if (rec->r && reason == MP_END_KEPT) {
		rec->symbols = recording_symbols(rec);
		recorder_keep(rec->r);
	} else if (!(rec->resumed && failed)) {
		status = take_out(rec, &finish, &late);
	}
	observer_stop(rec->observer);
	if (rec->r && reason != MP_END_KEPT)
		recorder_let_go(rec->r);
	/* Not earlier: with many modules, reading symbols uses up all descriptors. */
	if (rec->s.block && !rec->symbols)
		rec->symbols = recording_symbols(rec);
	if (rec->r)
		status = complete(rec, o, &finish, path, failed);
	if (reason == MP_END_KEPT)
		session_leave(&rec->s);
	if (!failed)
		leave_family(rec, o, finish.reason);
	if (late.what[0] && finish.reason != MP_END_EXITED)
		status = complain(&late);
	return status;
}
