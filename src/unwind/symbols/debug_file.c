/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/debug_file.h"

#include <dwarf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unwind/symbols/debuginfod.h"
#include "unwind/symbols/unpacked.h"

const Dwfl_Callbacks debug_file_callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = debug_file_find,
    .section_address = dwfl_offline_section_address,
};

bool debug_file_is_sane(int fd)
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

/* Checks the paths that libdwfl would open: the name in the debug link, or the file's name with
 * .debug, in the file's directory. libdwfl opens any type of file, and would wait on a fifo. */
static bool link_is_sane(const char *file, const char *link)
{
	char canonical[PATH_MAX], path[2 * PATH_MAX];
	const char *name, *end;

	if (link && link[0] == '/')
		return !would_block(link);
	/* libdwfl follows symbolic links, such as those of map_files, to the file's own
	 * directory. */
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

/* Asks the servers, if the module has any. */
static int fetch(Dwfl_Module *mod, struct debuginfod *servers, char **path)
{
	const unsigned char *id;
	GElf_Addr at;
	int n = servers ? dwfl_module_build_id(mod, &id, &at) : 0;

	return n > 0 ? debuginfod_fetch(servers, id, (size_t)n, path) : -1;
}

int debug_file_find(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
		    const char *file, const char *link, GElf_Word crc, char **path)
{
	int fd = link_is_sane(file, link)
		     ? dwfl_standard_find_debuginfo(mod, data, name, base, file, link, crc, path)
		     : -1;

	if (fd < 0)
		fd = fetch(mod, *data, path);
	if (fd < 0 || debug_file_is_sane(fd))
		return fd;
	close(fd);
	free(*path);
	*path = NULL;
	return -1;
}

static bool path_is_sane(const char *path)
{
	bool sane;
	int fd;

	if (would_block(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* libdw cannot open it either */
	if (fd < 0)
		return true;
	sane = debug_file_is_sane(fd);
	close(fd);
	return sane;
}

/* Checks the path at which libdw searches for @name: the directory of @file, with the unit's
 * directory @more (relative or absolute; NULL: none). */
static bool split_is_sane(const char *file, const char *more, const char *name)
{
	char canonical[PATH_MAX] = "", path[3 * PATH_MAX];

	if (name[0] == '/')
		return path_is_sane(name);
	if (!more || more[0] != '/') {
		if (!file || !realpath(file, canonical))
			return true;
		*(strrchr(canonical, '/') + 1) = 0;
	}
	snprintf(path, sizeof(path), "%s%s/%s", canonical, more ? more : "", name);
	return path_is_sane(path);
}

static const char *string(Dwarf_Die *die, unsigned int at)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(die, at, &attr));
}

bool debug_file_may_split(Dwfl_Module *mod, Dwarf_Die *unit)
{
	const char *name = string(unit, DW_AT_dwo_name), *folder = string(unit, DW_AT_comp_dir);
	const char *files[2] = {NULL, NULL};

	if (!name)
		name = string(unit, DW_AT_GNU_dwo_name);
	if (!name)
		return false;
	dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, &files[0], &files[1]);
	for (int i = 0; i < 2; i++) {
		if (!split_is_sane(files[i], NULL, name) || !split_is_sane(files[i], folder, name))
			return false;
	}
	return true;
}
