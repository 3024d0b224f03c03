/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/symbols.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/session.h"
#include "lib/vec.h"
#include "unwind/build_id.h"
#include "unwind/symbols/debug_file.h"
#include "unwind/symbols/jit_names.h"
#include "unwind/symbols/symfile.h"

#define MAX_FRAMES 64

/* Libiberty's demangle.h is outside the include path on Debian and conflicts with other headers. */
extern char *cplus_demangle(const char *mangled, int options);
#define DMGL_PARAMS (1 << 0)
#define DMGL_ANSI   (1 << 1)
#define DMGL_AUTO   (1 << 8)

struct file {
	struct mp_module m; /* the module for which it was opened */
	dev_t dev;
	ino_t ino;
	struct symfile *symbols;
};

struct module {
	struct mp_module m; /* m.path is in symbols.strings */
	struct file *file;  /* or NULL */
};

struct symbols {
	Dwfl_Callbacks callbacks;
	char *debug_path;
	struct debuginfod *servers; /* NULL: none */
	VEC(struct file *) files;
	VEC(struct module) modules;
	VEC(char *) strings;
	struct jit_names *jit; /* or NULL */
};

char *symbol_demangle(const char *raw)
{
	if (!raw || raw[0] != '_')
		return NULL;
	return cplus_demangle(raw, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

static const char *keep_name(struct symbols *s, char *text)
{
	if (text && vec_push(&s->strings, text)) {
		free(text);
		return NULL;
	}
	return text;
}

struct symbols *symbols_new(const char *const *debug_dirs)
{
	struct symbols *s = calloc(1, sizeof(*s));
	size_t n = 64;

	if (!s)
		return NULL;
	for (size_t i = 0; debug_dirs && debug_dirs[i]; i++)
		n += strlen(debug_dirs[i]) + 1;
	s->debug_path = malloc(n);
	if (s->debug_path) {
		strcpy(s->debug_path, DEBUG_FILE_PATH);
		for (size_t i = 0; debug_dirs && debug_dirs[i]; i++) {
			strcat(s->debug_path, ":");
			strcat(s->debug_path, debug_dirs[i]);
		}
	}
	s->callbacks = debug_file_callbacks;
	s->callbacks.debuginfo_path = &s->debug_path;
	if (!s->debug_path) {
		symbols_free(s);
		return NULL;
	}
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	vec_for_each (&s->files, f) {
		symfile_free((*f)->symbols);
		free(*f);
	}
	vec_free(&s->files);
	vec_for_each (&s->strings, t)
		free(*t);
	vec_free(&s->modules);
	vec_free(&s->strings);
	jit_names_free(s->jit);
	free(s->debug_path);
	free(s);
}

void symbols_ask(struct symbols *s, struct debuginfod *servers)
{
	s->servers = servers;
	vec_for_each (&s->files, f)
		symfile_ask((*f)->symbols, servers);
}

bool symbols_right_file(int fd, const struct mp_module *m)
{
	return elf_is_build(fd, m->build_id, m->build_id_len);
}

static bool same_build_id(const struct mp_module *a, const struct mp_module *b)
{
	return a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/* Return: the file if it is open already, because it is mapped in parts, several times or by
 * several processes. */
static struct file *find_file(const struct symbols *s, const struct mp_module *m,
			      const struct stat *st)
{
	vec_for_each (&s->files, it) {
		struct file *f = *it;

		if (!strcmp(f->m.path, m->path) && same_build_id(&f->m, m) &&
		    (m->build_id_len || (f->dev == st->st_dev && f->ino == st->st_ino)))
			return f;
	}
	return NULL;
}

/* Takes ownership of @fd. */
static struct file *open_file(struct symbols *s, const struct mp_module *m, const char *path,
			      int fd, const struct stat *st)
{
	struct file *f = debug_file_is_sane(fd) ? calloc(1, sizeof(*f)) : NULL;

	if (f) {
		f->m = *m;
		f->dev = st->st_dev;
		f->ino = st->st_ino;
		f->symbols = symfile_open(&s->callbacks, m->path, path, fd);
	}
	if (!f || !f->symbols) {
		close(fd);
		free(f);
		return NULL;
	}
	symfile_ask(f->symbols, s->servers);
	if (vec_push(&s->files, f)) {
		symfile_free(f->symbols);
		free(f);
		return NULL;
	}
	return f;
}

/* Return: 0 with @m->file set, or a negative errno. */
static int use_file(struct symbols *s, struct module *m, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !symbols_right_file(fd, &m->m)) {
		close(fd);
		return -ESTALE;
	}
	m->file = find_file(s, &m->m, &st);
	if (m->file)
		close(fd);
	else
		m->file = open_file(s, &m->m, path, fd, &st);
	return m->file ? 0 : -ENOEXEC;
}

int symbols_add_module(struct symbols *s, const struct mp_module *m, const char *open_path)
{
	const char *path = open_path ? open_path : m->path;
	struct module copy = {.m = *m};
	int ret = path && path[0] == '/' ? 0 : -ENOENT;

	copy.m.path = keep_name(s, strdup(m->path ? m->path : ""));
	if (!copy.m.path)
		return -ENOMEM;
	if (!ret)
		ret = use_file(s, &copy, path);
	return vec_push(&s->modules, copy) ? -ENOMEM : ret;
}

static const struct module *find_module(const struct symbols *s, uint64_t addr)
{
	/* Newer mappings come first. */
	for (size_t i = s->modules.n; i-- > 0;) {
		const struct module *m = &s->modules.at[i];

		if (addr >= m->m.start && addr < m->m.end)
			return m;
	}
	return NULL;
}

static void name(struct symbols *s, struct mp_symbol *out, const char *raw)
{
	char *nice = symbol_demangle(raw);

	out->raw_function = raw;
	out->function = nice ? keep_name(s, nice) : raw;
}

void symbols_set_jit(struct symbols *s, struct jit_names *jit)
{
	jit_names_free(s->jit);
	s->jit = jit;
}

const struct mp_module *symbols_module(const struct symbols *s, uint64_t pc)
{
	const struct module *m = find_module(s, ss_pc_instruction(pc));

	return m ? &m->m : NULL;
}

bool symbols_in_file(const struct symbols *s, uint64_t pc)
{
	const struct module *m = find_module(s, ss_pc_instruction(pc));

	return m && m->file;
}

uint32_t symbols_find(struct symbols *s, uint64_t pc, struct mp_symbol *out, uint32_t max)
{
	uint64_t addr = ss_pc_instruction(pc);
	const struct module *m = find_module(s, addr);
	struct symfile_frame frames[MAX_FRAMES];
	uint32_t n = 0;

	if (m && m->file)
		n = symfile_find(m->file->symbols, addr - m->m.bias, frames,
				 max < MAX_FRAMES ? max : MAX_FRAMES);
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct mp_symbol){.source = frames[i].source,
					    .line = frames[i].line,
					    .column = frames[i].column,
					    .is_inline = frames[i].is_inline};
		name(s, &out[i], frames[i].name);
	}
	return n || !s->jit || !max ? n : jit_names_find(s->jit, mp_address_in_process(addr), out);
}
