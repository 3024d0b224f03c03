/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "unwind/build.h"
#include "unwind/symbols/debug_file.h"
#include "unwind/symbols/symbols.h"
#include "unwind/symbols/symfile.h"

struct module {
	const char *path;
	uint64_t start;	  /* of its first map */
	size_t first_map; /* its index */
	bool opened, tabled;
	int fd;
	Elf *elf;
	uint64_t bias; /* address in memory - address in the file */
	uint64_t end;  /* of the segments, in memory */
	struct symfile *symbols;
	VEC(struct module_variable) variables; /* sorted by address in the file */
	VEC(struct module_variable) tls;       /* the same, offsets in the storage */
	GElf_Phdr tls_segment;		       /* p_memsz 0: none */
	struct unwind_table table;
};

struct modules {
	struct image *img;
	Dwfl_Callbacks callbacks;
	char *debug_path;
	uint32_t *of_map; /* by index of the map: module, or UINT32_MAX */
	struct rule_set *rules;
	VEC(struct module) list;
};

/* .bss is mapped directly after the file's data. */
static bool is_bss(const struct image *img, size_t map)
{
	const struct image_map *m = &img->maps.at[map];

	return map && !m->path[0] && m[-1].end == m->start && m[-1].path[0] == '/' && m[-1].write &&
	       !m[-1].shared;
}

static int list_modules(struct modules *m)
{
	struct image *img = m->img;

	for (size_t i = 0; i < img->maps.n; i++) {
		const struct image_map *map = &img->maps.at[i];
		const struct module *last = m->list.n ? &m->list.at[m->list.n - 1] : NULL;
		struct module fresh = {
		    .path = map->path, .start = map->start, .first_map = i, .fd = -1};

		m->of_map[i] = UINT32_MAX;
		if (is_bss(img, i)) {
			m->of_map[i] = m->of_map[i - 1];
			continue;
		}
		if (map->path[0] != '/' || map->shared)
			continue;
		/* A file that is mapped twice begins again at its start. */
		if (!last || strcmp(last->path, map->path) != 0 || !map->offset) {
			if (vec_push(&m->list, fresh))
				return -ENOMEM;
		}
		m->of_map[i] = (uint32_t)m->list.n - 1;
	}
	return 0;
}

struct modules *modules_new(struct image *img)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->img = img;
	m->debug_path = strdup(DEBUG_FILE_PATH);
	m->callbacks = debug_file_callbacks;
	m->callbacks.debuginfo_path = &m->debug_path;
	m->of_map = malloc((img->maps.n + 1) * sizeof(*m->of_map));
	m->rules = rule_set_new();
	if (!m->debug_path || !m->of_map || !m->rules || list_modules(m)) {
		modules_free(m);
		return NULL;
	}
	elf_version(EV_CURRENT);
	return m;
}

void modules_free(struct modules *m)
{
	if (!m)
		return;
	vec_for_each (&m->list, it) {
		symfile_free(it->symbols);
		elf_end(it->elf);
		if (it->fd >= 0)
			close(it->fd);
		vec_free(&it->variables);
		vec_free(&it->tls);
		unwind_table_free(&it->table);
	}
	vec_free(&m->list);
	if (m->rules)
		rule_set_free(m->rules);
	free(m->of_map);
	free(m->debug_path);
	free(m);
}

/* ------------------------------------------------------------------ opening -- */

/* From the module's first map, and the segment that is mapped there. */
static bool load_bias(const struct modules *m, struct module *it)
{
	const uint64_t page = ~(uint64_t)(m->img->page_size - 1);
	const struct image_map *map = &m->img->maps.at[it->first_map];
	bool found = false;
	size_t n;

	if (elf_getphdrnum(it->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(it->elf, (int)i, &ph))
			continue;
		if (ph.p_type == PT_TLS)
			it->tls_segment = ph;
		if (ph.p_type == PT_LOAD && ph.p_vaddr + ph.p_memsz > it->end)
			it->end = ph.p_vaddr + ph.p_memsz;
		if (ph.p_type == PT_LOAD && (ph.p_offset & page) == map->offset && !found) {
			it->bias = map->start - (ph.p_vaddr & page);
			found = true;
		}
	}
	it->end += it->bias;
	return found;
}

static int take_object(void *ctx, const char *name, uint64_t addr, uint64_t size, bool tls)
{
	struct module *it = ctx;
	struct module_variable v = {addr, size, name};

	return tls ? vec_push(&it->tls, v) : vec_push(&it->variables, v);
}

/* Longer names come last, so that of two names for one variable the shorter one is found. */
static int by_address(const void *a, const void *b)
{
	const struct module_variable *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strlen(x->symbol) != strlen(y->symbol)
		   ? (strlen(x->symbol) < strlen(y->symbol) ? -1 : 1)
		   : strcmp(x->symbol, y->symbol);
}

static void read_symbols(struct modules *m, struct module *it)
{
	char path[64];
	int fd = fcntl(it->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", it->fd);
	it->symbols = symfile_open(&m->callbacks, it->path, path, fd);
	if (!it->symbols) {
		close(fd);
		return;
	}
	(void)symfile_objects(it->symbols, take_object, it);
	vec_sort(&it->variables, by_address);
	vec_sort(&it->tls, by_address);
}

/* Return: the module, opened, or NULL if its file cannot be used. */
static struct module *opened(struct modules *m, uint32_t module)
{
	struct module *it = module < m->list.n ? &m->list.at[module] : NULL;

	if (!it)
		return NULL;
	if (!it->opened) {
		it->opened = true;
		it->fd = image_open_file(m->img, &m->img->maps.at[it->first_map]);
		if (it->fd >= 0 && debug_file_is_sane(it->fd))
			it->elf = elf_begin(it->fd, ELF_C_READ_MMAP, NULL);
		if (it->elf && !load_bias(m, it)) {
			elf_end(it->elf);
			it->elf = NULL;
		}
		if (it->elf)
			read_symbols(m, it);
	}
	return it->elf ? it : NULL;
}

uint32_t modules_at(const struct modules *m, uint64_t addr)
{
	const struct image_map *map = image_map_at(m->img, addr);

	return map ? m->of_map[map - m->img->maps.at] : UINT32_MAX;
}

uint64_t modules_end(struct modules *m, uint32_t module)
{
	const struct module *it = opened(m, module);

	return it ? it->end : UINT64_MAX;
}

const char *modules_path(const struct modules *m, uint32_t module)
{
	return module < m->list.n ? m->list.at[module].path : "?";
}

/* ------------------------------------------------------------------ variables -- */

/* Finds the variable with @addr among @n sorted ones. */
static const struct module_variable *find_variable(const struct module_variable *v, size_t n,
						   uint64_t addr)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (v[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	/* Back to the first of those with the same address. */
	while (low > 1 && v[low - 2].addr == v[low - 1].addr)
		low--;
	return low && addr - v[low - 1].addr < v[low - 1].size ? &v[low - 1] : NULL;
}

bool modules_variable(struct modules *m, uint64_t addr, struct module_variable *out)
{
	const struct module *it = opened(m, modules_at(m, addr));
	const struct module_variable *v =
	    it ? find_variable(it->variables.at, it->variables.n, addr - it->bias) : NULL;

	if (!v)
		return false;
	*out = *v;
	out->addr += it->bias;
	return true;
}

/* Where the thread-local storage of the executable begins, for the thread pointer @tp: directly
 * below it, or above it after the two words of tcbhead_t (Drepper, 3.4.3 and 3.4.6; MIPS: at it).
 * The thread's own table of storage (dtv) must have the same address, in glibc's form or in musl's.
 * Return: 0 if that cannot be verified. */
static uint64_t tls_start(const struct modules *m, const struct module *it, uint64_t tp)
{
	const struct arch *arch = m->img->arch;
	const uint64_t word = arch->word_size,
		       align = it->tls_segment.p_align ? it->tls_segment.p_align : 1;
	uint64_t start, dtv_at, dtv, value;

	if (!arch->tls.above) {
		start = tp - it->tls_segment.p_memsz;
		start &= ~(align - 1);
		dtv_at = tp + word;
	} else if (arch->tls.bias) {
		start = tp - arch->tls.bias;
		dtv_at = start - 2 * word;
	} else {
		start = (tp + 2 * word + align - 1) & ~(align - 1);
		dtv_at = tp;
	}
	if (!image_word(m->img, dtv_at, &dtv))
		return 0;
	if ((image_word(m->img, dtv + 2 * word, &value) && value == start) ||
	    (image_word(m->img, dtv + word, &value) && value == start))
		return start;
	return 0;
}

bool modules_tls(struct modules *m, uint64_t tp, uint64_t addr, struct module_variable *out)
{
	const struct module *it = opened(m, 0);
	uint64_t start = it && it->tls_segment.p_memsz ? tls_start(m, it, tp) : 0;
	const struct module_variable *v;

	if (!start || addr - start >= it->tls_segment.p_memsz)
		return false;
	v = find_variable(it->tls.at, it->tls.n, addr - start);
	if (!v)
		return false;
	*out = *v;
	out->addr += start;
	return true;
}

void modules_name(struct modules *m, const struct module_variable *v, uint64_t tp,
		  struct module_name *out)
{
	const struct module *it = opened(m, tp ? 0 : modules_at(m, v->addr));
	char *plain = symbol_demangle(v->symbol);
	struct symfile_variable d;
	uint64_t at;

	*out = (struct module_name){0};
	snprintf(out->name, sizeof(out->name), "%s", plain ? plain : v->symbol);
	if (it && it->symbols) {
		at = v->addr - (tp ? tls_start(m, it, tp) : it->bias);
		if (symfile_variable(it->symbols, at, tp != 0, &d)) {
			out->source = d.source;
			out->line = d.line;
			/* A demangled name already has the function. */
			if (d.function && d.name && !plain)
				snprintf(out->name, sizeof(out->name), "%s()::%s", d.function,
					 d.name);
		}
	}
	free(plain);
}

void modules_place(struct modules *m, uint64_t addr, char *name, size_t size)
{
	uint32_t module = modules_at(m, addr);
	const struct module *it = opened(m, module);
	Elf_Scn *scn = NULL;
	size_t names;

	if (!it || elf_getshdrstrndx(it->elf, &names)) {
		snprintf(name, size, "+%#" PRIx64,
			 module < m->list.n ? addr - m->list.at[module].start : addr);
		return;
	}
	while ((scn = elf_nextscn(it->elf, scn))) {
		const char *section;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_ALLOC) ||
		    sh.sh_flags & SHF_TLS || addr - it->bias - sh.sh_addr >= sh.sh_size)
			continue;
		section = elf_strptr(it->elf, names, sh.sh_name);
		snprintf(name, size, "%s+%#" PRIx64, section ? section : "?",
			 addr - it->bias - sh.sh_addr);
		return;
	}
	snprintf(name, size, "+%#" PRIx64, addr - it->start);
}

/* ------------------------------------------------------------------ debug information -- */

uint32_t modules_count(const struct modules *m)
{
	return (uint32_t)m->list.n;
}

bool modules_debug(struct modules *m, uint32_t module, struct module_debug *out)
{
	const struct module *it = opened(m, module);
	Dwarf_Addr bias = 0;

	if (!it || !it->symbols)
		return false;
	out->file = it->symbols;
	out->dwarf = symfile_dwarf(it->symbols, &bias);
	out->bias = it->bias + bias;
	return out->dwarf != NULL;
}

int modules_locals(struct modules *m, uint64_t pc, symfile_local_fn *fn, void *ctx)
{
	const struct module *it = opened(m, modules_at(m, pc));

	return it && it->symbols ? symfile_locals(it->symbols, pc - it->bias, fn, ctx) : 0;
}

uint64_t modules_tls_start(struct modules *m, uint64_t tp)
{
	const struct module *it = opened(m, 0);

	return it && it->tls_segment.p_memsz ? tls_start(m, it, tp) : 0;
}

/* ------------------------------------------------------------------ code -- */

bool modules_rule(struct modules *m, uint64_t pc, struct uw_full *rule)
{
	struct module *it = opened(m, modules_at(m, pc));
	uint16_t id;

	if (!it)
		return false;
	if (!it->tabled) {
		it->tabled = true;
		if (unwind_table_build(it->elf, NULL, m->rules, &it->table))
			return false;
	}
	id = unwind_table_find(&it->table, pc - it->bias);
	if (!id || id >= rule_set_count(m->rules))
		return false;
	*rule = rule_set_full(m->rules)[id];
	return true;
}

bool modules_function(struct modules *m, uint64_t pc, char *name, size_t size)
{
	const struct module *it = opened(m, modules_at(m, pc));
	struct symfile_frame frames[64];
	uint32_t n = it && it->symbols ? symfile_find(it->symbols, pc - it->bias, frames, 64) : 0;
	const char *raw = n ? frames[n - 1].name : NULL;
	char *plain = symbol_demangle(raw);

	if (raw)
		snprintf(name, size, "%s", plain ? plain : raw);
	free(plain);
	return raw != NULL;
}
