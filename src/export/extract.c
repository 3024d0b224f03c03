/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/extract.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "export/csv.h"
#include "export/output.h"
#include "formats/file.h"
#include "formats/session.h"
#include "lib/hex.h"
#include "lib/vec.h"

enum extract_file { MODULES, MAPS, SYMBOLS, MALLOPTS, THREADS, MARKS, MEMORY };

static const struct {
	const char *file, *columns;
} table[EXTRACT_KINDS] = {
    [MODULES] = {"modules.csv", "start,end,file_offset,bias,build_id,path"},
    [MAPS] = {"maps.csv", "time,process,start,end,protection,rss,anonymous,swap,path"},
    [SYMBOLS] = {"symbols.csv", "address,exact,inlined,line,column,function,raw_function,source"},
    [MALLOPTS] = {"mallopts.csv", "time,thread,param,value,result"},
    [THREADS] = {"threads.csv", "thread,name"},
    [MARKS] = {"marks.csv", "time,name"},
    [MEMORY] = {"memory.csv", "time,rss,anonymous,file,swap,address_space,session_rss,"
			      "session_anonymous,session_address_space"},
};

struct extraction {
	const char *dir;
	FILE *out[EXTRACT_KINDS];
	struct extract_result *result;
	uint32_t pid;
	VEC(uint32_t) process; /* [process number]: pid; for a merged recording */
	struct mp_err *err;
};

/* Counts a line of @kind.  Return: its file, opened if necessary; NULL with x->err filled. */
static FILE *line(struct extraction *x, enum extract_file kind)
{
	char path[4096];

	x->result->lines[kind]++;
	if (x->out[kind])
		return x->out[kind];
	snprintf(path, sizeof(path), "%s/%s", x->dir, table[kind].file);
	x->out[kind] = output_open(path, false, x->err);
	x->result->file[kind] = table[kind].file;
	if (x->out[kind])
		fprintf(x->out[kind], "%s\r\n", table[kind].columns);
	return x->out[kind];
}

static void end_with(FILE *out, const char *text)
{
	csv_text(text ? text : "", out);
	fputs("\r\n", out);
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static int put_module(FILE *out, const struct mp_module *m)
{
	char id[2 * sizeof(m->build_id) + 1];

	fprintf(out, "0x%llx,0x%llx,0x%llx,0x%llx,%s,", (unsigned long long)m->start,
		(unsigned long long)m->end, (unsigned long long)m->file_offset,
		(unsigned long long)m->bias, hex_text(m->build_id, m->build_id_len, id));
	end_with(out, m->path);
	return 0;
}

static int put_map(const struct extraction *x, FILE *out, const struct mp_map_usage *u)
{
	uint64_t number = x->process.n ? u->start >> MP_PROCESS_SHIFT : 0,
		 base = number << MP_PROCESS_SHIFT;

	fprintf(out, "%.9f,%u,0x%llx,0x%llx,%c%c%c,%llu,%llu,%llu,", seconds(u->time_ns),
		number < x->process.n ? x->process.at[number] : x->pid,
		(unsigned long long)(u->start - base), (unsigned long long)(u->end - base),
		u->prot & PROT_READ ? 'r' : '-', u->prot & PROT_WRITE ? 'w' : '-',
		u->prot & PROT_EXEC ? 'x' : '-', (unsigned long long)u->rss,
		(unsigned long long)u->anonymous, (unsigned long long)u->swap);
	end_with(out, u->path);
	return 0;
}

static void put_symbol(FILE *out, uint64_t pc, const struct mp_symbol *s)
{
	fprintf(out, "0x%llx,%s,%s,%u,%u,", (unsigned long long)(pc & ~SS_PC_EXACT),
		pc & SS_PC_EXACT ? "true" : "false", s->is_inline ? "true" : "false", s->line,
		s->column);
	csv_text(s->function ? s->function : "", out);
	putc(',', out);
	csv_text(s->raw_function ? s->raw_function : "", out);
	putc(',', out);
	end_with(out, s->source);
}

static int put_symbols(struct extraction *x, const struct mpf_item *it)
{
	for (uint32_t i = 0; i < it->symbols.n; i++) {
		FILE *out = line(x, SYMBOLS);

		if (!out)
			return -EIO;
		put_symbol(out, it->symbols.pc, &it->symbols.at[i]);
	}
	return 0;
}

static int put_mallopt(FILE *out, const struct mp_event *ev)
{
	fprintf(out, "%.9f,%u,%d,%d,%d\r\n", seconds(ev->time_ns), ev->tid, (int32_t)ev->size,
		(int32_t)ev->usable, ev->fd);
	return 0;
}

static int put_thread(FILE *out, const struct mpf_item *it)
{
	fprintf(out, "%u,", it->thread.tid);
	end_with(out, it->thread.name);
	return 0;
}

static int put_mark(FILE *out, const struct mpf_item *it)
{
	fprintf(out, "%.9f,", seconds(it->mark.time_ns));
	end_with(out, it->mark.name);
	return 0;
}

static int put_memory(FILE *out, const struct mp_sample *s)
{
	fprintf(out, "%.9f,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\r\n", seconds(s->time_ns),
		(unsigned long long)s->rss, (unsigned long long)s->anonymous,
		(unsigned long long)s->file, (unsigned long long)s->swap,
		(unsigned long long)s->address_space, (unsigned long long)s->session_rss,
		(unsigned long long)s->session_anonymous,
		(unsigned long long)s->session_address_space);
	return 0;
}

/* Return: 0, or a negative errno with x->err filled. */
static int extract_item(struct extraction *x, const struct mpf_item *it)
{
	FILE *out;

	switch (it->kind) {
	case MPF_MODULE:
		out = line(x, MODULES);
		return out ? put_module(out, &it->module) : -EIO;
	case MPF_MAP_USAGE:
		out = line(x, MAPS);
		return out ? put_map(x, out, &it->map_usage) : -EIO;
	case MPF_PROCESS:
		return vec_push(&x->process, it->process.pid)
			   ? mp_fail(x->err, MP_EXIT_FAILURE, -ENOMEM, "out of memory")
			   : 0;
	case MPF_SYMBOLS:
		return put_symbols(x, it);
	case MPF_EVENT:
		if (it->event.kind != EV_MALLOPT)
			return 0;
		out = line(x, MALLOPTS);
		return out ? put_mallopt(out, &it->event) : -EIO;
	case MPF_THREAD:
		out = line(x, THREADS);
		return out ? put_thread(out, it) : -EIO;
	case MPF_MARK:
		out = line(x, MARKS);
		return out ? put_mark(out, it) : -EIO;
	case MPF_SAMPLE:
		out = line(x, MEMORY);
		return out ? put_memory(out, &it->sample) : -EIO;
	default:
		return 0;
	}
}

static int close_all(struct extraction *x, int ret)
{
	for (int i = 0; i < EXTRACT_KINDS; i++) {
		int closed = x->out[i] ? output_close(x->out[i]) : 0;

		if (closed && !ret)
			ret = mp_fail(x->err, MP_EXIT_OUTPUT, closed, "cannot write %s/%s: %s",
				      x->dir, table[i].file, strerror(-closed));
	}
	return ret;
}

int recording_extract(const char *path, const char *dir, struct extract_result *result,
		      struct mp_err *err)
{
	struct extraction x = {.dir = dir, .result = result, .err = err};
	struct mpf_reader *r = NULL;
	struct mp_info info;
	struct mpf_item it;
	int ret;

	memset(result, 0, sizeof(*result));
	ret = mpf_open(path, &r, &info, err);
	x.pid = ret ? 0 : info.pid;
	if (!ret && mkdir(dir, 0700) && errno != EEXIST)
		ret = mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot make the folder %s: %s", dir,
			      strerror(errno));
	while (!ret && (ret = mpf_next(r, &it, err)) > 0)
		ret = extract_item(&x, &it);
	ret = close_all(&x, ret);
	result->truncated = r && mpf_truncated(r);
	mpf_reader_free(r);
	vec_free(&x.process);
	return ret ? ret : unpack_binaries(path, dir, &result->binaries, err);
}
