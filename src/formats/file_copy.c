/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/binaries.h"
#include "lib/intern.h"

int mpf_put_item(struct mpf_writer *w, const struct mpf_item *it)
{
	switch (it->kind) {
	case MPF_HOOK:
		return mpf_put_hook(w, &it->hook);
	case MPF_MODULE:
		return mpf_put_module(w, &it->module);
	case MPF_THREAD:
		return mpf_put_thread(w, it->thread.tid, it->thread.name);
	case MPF_STACK:
		return mpf_put_stack(w, it->stack.id, it->stack.flags, it->stack.pc, it->stack.n);
	case MPF_EVENT:
		return mpf_put_event(w, &it->event);
	case MPF_SAMPLE:
		return mpf_put_sample(w, &it->sample);
	case MPF_LOSSES:
		return mpf_put_losses(w, &it->losses);
	case MPF_SYMBOLS:
		return mpf_put_symbols(w, it->symbols.pc, it->symbols.at, it->symbols.n);
	case MPF_FINISH:
		return mpf_put_finish(w, &it->finish);
	case MPF_CULLED:
		return mpf_put_culled(w, &it->culled);
	case MPF_SECTION:
		return mpf_put_section(w, &it->section);
	case MPF_STACK_PEAK:
		return mpf_put_stack_peak(w, &it->stack_peak);
	case MPF_MARK:
		return mpf_put_mark(w, it->mark.time_ns, it->mark.name);
	case MPF_MAP_USAGE:
		return mpf_put_map_usage(w, &it->map_usage);
	case MPF_PROCESS:
		return mpf_put_process(w, &it->process);
	case MPF_TOTALS: /* only in an index, which a copy does not have */
	case MPF_LIVE:
	case MPF_ACTIVITY:
	case MPF_THREAD_ACTIVITY:
	case MPF_END:
		break;
	}
	return -EINVAL;
}

bool mpf_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int copy_items(struct mpf_reader *r, struct mpf_writer *w, const struct mpf_change *change,
		      const char *to, struct mp_err *err)
{
	struct mpf_item it;
	int ret, wrong = 0;

	while (!wrong && (ret = mpf_next(r, &it, err)) > 0)
		wrong = change->item(change->ctx, w, &it);
	if (!wrong && ret < 0)
		return ret;
	if (!wrong && change->end)
		wrong = change->end(change->ctx, w);
	return wrong ? mp_fail(err, MP_EXIT_OUTPUT, wrong, "cannot write %s: %s", to,
			       strerror(-wrong))
		     : 0;
}

static int copy_binaries(const char *from, struct mpf_writer *w, bool *left_out, struct mp_err *err)
{
	struct intern *have = intern_new();
	int ret = have ? binaries_copy(from, w, have, left_out, err)
		       : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");

	intern_free(have);
	return ret;
}

int mpf_copy(const char *from, const char *to, const struct mpf_change *change, bool *truncated,
	     struct mp_err *err)
{
	struct mpf_writer *w = NULL;
	struct mpf_reader *r;
	struct mp_info info;
	bool left_out = false;
	int ret, closed;

	if (mpf_same_file(from, to))
		return mp_fail(err, MP_EXIT_OUTPUT, -EEXIST, "%s would be written over itself", to);
	ret = mpf_open(from, &r, &info, err);
	if (ret)
		return ret;
	if (change->info)
		change->info(change->ctx, &info);
	ret = mpf_create(to, &info, &w, err);
	if (!ret)
		ret = copy_items(r, w, change, to, err);
	if (!ret && change->binaries)
		ret = copy_binaries(from, w, &left_out, err);
	*truncated = mpf_truncated(r) != NULL || left_out;
	if (w) {
		closed = *truncated ? mpf_close_open_ended(w) : mpf_close(w);
		if (closed && !ret)
			ret = mp_fail(err, MP_EXIT_OUTPUT, closed, "cannot write %s: %s", to,
				      strerror(-closed));
		if (ret)
			unlink(to);
	}
	mpf_reader_free(r);
	return ret;
}
