/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Symbols through libdwfl, which finds separate debug files by build-id and debuglink and reads
 * .gnu_debugdata; names by libiberty.
 */
#include "unwind/symbols.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "arch/arch.h"
#include "formats/session.h"
#include "lib/vec.h"
#include "unwind/table.h"
#include "unwind/unpacked.h"

/* libiberty's demangle.h lies outside the include path on Debian and clashes with others. */
extern char *cplus_demangle(const char *mangled, int options);
#define DMGL_PARAMS (1 << 0)
#define DMGL_ANSI   (1 << 1)
#define DMGL_AUTO   (1 << 8)

#define MAX_SCOPES 512

struct symbols {
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	char *debug_path;
	VEC(struct mp_module) modules;
	VEC(char *) strings;
	bool complete; /* libdwfl was told that all modules are reported */
};

char *symbol_demangle(const char *raw)
{
	if (!raw || raw[0] != '_')
		return NULL;
	return cplus_demangle(raw, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

static const char *keep(struct symbols *s, char *text)
{
	if (text && vec_push(&s->strings, text)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A file that claims, or has, more than memory should hold is none. */
static bool is_sane(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct stat st;
	bool sane = elf && !fstat(fd, &st) && unpacked_is_sane(elf, (uint64_t)st.st_size);

	elf_end(elf);
	return sane;
}

static bool would_block(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* libdwfl opens what a link names beside the file, or the file's name with .debug, whatever it is:
 * opening a fifo would wait. */
static bool link_is_sane(const char *file, const char *link)
{
	char canonical[PATH_MAX], path[2 * PATH_MAX];
	const char *name, *end;

	if (link && link[0] == '/')
		return !would_block(link);
	/* It follows symbolic links, such as those of map_files, to the file's own folder. */
	if (!file || !realpath(file, canonical))
		return true;
	name = strrchr(canonical, '/') + 1;
	end = link ? "" : ".debug";
	link = link ? link : name;
	snprintf(path, sizeof(path), "%.*s%s%s", (int)(name - canonical), canonical, link, end);
	if (would_block(path))
		return false;
	snprintf(path, sizeof(path), "%.*s.debug/%s%s", (int)(name - canonical), canonical, link,
		 end);
	return !would_block(path);
}

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **path)
{
	int fd = link_is_sane(file, link)
		     ? dwfl_standard_find_debuginfo(mod, data, name, base, file, link, crc, path)
		     : -1;

	if (fd < 0 || is_sane(fd))
		return fd;
	close(fd);
	free(*path);
	*path = NULL;
	return -1;
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
		/* "+": check the debuglink's checksum (libdwfl.h, dwfl_standard_find_debuginfo). */
		strcpy(s->debug_path, "+:.debug:/usr/lib/debug");
		for (size_t i = 0; debug_dirs && debug_dirs[i]; i++) {
			strcat(s->debug_path, ":");
			strcat(s->debug_path, debug_dirs[i]);
		}
	}
	s->callbacks.find_elf = dwfl_build_id_find_elf;
	s->callbacks.find_debuginfo = find_debuginfo;
	s->callbacks.section_address = dwfl_offline_section_address;
	s->callbacks.debuginfo_path = &s->debug_path;
	s->dwfl = s->debug_path ? dwfl_begin(&s->callbacks) : NULL;
	if (!s->dwfl) {
		symbols_free(s);
		return NULL;
	}
	dwfl_report_begin(s->dwfl);
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	if (s->dwfl)
		dwfl_end(s->dwfl);
	vec_for_each (&s->modules, m)
		free((char *)m->path);
	vec_for_each (&s->strings, t)
		free(*t);
	vec_free(&s->modules);
	vec_free(&s->strings);
	free(s->debug_path);
	free(s);
}

bool symbols_right_file(int fd, const struct mp_module *m)
{
	uint8_t id[32];
	bool right;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		return false;
	}
	right = !m->build_id_len || (elf_build_id(elf, id) == m->build_id_len &&
				     !memcmp(id, m->build_id, m->build_id_len));
	elf_end(elf);
	return right;
}

int symbols_add_module(struct symbols *s, const struct mp_module *m, const char *open_path)
{
	const char *path = open_path ? open_path : m->path;
	struct mp_module copy = *m;
	char *name_copy;
	int fd;

	name_copy = strdup(m->path ? m->path : "");
	copy.path = name_copy;
	if (!name_copy || vec_push(&s->modules, copy)) {
		free(name_copy);
		return -ENOMEM;
	}
	if (!path || path[0] != '/')
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!symbols_right_file(fd, m) || !is_sane(fd)) {
		close(fd);
		return -ESTALE;
	}
	if (s->complete) {
		dwfl_report_begin_add(s->dwfl);
		s->complete = false;
	}
	/* libdwfl takes the descriptor over.  A range that overlaps a reported one is refused. */
	if (!dwfl_report_elf(s->dwfl, m->path, path, fd, m->bias, true)) {
		close(fd);
		return -EEXIST;
	}
	return 0;
}

const struct mp_module *symbols_module(const struct symbols *s, uint64_t pc)
{
	pc &= ~SS_PC_EXACT;
	/* The newest mapping counts. */
	for (size_t i = s->modules.n; i-- > 0;) {
		if (pc >= s->modules.at[i].start && pc < s->modules.at[i].end)
			return &s->modules.at[i];
	}
	return NULL;
}

static void name(struct symbols *s, struct mp_symbol *out, const char *raw)
{
	char *nice;

	if (!raw)
		return;
	nice = symbol_demangle(raw);
	out->raw_function = keep(s, strdup(raw));
	out->function = nice ? keep(s, nice) : out->raw_function;
}

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *n;

	n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	if (!n)
		n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr));
	return n ? n : dwarf_diename(die);
}

static uint32_t number(Dwarf_Die *die, unsigned int at)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_formudata(dwarf_attr(die, at, &attr), &v) ? 0 : (uint32_t)v;
}

static const char *call_file(Dwarf_Die *cu, Dwarf_Die *die)
{
	Dwarf_Files *files;
	size_t n;
	uint32_t i = number(die, DW_AT_call_file);

	if (!i || dwarf_getsrcfiles(cu, &files, &n) || i >= n)
		return NULL;
	return dwarf_filesrc(files, i, NULL, NULL);
}

/* Not by dwarf_getscopes(), which needs stack for each level, however many a file has.
 * Return: how many of @scopes, outermost first, hold @addr. */
static int find_scopes(Dwarf_Die *cu, Dwarf_Addr addr, Dwarf_Die scopes[MAX_SCOPES])
{
	Dwarf_Die die, next;
	int n = 0;

	if (dwarf_child(cu, &die))
		return 0;
	for (;;) {
		if (dwarf_haspc(&die, addr) > 0) {
			scopes[n++] = die;
			if (n == MAX_SCOPES || dwarf_child(&die, &next))
				return n;
		} else if (dwarf_siblingof(&die, &next)) {
			return n;
		}
		die = next;
	}
}

/* The chain of inlined functions at @addr, innermost first, then the function itself. */
static uint32_t find_inlined(struct symbols *s, Dwfl_Module *mod, Dwarf_Addr addr,
			     struct mp_symbol *out, uint32_t max)
{
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(mod, addr, &bias), scopes[MAX_SCOPES];
	int n = cu ? find_scopes(cu, addr - bias, scopes) : 0;
	Dwfl_Line *line = dwfl_module_getsrc(mod, addr);
	uint32_t found = 0;
	const char *file = NULL;
	int at = 0, column = 0;

	if (line)
		file = dwfl_lineinfo(line, NULL, &at, &column, NULL, NULL);
	for (int i = n - 1; i >= 0 && found < max; i--) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		out[found] = (struct mp_symbol){.is_inline = tag == DW_TAG_inlined_subroutine,
						.line = (uint32_t)at,
						.column = (uint32_t)column};
		name(s, &out[found], die_name(&scopes[i]));
		out[found].source = file ? keep(s, strdup(file)) : NULL;
		found++;
		if (tag == DW_TAG_subprogram)
			break;
		/* The caller's position is where the inlined one was called. */
		file = call_file(cu, &scopes[i]);
		at = (int)number(&scopes[i], DW_AT_call_line);
		column = (int)number(&scopes[i], DW_AT_call_column);
	}
	return found;
}

/* The symbol of a Thumb function is one byte behind its start. */
static Dwarf_Addr behind_start(Dwfl_Module *mod, Dwarf_Addr addr)
{
	const struct arch *arch = NULL;
	GElf_Ehdr header;
	Dwarf_Addr bias;

	if (gelf_getehdr(dwfl_module_getelf(mod, &bias), &header))
		arch = arch_for_elf(header.e_ident[EI_CLASS], header.e_ident[EI_DATA],
				    header.e_machine);
	return arch ? addr | arch->code_bits : addr;
}

uint32_t symbols_find(struct symbols *s, uint64_t pc, struct mp_symbol *out, uint32_t max)
{
	Dwarf_Addr addr = pc & SS_PC_EXACT ? pc & ~SS_PC_EXACT : pc - 1;
	Dwfl_Module *mod;
	const char *raw;
	uint32_t n;

	if (!max)
		return 0;
	if (!s->complete) {
		dwfl_report_end(s->dwfl, NULL, NULL);
		s->complete = true;
	}
	mod = dwfl_addrmodule(s->dwfl, addr);
	if (!mod)
		return 0;
	n = find_inlined(s, mod, addr, out, max);
	if (n && out[n - 1].function && !out[n - 1].is_inline)
		return n;
	raw = dwfl_module_addrname(mod, behind_start(mod, addr));
	if (!raw)
		return 0;
	out[0] = (struct mp_symbol){0};
	name(s, &out[0], raw);
	return 1;
}
