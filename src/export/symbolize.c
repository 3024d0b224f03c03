/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/anonymous.h"
#include "formats/binaries.h"
#include "formats/session.h"
#include "lib/intern.h"
#include "lib/vec.h"
#include "model/names/names.h"
#include "unwind/symbols/debuginfod.h"
#include "unwind/symbols/symbols.h"

#define MAX_FRAMES 64

/* A module whose file is not on this machine; its path is owned. */
struct missing {
	struct mp_module m;
	bool carried; /* by the recording */
};

struct symbolizing {
	struct symbols *symbols; /* from this machine */
	struct names *names;	 /* from the recording */
	struct intern *seen;	 /* addresses seen */
	VEC(uint64_t) pcs;
	VEC(struct missing) missing;
	VEC(struct mpf_item) last; /* items that must follow the symbols */
	struct anonymous *anonymous;
	struct symbolize_result *result;
};

/* ------------------------------------------------------------------ first pass -- */

static int see_stack(struct symbolizing *k, const struct mpf_item *it)
{
	for (uint32_t i = 0; i < it->stack.n; i++) {
		bool fresh;

		if (!intern_pair(k->seen, it->stack.pc[i], 0, &fresh) ||
		    (fresh && vec_push(&k->pcs, it->stack.pc[i])))
			return -ENOMEM;
	}
	return 0;
}

/* Adds the module's file.  If this machine has none, or another build, the symbols or the binary in
 * the recording are used. */
static int see_module(struct symbolizing *k, const struct mp_module *m)
{
	int ret = symbols_add_module(k->symbols, m, NULL);
	struct missing own = {.m = *m};
	char *path;

	if (!ret)
		return 0;
	path = strdup(m->path ? m->path : "");
	own.m.path = path;
	if (path && !vec_push(&k->missing, own))
		return 0;
	free(path);
	return -ENOMEM;
}

static int see(struct symbolizing *k, const struct mpf_item *it)
{
	switch (it->kind) {
	case MPF_MODULE:
		return see_module(k, &it->module);
	case MPF_SYMBOLS:
		return names_add(k->names, it->symbols.pc, it->symbols.at, it->symbols.n);
	case MPF_STACK:
		return see_stack(k, it);
	default:
		return 0;
	}
}

static int read_all(struct symbolizing *k, const char *path, struct mp_err *err)
{
	struct mpf_reader *r;
	struct mpf_item it;
	struct mp_info info;
	int ret = mpf_open(path, &r, &info, err);

	if (ret)
		return ret;
	while ((ret = mpf_next(r, &it, err)) > 0) {
		ret = see(k, &it);
		if (ret) {
			mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
			break;
		}
	}
	mpf_reader_free(r);
	return ret;
}

/* ------------------------------------------------------------------ binaries -- */

static int write_piece(void *ctx, const void *data, size_t n)
{
	return fwrite(data, 1, n, ctx) == n ? 0 : -EIO;
}

/* libdw reads files, so the binary is written to an unnamed temporary file. */
static int unpack(struct symbolizing *k, struct binaries *b, const struct binary *which)
{
	FILE *file = tmpfile();
	char path[64];
	int ret;

	if (!file)
		return -errno;
	ret = binaries_read(b, which, write_piece, file);
	if (!ret && fflush(file))
		ret = -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	vec_for_each (&k->missing, m) {
		if (!ret && binary_is_of(which, &m->m))
			m->carried |= !symbols_add_module(k->symbols, &m->m, path);
	}
	fclose(file);
	return ret;
}

static bool is_missing(const struct symbolizing *k, const struct binary *b)
{
	vec_for_each (&k->missing, m) {
		if (binary_is_of(b, &m->m))
			return true;
	}
	return false;
}

static int use_binaries(struct symbolizing *k, const char *path, struct mp_err *err)
{
	struct binaries b;
	int ret = binaries_open(&b, path, err), failed = 0;

	for (size_t i = 0; !ret && !failed && i < b.list.n; i++) {
		const struct binary *which = &b.list.at[i];

		if (which->wrong || !is_missing(k, which))
			continue;
		failed = unpack(k, &b, which);
		k->result->binaries++;
	}
	binaries_close(&b);
	return failed ? mp_fail(err, MP_EXIT_FAILURE, failed,
				"cannot unpack a binary of %s into a temporary file: %s", path,
				strerror(-failed))
		      : ret;
}

/* ------------------------------------------------------------------ symbols -- */

static bool has_function(const struct mp_symbol *s, uint32_t n)
{
	return n && s[n - 1].function;
}

static bool has_line(const struct mp_symbol *s, uint32_t n)
{
	return n && s[0].source && s[0].line;
}

/* ------------------------------------------------------------------ servers -- */

static bool lacks_lines(const struct symbolizing *k, const struct mp_module *m)
{
	vec_for_each (&k->pcs, pc) {
		uint64_t addr = *pc & ~SS_PC_EXACT;
		uint32_t n = 0;
		const struct mp_symbol *known;

		if (addr < m->start || addr > m->end)
			continue;
		known = names_find(k->names, *pc, &n);
		if (!has_line(known, known ? n : 0))
			return true;
	}
	return false;
}

/* A debug file without the file that it belongs to has the functions and lines, too. */
static void use_servers(struct symbolizing *k, struct debuginfod *servers)
{
	symbols_ask(k->symbols, servers);
	vec_for_each (&k->missing, it) {
		const struct mp_module *m = &it->m;
		char *path;
		int fd;

		if (it->carried || m->path[0] != '/' || !lacks_lines(k, m))
			continue;
		fd = debuginfod_fetch(servers, m->build_id, m->build_id_len, &path);
		if (fd < 0)
			continue;
		close(fd);
		(void)symbols_add_module(k->symbols, m, path);
		free(path);
	}
}

/* ------------------------------------------------------------------ second pass -- */

/* Return: number of frames of @pc in @out: those of @known, or better ones. */
static uint32_t resolve(struct symbolizing *k, uint64_t pc, const struct mp_symbol *known,
			uint32_t n, struct mp_symbol *out)
{
	uint32_t found = has_line(known, n) ? 0 : symbols_find(k->symbols, pc, out, MAX_FRAMES);

	if (!has_function(out, found) || (has_function(known, n) && !has_line(out, found))) {
		found = n < MAX_FRAMES ? n : MAX_FRAMES;
		for (uint32_t i = 0; i < found; i++)
			out[i] = known[i];
	} else if (pc & SS_PC_EXACT && has_function(known, n)) {
		/* A hooked function keeps the name under which it was hooked. */
		out[found - 1].function = known[n - 1].function;
		out[found - 1].raw_function = known[n - 1].raw_function;
	}
	return found;
}

static int put_item(struct symbolizing *k, struct mpf_writer *w, struct mpf_item it)
{
	struct mp_symbol hidden[256];
	int ret = anonymous_item(k->anonymous, &it, hidden);

	return ret ? ret : mpf_put_item(w, &it);
}

static int put_symbols(struct symbolizing *k, struct mpf_writer *w, uint64_t pc)
{
	struct mpf_item it = {.kind = MPF_SYMBOLS};
	struct mp_symbol sym[MAX_FRAMES] = {0};
	uint32_t n = 0;
	const struct mp_symbol *known = names_find(k->names, pc, &n);

	if (!known)
		n = 0;
	it.symbols.pc = pc;
	it.symbols.at = sym;
	it.symbols.n = resolve(k, pc, known, n, sym);
	k->result->addresses++;
	k->result->before += has_function(known, n);
	k->result->lines_before += has_line(known, n);
	k->result->after += has_function(sym, it.symbols.n);
	k->result->lines_after += has_line(sym, it.symbols.n);
	return it.symbols.n ? put_item(k, w, it) : 0;
}

static void on_info(void *ctx, struct mp_info *info)
{
	struct symbolizing *k = ctx;

	anonymous_info(k->anonymous, info);
}

static int on_item(void *ctx, struct mpf_writer *w, const struct mpf_item *it)
{
	struct symbolizing *k = ctx;

	if (it->kind == MPF_SYMBOLS)
		return 0;
	if (it->kind == MPF_FINISH)
		return vec_push(&k->last, *it);
	return put_item(k, w, *it);
}

static int on_end(void *ctx, struct mpf_writer *w)
{
	struct symbolizing *k = ctx;
	int ret = 0;

	for (size_t i = 0; i < k->pcs.n && !ret; i++)
		ret = put_symbols(k, w, k->pcs.at[i]);
	for (size_t i = 0; i < k->last.n && !ret; i++)
		ret = mpf_put_item(w, &k->last.at[i]);
	return ret;
}

int recording_symbolize(const char *from, const char *to, const struct symbolize_options *o,
			struct symbolize_result *result, struct mp_err *err)
{
	struct symbolizing k = {.result = result};
	struct mpf_change change = {.info = on_info, .item = on_item, .end = on_end, .ctx = &k};
	int ret = -ENOMEM;

	*result = (struct symbolize_result){0};
	k.symbols = symbols_new(o->debug_dirs);
	k.names = names_new();
	k.seen = intern_new();
	k.anonymous = anonymous_new(o->anonymize);
	if (k.symbols && k.names && k.seen && k.anonymous)
		ret = read_all(&k, from, err);
	else
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	if (!ret)
		ret = use_binaries(&k, from, err);
	if (!ret && o->servers)
		use_servers(&k, o->servers);
	if (!ret)
		ret = mpf_copy(from, to, &change, &result->truncated, err);
	symbols_free(k.symbols);
	names_free(k.names);
	intern_free(k.seen);
	vec_free(&k.pcs);
	vec_for_each (&k.missing, m)
		free((char *)m->m.path);
	vec_free(&k.missing);
	vec_free(&k.last);
	anonymous_free(k.anonymous);
	return ret;
}
