/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An image from a core file: segments and notes as written by the kernel and gcore (System V gABI,
 * core files; linux/elfcore.h).  Memory of mapped files that is not in the core is read from the
 * files.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/path.h"
#include "snapshot/image.h"
#include "unwind/build_id.h"
#include "unwind/elf_arch.h"

/* Where the bytes of a map are. */
struct core_segment {
	uint64_t start, in_core, offset; /* of the first in_core bytes, in the core */
};

struct core {
	Elf *elf;
	const char *exe;
	uint64_t file_size;
	VEC(struct core_segment) segments; /* in the order of the image's maps */
	int file; /* of the last map read whose bytes are not in the core */
	uint64_t file_start;
};

/* -------------------------------------------------------------------------------- reading -- */

/* Reads memory outside the core from the mapped file, if the mapping was not writable. */
static size_t read_file(struct image *img, const struct image_map *m, uint64_t addr, void *to,
			size_t len)
{
	struct core *c = img->backend;

	if (m->write || !m->path[0] || m->path[0] == '[')
		return 0;
	if (c->file < 0 || c->file_start != m->start) {
		if (c->file >= 0)
			close(c->file);
		c->file = image_open_file(img, m);
		c->file_start = m->start;
	}
	return c->file < 0 ? 0 : image_pread(c->file, to, len, m->offset + (addr - m->start));
}

static size_t core_read(struct image *img, uint64_t addr, void *to, size_t len)
{
	struct core *c = img->backend;
	size_t done = 0;

	while (done < len) {
		const struct image_map *m = image_map_at(img, addr + done);
		const struct core_segment *s;
		uint64_t at, left;
		size_t want, got;

		if (!m)
			break;
		s = &c->segments.at[m - img->maps.at];
		at = addr + done - m->start;
		left = at < s->in_core ? s->in_core - at : m->end - m->start - at;
		want = len - done < left ? len - done : (size_t)left;
		got = at < s->in_core
			  ? image_pread(img->fd, (char *)to + done, want, s->offset + at)
			  : read_file(img, m, addr + done, (char *)to + done, want);
		done += got;
		if (got < want)
			break;
	}
	return done;
}

static uint64_t core_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	const struct core *c = img->backend;
	const struct core_segment *s = &c->segments.at[map - img->maps.at];

	if (*addr < map->start)
		*addr = map->start;
	return *addr < s->start + s->in_core ? s->start + s->in_core : 0;
}

static int core_open_file(struct image *img, const struct image_map *map)
{
	const struct core *c = img->backend;
	const char *path = map->path;
	struct stat st;
	int fd;

	/* The executable can have moved since, so the one named by the user is used.  Libraries of
	 * another architecture are not on this machine. */
	if (!strcmp(image_map_name(map), path_base(c->exe)))
		path = c->exe;
	else if (img->arch != arch_native())
		return -ENOENT;
	/* The path comes from the core, and could name a fifo, or a device that reacts to being
	 * opened. */
	if (path[0] == '[' || stat(path, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static void core_close(struct image *img)
{
	struct core *c = img->backend;

	if (!c)
		return;
	if (c->file >= 0)
		close(c->file);
	elf_end(c->elf);
	vec_free(&c->segments);
	free(c);
	img->backend = NULL;
}

static const struct image_ops core_ops = {
    .fetch = core_read, .present = core_present, .open_file = core_open_file, .close = core_close};

/* -------------------------------------------------------------------------------- opening -- */

/* Inserts a map and its segment, keeping both lists sorted by address. */
static int insert(struct image *img, struct core *c, struct image_map *m,
		  const struct core_segment *s)
{
	size_t at = img->maps.n;

	if (vec_push(&c->segments, *s))
		return -ENOMEM;
	if (vec_push(&img->maps, *m)) {
		c->segments.n--;
		return -ENOMEM;
	}
	for (; at && img->maps.at[at - 1].start > m->start; at--) {
		img->maps.at[at] = img->maps.at[at - 1];
		c->segments.at[at] = c->segments.at[at - 1];
	}
	img->maps.at[at] = *m;
	c->segments.at[at] = *s;
	return 0;
}

static int add_segment(struct image *img, struct core *c, const GElf_Phdr *ph)
{
	struct image_map m = {.start = ph->p_vaddr,
			      .end = ph->p_vaddr + ph->p_memsz,
			      .read = ph->p_flags & PF_R,
			      .write = ph->p_flags & PF_W,
			      .exec = ph->p_flags & PF_X};
	struct core_segment s = {ph->p_vaddr, ph->p_filesz, ph->p_offset};

	/* The vsyscall page can be above user memory. */
	if (!ph->p_memsz || m.end < m.start || ph->p_filesz > ph->p_memsz ||
	    m.end > 1ull << img->arch->address_bits)
		return 0;
	if (img->maps.n && m.start < img->maps.at[img->maps.n - 1].end)
		return -EINVAL; /* the gABI requires ascending order without overlaps */
	m.path = strdup("");
	if (m.path && !insert(img, c, &m, &s))
		return 0;
	free(m.path);
	return -ENOMEM;
}

static int name_map(struct image_map *m, const char *name, size_t length, uint64_t offset,
		    uint64_t ino)
{
	free(m->path);
	m->path = strndup(name, length);
	m->offset = offset;
	m->ino = ino;
	return m->path ? 0 : -ENOMEM;
}

/* Handles a file that was mapped from @start to @end.  Segments within it get its name.  If the
 * core has no segment for it, the mapping was read-only, and its bytes are in the file. */
static int take_file(struct image *img, struct core *c, uint64_t start, uint64_t end,
		     uint64_t offset, const char *name, size_t length, uint64_t ino)
{
	struct image_map m = {.start = start, .end = end, .read = true};
	struct core_segment s = {start, 0, 0};
	bool any = false;
	int ret = 0;

	vec_for_each (&img->maps, at) {
		if (at->end <= start || at->start >= end)
			continue;
		any = true;
		if (!ret && at->start >= start && at->end <= end)
			ret = name_map(at, name, length, offset + (at->start - start), ino);
	}
	if (any || ret || start >= end || end > 1ull << img->arch->address_bits)
		return ret;
	ret = name_map(&m, name, length, offset, ino);
	if (!ret)
		ret = insert(img, c, &m, &s);
	if (ret)
		free(m.path);
	return ret;
}

/* NT_FILE: count and page size, then start, end and page offset of each, then their names. */
static int take_files(struct image *img, struct core *c, const char *desc, size_t size)
{
	const unsigned int word = img->arch->word_size;
	const char *name, *range = desc + 2ul * word, *end = desc + size;
	uint64_t count, page;
	int ret = 0;

	if (size < 2ul * word)
		return 0;
	count = arch_word(img->arch, desc);
	page = arch_word(img->arch, desc + word);
	if (count > (size - 2ul * word) / (3ul * word) || !page || page > 1u << 20 ||
	    page & (page - 1))
		return 0;
	if (page > 1) /* gdb's gcore has the offsets in bytes */
		img->page_size = (uint32_t)page;
	name = range + count * 3 * word;
	for (uint64_t i = 0; i < count && name < end && !ret; i++, range += 3ul * word) {
		size_t length = strnlen(name, (size_t)(end - name));

		/* The core has no inode numbers: uses any nonzero ones. */
		ret = take_file(
		    img, c, arch_word(img->arch, range), arch_word(img->arch, range + word),
		    arch_word(img->arch, range + 2ul * word) * page, name, length, i + 1);
		name += length + 1;
	}
	return ret;
}

/* NT_PRSTATUS: signal information, two signal sets, four process ids, four pairs of time words,
 * then the general registers. */
static int add_thread(struct image *img, const char *desc, size_t size)
{
	const size_t ids = 16 + 2ul * img->arch->word_size;
	const size_t at = ids + 16 + 8ul * img->arch->word_size;
	struct image_thread th = {.has_regs = true};
	int32_t tid;

	if (size < at + img->arch->regs.regset_size)
		return 0;
	memcpy(&tid, desc + ids, sizeof(tid));
	memcpy(th.regs.raw, desc + at, img->arch->regs.regset_size);
	th.regs.size = img->arch->regs.regset_size;
	th.tid = tid;
	th.tls = img->arch->regs.get_tp ? img->arch->regs.get_tp(&th.regs) : 0;
	return vec_push(&img->threads, th);
}

static int take_notes(struct image *img, struct core *c, const GElf_Phdr *ph)
{
	Elf_Data *d = elf_getdata_rawchunk(c->elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_NHDR);
	size_t at = 0, name, desc, next;
	GElf_Nhdr n;
	int ret = 0;

	while (d && !ret && (next = gelf_getnote(d, at, &n, &name, &desc)) > 0) {
		const char *p = (const char *)d->d_buf + desc;

		if (n.n_type == NT_PRSTATUS)
			ret = add_thread(img, p, n.n_descsz);
		else if (n.n_type == img->arch->tls.regset && n.n_type && img->threads.n &&
			 n.n_descsz >= img->arch->word_size)
			img->threads.at[img->threads.n - 1].tls = arch_word(img->arch, p);
		else if (n.n_type == NT_FILE)
			ret = take_files(img, c, p, n.n_descsz);
		at = next;
	}
	return ret;
}

static void set_path(struct image_map *m, const char *path)
{
	char *copy = strdup(path);

	if (copy) {
		free(m->path);
		m->path = copy;
	}
}

/* Names areas as /proc/PID/maps would: the main thread's stack, and as heap the first memory
 * without a file after the executable. */
static void name_areas(struct image *img)
{
	const struct image_map *last = NULL;
	struct image_map *stack = NULL;

	vec_for_each (&img->maps, m) {
		if (m->path[0] && (!last || !strcmp(m->path, img->maps.at[0].path)))
			last = m;
		if (img->threads.n && !m->path[0] &&
		    m->start <= img->arch->regs.get_sp(&img->threads.at[0].regs) &&
		    img->arch->regs.get_sp(&img->threads.at[0].regs) < m->end)
			stack = m;
	}
	if (stack)
		set_path(stack, "[stack]");
	vec_for_each (&img->maps, m) {
		if (!last || m <= last || m->path[0] || !m->write)
			continue;
		if (m != last + 1 || m->start != last->end) { /* not the executable's .bss */
			set_path(m, "[heap]");
			break;
		}
	}
}

/* Return: the size that the file must have. */
static uint64_t size_needed(Elf *elf, size_t n)
{
	uint64_t need = 0;

	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_offset + ph.p_filesz > need)
			need = ph.p_offset + ph.p_filesz;
	}
	return need;
}

/* Is the file the program of this core?  Compares build ids; the core has the first page of each
 * mapped file. */
static int check_exe(struct image *img, const char *path, struct mp_err *err)
{
	uint8_t ours[32], its[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC), ours_length = 0, its_length = 0;
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool found = false;

	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		int ret = fd < 0 ? -errno : -ENOEXEC;

		elf_end(elf);
		if (fd >= 0)
			close(fd);
		return mp_fail(err, MP_EXIT_USAGE, ret, "cannot read the executable %s: %s", path,
			       strerror(-ret));
	}
	ours_length = elf_build_id(elf, ours);
	elf_end(elf);
	close(fd);
	vec_for_each (&img->maps, m) {
		static const char *const magic = ELFMAG;
		char page[4096];
		Elf *in_core;

		if (m->offset || !m->path[0] || found ||
		    !image_read_all(img, m->start, page, sizeof(page)) ||
		    memcmp(page, magic, SELFMAG))
			continue;
		in_core = elf_memory(page, sizeof(page));
		its_length = elf_build_id(in_core, its);
		elf_end(in_core);
		found = its_length && its_length == ours_length &&
			!memcmp(ours, its, (size_t)its_length);
	}
	if (found || !ours_length)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
		       "%s is not the program of this core: no module of it has its build-id",
		       path);
}

static int take_all(struct image *img, struct core *c, const char *path, struct mp_err *err)
{
	uint64_t need;
	size_t n;

	if (elf_getphdrnum(c->elf, &n) || !n)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s has no segments", path);
	need = size_needed(c->elf, n);
	if (need > c->file_size)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s is cut off: %llu of %llu bytes (ulimit -c, a full disk); the "
			       "missing part may have the only pointer to a block",
			       path, (unsigned long long)c->file_size, (unsigned long long)need);
	/* Segments first: NT_FILE then gives them names. */
	for (int notes = 0; notes < 2; notes++) {
		for (size_t i = 0; i < n; i++) {
			GElf_Phdr ph;
			int ret = 0;

			if (!gelf_getphdr(c->elf, (int)i, &ph))
				continue;
			if (ph.p_type == PT_LOAD && !notes)
				ret = add_segment(img, c, &ph);
			else if (ph.p_type == PT_NOTE && notes)
				ret = take_notes(img, c, &ph);
			if (ret)
				return mp_fail(err, MP_EXIT_USAGE, ret,
					       "%s is damaged: its segments overlap", path);
		}
	}
	if (!img->threads.n)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s has no registers of any thread: not a core of a process", path);
	return 0;
}

static int check_header(struct image *img, Elf *elf, const char *path, struct mp_err *err)
{
	GElf_Ehdr eh;

	if (!gelf_getehdr(elf, &eh) || eh.e_type != ET_CORE)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s is not a core file", path);
	img->arch = elf_arch(elf);
	if (img->arch && img->arch->elf_data == arch_native()->elf_data)
		return 0;
	if (img->arch)
		return mp_fail(
		    err, MP_EXIT_ARCH, -ENOEXEC,
		    "%s is of a machine (%s) whose byte order differs from this machine's", path,
		    img->arch->name);
	return mp_fail(err, MP_EXIT_ARCH, -ENOEXEC,
		       "%s is of an architecture that this memprof does not know (ELF machine %u, "
		       "%d bits)",
		       path, eh.e_machine, eh.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32);
}

int image_open_core(struct image *img, const char *path, const char *exe, struct mp_err *err)
{
	struct core *c = calloc(1, sizeof(*c));
	struct stat st;
	int ret;

	if (!c)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	c->file = -1;
	c->exe = exe;
	img->backend = c;
	img->ops = &core_ops;
	img->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (img->fd < 0 || fstat(img->fd, &st)) {
		ret = -errno;
		return mp_fail(err, MP_EXIT_USAGE, ret, "cannot open %s: %s", path, strerror(-ret));
	}
	c->file_size = (uint64_t)st.st_size;
	elf_version(EV_CURRENT);
	c->elf = elf_begin(img->fd, ELF_C_READ_MMAP, NULL);
	ret = check_header(img, c->elf, path, err);
	if (!ret)
		ret = take_all(img, c, path, err);
	if (!ret) {
		name_areas(img);
		ret = check_exe(img, exe, err);
	}
	return ret;
}
