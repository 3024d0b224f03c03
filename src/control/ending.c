/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/ending.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "control/delivery.h"
#include "control/embed.h"
#include "control/jit.h"
#include "control/modules.h"
#include "control/news.h"
#include "control/notices.h"
#include "control/pieces.h"
#include "control/watch.h"
#include "inject/family.h"
#include "lib/check.h"
#include "lib/printable.h"

static void symbolize(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;

	if (rec->o->unkept)
		return;
	recording_name_jit(rec, rec->symbols, pc, n, rec->o->quiet ? NULL : rec->o->notices);
	recording_put_symbols(rec, rec->symbols, w, pc, n);
}

static void embed(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;
	size_t entries;
	struct code_entry *code = recording_code(rec, &entries);

	embedding_put(&rec->embedding, code, entries, recording_target_alive(rec) ? rec->t->pid : 0,
		      w, pc, n);
	free(code);
}

/* Forked children with memprof's pages. */
struct family {
	uint32_t restored, left;
};

/* Must the forked children be left to a follower, which might record them? */
static bool follower_restores(const struct recording *rec, const struct recording_options *o)
{
	return o->news_fd && (o->follow_fork || !o->servers) && !recording_is_deserted(rec);
}

/* Restores forked children, unless a follower does that. */
static struct family leave_family(const struct recording *rec, const struct recording_options *o,
				  uint8_t reason)
{
	struct family f = {0};

	if (reason != MP_END_KEPT && !follower_restores(rec, o))
		f.restored = family_restore(&rec->id, 1, rec->t->pid, &f.left);
	return f;
}

static void tell_family(const struct recording_options *o, const struct family *f)
{
	o->notices->restored(o->notices->ctx, f->restored, false);
	if (f->left)
		notice(o->notices,
		       "%u process%s forked from it still ha%s memprof's pages; see: memprof "
		       "status",
		       f->left, f->left == 1 ? "" : "es", f->left == 1 ? "s" : "ve");
}

/* May symbols come from a slow server?  Only when no process waits for the end of the recording: if
 * the program executed another one, or forked children are followed, they can. */
static bool may_ask(const struct recording *rec, const struct recording_options *o,
		    const struct mp_finish *finish)
{
	return (finish->restored || finish->reason == MP_END_EXITED) && !follower_restores(rec, o);
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
	struct mp_err incomplete = {0};
	bool sent = rec->sender != NULL;
	int ret, lost;

	finish->attach_stop_ns = rec->s.open_stop_ns + rec->s.patch_stop_ns;
	finish->detach_stop_ns = rec->s.close_stop_ns;
	finish->sideband = rec->sideband != NULL;
	if (recorder_progress(rec->r).stalled)
		notice(o->notices,
		       "process %d is released; the recording is completed when %s accepts data "
		       "again",
		       rec->t->pid, sent ? "its receiver" : "its disk");
	if (rec->symbols && !failed && may_ask(rec, o, finish))
		symbols_ask(rec->symbols, o->servers);
	ret = recorder_stop(rec->r, finish, &losses, &ending);
	lost = delivery_finish(rec, &incomplete);
	recording_tell_piece_error(rec); /* an error of the last moment */
	if (!failed && !(o->replace_at_exec && finish->reason == MP_END_EXECED))
		o->notices->ended(o->notices->ctx,
				  &(struct summary){&rec->s, rec->r, rec->symbols, &losses, finish,
						    o->servers, path, rec->executable, rec->called,
						    o->page_faults, o->verbose, sent});
	if (embeds && !ret)
		o->notices->embedded(o->notices->ctx, &rec->embedding);
	if (o->embed && finish->reason == MP_END_KEPT)
		notice(o->notices, "no binaries are embedded, because the session continues");
	if (!lost && ret && !failed)
		mp_fail(&incomplete, MP_EXIT_OUTPUT, ret,
			"the recording could not be written completely: %s", strerror(-ret));
	if (incomplete.what[0])
		notice_error(o->notices, &incomplete);
	if (failed && !sent)
		unlink(path);
	return ret || lost ? MP_EXIT_OUTPUT : MP_EXIT_OK;
}

int recording_end(struct recording *rec, const struct recording_options *o,
		  enum mp_end_reason reason, const char *path, bool failed)
{
	struct mp_finish finish = {.reason = (uint8_t)reason};
	struct mp_err late = {0};
	struct family family = {0};
	int status = 0, left = 0;

	if (rec->r && reason == MP_END_KEPT) {
		rec->symbols = recording_symbols(rec);
		recorder_keep(rec->r);
	} else if (!(rec->resumed && failed)) {
		left = take_out(rec, &finish, &late);
	}
	delivery_ending(rec, failed);
	/* The new program can have begun files of the same names. */
	if (reason == MP_END_EXECED)
		jit_files_close(&rec->jit);
	observer_stop(rec->observer);
	if (rec->r && reason != MP_END_KEPT)
		recorder_let_go(rec->r);
	/* Not earlier: with many modules, reading symbols uses up all descriptors. */
	if (rec->s.block && !rec->symbols && !o->unkept)
		rec->symbols = recording_symbols(rec);
	/* Earlier than the recording is complete: symbols can come from a slow server. */
	if (!failed)
		family = leave_family(rec, o, finish.reason);
	if (rec->r)
		status = complete(rec, o, &finish, path, failed);
	else
		ignore_result(delivery_finish(rec, NULL));
	if (reason == MP_END_KEPT)
		session_leave(&rec->s);
	if (!failed) {
		tell_family(o, &family);
		recording_tell(rec, o, finish.reason);
	}
	if (left && finish.reason != MP_END_EXITED)
		status = notice_error(o->notices, &late);
	return status;
}
