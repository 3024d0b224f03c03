/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/symbols.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "inject/hooks/rseq.h"
#include "inject/hooks/stripped.h"
#include "inject/stranger.h"
#include "unwind/section.h"
#include "unwind/starts.h"

const struct wanted wanted_function[NWANTED] = {
#define X(name, kind, size_kind, sibling) {name, SS_HOOK_##kind, SS_SIZE_##size_kind, sibling},
#include "inject/hooks/hooks.def"
#undef X
};

int wanted_find(const char *name)
{
	if (strnlen(name, 4) < 4) /* no name is shorter; the first 4 bytes distinguish most names */
		return -1;
	for (size_t i = 0; i < NWANTED; i++) {
		if (!memcmp(name, wanted_function[i].name, 4) &&
		    !strcmp(name, wanted_function[i].name))
			return (int)i;
	}
	return -1;
}

static void note_allocator(struct module *m, const char *name)
{
	const char *sanitizer = m->sanitizer ? NULL : stranger_sanitizer(name);
	const struct known_allocator *known = known_by_function(name);

	/* Static programs have the second and third; stripped shared libraries only the first. */
	if (!strcmp(name, "gnu_get_libc_version") || !strcmp(name, "__libc_early_init") ||
	    !strcmp(name, "_int_malloc"))
		m->glibc = true;
	else if (!strcmp(name, "__dls3") || !strcmp(name, "__libc_malloc_impl") ||
		 !strcmp(name, "__malloc_donate"))
		m->musl = true;
	else if (known && (!m->known || known < m->known))
		m->known = known;
	else if (sanitizer)
		m->sanitizer = sanitizer;
}

static uint64_t clean(const struct module *m, uint64_t value)
{
	return value & ~(uint64_t)m->arch->code_bits;
}

static void take_symbol(struct module *m, const char *name, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info), i;
	bool local;

	/* Among the many C++ names only operator new and delete matter; skips all others early. */
	if (sym->st_shndx == SHN_UNDEF || !sym->st_value ||
	    (name[0] == '_' && name[1] == 'Z' && name[2] != 'n' && name[2] != 'd'))
		return;
	/* Only the dynamic linker has it; its malloc (glibc before 2.31) is only for its own
	 * use. */
	if (!strcmp(name, "_rtld_global"))
		m->loader = true;
	if (type != STT_FUNC && type != STT_GNU_IFUNC)
		return;
	note_allocator(m, name);
	if (!strcmp(name, "__libc_malloc"))
		m->libc_malloc = clean(m, sym->st_value);
	if (!strcmp(name, "__malloc_arena_thread_freeres")) {
		m->thread_end = clean(m, sym->st_value);
		m->thread_end_size = sym->st_size;
	}
	i = wanted_find(name);
	if (i < 0)
		return;
	/* A function can be in both .dynsym and .symtab, and versions of a symbol can differ: the
	 * first definition wins, but a global one replaces a local one. */
	local = GELF_ST_BIND(sym->st_info) == STB_LOCAL;
	if (!m->found[i].value || (m->found[i].local && !local))
		m->found[i] = (struct found){clean(m, sym->st_value), sym->st_size,
					     (uint8_t)(sym->st_value & m->arch->code_bits),
					     type == STT_GNU_IFUNC, local};
}

static int scan_symbol(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct module *m = ctx;

	take_symbol(m, name, sym);
	return GELF_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_value
		   ? vec_push(&m->starts, clean(m, sym->st_value))
		   : 0;
}

/* A stripped static program has no function symbols, but there can be a debug file. */
static int scan_debug_file(struct module *m, Elf *elf)
{
	int fd, ret = 0;
	GElf_Shdr sh;
	Elf *debug;

	if (m->starts.n || elf_section(elf, ".interp", &sh) || elf_section(elf, ".symtab", &sh))
		return 0;
	debug = stripped_debug_file(elf, m->map->path, &fd);
	if (debug) {
		ret = starts_each_symbol(debug, scan_symbol, m);
		elf_end(debug);
		close(fd);
	}
	m->nameless = !ret && !m->starts.n;
	return ret;
}

/* Finds the module's GOT words for the address of some free().  Found by name, so that it does not
 * matter whether the call has been bound yet. */
static int scan_imports(struct module *m, Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data, *symbols;
		GElf_Shdr sh, sh_sym;
		Elf_Scn *scn_sym;

		if (!gelf_getshdr(scn, &sh) || !sh.sh_entsize ||
		    (sh.sh_type != SHT_RELA && sh.sh_type != SHT_REL))
			continue;
		scn_sym = elf_getscn(elf, sh.sh_link);
		if (!scn_sym || !gelf_getshdr(scn_sym, &sh_sym) || sh_sym.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		symbols = elf_getdata(scn_sym, NULL);
		for (size_t i = 0; data && symbols && i < data->d_size / sh.sh_entsize; i++) {
			const char *name = NULL;
			GElf_Rela rela;
			GElf_Rel rel;
			GElf_Sym sym;
			int k;

			if (sh.sh_type == SHT_RELA && gelf_getrela(data, (int)i, &rela))
				rel = (GElf_Rel){rela.r_offset, rela.r_info};
			else if (sh.sh_type == SHT_RELA || !gelf_getrel(data, (int)i, &rel))
				break;
			if (gelf_getsym(symbols, (int)GELF_R_SYM(rel.r_info), &sym))
				name = elf_strptr(elf, sh_sym.sh_link, sym.st_name);
			k = name ? wanted_find(!strcmp(name, "__libc_free") ? "free" : name) : -1;
			if (k >= 0 && wanted_function[k].kind == SS_HOOK_FREE &&
			    vec_push(&m->free_slots, rel.r_offset + m->bias))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Sets the bias (address minus ELF address), computed from the mapping of the first loaded byte. */
static int find_bias(struct module *m, Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		uint64_t page;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		page = ph.p_offset & ~4095ull;
		if (m->map->offset >= page && m->map->offset < ph.p_offset + ph.p_filesz) {
			m->bias = m->map->start - (ph.p_vaddr & ~4095ull) - (m->map->offset - page);
			return 0;
		}
	}
	return -ENOENT;
}

int module_scan(struct module *m, Elf *elf)
{
	int ret;

	if (!elf || elf_kind(elf) != ELF_K_ELF || find_bias(m, elf))
		return -ENOENT;
	m->rseq_list = rseq_section(elf, &m->rseq_length);
	ret = starts_each_symbol(elf, scan_symbol, m);
	if (!ret)
		ret = scan_debug_file(m, elf);
	return ret ? ret : scan_imports(m, elf);
}

void module_free(struct module *m)
{
	vec_free(&m->starts);
	vec_free(&m->free_slots);
}
