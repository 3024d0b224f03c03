/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "formats/binaries.h"
#include "formats/session.h"
#include "lib/file_state.h"
#include "unwind/symbols/symbols.h"

static bool any_within(const uint64_t *pc, uint64_t n, uint64_t low, uint64_t high)
{
	uint64_t first = 0, end = n;

	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (pc[middle] < low)
			first = middle + 1;
		else
			end = middle;
	}
	return first < n && pc[first] < high;
}

static bool was_executed(const struct mp_module *m, const uint64_t *pc, uint64_t n)
{
	/* Return addresses point behind the call. */
	return any_within(pc, n, m->start + 1, m->end + 1) ||
	       any_within(pc, n, m->start | SS_PC_EXACT, m->end | SS_PC_EXACT);
}

/* Is the file that of an earlier module? */
static bool is_done(const struct code_entry *code, size_t module)
{
	const struct mp_module *m = &code[module].m;

	for (size_t i = 0; i < module; i++) {
		const struct mp_module *k = &code[i].m;

		if (k->build_id_len != m->build_id_len ||
		    memcmp(k->build_id, m->build_id, m->build_id_len))
			continue;
		if (m->build_id_len || !strcmp(k->path, m->path))
			return true;
	}
	return false;
}

/* Opens the binary of the module.  Return: NULL with *@fd and *@st, or why it is not available. */
static const char *open_file(const struct code_entry *b, pid_t pid, int *fd, struct stat *st)
{
	const struct map map = {.start = b->m.start - b->add,
				.end = b->m.end - b->add,
				.ino = b->ino,
				.path = b->m.path};

	if (b->m.path[0] != '/')
		return "no file";
	if (strlen(b->m.path) >= PATH_MAX)
		return "its name is too long";
	*fd = pid ? map_open(pid, &map) : -ESRCH;
	if (*fd < 0)
		*fd = open(b->m.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (*fd < 0)
		return strerror(errno);
	if (fstat(*fd, st) || !S_ISREG(st->st_mode) || !st->st_size)
		return "not a regular file";
	if (!b->m.build_id_len && st->st_ino != b->ino)
		return "replaced by another file";
	if (!symbols_right_file(*fd, &b->m))
		return b->m.build_id_len ? "replaced by another file" : "not an ELF file";
	return NULL;
}

static bool has_changed(int fd, const struct stat *before)
{
	struct stat now;

	return fstat(fd, &now) || !file_is_unchanged(&now, before);
}

/* Copies the file into the recording.  Return: why the copy is not complete; NULL if it is, or if
 * the recording cannot be written. */
static const char *copy(int fd, const struct stat *st, const struct mp_module *m,
			struct mpf_writer *w)
{
	struct mp_binary of = {
	    .path = m->path, .build_id_len = m->build_id_len, .size = (uint64_t)st->st_size};
	char *piece = malloc(MPF_BINARY_PIECE);
	const char *why = piece ? NULL : "out of memory";

	memcpy(of.build_id, m->build_id, m->build_id_len);
	of.data = piece;
	while (!why && of.offset < of.size) {
		uint64_t left = of.size - of.offset;
		size_t want = left < MPF_BINARY_PIECE ? (size_t)left : MPF_BINARY_PIECE;
		ssize_t got = pread(fd, piece, want, (off_t)of.offset);

		if (got <= 0 || (want == left && has_changed(fd, st))) {
			why = got < 0 ? strerror(errno) : "changed while it was read";
			break;
		}
		of.n = (size_t)got;
		if (mpf_put_binary(w, &of))
			break;
		of.offset += of.n;
	}
	free(piece);
	return why;
}

static void embed(struct embedding *e, const struct code_entry *b, pid_t pid, struct mpf_writer *w)
{
	struct stat st = {0};
	int fd = -1;
	const char *why = open_file(b, pid, &fd, &st);

	if (!why)
		why = copy(fd, &st, &b->m, w);
	if (fd >= 0)
		close(fd);
	if (why) {
		binaries_left_out(e->left_out, sizeof(e->left_out), b->m.path, why);
		return;
	}
	e->files++;
	e->bytes += (uint64_t)st.st_size;
}

void embedding_put(struct embedding *e, const struct code_entry *code, size_t ncode, pid_t pid,
		   struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	for (size_t i = 0; i < ncode; i++) {
		if (was_executed(&code[i].m, pc, n) && !is_done(code, i))
			embed(e, &code[i], pid, w);
	}
}
