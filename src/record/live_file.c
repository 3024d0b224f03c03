/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/live_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "record/aggregator.h"
#include "record/look_at_target.h"
#include "record/losses.h"

static void temporary_path(const struct recorder_config *c, char *path, size_t size)
{
	snprintf(path, size, "%s.%d.tmp", c->path, getpid());
}

int live_file_check(const struct recorder_config *c, struct mp_err *err)
{
	struct mpf_writer *w;
	char path[4096];
	struct stat st;
	int ret;

	if (!lstat(c->path, &st) && !S_ISREG(st.st_mode))
		return mp_fail(err, MP_EXIT_OUTPUT, -EEXIST,
			       "cannot write %s: it exists and is not a regular file", c->path);
	temporary_path(c, path, sizeof(path));
	ret = mpf_create(path, &c->info, &w, err);
	if (ret)
		return ret;
	mpf_close_open_ended(w);
	unlink(path);
	return 0;
}

int live_file_begin(struct aggregator *a)
{
	struct piece_thread *t = &a->piece.closer;

	t->info = a->config->info;
	t->info.live_only = 1;
	temporary_path(a->config, t->path, sizeof(t->path));
	piece_thread_give(t, PIECE_CREATE);
	piece_thread_wait(t);
	if (!t->created)
		return t->create_error;
	a->piece.number++; /* the file has none of the stacks yet */
	a->file = t->created;
	piece_put_head(a);
	put_names(a, a->file);
	if (a->sample.time_ns)
		mpf_put_sample(a->file, &a->sample);
	return 0;
}

void live_file_write(struct aggregator *a, uint64_t now_ns)
{
	struct piece_thread *t = &a->piece.closer;
	struct mpf_writer *nowhere = a->file;
	int error = a->now.error; /* a file that cannot be written does not end the recording */

	piece_thread_wait(t);
	t->closed = live_file_begin(a);
	if (!t->closed) {
		piece_put_index(a, &a->config->rotation.ending);
		t->end = (struct piece_end){.file = a->file,
					    .losses = losses_now(a),
					    .finish = {.end_ns = now_ns,
						       .peak_live_bytes = a->levels.peak.bytes,
						       .peak_live_blocks = a->levels.peak.blocks,
						       .peak_time_ns = a->levels.peak.time_ns}};
		t->end.pc = piece_addresses(a, false, &t->end.n);
		piece_thread_give(t, PIECE_CLOSE);
	}
	a->file = nowhere;
	a->now.error = error;
}
