/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/block/module.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "lib/deadline.h"
#include "unwind/build_id.h"

#define FILE_CLOCK_NS                                                                              \
	20000000ull /* the times of files are by the tick of the kernel, of at most 10 ms */

int module_bias(Elf *elf, const struct map *map, uint64_t *bias)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X &&
		    map->offset >= (ph.p_offset & ~4095ull) &&
		    map->offset < ph.p_offset + ph.p_filesz) {
			*bias = map->start - map->offset - (ph.p_vaddr - ph.p_offset);
			return 0;
		}
	}
	return -ENOENT;
}

int module_read(Elf *elf, const struct map *map, struct mp_module *m)
{
	int ret = elf && elf_kind(elf) == ELF_K_ELF ? module_bias(elf, map, &m->bias) : -EINVAL;

	if (!ret)
		m->build_id_len = (uint8_t)elf_build_id(elf, m->build_id);
	return ret;
}

static void read_file(int fd, const struct map *map, struct mp_module *m)
{
	/* Not mapped: the file can be overwritten at any time. */
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

	ignore_result(module_read(elf, map, m)); /* it is then no ELF file */
	elf_end(elf);
}

/* Has the mapping another file than one in the file system? */
static bool is_nameless(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	return *path != '/' || (n > tail && !strcmp(path + n - tail, deleted));
}

/* Is the file at @fd the one that was mapped at @since_ns, and has it not been written since? */
static bool is_unchanged(int fd, uint64_t since_ns)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC), wall = clock_read_ns(CLOCK_REALTIME);
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_ctim.tv_sec * 1000000000 +
					  (uint64_t)st.st_ctim.tv_nsec + FILE_CLOCK_NS <
				      wall - (now - since_ns);
}

bool module_describe(pid_t pid, const struct map *map, uint64_t since_ns, bool replaced,
		     struct mp_module *m)
{
	bool mapped = !replaced;
	int fd = map_open_late(pid, map, &mapped);

	*m = (struct mp_module){
	    .start = map->start, .end = map->end, .file_offset = map->offset, .path = map->path};
	if (fd >= 0 && (mapped || is_unchanged(fd, since_ns))) {
		read_file(fd, map, m);
		close(fd);
		return true;
	}
	if (fd >= 0)
		close(fd);
	if (!is_nameless(map->path))
		m->bias = map->start - map->offset;
	return false;
}
