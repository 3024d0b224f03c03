/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/stripped.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/path.h"
#include "unwind/symbols/debug_file.h"

#define MAX_ID 64

struct build_id {
	uint8_t byte[MAX_ID];
	size_t n; /* 0: none */
};

static struct build_id id_of(Elf *elf)
{
	struct build_id id = {.n = 0};
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);

	if (n > 1 && n <= MAX_ID) {
		memcpy(id.byte, bytes, (size_t)n);
		id.n = (size_t)n;
	}
	return id;
}

/* The program's author can control the files that it names: refuses a fifo, and sections that
 * decompress to more than memprof should hold. */
static Elf *try(const char *path, const struct build_id *id, int *fd)
{
	struct build_id its = {.n = 0};
	Elf *elf = NULL;
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return NULL;
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode) && debug_file_is_sane(*fd))
		elf = elf_begin(*fd, ELF_C_READ_MMAP, NULL);
	if (elf)
		its = id_of(elf);
	if (its.n == id->n && !memcmp(its.byte, id->byte, id->n))
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

static void by_id(const struct build_id *id, char *path, size_t size)
{
	int n = snprintf(path, size, "/usr/lib/debug/.build-id/%02x/", id->byte[0]);

	for (size_t i = 1; i < id->n; i++)
		n += snprintf(path + n, size - (size_t)n, "%02x", id->byte[i]);
	snprintf(path + n, size - (size_t)n, ".debug");
}

Elf *stripped_debug_file(Elf *elf, const char *path, int *fd)
{
	const struct build_id id = id_of(elf);
	char there[2 * PATH_MAX];
	const char *link;
	GElf_Word crc;
	Elf *found;

	if (!id.n)
		return NULL;
	by_id(&id, there, sizeof(there));
	found = try(there, &id, fd);
	link = found ? NULL : dwelf_elf_gnu_debuglink(elf, &crc);
	if (!link || strchr(link, '/'))
		return found;
	snprintf(there, sizeof(there), "%.*s%s", (int)(path_base(path) - path), path, link);
	found = try(there, &id, fd);
	if (found)
		return found;
	snprintf(there, sizeof(there), "%.*s.debug/%s", (int)(path_base(path) - path), path, link);
	return try(there, &id, fd);
}
