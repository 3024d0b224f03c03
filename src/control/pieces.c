/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/pieces.h"

#include <stdio.h>
#include <string.h>
#include "control/jit.h"
#include "control/modules.h"
#include "control/notices.h"
#include "control/output_name.h"

static void symbolize_piece(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	struct recording *rec = ctx;
	struct symbols *symbols = recording_symbols(rec);

	recording_name_jit(rec, symbols, pc, n, NULL);
	recording_put_symbols(rec, symbols, w, pc, n);
	/* The program is still running, so do not hold its files open. */
	symbols_free(symbols);
}

static void name_piece(void *ctx, uint32_t number, char *path, size_t size)
{
	const struct recording *rec = ctx;
	const struct recording_options *o = rec->o;
	/* With a follower, %n counts processes. */
	bool counts = !o->news_fd && strstr(rec->pattern, "%n");
	char name[4096];

	output_name(rec->pattern, rec->t->pid, counts ? number : o->count, o->again, name,
		    sizeof(name));
	if (counts)
		snprintf(path, size, "%s", name);
	else
		output_piece_name(name, number, path, size);
}

static void piece_begun(void *ctx, const char *path)
{
	struct recording *rec = ctx;
	char full[8192];

	output_absolute(path, full, sizeof(full));
	pthread_mutex_lock(&rec->lock);
	session_set_recording(&rec->s, full);
	pthread_mutex_unlock(&rec->lock);
	snprintf(rec->path, sizeof(rec->path), "%s", path);
}

struct recorder_rotation recording_rotation(uint64_t bytes)
{
	return (struct recorder_rotation){
	    .bytes = bytes,
	    .name = name_piece,
	    .begun = piece_begun,
	    .ending = {.modules = recording_put_modules, .symbolize = symbolize_piece}};
}

void recording_tell_piece_error(struct recording *rec)
{
	struct recorder_progress p = recorder_progress(rec->r);
	int error = p.piece_error;

	if (error && error != rec->piece_error)
		notice(rec->o->notices,
		       "the next piece could not be created (%s): the recording continues in the "
		       "same file",
		       strerror(-error));
	rec->piece_error = error;
	error = p.delete_error;
	if (error && error != rec->delete_error)
		notice(rec->o->notices, "an old piece could not be deleted (%s)", strerror(-error));
	rec->delete_error = error;
}
