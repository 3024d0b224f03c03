/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/stranger.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/procfs.h"
#include "lib/path.h"
#include "unwind/section.h"
#include "unwind/starts.h"

/* In order of precedence: libasan defines LeakSanitizer's symbols, too. */
static const struct {
	const char *symbol, *name;
} sanitizers[] = {
    {"__asan_init", "AddressSanitizer"}, {"__hwasan_init", "HWAddressSanitizer"},
    {"__msan_init", "MemorySanitizer"},	 {"__tsan_init", "ThreadSanitizer"},
    {"__lsan_init", "LeakSanitizer"},
};
#define NSANITIZERS (sizeof(sanitizers) / sizeof(sanitizers[0]))

const char *stranger_sanitizer(const char *symbol)
{
	for (size_t i = 0; i < NSANITIZERS; i++) {
		if (!strcmp(symbol, sanitizers[i].symbol))
			return sanitizers[i].name;
	}
	return NULL;
}

/* Does a read-only data section contain @text? */
static bool has_constant(Elf *elf, const char *text)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    (sh.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) != SHF_ALLOC)
			continue;
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf && memmem(data->d_buf, data->d_size, text, strlen(text)))
			return true;
	}
	return false;
}

static int note_sanitizer(void *ctx, const char *name, const GElf_Sym *sym)
{
	const char **found = ctx;

	(void)sym;
	*found = name[0] == '_' ? stranger_sanitizer(name) : NULL;
	return *found != NULL;
}

static const char *sanitizer_in(Elf *elf)
{
	const char *found = NULL;

	starts_each_function(elf, note_sanitizer, &found);
	return found;
}

/* Valgrind's tools are static programs that use this environment variable to find their launcher.
 */
static bool is_valgrinds(Elf *elf)
{
	GElf_Shdr sh;

	return !elf_section(elf, ".interp", &sh) && has_constant(elf, "VALGRIND_LAUNCHER");
}

static const char *what_is(Elf *elf)
{
	GElf_Shdr sh;

	if (elf_section(elf, ".go.buildinfo", &sh))
		return "the Go runtime";
	if (is_valgrinds(elf))
		return "valgrind";
	if (has_constant(elf, "partition_alloc/partitions"))
		return "PartitionAlloc";
	if (has_constant(elf, "tcmalloc.per_cpu_caches_active"))
		return "Google's tcmalloc";
	return sanitizer_in(elf);
}

static Elf *open_elf(int fd)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

bool stranger_is_valgrind(pid_t pid, const struct maps *maps)
{
	char path[64];
	bool is = false;
	Elf *elf;
	int fd;

	/* Valgrind preloads this library into programs that have a dynamic linker. */
	vec_for_each (&maps->list, m)
		is |= !strncmp(path_base(m->path), "vgpreload_core-", 15);
	if (is)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", proc_of(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	elf = open_elf(fd);
	is = elf && is_valgrinds(elf);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}

static void append_name(const char *name, const struct map *map, struct mp_err *err)
{
	size_t n = strlen(err->what);
	char text[160];

	snprintf(text, sizeof(text), "%s (%s)", name, path_base(map->path));
	if (!strstr(err->what, text)) /* a file can be mapped more than once */
		snprintf(err->what + n, sizeof(err->what) - n, "%s %s",
			 strstr(err->what, "; it has ") ? "," : "; it has", text);
}

bool stranger_append(pid_t pid, struct mp_err *err)
{
	bool any = false;
	struct maps maps;

	if (!err || maps_read(pid, &maps))
		return false;
	vec_for_each (&maps.list, m) {
		int fd = m->exec && m->path[0] == '/' ? map_open(pid, m) : -1;
		Elf *elf = open_elf(fd);
		const char *name = elf ? what_is(elf) : NULL;

		if (name)
			append_name(name, m, err);
		any |= name != NULL;
		elf_end(elf);
		if (fd >= 0)
			close(fd);
	}
	maps_free(&maps);
	return any;
}
